#!/bin/bash
# tests/layers.sh LAYER... - who may include whom, and which files may include which library.
#
# The two tables below are the rule; ARCHITECTURE.md says why. Exit 1 names every breach.
set -uo pipefail
cd "$(dirname "$0")/.."

declare -A may_include=(
	[pool]='pool'
	[config]='config'
	[media]='media|pool'
	[net]='net|pool'
	[server]='server|net|media|pool|config'
	[loadgen]='loadgen|net|media|pool|config'
)

# header (extended regex) | files (extended regex) that may include it
libraries='
uv\.h                      net/(loop|udp|ticker)[a-z_]*\.[ch]
openssl/.*                 net/(dtls|stun|srtp_evp|random|digest)[a-z0-9_]*\.[ch]
intel-ipsec-mb\.h          net/srtp_ipsecmb[a-z_]*\.[ch]
srtp2/srtp\.h              (net/srtp_libsrtp[a-z_]*|loadgen/[a-z_]+)\.[ch]
(cyaml/cyaml|yaml)\.h      config/[a-z_]+\.[ch]
jansson\.h                 (server|loadgen)/[a-z_]+\.[ch]
(microhttpd|jwt)\.h        server/[a-z_]+\.[ch]
hiredis/.*                 server/[a-z_]+\.[ch]
(vpx|opus|curl)/.*         loadgen/[a-z_]+\.[ch]
'

# The C library and the kernel: for everyone.
libc='(assert|ctype|dirent|errno|fcntl|float|getopt|ifaddrs|inttypes|limits|locale|malloc|math|netdb'
libc+='|poll|pthread|sched|search|signal|stdalign|stdarg|stdatomic|stdbool|stddef|stdint|stdio|stdlib'
libc+='|stdnoreturn|string|strings|syslog|termios|time|unistd|(arpa|linux|net|netinet|sys)/[a-z0-9_]+)\.h'
libc+='|(immintrin|x86intrin|cpuid)\.h|sanitizer/asan_interface\.h'

breaches=0
breach() {
	echo "$1"
	breaches=$((breaches + 1))
}

is_allowed() { # file, header
	local header files
	[[ $2 =~ ^($libc)$ ]] && return 0
	while read -r header files; do
		[ -n "$header" ] && [[ $2 =~ ^($header)$ && $1 =~ ^($files)$ ]] && return 0
	done <<<"$libraries"
	return 1
}

for layer in "$@"; do
	[ -d "$layer" ] || continue
	while IFS=: read -r file line include; do
		what=${include#*[<\"]}
		what=${what%%[>\"]*}
		if [[ $include == *'"'* ]]; then
			[[ $what =~ ^(${may_include[$layer]})/ ]] ||
				breach "$file:$line: $layer may not include \"$what\""
		else
			is_allowed "$file" "$what" || breach "$file:$line: <$what> has no place in this file"
		fi
	done < <(grep -rnE --include='*.[ch]' '^#[[:space:]]*include' "$layer")
done
[ $breaches = 0 ]
