# SPDX-License-Identifier: GPL-2.0-only
#
# "make help" lists the targets. Kbuild says how the driver is built.

KDIR ?= /lib/modules/$(shell uname -r)/build
kbuild = $(MAKE) -C $(KDIR) M=$(CURDIR)

all: modules

modules modules_install: kdir-is-there
	$(kbuild) $@

# The folders that .gitignore has are the user's.
clean:
	find . -name .git -prune -o \( $(patsubst %,-name '%' -o,$(subst /,,$(shell \
		grep '^[^#/]' .gitignore))) -false \) -exec rm -rf {} +

kdir-is-there:
	@test -e '$(KDIR)/Makefile' || { \
		echo '$(KDIR): there is no kernel build tree.' \
		'Install linux-headers-$(shell uname -r), or say "make KDIR=<build tree' \
		'of the kernel of the card>". The emulated card needs none: make demo.' >&2; \
		exit 1; }

# The version is written here, and taken from here; CHANGELOG has a copy.
version := 1.0

# What is installed beside the driver
prefix ?= /usr/local
bindir ?= $(prefix)/bin
includedir ?= $(prefix)/include
datadir ?= $(prefix)/share
mandir ?= $(datadir)/man
tools_dir = $(datadir)/knc-pmu
tools := $(notdir $(filter-out %.c,$(wildcard tools/knc-*)))
tools_files := $(wildcard tools/*.py tools/*.ini tools/*.yml tools/*.html) knc_pmu_events.h

install: install-dev install-tools

install-dev:
	install -d '$(DESTDIR)$(includedir)/knc-pmu' '$(DESTDIR)$(mandir)/man3'
	install -m 644 $(wildcard include/knc_pmu_*.h) '$(DESTDIR)$(includedir)'
	install -m 644 include/likwid-marker.h $(wildcard include/*.f90) \
		'$(DESTDIR)$(includedir)/knc-pmu'
	install -d '$(DESTDIR)$(datadir)/pkgconfig'
	sed -e 's|@prefix@|$(prefix)|; s|@includedir@|$(includedir)|; s|@version@|$(version)|' \
		knc-pmu.pc.in >'$(DESTDIR)$(datadir)/pkgconfig/knc-pmu.pc'
	install -m 644 $(wildcard man/*.3) '$(DESTDIR)$(mandir)/man3'

install-tools:
	install -d '$(DESTDIR)$(bindir)' '$(DESTDIR)$(tools_dir)' '$(DESTDIR)$(mandir)/man1'
	install -m 644 $(tools_files) '$(DESTDIR)$(tools_dir)'
	for t in $(tools); do \
		install -m 755 "tools/$$t" '$(DESTDIR)$(tools_dir)' && \
		ln -sf '$(tools_dir)'/"$$t" '$(DESTDIR)$(bindir)'/"$$t" || exit 1; done
	for t in $(tools); do \
		man/from-help "tools/$$t" $(version) >'$(DESTDIR)$(mandir)/man1'/"$$t.1" && \
		chmod 644 '$(DESTDIR)$(mandir)/man1'/"$$t.1" || exit 1; done
	install -D -m 644 man/knc_pmu.4 '$(DESTDIR)$(mandir)/man4/knc_pmu.4'
	for kind in perf perfmon; do PYTHONDONTWRITEBYTECODE=1 \
		python3 tools/knc_tables.py $$kind '$(DESTDIR)$(tools_dir)'/"$$kind" || exit 1; done
	@echo 'knc-report needs python3-jinja2, knc-host watch python3-prometheus-client.'

book:
	@scripts/build-book

# The last commit as a tarball
dist = knc-pmu-$(version).tar.xz
dist:
	@git -c tar.tar.xz.command='xz -c' archive --prefix=knc-pmu-$(version)/ -o '$(dist)' HEAD
	@echo '$(dist)'

setup demo shell bench bench-emulator bench-tools:
	@scripts/$@

perf:
	@scripts/build-perf

card:
	@scripts/build-card card

tables:
	@python3 tools/knc_tables.py perf tables/perf
	@python3 tools/knc_tables.py perfmon tables/perfmon
	@echo 'tables/perf and tables/perfmon'

bench-card:
	@scripts/bench module builtin --cores 1 61

# What these measure is printed, too.
check-mainline check-series prove: notes := --notes

check:
	@TEST='$(TEST)' scripts/check

# tests/parts says what there is.
check-newest: first := scripts/newest &&
check-%: always
	@$(first) TEST='$(TEST)' scripts/check $* $(notes)

prove:
	@sed -n '/^Not proved/,/^$$/p' Documentation/contributing.rst
	@TEST='$(TEST)' scripts/check prove $(notes)

help:
	@echo 'The driver:'
	@echo '  all, modules     knc_pmu.ko for the running kernel, or for KDIR=<kernel build tree>'
	@echo '  modules_install  put it where modprobe finds it (INSTALL_MOD_PATH=...)'
	@echo '  clean            remove the files of the module'\''s build here'
	@echo '  install          headers, pkg-config file, tools and man pages (prefix=, DESTDIR=)'
	@echo '  dist             the sources of this version as a tarball'
	@echo '  book             the documentation for a browser'
	@echo 'In a kernel tree of your own:'
	@echo '  scripts/install-in-tree <kernel source>'
	@echo 'An emulated card, built once into the cache:'
	@echo '  demo             perf stat and perf record on it'
	@echo '  shell            a shell on it'
	@echo '  setup            install the Debian packages for all of this'
	@echo 'For tools:'
	@echo '  perf             perf with the events and metrics of this chip in its tables;'
	@echo '                   KNC_PMU_PERF=newest takes the newest perf, also for shell'
	@echo '  card             perf and more in a card'\''s code, for both kinds of cards, in card/'
	@echo '  tables           these tables, for perf and in Intel'\''s format, in tables/'
	@echo 'Tests:'
	@echo '  check            those with a star; TEST=<name> for one test'
	@scripts/check --parts
	@echo '  prove            check-prove, with the time and the size of each obligation'
	@echo '  bench-emulator   the emulator'\''s cost, beside the same QEMU unpatched'
	@echo '  bench            the driver'\''s cost, beside the mainline driver; with KDIR and'
	@echo '                   IMAGE as for check-uos, on that kernel, beside its own driver'
	@echo '  bench-tools      reading 1,000,000 samples, beside perf script'
	@echo '  bench-card       the same without the mainline driver, up to 244 threads'

.PHONY: all modules modules_install clean kdir-is-there install install-dev install-tools book \
	dist help setup demo shell perf card tables prove bench bench-card bench-emulator bench-tools check always
