# SPDX-License-Identifier: GPL-2.0-only
#
# What the scripts share; read with ".", never run. POSIX sh.
#
# A build goes to $KNC_PMU_CACHE/<what>/<key>, where the key is a hash of everything that
# changes the result: our files, options, and the versions of the compiler and of all
# that is compiled, unpacked or copied. Versions of libraries that are linked are not in
# it: a build stays good when apt upgrades the library.
#
# It is made under a lock in <key>.tmp, tried, and renamed, so that an interrupted build
# is never taken for a finished one, and two runs never build the same thing twice.
# <key>.files lists its files: a build of which one is missing, or has another size, is made again.
#
# A build sees nothing of its caller. Of the environment only these variables remain, and
# those that a script names in $inherits before it reads this file: patterns of "case".
#
# shellcheck shell=sh disable=SC2034

inherited="PATH HOME TERM TMPDIR XDG_CACHE_HOME KNC_PMU_* *_proxy *_PROXY APT_CONFIG DEBIAN_*
	SSL_CERT_*"
umask 022
set -f
# A name that the shell cannot unset is one that it does not pass on.
for _name in $(awk 'BEGIN { for (name in ENVIRON) if (name ~ /^[A-Za-z_0-9]+$/) print name }'); do
	for _kept in $inherited ${inherits:-}; do
		# shellcheck disable=SC2254
		case $_name in $_kept) continue 2 ;; esac
	done
	unset "$_name"
done
set +f

# Every script sets "here" before it reads this file.
# shellcheck disable=SC2154
top=${here%/*}
cache=${KNC_PMU_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/knc-pmu}
me=${0##*/}
jobs=${KNC_PMU_JOBS:-$(nproc)}

# Debian's releases that can be the host: number, its newest package of a kernel, which the demo
# boots, and the release whose QEMU is built there. Everything else that is installed, as perf,
# Python and the compiler, is the host's own.
releases='
bookworm 12    linux-image-6\.1\.0-[0-9]+-amd64         bookworm
trixie   13    linux-image-6\.12\.[0-9]+\+deb13-amd64   trixie
forky    forky linux-binary-[0-9.]+\+deb14-amd64        trixie
'
# What is fetched and not installed, the same on each host: the release that has it, its package.
# Of several releases the newest package is taken; of a source (src:) what the mirror has.
elsewhere='
linux-6.1    bookworm linux-source-6\.1
linux-6.12   trixie   linux-source-6\.12
perf-6.12    trixie   linux-perf
linux-newest trixie-backports,forky,sid linux-source-[0-9.]+
perf-newest trixie-backports,forky,sid linux-perf
qemu-newest trixie-backports,forky,sid src:qemu
gcc-newest forky,sid gcc-[0-9]+
clang-newest forky,sid clang-[0-9]+
sparse-newest forky,sid src:sparse
python-newest forky,sid python3[.][0-9]+
pytest-newest trixie-backports,forky,sid python3-pytest
cbmc         trixie   cbmc
binutils     bullseye binutils-x86-64-linux-gnu
'

# say TEXT... - progress goes to stderr; stdout carries only the result
say()
{
	echo "$me: $*" >&2
}

die()
{
	say "error: $*"
	exit 1
}

# usage STATUS - print the script's first comment and exit
usage()
{
	sed -n '4,${/^#/!q; /^# *shellcheck /q; s/^# \{0,1\}//p}' "$0"
	exit "$1"
}

help_asked()
{
	case ${1:-} in
	-h | --help) usage 0 ;;
	esac
}

# no_arguments ARG... - for a script that takes none: an argument is an error
no_arguments()
{
	help_asked "$@"
	[ $# -eq 0 ] || {
		say "error: $1: it takes no arguments; --help says what it does"
		exit 2
	}
}

now()
{
	date +%s
}

# since START - seconds as "3m07s"
since()
{
	_s=$(($(now) - $1))
	if [ "$_s" -ge 60 ]; then
		printf '%dm%02ds' $((_s / 60)) $((_s % 60))
	else
		printf '%ds' "$_s"
	fi
}

# need COMMAND... - stop early, and say what installs it
need()
{
	for _c in "$@"; do
		command -v "$_c" >/dev/null 2>&1 ||
			die "$_c is not installed; scripts/setup installs what is missing"
	done
}

# key_of FILE|=TEXT... - hash of the files' contents and of the texts
key_of()
{
	_parts=$(for _f in "$@"; do
		case $_f in
		=*) printf '%s\n' "$_f" ;;
		*) printf '%s ' "${_f##*/}"
		   sha256sum <"$_f" || die "$_f: cannot be read" ;;
		esac
	done) || exit 1
	printf '%s\n' "$_parts" | sha256sum | cut -c1-16
}

# with_libraries FILE... - these programs, and every library that the loader maps for them
with_libraries()
{
	_found=$(ldd "$@") || die "$*: ldd cannot tell the libraries"
	case $_found in
	*"not found"*) die "$(echo "$_found" | grep 'not found'): neither here nor in a package" ;;
	esac
	{
		printf '%s\n' "$@"
		echo "$_found" |
			sed -n 's/.*=> \(\/[^ ]*\) .*/\1/p; s/^[[:space:]]*\(\/[^ ]*\) (.*/\1/p'
	} | LC_ALL=C sort -u
}

# watch_log WHAT LOG START PATTERN TOTAL - print the progress of a build, until the script ends
watch_log()
{
	# Close the lock here: for a caller's "9>&-" dash keeps a copy of it.
	exec 9>&-
	_every=10
	# The sleep outlives this shell: it must not hold the caller's pipe open.
	while sleep "$_every" >/dev/null 2>&1; do
		# ^C does not end what runs in the background.
		kill -0 $$ 2>/dev/null || exit
		_n=
		if [ -n "$4" ]; then
			# grep fails while there is no such line.
			_n=$(grep -c -- "$4" "$2" 2>/dev/null) || :
			_n=", ${_n:-0} of about $5 steps"
		fi
		say "$1: $(since "$3")$_n"
		_every=20
	done
}

# logged WHAT LOG PATTERN TOTAL COMMAND... - run COMMAND with its output in LOG. Print
# the progress (lines that match PATTERN, of about TOTAL), and LOG's end if it fails.
# Its processor time is a line of $cache/times, which tests/conftest.py adds up.
logged()
{
	_what=$1 _log=$2 _pattern=$3 _total=$4
	shift 4
	_start=$(now)
	say "$_what ..."
	watch_log "$_what" "$_log" "$_start" "$_pattern" "$_total" &
	_watch=$!
	if ("$@" && times >"$_log.times") >"$_log" 2>&1 </dev/null; then _rc=0; else _rc=$?; fi
	kill "$_watch" 2>/dev/null || :
	wait "$_watch" 2>/dev/null || :
	if [ "$_rc" -ne 0 ]; then
		tail -n 25 "$_log" | sed 's/^/    /' >&2
		die "$_what: failed after $(since "$_start") (whole log: $_log)"
	fi
	awk -v what="$_what" 'END { for (i = 1; i <= NF; i++) { split($i, part, "m")
		seconds += part[1] * 60 + part[2] }; print seconds, what }' \
		"$_log.times" >>"$cache/times"
	rm -f "$_log.times"
	say "$_what: done in $(since "$_start")"
}

# list_files DIR - the size and the name of each
list_files()
{
	(cd "$1" && find . ! -type d -printf '%s %p\n' | LC_ALL=C sort)
}

# is_whole DIR - whether each file that DIR.files lists is there, with that size
is_whole()
{
	[ -s "$1.files" ] &&
		[ -z "$(list_files "$1" | LC_ALL=C comm -13 - "$1.files" 2>&1)" ]
}

# once WHAT KEY FUNCTION - set $built to the path of the build. If it is missing or damaged,
# FUNCTION makes it, in a subshell, in the directory that is its argument, and tries it.
once()
{
	built=$cache/$1/$2
	[ -e "$built" ] && is_whole "$built" && { touch "$built" 2>/dev/null; return 0; }
	mkdir -p "$cache/$1" || die "$cache/$1: cannot be made"
	(
		if ! flock -n 9; then
			say "$1: another run is building it, waiting ..."
			flock 9
		fi
		if [ -e "$built" ]; then
			is_whole "$built" && exit 0
			say "$1: files of $built are missing or damaged, building it again"
		fi
		rm -rf "$built" "$built.tmp"
		mkdir "$built.tmp" || exit 1
		set -e
		"$3" "$built.tmp"
		list_files "$built.tmp" >"$built.files"
		mv "$built.tmp" "$built"
	) 9>"$cache/$1/$2.lock"
	# "( ... ) || exit" would switch "set -e" off in the subshell.
	_rc=$?
	[ "$_rc" -eq 0 ] || exit "$_rc"
	[ -e "$built" ] || die "$1: nothing was built"
}

# works WHAT COMMAND... - what was built is of no use if this command fails, which tries it
works()
{
	_what=$1
	shift
	_said=$("$@" 2>&1 </dev/null) || die "$_what was built, but does not work: $*: $_said"
}

# find_host - set $host to the release of Debian that this is, and $host_kernel and $host_qemu to
# what "releases" has for it; or say what would be needed
find_host()
{
	# The tests name another file.
	host=$(. "${KNC_PMU_OS_RELEASE:-/etc/os-release}" 2>/dev/null && [ "${ID:-}" = debian ] &&
		command -v dpkg >/dev/null && echo "${VERSION_CODENAME:-}") || host=
	# shellcheck disable=SC2046
	set -- $(echo "$releases" | grep "^${host:-none} ")
	[ $# -eq 4 ] && [ "$(uname -m)" = x86_64 ] || {
		say "error: this needs Debian 12, 13 or testing, for x86-64: it builds and boots" \
			"their packages. On another Linux run it in a chroot or a container of" \
			"Debian: scripts/in-debian make demo makes one."
		exit 1
	}
	host_kernel=$3 host_qemu=$4
}

# find_elsewhere NAME - set $suite to the release that has it, and $package to its name there
find_elsewhere()
{
	# shellcheck disable=SC2046
	set -- $(echo "$elsewhere" | grep "^$1 ") "$1"
	[ $# -eq 4 ] || die "$1: lib.sh knows no release of Debian that has it"
	suite=$2 package=$3
}

# newest_elsewhere NAME - the same, with $package as NAME=VERSION of the newest one
newest_elsewhere()
{
	find_elsewhere "$1"
	case $package in
	src:*) package="--source --newest ${package#src:}" ;;
	*) package="--newest $package" ;;
	esac
	package=$("$here/apt-fetch" --suite "$suite" $package) || exit 1
}

# pkg_version PACKAGE - the version installed here
pkg_version()
{
	_v=$(dpkg-query -W -f '${db:Status-Status} ${Version}' "$1" 2>/dev/null) || _v=
	case $_v in
	"installed "*) echo "${_v#installed }" ;;
	*) die "package $1 is not installed; scripts/setup installs what is missing" ;;
	esac
}
