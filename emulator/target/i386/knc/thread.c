/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Knights Corner: the host's thread that executes all threads of the card
 *
 * In place of the one that QEMU has for -icount, whose clock and order of
 * threads are others.
 */
#include "qemu/osdep.h"
#include "qemu/guest-random.h"
#include "qemu/main-loop.h"
#include "qemu/rcu.h"
#include "accel/tcg/tcg-accel-ops.h"
#include "cpu.h"
#include "tcg/tcg.h"
#include "internal.h"

static void kick_all(void)
{
    CPUState *cs;

    CPU_FOREACH(cs) {
        knc_tcg_exit(cs);
    }
}

/* If the thread that executes kicks itself without work, it has set a timer. */
static void knc_kick(CPUState *cs)
{
    if (qemu_in_vcpu_thread() && cs == current_cpu && !cs->stop &&
        cpu_work_list_empty(cs)) {
        knc_clock_armed();
    } else {
        kick_all();
    }
}

static void knc_force_rcu(Notifier *notify, void *data)
{
    kick_all();
}

/* The main loop asks so as to move QEMU's own clock, which nothing reads. */
static bool knc_is_idle(CPUState *cs)
{
    return qemu_in_vcpu_thread();
}

/* Returns false if QEMU has something else to do first. */
static bool execute(CPUState *cs)
{
    int reason;

    current_cpu = cs;
    qemu_clock_enable(QEMU_CLOCK_VIRTUAL,
                      !(knc_singlestep(cs) & SSTEP_NOTIMER));
    if (!cpu_can_run(cs)) {
        return !cs->stop;
    }
    bql_unlock();
    knc_clock_begin(cs);
    reason = tcg_cpu_exec(cs);
    knc_clock_end(cs);
    bql_lock();
    if (reason == EXCP_DEBUG) {
        cpu_handle_guest_debug(cs);
    }
    return reason != EXCP_DEBUG;
}

static void *execute_all(void *first)
{
    Notifier force_rcu = { .notify = knc_force_rcu };
    CPUState *cs = first, *other;

    rcu_register_thread();
    rcu_add_force_rcu_notifier(&force_rcu);
    tcg_register_thread();
    bql_lock();
    qemu_thread_get_self(cs->thread);
    cs->thread_id = qemu_get_thread_id();
    knc_can_do_io(cs) = true;
    current_cpu = cs;
    cpu_thread_signal_created(cs);
    qemu_guest_random_seed_thread_part2(cs->random_seed);

    for (cs = NULL;;) {
        while (all_cpu_threads_idle() && !knc_clock_idle()) {
            qemu_cond_wait_bql(first_cpu->halt_cond);
        }
        CPU_FOREACH(other) {
            qemu_wait_io_event_common(other);
        }
        cs = cs ? cs : knc_clock_next(NULL);
        while (cs && cpu_work_list_empty(cs) && !cs->exit_request &&
               execute(cs)) {
            cs = knc_clock_next(cs);
        }
        if (cs && cs->exit_request) {
            qatomic_set(&cs->exit_request, 0);
            smp_mb(); /* before it looks for why it was set */
        }
    }
    return NULL;
}

static void knc_create_thread(CPUState *cs)
{
    static QemuThread *thread;
    static QemuCond *halt_cond;
    bool is_first = !thread;

    if (is_first) {
        thread = g_new0(QemuThread, 1);
        halt_cond = g_new0(QemuCond, 1);
        qemu_cond_init(halt_cond);
    }
    tcg_cpu_init_cflags(cs, false);
    /* QEMU 10 has made some for each CPU. */
    g_free(cs->thread);
    g_free(cs->halt_cond);
    cs->thread = thread;
    cs->halt_cond = halt_cond;
    if (is_first) {
        qemu_thread_create(thread, "ALL CPUs/KNC", execute_all, cs,
                           QEMU_THREAD_JOINABLE);
    } else {
        cs->thread_id = first_cpu->thread_id;
        knc_can_do_io(cs) = true;
        cs->created = true;
    }
}

void knc_thread_init(AccelOpsClass *ops)
{
    ops->create_vcpu_thread = knc_create_thread;
    ops->kick_vcpu_thread = knc_kick;
    ops->cpu_thread_is_idle = knc_is_idle;
    ops->get_virtual_clock = knc_clock_read;
    ops->get_elapsed_ticks = knc_clock_read;
}
