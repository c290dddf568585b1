/* SPDX-License-Identifier: GPL-2.0-only */
/* The chip executes in order, and nothing that a branch skips. */
#define array_index_nospec(index, size)	(index)
