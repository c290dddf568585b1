# SPDX-License-Identifier: GPL-2.0-only
#
# Read twice: by kbuild, in a kernel tree (arch/x86/events/knc) or out of it,
# and by whoever types make here; "make help" says for what.

ifneq ($(KERNELRELEASE),)

# Out of tree it is always a module; in a tree it is what .config says. Built in,
# its host is the x86 perf core; the module brings a host of its own.
knc-pmu := $(if $(KBUILD_EXTMOD),m,$(CONFIG_KNC_PMU))

obj-$(knc-pmu) += knc_pmu.o
knc_pmu-y := knc_pmu_backend.o knc_pmi.o spflt.o
knc_pmu-y += $(if $(filter y,$(knc-pmu)),knc_builtin.o,knc_module.o)

# A module cannot have a part of its own name, and both names are given: the
# module's and the source file's. So the object is called something else, by the
# same rule as every other object (C=1 and W=1 work as ever).
$(obj)/knc_pmu_backend.o: $(src)/knc_pmu.c FORCE
	$(call if_changed_rule,cc_o_c)
	$(call cmd,force_checksrc)

ifndef KBUILD_EXTMOD
obj-$(CONFIG_KNC_PMU_KUNIT_TEST) += tests/unit/
endif

else

KDIR ?= /lib/modules/$(shell uname -r)/build
kbuild = $(MAKE) -C $(KDIR) M=$(CURDIR)

all: modules

modules modules_install clean:
	$(kbuild) $@

setup demo shell bench bench-emulator:
	@scripts/$@

check:
	@scripts/check unit static emulator guest

check-unit check-static check-emulator check-guest check-debug check-mainline:
	@TEST='$(TEST)' scripts/check $(patsubst check-%,%,$@)

help:
	@echo 'The driver:'
	@echo '  all, modules     knc_pmu.ko for the running kernel, or for KDIR=<kernel build tree>'
	@echo '  modules_install  put it where modprobe finds it (INSTALL_MOD_PATH=...)'
	@echo '  clean            remove what was built here; the cache stays'
	@echo 'In a kernel tree of your own:'
	@echo '  scripts/install-in-tree <kernel source>'
	@echo 'An emulated card, built once into the cache:'
	@echo '  demo             perf stat and perf record on it'
	@echo '  shell            a shell on it'
	@echo '  setup            install the Debian packages that all this needs'
	@echo 'Tests:'
	@echo '  check            the four that follow'
	@echo '  check-unit       KUnit'
	@echo '  check-static     sparse, checkpatch, gcc and clang with W=1'
	@echo '  check-emulator   the emulator alone, without the driver'
	@echo '  check-guest      the driver on the emulated card; TEST=<name> for one test'
	@echo '  check-debug      the same with KASAN, UBSAN, lockdep and kmemleak'
	@echo '  check-mainline   that the tests find the known defects of the mainline driver'
	@echo '  bench-emulator   what the emulator costs, beside the same QEMU unpatched'
	@echo '  bench            what the driver costs, beside the mainline driver'

.PHONY: all modules modules_install clean help setup demo shell bench bench-emulator check \
	check-unit check-static check-emulator check-guest check-debug check-mainline

endif
