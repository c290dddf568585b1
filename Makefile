# SPDX-License-Identifier: GPL-2.0-only
#
# For whoever types make here; "make help" says for what. How the driver is built
# is in Kbuild.

KDIR ?= /lib/modules/$(shell uname -r)/build
kbuild = $(MAKE) -C $(KDIR) M=$(CURDIR)

all: modules

modules modules_install clean: kdir-is-there
	$(kbuild) $@

kdir-is-there:
	@test -e '$(KDIR)/Makefile' || { \
		echo '$(KDIR): there is no kernel build tree.' \
		'Install linux-headers-$(shell uname -r), or say "make KDIR=<build tree' \
		'of the kernel of the card>". The emulated card needs none: make demo.' >&2; \
		exit 1; }

setup demo shell bench bench-emulator:
	@scripts/$@

bench-card:
	@scripts/bench module builtin --cores 1 61

check:
	@TEST='$(TEST)' scripts/check scripts unit static emulator guest

check-scripts check-unit check-static check-emulator check-guest check-card check-debug \
check-mainline check-kernels:
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
	@echo '  check            scripts, unit, static, emulator and guest; TEST=<name> for one test'
	@echo '  check-scripts    the scripts for users, without booting anything'
	@echo '  check-unit       KUnit'
	@echo '  check-static     sparse, checkpatch, gcc and clang with W=1'
	@echo '  check-emulator   the emulator alone, without the driver'
	@echo '  check-guest      the driver on the emulated card; TEST=<name> for one'
	@echo '  check-card       the same on all 244 threads of a card: perf stat -a'
	@echo '  check-debug      the same with KASAN, UBSAN, lockdep and kmemleak'
	@echo '  check-mainline   that the tests find the known defects of the mainline driver,'
	@echo '                   and that they are gone with the two fixes'
	@echo '  check-kernels    module and built in on Linux 6.1, 6.12 and the newest; an hour'
	@echo '  bench-emulator   what the emulator costs, beside the same QEMU unpatched'
	@echo '  bench            what the driver costs, beside the mainline driver'
	@echo '  bench-card       the same without the mainline driver, up to 244 threads'

.PHONY: all modules modules_install clean kdir-is-there help setup demo shell bench bench-card bench-emulator check \
	check-scripts check-unit check-static check-emulator check-guest check-card check-debug check-mainline \
	check-kernels
