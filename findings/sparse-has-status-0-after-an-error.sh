#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Expected: sparse ends with a status other than 0 if it prints "error:", as compilers do.
# Seen: the status is 0 for an undefined identifier, also with -Werror, so make C=2 passes.
# Versions: sparse 0.6.4-3 of bookworm
# Hurts: a check that only looks at the status never fails.
# shellcheck disable=SC1091,SC2034,SC2094,SC2154
. "$(dirname "$(realpath "$0")")/lib.sh"

packages bookworm sparse=0.6.4-3
echo 'static int f(void) { return not_declared; }' >one.c
run usr/bin/sparse one.c >said 2>&1
echo "sparse: status $?" >>said
run usr/bin/sparse -Werror one.c >/dev/null 2>&1
echo "sparse -Werror: status $?" >>said
cat said
expect "an error" grep -q 'error: undefined identifier' said
expect "and status 0" grep -qx 'sparse: status 0' said
expect "status 0 with -Werror, too" grep -qx 'sparse -Werror: status 0' said
