# SPDX-License-Identifier: GPL-2.0-only
#
# For the scripts here; read with ".". packages SUITES PACKAGE=VERSION... unpacks these packages of
# Debian, with all that they depend on, below $root: apt has an empty machine of its own for it, and
# takes the mirror from this machine's lists. run PROGRAM ARGUMENT... starts one of their programs.
#
# expect WHAT COMMAND... prints what is expected, and ends with status 1 if COMMAND fails: then the
# finding has changed. Status 3: the mirror has that version no more.
# shellcheck shell=sh
set -u
PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C HOME=/nonexistent
export PATH LC_ALL HOME
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
root=$work/root
cd "$work" || exit 2

packages()
{
	suites=$1
	shift
	mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' |
		grep -v security | head -n 1)
	[ -n "$mirror" ] || { echo "apt has no lists of Debian (apt-get update?)" >&2; exit 2; }
	rm -rf apt
	mkdir -p "$root" apt/lists/partial apt/archives/partial
	: >apt/status
	key=/usr/share/keyrings/debian-archive-keyring.gpg
	for one in $suites; do
		echo "deb [signed-by=$key] $mirror $one main"
	done >apt/list
	cat >apt/conf <<-END
		Dir::Etc { SourceList "$work/apt/list"; SourceParts "/dev/null"; Preferences "/dev/null"; PreferencesParts "/dev/null"; };
		Dir::State "$work/apt"; Dir::State::status "$work/apt/status"; Dir::Cache "$work/apt";
		APT::Install-Recommends "false"; APT::Sandbox::User "root"; Debug::NoLocking "true";
		Acquire::Languages "none"; Acquire::Retries::Delay "false";
	END
	export APT_CONFIG="$work/apt/conf"
	apt-get -qq update >log 2>&1 || { cat log >&2; exit 2; }
	for package; do
		apt-cache show "$package" >/dev/null 2>&1 || {
			echo "the mirror has no $package in $suites any more: nothing was tried" >&2
			exit 3
		}
	done
	apt-get -qqy --download-only install "$@" >log 2>&1 || { cat log >&2; exit 2; }
	unset APT_CONFIG
	for deb in apt/archives/*.deb; do
		dpkg-deb -x "$deb" "$root" || exit 2
	done
}

run()
{
	program=$1
	shift
	loader=$(find "$root" -name ld-linux-x86-64.so.2 | head -n 1)
	[ -n "$loader" ] || { "$root/$program" "$@"; return; }
	"$loader" --library-path \
		"$root/lib/x86_64-linux-gnu:$root/usr/lib/x86_64-linux-gnu:$root/usr/lib" \
		"$root/$program" "$@"
}

expect()
{
	echo "expected: $1"
	shift
	"$@" || { echo "not seen: the finding has changed" >&2; exit 1; }
}
