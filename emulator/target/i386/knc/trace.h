/* SPDX-License-Identifier: GPL-2.0-only */
#include "trace/trace-target_i386_knc.h"
