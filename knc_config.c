// SPDX-License-Identifier: GPL-2.0-only
/*
 * The events: names in sysfs, encoding, refusals, counters, groups. Nothing here has state
 * or accesses a register. Section numbers are those of Intel document 327357-001.
 */
#include <linux/bitfield.h>
#include <linux/cpumask.h>
#include <linux/err.h>
#include <linux/errno.h>
#include <linux/nospec.h>
#include <linux/perf_event.h>
#include <linux/sysfs.h>

#include "knc_pmu.h"
#include "knc_pmu_events.h"

/* sysfs: format/ and events/ */

PMU_FORMAT_ATTR(event,	"config:0-7");
PMU_FORMAT_ATTR(umask,	"config:8-15");
PMU_FORMAT_ATTR(edge,	"config:18");
PMU_FORMAT_ATTR(any,	"config:21");
PMU_FORMAT_ATTR(inv,	"config:23");
PMU_FORMAT_ATTR(cmask,	"config:24-31");
PMU_FORMAT_ATTR(spflt,	"config1:0");

static struct attribute *knc_format_attrs[] = {
	&format_attr_event.attr, &format_attr_umask.attr, &format_attr_edge.attr,
	&format_attr_any.attr, &format_attr_inv.attr, &format_attr_cmask.attr,
	&format_attr_spflt.attr, NULL
};

const struct attribute_group knc_pmu_format_group = {
	.name = "format",
	.attrs = knc_format_attrs,
};

static ssize_t knc_event_show(struct device *dev, struct device_attribute *attr,
			      char *page)
{
	struct perf_pmu_events_attr *event;

	event = container_of(attr, struct perf_pmu_events_attr, attr);

	return sysfs_emit(page, "event=0x%02llx,umask=0x%02llx\n",
			  FIELD_GET(KNC_EVNTSEL_EVENT, event->id),
			  FIELD_GET(KNC_EVNTSEL_UMASK, event->id));
}

#define KNC_NAMED_ATTR(unit, code, NAME, name, description)		\
	PMU_EVENT_ATTR(name, knc_event_##name, KNC_EVENT_##NAME, knc_event_show)
#define KNC_GENERIC_ATTR(id, name, ident, NAME)				\
	PMU_EVENT_ATTR(name, knc_generic_##ident, KNC_EVENT_##NAME, knc_event_show)

KNC_EVENTS(KNC_NAMED_ATTR)
KNC_EVENTS_EXTRA(KNC_NAMED_ATTR)
KNC_GENERIC_EVENTS(KNC_GENERIC_ATTR)

#define KNC_NAMED_ATTR_PTR(unit, code, NAME, name, description)		\
	&knc_event_##name.attr.attr,
#define KNC_GENERIC_ATTR_PTR(id, name, ident, NAME)			\
	&knc_generic_##ident.attr.attr,

static struct attribute *knc_events_attrs[] = {
	KNC_GENERIC_EVENTS(KNC_GENERIC_ATTR_PTR)
	KNC_EVENTS(KNC_NAMED_ATTR_PTR)
	KNC_EVENTS_EXTRA(KNC_NAMED_ATTR_PTR)
	NULL
};

const struct attribute_group knc_pmu_events_group = {
	.name = "events",
	.attrs = knc_events_attrs,
};

/* perf's generic events. The bit INT marks an entry: the code of DATA_READ is 0. */
#define KNC_SEL(NAME)	(KNC_EVENT_##NAME | KNC_EVNTSEL_INT)

#define KNC_GENERIC_ENTRY(id, name, ident, NAME)			\
	[PERF_COUNT_HW_##id] = KNC_SEL(NAME),

static const u64 knc_generic_map[PERF_COUNT_HW_MAX] = {
	KNC_GENERIC_EVENTS(KNC_GENERIC_ENTRY)
	KNC_GENERIC_EVENTS_UNOFFERED(KNC_GENERIC_ENTRY)
};

#define KNC_CACHE_ENTRY(cache, op, result, NAME)			\
	[PERF_COUNT_HW_CACHE_##cache]					\
	[PERF_COUNT_HW_CACHE_OP_##op]					\
	[PERF_COUNT_HW_CACHE_RESULT_##result] = KNC_SEL(NAME),

static const u64 knc_cache_map[PERF_COUNT_HW_CACHE_MAX]
			      [PERF_COUNT_HW_CACHE_OP_MAX]
			      [PERF_COUNT_HW_CACHE_RESULT_MAX] = {
	KNC_CACHE_EVENTS(KNC_CACHE_ENTRY)
};

/* Layout of attr.config for PERF_TYPE_HW_CACHE, see perf_event_open(2) */
#define KNC_CACHE_ID		GENMASK_ULL(7, 0)
#define KNC_CACHE_OP		GENMASK_ULL(15, 8)
#define KNC_CACHE_RESULT	GENMASK_ULL(23, 16)

/* Bits of a raw config that users choose, and bits that the kernel sets in any case */
#define KNC_CONFIG_USER		(KNC_EVNTSEL_EVENT | KNC_EVNTSEL_UMASK | \
				 KNC_EVNTSEL_EDGE | KNC_EVNTSEL_ANY | \
				 KNC_EVNTSEL_INV | KNC_EVNTSEL_CMASK)
#define KNC_CONFIG_KERNEL	(KNC_EVNTSEL_USR | KNC_EVNTSEL_OS | \
				 KNC_EVNTSEL_INT | KNC_EVNTSEL_EN)

static int knc_refuse(int err, const char *why)
{
	pr_debug("event refused: %s (%pe)\n", why, ERR_PTR(err));
	return err;
}

static int knc_generic_config(u64 id, u64 *config)
{
	if (id >= PERF_COUNT_HW_MAX)
		return knc_refuse(-EINVAL, "no such generic event");

	*config = knc_generic_map[array_index_nospec(id, PERF_COUNT_HW_MAX)];
	if (!*config)
		return knc_refuse(-ENOENT, "generic event without counterpart");

	return 0;
}

static int knc_cache_config(u64 id, u64 *config)
{
	u64 cache = FIELD_GET(KNC_CACHE_ID, id);
	u64 op = FIELD_GET(KNC_CACHE_OP, id);
	u64 result = FIELD_GET(KNC_CACHE_RESULT, id);

	if (id & ~(KNC_CACHE_ID | KNC_CACHE_OP | KNC_CACHE_RESULT) ||
	    cache >= PERF_COUNT_HW_CACHE_MAX ||
	    op >= PERF_COUNT_HW_CACHE_OP_MAX ||
	    result >= PERF_COUNT_HW_CACHE_RESULT_MAX)
		return knc_refuse(-EINVAL, "no such cache event");

	cache = array_index_nospec(cache, PERF_COUNT_HW_CACHE_MAX);
	op = array_index_nospec(op, PERF_COUNT_HW_CACHE_OP_MAX);
	result = array_index_nospec(result, PERF_COUNT_HW_CACHE_RESULT_MAX);
	*config = knc_cache_map[cache][op][result];
	if (!*config)
		return knc_refuse(-ENOENT, "cache event without counterpart");

	return 0;
}

static int knc_raw_config(struct perf_event *event, u64 *config)
{
	u64 raw = event->attr.config;
	int ret;

	if (raw & ~(KNC_CONFIG_USER | KNC_CONFIG_KERNEL))
		return knc_refuse(-EINVAL, "reserved bits in config");

	/* It counts other threads. perf core checks CPU events; an inherited one was checked. */
	if (raw & KNC_EVNTSEL_ANY && event->attach_state & PERF_ATTACH_TASK && !event->parent) {
		ret = perf_allow_cpu();
		if (ret)
			return knc_refuse(ret, "thread count mode needs privilege");
	}

	*config = raw & KNC_CONFIG_USER;
	return 0;
}

/*
 * perf core accepts an event of a CPU that is coming online, but does not install it. The
 * event would never count, and would refer to its group's leader even after that is freed.
 */
static int knc_check_cpu(const struct perf_event *event)
{
	if (event->attach_state & PERF_ATTACH_TASK || cpu_online(event->cpu))
		return 0;

	return knc_refuse(-ENODEV, "its CPU is not online");
}

static int knc_check_attr(const struct perf_event *event)
{
	const struct perf_event_attr *attr = &event->attr;

	if (attr->config1 & ~KNC_CONFIG1_SPFLT || attr->config2 | attr->config3 | attr->config4)
		return knc_refuse(-EINVAL, "unknown bits in config1 or later");
	if (attr->sample_type & PERF_SAMPLE_BRANCH_STACK)
		return knc_refuse(-EOPNOTSUPP, "no branch records");
	if (attr->precise_ip)
		return knc_refuse(-EOPNOTSUPP, "no precise samples");
	if (attr->exclude_host)
		return knc_refuse(-EOPNOTSUPP, "no guests to count");

	return 0;
}

/**
 * knc_event_counters() - the counters that can count an event
 * @event: an event that knc_event_config() has encoded
 *
 * The manual does not say which. Other drivers put most events of the core-ring interface
 * on counter 0 only; Intel's own tool is reported to put all of them there.
 *
 * Return: a mask of counters.
 */
unsigned long knc_event_counters(const struct perf_event *event)
{
	if (FIELD_GET(KNC_EVNTSEL_UMASK, event->hw.config) == KNC_UNIT_CRI)
		return BIT(0);

	return KNC_COUNTER_MASK;
}

static bool knc_is_constrained(const struct perf_event *event)
{
	return knc_event_counters(event) != KNC_COUNTER_MASK;
}

/*
 * Refuse an event that does not fit the counters beside its leader and the members that are
 * not off, like the x86 core. Members that are off may be enabled one after the other.
 */
static int knc_check_group(struct perf_event *event)
{
	struct perf_event *leader = event->group_leader;
	unsigned int total = 1, constrained = knc_is_constrained(event);
	struct perf_event_context *ctx;
	struct perf_event *sibling;

	/* For an inherited event its parent was checked. */
	if (leader == event || event->parent)
		return 0;
	/* Its CPU went offline. perf core frees such a leader without telling its members. */
	if (!(READ_ONCE(leader->attach_state) & PERF_ATTACH_GROUP))
		return knc_refuse(-ENODEV, "its group is no more");
	if (!is_software_event(leader) && leader->pmu != event->pmu)
		return knc_refuse(-EINVAL, "its group is another PMU's");

	if (leader->pmu == event->pmu) {
		total++;
		constrained += knc_is_constrained(leader);
	}
	ctx = compat_lock_group(leader);
	for_each_sibling_event(sibling, leader) {
		if (sibling->pmu != event->pmu || sibling->state <= PERF_EVENT_STATE_OFF)
			continue;
		total++;
		constrained += knc_is_constrained(sibling);
	}
	compat_unlock_group(ctx);

	if (total > KNC_NUM_COUNTERS || constrained > 1)
		return knc_refuse(-EINVAL, "its group does not fit the counters");

	return 0;
}

/**
 * knc_event_config() - encode an event for PerfEvtSel (1.4.3.3)
 * @event: the event; its attributes are read, @event->hw is set up
 *
 * Return: 0; -EINVAL for bits or generic events that do not exist, or a group that does
 * not fit the counters; -ENOENT for a generic event that the chip lacks; -EOPNOTSUPP
 * for a feature that the PMU lacks; -EACCES for thread count mode without privilege; -ENODEV
 * if the CPU is offline, or was offline after the group's leader was opened.
 */
int knc_event_config(struct perf_event *event)
{
	struct perf_event_attr *attr = &event->attr;
	struct hw_perf_event *hwc = &event->hw;
	u64 config;
	int ret;

	ret = knc_check_cpu(event);
	if (ret)
		return ret;
	ret = knc_check_attr(event);
	if (ret)
		return ret;

	switch (attr->type) {
	case PERF_TYPE_HARDWARE:
		ret = knc_generic_config(attr->config, &config);
		break;
	case PERF_TYPE_HW_CACHE:
		ret = knc_cache_config(attr->config, &config);
		break;
	default:
		ret = knc_raw_config(event, &config);
		break;
	}
	if (ret)
		return ret;

	/* Every event interrupts: 40 bits wrap within minutes (1.4.3.8). */
	config |= KNC_EVNTSEL_INT | KNC_EVNTSEL_EN;
	if (!attr->exclude_user)
		config |= KNC_EVNTSEL_USR;
	if (!attr->exclude_kernel)
		config |= KNC_EVNTSEL_OS;
	hwc->config = config;

	if (!is_sampling_event(event)) {
		hwc->sample_period = KNC_MAX_PERIOD;
		hwc->last_period = hwc->sample_period;
		local64_set(&hwc->period_left, hwc->sample_period);
	}

	return knc_check_group(event);
}
