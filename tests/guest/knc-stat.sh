#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# tools/knc-stat: exact counts, those of the emulator, turns, and what it refuses
. ./lib.sh

# stat [OPTION...] PROGRAM...
stat()
{
	into said ./knc-stat -x, -o "$tmp/csv" "$@"
}

# exact EVENT COUNT - of what a program of 2^20 rounds more counts more
exact()
{
	stat -e "$1" ./gt --spin20 100000
	_few=$(count "$1")
	stat -e "$1" ./gt --spin20 200000
	between "$1" $(($(count "$1") - _few)) "$2" "$2"
}

# refused STATUS WHY ARGUMENT...
refused()
{
	_want=$1 _why=$2
	shift 2
	./knc-stat "$@" >"$tmp/said" 2>&1
	_got=$?
	[ $_got -eq "$_want" ] || fail "$*: status $_got: $(tail -n 1 "$tmp/said")"
	has said "$_why"
}

# sum EVENT - of all lines, which begin with the time
sum()
{
	awk -F, -v name="$1" '$4 == name { total += $2 } END { printf "%d\n", total }' "$tmp/csv"
}

# A program that starts at another address may take some instructions more.
echo 0 >/proc/sys/kernel/randomize_va_space
rounds=1048576	# of "--spin20 100000": of 20 instructions, one of them a branch
cpus=$(grep -c '^processor' /proc/cpuinfo)
for event in instructions:u instructions_executed:u INSTRUCTIONS_EXECUTED:u r16:u \
	$pmu/instructions_executed/u $pmu/config=0x16/u; do
	exact $event $((20 * rounds))
done
exact branches:u $rounds
echo 2 >/proc/sys/kernel/randomize_va_space

# With a name, in a group, and a time; two do not take turns.
stat -e "{$pmu/event=0x12,name=mine/,instructions}:u,duration_time" ./gt --spin20 100000
between branches "$(count mine:u)" $rounds $((rounds + 50000))
between instructions "$(count instructions:u)" $((20 * rounds)) $((20 * rounds + 200000))
between duration "$(count duration_time)" $((20 * rounds)) 1000000000
[ "$(grep -c ',100.00,,$' "$tmp/csv")" -eq 3 ] || fail "not all the time: $(cat "$tmp/csv")"

# What the program starts is counted, too.
stat -e instructions:u sh -c './gt --spin20 100000 & ./gt --spin20 100000; wait'
between "with children" "$(count instructions:u)" $((40 * rounds)) $((40 * rounds + 1000000))

# All CPUs, against the emulator
stat -a -e instructions:u,branches:u \
	sh -c './gt --true >true; ./gt --spin20 200000; ./gt --true >>true'
read -r insns branches <<-EOT
	$(awk 'NR == 1 { i = $1; b = $3 } END { print $1 - i, $3 - b }' true)
EOT
between "true instructions" "$insns" $((40 * rounds)) $((40 * rounds + 500000))
between instructions "$(count instructions:u)" "$insns" $((insns + 500000))
between branches "$(count branches:u)" "$branches" $((branches + 100000))
stat -a -A -e instructions:u,cycles sleep 0.1
[ "$(grep -c '^CPU[0-9]*,[0-9]*,,' "$tmp/csv")" -eq $((2 * cpus)) ] ||
	fail "-A: $(cat "$tmp/csv")"
stat -C 1 -A -e cycles sleep 0.1
[ "$(cut -d, -f1 "$tmp/csv")" = CPU1 ] || fail "-C 1: $(cat "$tmp/csv")"

# Three turns, as two of the events are on counter 0 only
stat --turn 20 -e instructions:u,branches:u,l2_read_miss:u,cycles:u,l2_write_hit:u \
	./gt --spin20 4000000
between instructions "$(count instructions:u)" $((1260 * rounds)) $((1300 * rounds))
between branches "$(count branches:u)" $((63 * rounds)) $((65 * rounds))
between cycles "$(count cycles:u)" $((2520 * rounds)) $((2700 * rounds))
awk -F, '$5 < 30 || $5 > 40 { exit 1 } $3 ~ /^(inst|l2)/ { all += $5 }
	END { exit all < 99.9 || all > 100.1 }' "$tmp/csv" || fail "shares: $(cat "$tmp/csv")"

# What was counted in its share of the time
stat --turn 20 --no-scale -e instructions:u,branches:u,l2_read_miss:u,cycles:u,l2_write_hit:u \
	./gt --spin20 4000000
awk -F, -v all=$((1280 * rounds)) '$3 == "instructions:u" {
	exit $1 < 0.9 * all * $5 / 100 || $1 > 1.1 * all * $5 / 100 }' "$tmp/csv" ||
	fail "not scaled: $(cat "$tmp/csv")"

# Intervals, and a process that runs, until it ends or for some time
stat -I 100 -e instructions:u ./gt --spin20 1000000
between intervals "$(grep -c , "$tmp/csv")" 4 10
between "sum of intervals" "$(sum instructions:u)" $((320 * rounds)) $((320 * rounds + 200000))
./gt --spin20 2000000 &
stat -p $! -e instructions:u
between "-p" "$(count instructions:u)" $((320 * rounds)) $((640 * rounds + 200000))
./gt --spin20 4000000000000 &
stat -p $! -e instructions:u sleep 0.1
kill $!
between "-p for 0.1 s" "$(count instructions:u)" 20000000 200000000
./knc-stat -x, -o "$tmp/csv" -a &
sleep 0.2
kill $!
wait $! || fail "-a, ended: status $?"
between "-a, cycles" "$(count cycles)" 1 2000000000

# A ^C at a terminal comes to the program once: from the terminal. No Python of Debian's runs
# on the cards' kernel.
cat >"$tmp/ints.py" <<'EOT'
import os, signal, sys, time
if sys.argv[1:]:
    came = []
    signal.signal(signal.SIGINT, lambda *_: came.append(1))
    print("ready", flush=True)
    end = time.monotonic() + 2
    while time.monotonic() < end:
        time.sleep(0.1)
    sys.exit(print(f"{len(came)} times"))
pid, terminal = os.forkpty()
if not pid:
    os.execv("./knc-stat", ["knc-stat", "-o", "/dev/null", "python3", sys.argv[0], "program"])
said = b""
while b"times" not in said:
    said += os.read(terminal, 1000)
    if b"ready" in said and b"^C" not in said:
        os.write(terminal, b"\3")
        time.sleep(0.5)
print(said.decode())
EOT
if [ $pmu = cpu ]; then
	into out python3 "$tmp/ints.py"
	has out '^(\^C)?1 times'
fi

# What the emulator has no model of has no count, by any name.
stat -a -A -e "snp_hitm_bunit,r10e3,$pmu/event=0xe3,umask=0x10,name=mine/,cycles" sleep 0.1
[ "$(grep -c '^CPU[0-9]*,<not modelled>,,' "$tmp/csv")" -eq $((3 * cpus)) ] ||
	fail "without a model: $(cat "$tmp/csv")"

# What is refused, with its reason, and the program's own end
refused 2 'does not fit' -e '{instructions,branches,cycles}' true
refused 2 'does not fit' -e '{l2_read_miss,l2_write_hit}' true
refused 2 'no such event or term$' -e nosuch true
refused 2 'too large' -e $pmu/event=256/ true
refused 2 'without "}"' -e '{cycles' true
refused 2 'after an event' -e 'cycles}' true
refused 2 'modifiers' -e cycles:p true
refused 2 'is called' -e other/cycles/ true
refused 2 'which program' -e cycles
refused 2 'CPU 1 stands twice' -C 0-1,1 -e cycles true
refused 2 '"": no CPUs' -C '' -e cycles true
refused 1 'written: No such file' -o /no/x -e cycles true
refused 2 'has to be' -I often true
refused 2 'more modifiers' -e '{cycles:u}:k' true
refused 1 'no such process' -p 999999
refused 1 'none of the events' -e r80016 true
refused 0 '<not supported> +r80016' -e r80016,cycles true
refused 127 'Workload failed: No such file' ./nosuch
refused 3 'instructions' sh -c 'exit 3'
refused 137 'Killed' sh -c 'kill -9 $$'
ok
