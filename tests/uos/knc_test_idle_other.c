// SPDX-License-Identifier: GPL-2.0-only
/* The same by names that no driver of the cards' has. */
#define mic_idle_enter_cc6	knc_test_enter_cc6
#define mic_idle_enter_pc3	knc_test_enter_pc3
#include "knc_test_idle.c"
