#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# knc-report on the card: the tutorial's program has a hot line, and what to do about it
. ./lib.sh
symbols_once

into out knc-report -o "$tmp/page.html" -M cpi_thread,l1_tlb_miss_ratio,vpu_stall_ratio \
	-- ./columns
# As text: each tag is a line's end
sed 's/<[^>]*>/\n/g; s/&lt;/</g; s/&gt;/>/g' "$tmp/page.html" >"$tmp/page"
has page '^l1_tlb_miss_ratio exceeds its threshold, most of all at columns\.c:2[678] in sum\. Change the order'
has page '^columns\.c:2[678] in sum has (100|[89][0-9](\.[0-9]+)?) % of the samples of DATA_PAGE_WALK'
has page '^> 2[67] +for \(int i = 0'
has page '^ *[0-9.]+%  [0-9a-f]+: add '
has page '^sum in /.*/columns$'
has page '! above 1\.6$'
[ -s "$tmp/page.data" ] || fail "there is no perf.data beside the page"
has page '^Intel.* \(emulated\) \(family 11, model 1'
has page '^1 core, 4 hardware threads$'
has page "^Linux $(uname -r | sed "s,[.+],[&],g")\$"
has page '^the module( [0-9A-F]+)?$'
has page '^perf version [0-9]'
has page '^core 0, CPU 0, 1, 2, 3: .*[0-9,]{9,}'
# Its callers, by DWARF: sum itself has no frame pointer.
has page '^main: [0-9]+ samples, (100|9[0-9])\.[0-9]%'
has page 'the emulator has no model of VPU_STALL_REG'
[ "$(head -n 1 "$tmp/out")" = "sum 66977792" ] || fail "$(head -n 1 "$tmp/out")"
between "l1_tlb_miss_ratio" "$(sed -n \
	'/id="metric-l1_tlb_/,/<data/s/.*value="\([0-9.]*\)".*/\1/p' "$tmp/page.html")" 15 40

# rows STRIDE PATTERN - what is said of rows that are so far apart
rows()
{
	into said knc-metrics -u -f json -o "$tmp/json" \
		-M l1_read_miss_ratio,l1_misses_in_l2,l1_tlb_miss_ratio ./walk "$1" rows
	into said knc-report -o "$tmp/page.html" "$tmp/json"
	has said "$2"
}
rows 4096 'l1_read_miss_ratio exceeds its threshold\. If rows are a multiple of 4096 bytes apart, make'
rows 4160 'No threshold is exceeded\. Compared: .*l1_read_miss_ratio'
ls -d /tmp/knc-????????????????* 2>/dev/null && fail "it has left something"
ok
