#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# PAPI_overflow: a handler is called for each of 40 periods
. ./lib.sh

./papi overflow >"$tmp/said" 2>&1 || fail "$(tail -n 1 "$tmp/said")"
sed 's/^/# /' "$tmp/said"
ok
