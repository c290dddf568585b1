#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Expected: what perf stat -j prints is JSON in every locale.
# Seen: in German it has "pcnt-running" : 100,00 without quotes, which no parser takes. Every line has
#	that field. "counter-value" is in quotes, and has a comma too. -x, prints 0,53,msec: a field
#	more than without a decimal comma.
# Versions: linux-perf 7.3.4-1~bpo13+1 of trixie-backports, locales and libc-bin of trixie; perf
#	6.1.187 of bookworm does the same
# Hurts: scripts that work where they were written. LC_ALL=C in front of perf helps, but the program
#	that is measured has it then, too.
. "$(dirname "$(realpath "$0")")/lib.sh"

packages 'trixie trixie-backports' linux-perf=7.3.4-1~bpo13+1 locales libc-bin
mkdir locales
I18NPATH=$root/usr/share/i18n run usr/bin/localedef -i de_DE -f UTF-8 "$work/locales/de_DE" || exit 2
export LOCPATH="$work/locales"
for locale in C de_DE; do
	for form in -j '-x,'; do
		LC_ALL=$locale run usr/bin/perf stat $form -o $locale$form -e task-clock true || exit 2
		echo "$locale, $form: $(grep clock $locale$form)"
	done
	grep clock $locale-j >$locale.json
done
is_json()
{
	python3 -m json.tool "$1" >/dev/null 2>said
}
expect "JSON in locale C" is_json C.json
expect "no JSON in locale de_DE" eval '! is_json de_DE.json'
expect "because of 100,00" grep -q '"pcnt-running" : 100,00}' de_DE.json
expect "a comma in a field of -x," grep -q '^[0-9]*,[0-9]*,msec,task-clock,' de_DE-x,
