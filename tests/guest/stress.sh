#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Debian's stress-ng: switches, signals, processes that come and go, and its own events
. ./lib.sh
. ./strangers.sh

# Eight busy threads make the emulator that much slower.
seconds=$((seconds / 8 + 1))

strangers stress-ng --perf --switch 2 --fork 2 --clone 1 --signal 2 --mmap 1 --timer 2 \
	--affinity 2 --vm 1 --vm-bytes 16M --seed "${TEST_FUZZ_SEED:-1263420240}" \
	--timeout $((seconds + 4))s
ok
