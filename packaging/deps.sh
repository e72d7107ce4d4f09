#!/bin/bash
# packaging/deps.sh PURPOSE... - install the Debian packages that a purpose needs and that are missing.
#
# PURPOSE: build, demo, test, interop, lint. With --list the names are printed and nothing else happens.
# apt is not touched when nothing is missing. Where it cannot run, one line names the packages;
# who has them from elsewhere sets SLUICE_DEPS=skip.
set -euo pipefail

build=(gcc libc6-dev make
	libuv1-dev libssl-dev libsrtp2-dev
	libcyaml-dev libyaml-dev
	libmicrohttpd-dev libjansson-dev libjwt-dev libhiredis-dev
	libvpx-dev libopus-dev libcurl4-openssl-dev)
demo=()
lint=(git clang-14 clang-format-14 clang-tidy-14 cppcheck)
# clang and its runtimes for the fuzzers; llvm for readable sanitizer reports.
test=(git libcriterion-dev
	clang-14 libclang-rt-14-dev llvm-14
	curl openssl python3 python3-aiortc python3-gi python3-gst-1.0
	gir1.2-gstreamer-1.0 gir1.2-gst-plugins-base-1.0 gir1.2-gst-plugins-bad-1.0
	gstreamer1.0-plugins-base gstreamer1.0-plugins-good gstreamer1.0-plugins-bad
	gstreamer1.0-plugins-ugly gstreamer1.0-libav gstreamer1.0-nice
	chromium nodejs npm ffmpeg iproute2)

# Clients besides those of the tests, and what gives them a network of their own.
interop=(firefox-esr golang-go golang-github-pion-webrtc.v3-dev util-linux)

# Intel's library exists for x86-64 only; the build does without it elsewhere.
[ "$(uname -m)" != x86_64 ] || build+=(libipsec-mb-dev)

packages_of() {
	case $1 in
	build) echo "${build[@]}" ;;
	demo) echo "${build[@]}" "${demo[@]}" ;;
	lint) echo "${build[@]}" "${lint[@]}" ;;
	test) echo "${build[@]}" "${demo[@]}" "${test[@]}" ;;
	interop) echo "${build[@]}" "${demo[@]}" "${test[@]}" "${interop[@]}" ;;
	*)
		echo "deps.sh: no such purpose: $1 (build, demo, test, interop or lint)" >&2
		return 2
		;;
	esac
}

is_present() {
	[ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" != installed ] || return 0
	# Node.js from elsewhere brings its own npm, which excludes Debian's package.
	[ "$1" = npm ] && command -v npm >/dev/null
}

give_up() {
	echo "deps.sh: $1; please install these Debian packages or their like (then SLUICE_DEPS=skip passes this check): ${missing[*]}" >&2
	exit 1
}

list=0
if [ "${1-}" = --list ]; then
	list=1
	shift
fi
[ $# -gt 0 ] || { echo "usage: packaging/deps.sh [--list] build|demo|test|interop|lint..." >&2; exit 2; }

wanted=
for purpose in "$@"; do
	names=$(packages_of "$purpose") || exit 2
	wanted+=" $names"
done
wanted=$(tr -s ' ' '\n' <<<"$wanted" | sed '/^$/d' | sort -u)
if [ $list = 1 ]; then
	echo "$wanted"
	exit 0
fi

[ "${SLUICE_DEPS-}" != skip ] || exit 0
missing=()
for name in $wanted; do
	is_present "$name" || missing+=("$name")
done
[ ${#missing[@]} -gt 0 ] || exit 0

command -v apt-get >/dev/null || give_up "this system has no apt"
as_root=()
if [ "$(id -u)" != 0 ]; then
	command -v sudo >/dev/null || give_up "apt needs root, and there is no sudo"
	as_root=(sudo)
fi
echo "Installing for $*: ${missing[*]}"
apt() {
	"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0 "$@"
}
apt update </dev/null || give_up "apt-get update failed"
apt install -y --no-install-recommends "${missing[@]}" </dev/null >/dev/null ||
	give_up "apt-get install failed"
