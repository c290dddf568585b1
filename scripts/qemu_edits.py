# SPDX-License-Identifier: GPL-2.0-only
"""Edits of QEMU's files, for chosen versions of QEMU; and DEFECTS, which fix QEMU itself, for
all of its CPU models
"""
from knc_scripts import Edit

NEW, OLD = (8, 0), (7, 999)
TRANSLATE = "target/i386/tcg/translate.c"
DECODE = "target/i386/tcg/decode-new.c.inc"
EMIT = "target/i386/tcg/emit.c.inc"


class Instead(Edit):
    """One text for another, in a line that the pattern finds, in these versions of QEMU; or in
    those without the text @fixed, where stable versions differ"""

    def __init__(self, path, pattern, old, new, count=1, since=(0,), until=(999,), fixed=""):
        super().__init__(path, pattern, old, new, count)
        self.since, self.until, self.fixed = since, until, fixed


class After(Instead):
    """Lines behind the one that the pattern ends with"""

    def __init__(self, path, pattern, added, **more):
        super().__init__(path, pattern + "\n", "", added + "\n", **more)

    def place(self, found):
        return found.group(0) + self.new


class Before(Instead):
    """Lines before the one that the pattern begins with"""

    def __init__(self, path, pattern, added, **more):
        super().__init__(path, pattern, "", added + "\n", **more)

    def place(self, found):
        return self.new + found.group(0)


DEFECTS = (
    # Reserved bits of a register: QEMU leaves a virtual machine, though it is in none.
    Instead("{system}/misc_helper.c", r"^ +cpu_vmexit\(env, SVM_EXIT_ERR, 0, GETPC\(\)\);$",
            "cpu_vmexit(env, SVM_EXIT_ERR, 0,",
            "raise_exception_err_ra(env, EXCP0D_GPF, /* reserved */ 0,", 2),
    # Only ring 0, and not in long mode, goes to V86 mode.
    Instead("target/i386/tcg/seg_helper.c",
            r"^                if \(new_eflags & VM_MASK\) \{\n +goto return_to_vm86;$",
            "(new_eflags & VM_MASK)",
            "((new_eflags & VM_MASK) &&\n"
            "                    !(env->hflags & (HF_LMA_MASK | HF_CPL_MASK)))",
            fixed="allow_vm86"),
    # SETcc works out the flags before a store that may fault.
    After(TRANSLATE, r"^        gen_setcc1\(s, b, s->T0\);$", "        gen_knc_flags_kept(s);",
          until=OLD),
    After(EMIT, r"^    gen_setcc1?\(s, decode->b & 0xf, s->T0\);$", "    gen_knc_flags_kept(s);",
          since=NEW),
    # RCL and RCR add a carry of many bits after SHLD of 16 bits.
    Instead(EMIT, r"^ +tcg_gen_shri_tl\(decode->cc_dst, cpu_cc_src, \(8 << size\) - 1\);$",
            "tcg_gen_shri_tl(decode->cc_dst, cpu_cc_src, (8 << size) - 1);",
            "tcg_gen_extract_tl(decode->cc_dst, cpu_cc_src, (8 << size) - 1, 1);", since=NEW),
    # These helpers take the flags from what cc_op says.
    After(TRANSLATE, r"^    case 0x1c7: /\* cmpxchg8b \*/$",
          "        gen_update_cc_op(s); /* for CMPXCHG8B */", until=OLD),
    Before(TRANSLATE, r"^        gen_helper_syscall\(cpu_env, cur_insn_len_i32\(s\)\);$",
           "        gen_update_cc_op(s); /* for SYSCALL */", until=OLD),
    # An instruction ends in a page that is a device, or nothing.
    Instead("accel/tcg/translator.c", r"^            assert\(phys_page != -1\);$",
            "assert(phys_page != -1);",
            "if (phys_page == -1) {\n"
            "                tb_set_page_addr0(tb, -1);\n"
            "                return NULL;\n            }", until=OLD),
    # These have no address to lock.
    After(TRANSLATE, r"^    bt_op:$",
          "        if (mod == 3 && (s->prefix & PREFIX_LOCK)) {\n"
          "            goto illegal_op; /* LOCK BTS of a register */\n"
          "        }", until=OLD),
)
