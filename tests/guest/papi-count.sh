#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# A program with PAPI: two presets, two natives, and a third event, for which there
# is no counter
. ./lib.sh

for t in presets natives third; do
	into said ./papi $t
done
ok
