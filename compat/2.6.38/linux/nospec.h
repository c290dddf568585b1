/* SPDX-License-Identifier: GPL-2.0-only */
/* The chip executes in order, and nothing that may not be. */
#define array_index_nospec(index, size)	(index)
