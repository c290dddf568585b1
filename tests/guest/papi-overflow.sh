#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# PAPI_overflow: a handler is called for each of 40 periods
. ./lib.sh

into said ./papi overflow
sed 's/^/# /' "$tmp/said"
ok
