/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef _KNC_COMPAT_LINUX_BITFIELD_H
#define _KNC_COMPAT_LINUX_BITFIELD_H

#include "../bits.h"

#define FIELD_GET		COMPAT_FIELD_GET

#endif /* _KNC_COMPAT_LINUX_BITFIELD_H */
