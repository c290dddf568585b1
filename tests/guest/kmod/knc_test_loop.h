/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/* /dev/knc-test-loop: a loop of known length in kernel mode. */
#ifndef KNC_TEST_LOOP_H
#define KNC_TEST_LOOP_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define KNC_TEST_LOOP_DEVICE	"/dev/knc-test-loop"
#define KNC_TEST_LOOP_EVENTS	2

/**
 * struct knc_test_loop - one run of the loop
 * @iterations: of 2 instructions each, 1 of them a branch
 * @nr: events to read before and after, each active on this CPU
 * @fd: their file descriptors
 * @delta: filled in: what each counted from the one reading to the other
 */
struct knc_test_loop {
	__u64 iterations;
	__u32 nr;
	__s32 fd[KNC_TEST_LOOP_EVENTS];
	__u32 pad;
	__u64 delta[KNC_TEST_LOOP_EVENTS];
};

#define KNC_TEST_LOOP_RUN	_IOWR('k', 0x70, struct knc_test_loop)

#endif
