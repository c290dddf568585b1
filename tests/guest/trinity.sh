#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Debian's system call fuzzer, with system calls that concern events
. ./lib.sh
. ./strangers.sh

# trinity fails if the kernel lacks some of the files that it opens.
strangers trinity -q -q -l off -C 6 -a 64 -s "${TEST_FUZZ_SEED:-1263420240}" \
	--enable-fds=perf,pipes,eventfd \
	-c perf_event_open -c ioctl -c mmap -c munmap -c mremap -c read -c close -c dup \
	-c fork -c prctl -c sched_setaffinity -c poll -c setpgid -c fcntl
ok
