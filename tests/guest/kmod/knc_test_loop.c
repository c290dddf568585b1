// SPDX-License-Identifier: GPL-2.0-only
/*
 * A loop of known length in kernel mode, with interrupts off, and what events count
 * from right before to right after it.
 *
 * The events are read through their PMU's read(), as the kernel does: the cost of the
 * reads does not depend on the loop's length.
 */
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/irqflags.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/perf_event.h>
#include <linux/uaccess.h>

#include "knc_test_loop.h"

static noinline void spin(unsigned long iterations)
{
	asm volatile("test %0, %0\n\t"
		     "jz 2f\n"
		     "1:\tdec %0\n\t"
		     "jnz 1b\n"
		     "2:"
		     : "+r" (iterations) : : "cc");
}

/* as in Linux 2.6.38 */
#ifndef READ_ONCE
#define READ_ONCE(x)	ACCESS_ONCE(x)
#endif

static bool is_active_here(struct perf_event *event)
{
	return READ_ONCE(event->state) == PERF_EVENT_STATE_ACTIVE &&
	       READ_ONCE(event->oncpu) == smp_processor_id();
}

static noinline u64 count_of(struct perf_event *event)
{
	event->pmu->read(event);
	return local64_read(&event->count);
}

static int run_loop(struct knc_test_loop *run, struct perf_event **events)
{
	unsigned long flags;
	int ret = 0;
	u32 i;

	local_irq_save(flags);
	for (i = 0; i < run->nr; i++) {
		if (!is_active_here(events[i]))
			ret = -EAGAIN;
	}
	if (!ret) {
		for (i = 0; i < run->nr; i++)
			run->delta[i] = -count_of(events[i]);
		spin(run->iterations);
		for (i = 0; i < run->nr; i++)
			run->delta[i] += count_of(events[i]);
	}
	local_irq_restore(flags);
	return ret;
}

static long knc_test_loop_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct perf_event *events[KNC_TEST_LOOP_EVENTS];
	struct file *files[KNC_TEST_LOOP_EVENTS];
	void __user *user = (void __user *)arg;
	struct knc_test_loop run;
	long ret = 0;
	u32 i;

	/* The descriptors must be events: only root can open the device. */
	if (cmd != KNC_TEST_LOOP_RUN)
		return -ENOTTY;
	if (copy_from_user(&run, user, sizeof(run)))
		return -EFAULT;
	if (run.nr > KNC_TEST_LOOP_EVENTS)
		return -EINVAL;

	for (i = 0; i < run.nr; i++) {
		files[i] = fget(run.fd[i]);
		if (!files[i]) {
			ret = -EBADF;
			goto put;
		}
		events[i] = files[i]->private_data;
	}
	ret = run_loop(&run, events);
	if (!ret && copy_to_user(user, &run, sizeof(run)))
		ret = -EFAULT;
put:
	while (i--)
		fput(files[i]);
	return ret;
}

static const struct file_operations knc_test_loop_fops = {
	.owner		= THIS_MODULE,
	.unlocked_ioctl	= knc_test_loop_ioctl,
};

static struct miscdevice knc_test_loop_device = {
	.minor	= MISC_DYNAMIC_MINOR,
	.name	= "knc-test-loop",
	.fops	= &knc_test_loop_fops,
	.mode	= 0600,
};

static int __init knc_test_loop_init(void)
{
	return misc_register(&knc_test_loop_device);
}
module_init(knc_test_loop_init);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("A loop of known length in kernel mode, for tests");
