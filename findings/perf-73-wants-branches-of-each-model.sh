#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Expected: tables of events that jevents.py takes are enough for a model of Intel's.
# Seen: perf's build also runs intel_metrics.py for each directory of arch/x86 that is not AMD's. It
#	ends with an exception, and the build with it, if the tables have neither
#	BR_INST_RETIRED.ALL_BRANCHES nor BR_INST_RETIRED.ANY.
# Versions: linux-source-7.3 7.3.4-1~bpo13+1 of trixie-backports; python3 of the host
# Hurts: who adds a processor without these events.
. "$(dirname "$(realpath "$0")")/lib.sh"

packages 'trixie trixie-backports' linux-source-7.3=7.3.4-1~bpo13+1
tar -xf "$root"/usr/src/linux-source-7.3.tar.xz --wildcards '*/tools/perf/pmu-events' || exit 2
cd linux-source-7.3/tools/perf/pmu-events || exit 2
mkdir arch/x86/newmodel && cat >arch/x86/newmodel/core.json <<END || exit 2
[{ "EventCode": "0x12", "EventName": "BRANCHES", "UMask": "0x00", "BriefDescription": "Branches" }]
END
echo "GenuineIntel-6-FF,v1,newmodel,core" >>arch/x86/mapfile.csv
expect "jevents.py makes a table of it" python3 jevents.py x86 newmodel arch table.c
expect "with the event" grep -q branches table.c
python3 intel_metrics.py newmodel arch >metrics 2>said
echo "intel_metrics.py: status $?, $(grep -o '^Exception: [^:]*' said)"
expect "it misses two others" grep -q 'No event BR_INST_RETIRED.ALL_BRANCHES or BR_INST_RETIRED.ANY' said
