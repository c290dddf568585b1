# SPDX-License-Identifier: GPL-2.0-only
#
# own.awk - find instructions that only this chip has, for check-k1om
#
# awk -v file=FILE -v module=no -v reports=REPORTS -f own.awk TABLE KNOWN DISASSEMBLY
#
# TABLE is the emulator's table of MVEX instructions. DISASSEMBLY is objdump's, which may not
# know own instructions: what it prints after one may begin anywhere, and is right only when there
# are NOPs in its place. KNOWN are those that have them: place in the file, length, name ("-" if it
# does not need the vector unit). Prints such lines: after "-" for a known one where objdump has no
# instruction, now that more is known before it, then after "+" for those that are not known. If it
# prints nothing, KNOWN is right, and so is REPORTS: a line for each MVEX instruction that is
# undefined, each EVEX one and, with module=yes, each that needs the vector unit.

function number(hex,    i, n)
{
	# Of an address of the kernel the first digits are always the same.
	for (i = length(hex) > 12 ? length(hex) - 11 : 1; i <= length(hex); i++)
		n = 16 * n + index("0123456789abcdef", substr(hex, i, 1)) - 1
	return n
}

function byte(at)
{
	return number(substr(code, 2 * at + 1, 2))
}

function bits(value, lowest, count)
{
	return int(value / 2 ^ lowest) % 2 ^ count
}

# Bytes of ModRM, SIB and displacement
function operands(at,    mod, base)
{
	mod = bits(byte(at), 6, 2)
	base = bits(byte(at), 0, 3)
	if (mod == 3)
		return 1
	if (base != 4)
		return 1 + (mod == 1 ? 1 : mod == 2 || base == 5 ? 4 : 0)
	base = bits(byte(at + 1), 0, 3)
	return 2 + (mod == 1 ? 1 : mod == 2 || base == 5 ? 4 : 0)
}

function mvex_length(at,    p0, p1, p2, modrm, vvvv, key, valid)
{
	p0 = byte(at + 1)
	p1 = byte(at + 2)
	p2 = byte(at + 3)
	modrm = byte(at + 5)
	vvvv = 31 - bits(p2, 3, 1) * 16 - bits(p1, 3, 4)
	name = bits(p1, 2, 1) ? "EVEX, which the chip lacks" : "an undefined form of MVEX"
	key = bits(p0, 0, 4) " " bits(p1, 0, 2) " " bits(p1, 7, 1) " " substr(code, 2 * at + 9, 2)
	if (!(key in shape))
		key = key (key " EH0" in shape ? " EH" bits(p2, 7, 1) : " " bits(modrm, 3, 3))
	if (bits(p1, 2, 1) || !(key in shape))
		return 0

	if (modrm < 192)
		valid = memory[operand[key]]
	else if (shape[key] !~ /^(UNARY|BINARY|SETS|SHIFT|COMPARE|CARRY)$/)
		valid = ""
	else if (bits(p2, 7, 1))
		valid = eh[key] == "ZERO" ? "0" : eh[key] == "NEVER" ? "" : "01234567"
	else
		valid = operand[key] ~ /_4|N32/ ? "0" : "01234567"
	if (!index(valid, bits(p2, 4, 3)))
		return 0

	if (shape[key] ~ /GATHER|SCATTER/) {
		# Bits of the index and of the register are inverted, but for the lowest three.
		if (!bits(p2, 0, 3) || vvvv % 16 || bits(modrm, 0, 3) != 4 || shape[key] == "GATHER" &&
		    bits(p2, 3, 1) == bits(p0, 4, 1) && bits(p0, 6, 1) == bits(p0, 7, 1) &&
		    bits(byte(at + 6), 3, 3) == bits(modrm, 3, 3))
			return 0
	} else if (shape[key] == "SETS") {
		if (!bits(p2, 0, 3))
			return 0
	} else if (shape[key] == "COMPARE") {
		if (!bits(p0, 7, 1) || !bits(p0, 4, 1))
			return 0
	} else if (shape[key] == "CARRY" ? vvvv > 7 : shape[key] !~ /BINARY|SHIFT/ && vvvv) {
		return 0
	}
	name = names[key]
	unit = shape[key] != "HINT"
	return 5 + operands(at + 5) + (key ~ /^3|^1 . . (70|72|c2)/)
}

# @p0 and @p1 are the bytes of C4; of C5 both are its only one.
function vex_length(at, p0, p1, opcode,    map, how)
{
	map = at + 2 == opcode ? 1 : bits(p0, 0, 5)
	how = map " " bits(p1, 0, 2) " " substr(code, 2 * opcode + 1, 2)
	if (!(how in vex))
		how = how " " bits(byte(opcode + 1), 3, 3)
	if (bits(p1, 2, 1) || !(how in vex))
		return 0
	name = vex[how]
	how = kind[how]
	unit = how !~ /scalar|memory/
	if (bits(p1, 3, 4) < (how ~ /vvvv|jump/ ? 8 : 15) || how != "jump" &&
	    (how == "memory") != (byte(opcode + 1) < 192) ||
	    unit && (at + 3 == opcode && bits(p1, 7, 1) || how == "mask" && !bits(p0, 7, 1))) {
		name = ""
		return 0
	}
	if (how == "jump")
		return opcode + 1 - at + (map ? 4 : 1)
	return opcode + 1 - at + operands(opcode + 1) + (map == 3)
}

# Of code: the length of an own instruction at its beginning, or 0; name is its name, or the
# reason; unit: it needs the vector unit
function own(    at, n)
{
	unit = 0
	name = ""
	for (at = 0; substr(code, 2 * at + 1, 2) ~ /^(2e|36|3e|26|6[457])$/; at++)
		;
	if (byte(at) == 98)
		n = mvex_length(at)
	else if (byte(at) == 197)
		n = vex_length(at, byte(at + 1), byte(at + 1), at + 2)
	else if (byte(at) == 196)
		n = vex_length(at, byte(at + 1), byte(at + 2), at + 3)
	return n ? at + n : 0
}

# Take @n bytes away from the lines, of which the last one may keep some.
function skip(n,    end)
{
	end = address[head] + n
	for (n *= 2; head < tail && n >= length(bytes[head]); head++)
		n -= length(bytes[head])
	if (head < tail && n) {
		bytes[head] = substr(bytes[head], n + 1)
		address[head] = end
	}
}

# Look at objdump's lines from head to tail while there are as many bytes as the longest
# instruction has, or without @more.
function look(more,    at, i, n)
{
	while (head < tail) {
		from = address[head]
		at = offset + from
		if (at in known) {
			split(known[at], word, " ")
			found[at]
			if (module == "yes" && word[2] != "-")
				report(word[2] ", but the kernel does not save the vector unit for itself")
			skip(word[1])
			continue
		}
		code = ""
		if (bytes[head] ~ /^(2e|36|3e|26|6[457])*(62|c[45])/)
			for (i = head; i < tail && length(code) < 32; i++)
				code = code bytes[i]
		if (code != "" && more && length(code) < 32)
			return
		n = code == "" ? 0 : own()
		if (n && 2 * n <= length(code)) {
			new[at] = n " " (unit ? name : "-")
			skip(n)
			continue
		}
		if (n == 0 && code != "" && name)
			report(substr(code, 1, 8) ": " name)
		head++
	}
	head = tail = 0
}

function report(text)
{
	printf "%s: %s+0x%x: %s\n", file, section, from, text >reports
}

BEGIN {
	FS = "\t"
	prefix["NP"] = 0; prefix["P66"] = 1; prefix["PF3"] = 2; prefix["PF2"] = 3
	# By the operand's elements, which SSS it has in memory
	memory["SF32"] = "0123467"; memory["SI32"] = "0124567"; memory["S64"] = "012"
	memory["UF32"] = memory["DF32"] = "034567"; memory["UI32"] = memory["DI32"] = "04567"
	memory["LF32"] = memory["LI32"] = "012"; memory["SF32_4"] = memory["SI32_4"] = "02"
	memory["U64"] = memory["D64"] = memory["N32"] = memory["NONE"] = "0"
	# Name, operands, map, prefix, opcode, digit
	n = split("kand mask 1 0 41;kandn mask 1 0 42;kandnr mask 1 0 43;knot mask 1 0 44;" \
		  "kor mask 1 0 45;kxnor mask 1 0 46;kxor mask 1 0 47;kmerge2l1h mask 1 0 48;" \
		  "kmerge2l1l mask 1 0 49;kmov mask 1 0 90;kmov mask 1 0 92;kmov general 1 0 93;" \
		  "kconcath vvvv 1 0 95;kconcatl vvvv 1 0 97;kortest mask 1 0 98;" \
		  "jkzd jump 1 0 84;jknzd jump 1 0 85;jkzd jump 0 0 74;jknzd jump 0 0 75;" \
		  "kextract mask 3 1 3e;vprefetch memory 1 0 18;clevict1 memory 1 2 ae 7;" \
		  "clevict0 memory 1 3 ae 7;delay scalar 1 2 ae 6;spflt scalar 1 3 ae 6;" \
		  "popcnt scalar 1 2 b8;tzcnt scalar 1 2 bc;tzcnti scalar 1 3 bc;" \
		  "lzcnt scalar 1 2 bd", list, ";")
	for (i = 1; i <= n; i++) {
		split(list[i], word, " ")
		how = list[i]
		sub(/^[^ ]* [^ ]* /, "", how)
		vex[how] = word[1]
		kind[how] = word[2]
	}
}
FILENAME == ARGV[1] {
	if (/^(VECTOR|MOVE)\(/) {
		gsub(/[(),|]+/, " ")
		n = split($0, word, " ")
		opcode = substr(word[6], 3)
		for (w = word[5] == "W1"; w <= (word[5] != "W0"); w++) {
			key = word[3] " " prefix[word[4]] " " w " " opcode
			if (word[7] == "DIGIT")
				key = key " " word[8]
			if (word[n] ~ /^EH/)
				key = key " " word[n]
			names[key] = word[2]
			shape[key] = word[n - 2]
			operand[key] = word[n - 1]
			eh[key] = word[n]
		}
	}
	next
}
FILENAME == ARGV[2] {
	split($0, word, " ")
	known[word[1]] = word[2] " " word[3]
	next
}
/^Disassembly of section / {
	look(0)
	section = $0
	sub(/^Disassembly of section /, "", section)
	sub(/:$/, "", section)
}
/^[0-9a-f]+ <.*> \(File Offset: 0x[0-9a-f]+\):$/ {
	look(0)
	offset = $0
	gsub(/.*\(File Offset: 0x|\):$/, "", offset)
	sub(/ .*/, "")
	offset = number(offset) - number($0)
}
/^ *[0-9a-f]+:\t/ {
	gsub(/[ :]/, "", $1)
	gsub(/ /, "", $2)
	address[tail] = number($1)
	bytes[tail++] = $2
	look(1)
}
END {
	look(0)
	for (at in known)
		if (!(at in found))
			print "-", at, known[at]
	for (at in new)
		print "+", at, new[at]
}
