// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A plugin for gcc: float and double in programs for a Knights Corner, which has no SSE.
 *
 * The ABI of x86-64 passes and returns them in SSE registers. Without these (-mno-sse), gcc
 * passes them on the stack, but refuses a function that returns one, and va_arg(ap, double).
 * With this plugin they are returned in ST(0), as on i386 and as long double is. A struct or
 * a complex number that has one is returned in memory, and va_arg() takes all of them from the
 * stack, where the caller has put them. Vectors are refused as before.
 *
 * gcc asks its target for these by the hooks in targetm, which are replaced here.
 */
#include "gcc-plugin.h"
#include "plugin-version.h"
#include "tm.h"
#include "tree.h"
#include "rtl.h"
#include "target.h"
#include "gimple.h"
#include "gimplify.h"
#include "fold-const.h"
#include "tree-pass.h"

int plugin_is_GPL_compatible;

static struct gcc_target was;

static bool in_st0(machine_mode mode)
{
	return mode == SFmode || mode == DFmode;
}

/* The eightbytes of a value of which a part at @bit has floats, and which have other things */
static void classify(const_tree type, HOST_WIDE_INT bit, unsigned int *floats,
		     unsigned int *others)
{
	HOST_WIDE_INT end = bit + BITS_PER_UNIT * int_size_in_bytes(type), step;

	switch (TREE_CODE(type)) {
	case RECORD_TYPE:
	case UNION_TYPE:
	case QUAL_UNION_TYPE:
		for (tree field = TYPE_FIELDS(type); field; field = DECL_CHAIN(field))
			if (TREE_CODE(field) == FIELD_DECL)
				classify(TREE_TYPE(field), bit + int_bit_position(field), floats,
					 others);
		return;
	case COMPLEX_TYPE:
	case ARRAY_TYPE:
		step = BITS_PER_UNIT * int_size_in_bytes(TREE_TYPE(type));
		for (; step > 0 && bit < end; bit += step)
			classify(TREE_TYPE(type), bit, floats, others);
		return;
	default:
		for (; bit < end; bit += BITS_PER_UNIT)
			*(in_st0(TYPE_MODE(type)) ? floats : others) |= 1 << bit / BITS_PER_WORD;
	}
}

/*
 * Does the ABI have a value of this type, or a part of it, in an SSE register? So it is with
 * each eightbyte of it that has floats alone, if there are no more than two.
 */
static bool in_sse(const_tree type)
{
	HOST_WIDE_INT size = int_size_in_bytes(type);
	unsigned int floats = 0, others = 0;

	if (size <= 0 || size > 2 * UNITS_PER_WORD)
		return false;
	classify(type, 0, &floats, &others);
	return floats & ~others;
}

static rtx function_value(const_tree type, const_tree fn, bool outgoing)
{
	if (TREE_CODE(type) == REAL_TYPE && in_st0(TYPE_MODE(type)))
		return gen_rtx_REG(TYPE_MODE(type), FIRST_FLOAT_REG);
	return was.calls.function_value(type, fn, outgoing);
}

/* Of a function of libgcc */
static rtx libcall_value(machine_mode mode, const_rtx fn)
{
	return in_st0(mode) ? gen_rtx_REG(mode, FIRST_FLOAT_REG) :
			      was.calls.libcall_value(mode, fn);
}

static bool return_in_memory(const_tree type, const_tree fntype)
{
	return (TREE_CODE(type) != REAL_TYPE && in_sse(type)) ||
	       was.calls.return_in_memory(type, fntype);
}

/* gcc's own asks for registers without the hook, and reports that there is no SSE. */
static bool function_ok_for_sibcall(tree decl, tree call)
{
	return !in_sse(TREE_TYPE(call)) &&
	       !in_sse(TREE_TYPE(DECL_RESULT(current_function_decl))) &&
	       was.function_ok_for_sibcall(decl, call);
}

/* The next argument is at overflow_arg_area, the third member of va_list. */
static tree gimplify_va_arg_expr(tree ap, tree type, gimple_seq *pre, gimple_seq *post)
{
	tree area, address, next;
	HOST_WIDE_INT size, align;

	if (!in_sse(type))
		return was.gimplify_va_arg_expr(ap, type, pre, post);
	area = DECL_CHAIN(DECL_CHAIN(TYPE_FIELDS(TREE_TYPE(ap))));
	area = build3(COMPONENT_REF, TREE_TYPE(area), ap, area, NULL_TREE);
	align = targetm.calls.function_arg_boundary(VOIDmode, type) / BITS_PER_UNIT;
	address = unshare_expr(area);
	if (align > UNITS_PER_WORD) {
		address = fold_build_pointer_plus_hwi(address, align - 1);
		address = fold_convert(sizetype, address);
		address = fold_build2(BIT_AND_EXPR, sizetype, address, build_int_cst(sizetype, -align));
		address = fold_convert(TREE_TYPE(area), address);
	}
	address = get_initialized_tmp_var(address, pre);
	size = ROUND_UP(int_size_in_bytes(type), UNITS_PER_WORD);
	next = fold_build_pointer_plus_hwi(address, size);
	gimplify_assign(area, next, pre);
	return build_simple_mem_ref(fold_convert(build_pointer_type(type), address));
}

/* Of gcc 14 on, whatever -falign-loops says: its padding is NOPs with operands. */
static void no_align_tight_loops(void *gate, void *)
{
	if (!strcmp(current_pass->name, "align_tight_loops"))
		*static_cast<bool *>(gate) = false;
}

int plugin_init(struct plugin_name_args *args, struct plugin_gcc_version *version)
{
	if (!plugin_default_version_check(version, &gcc_version)) {
		fprintf(stderr, "%s: was built for another gcc\n", args->full_name);
		return 1;
	}
	register_callback(args->base_name, PLUGIN_OVERRIDE_GATE, no_align_tight_loops, NULL);
	was = targetm;
	targetm.calls.function_value = function_value;
	targetm.calls.libcall_value = libcall_value;
	targetm.calls.return_in_memory = return_in_memory;
	targetm.function_ok_for_sibcall = function_ok_for_sibcall;
	targetm.gimplify_va_arg_expr = gimplify_va_arg_expr;
	return 0;
}
