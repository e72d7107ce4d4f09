#!/bin/bash
# packaging/demo.sh SLUICE SLUICE_LOAD - relay one generated stream to 1,000 viewers over loopback.
#
# Exit 0 only if every viewer joined, got all of it, and every worker of the relay took part.
set -euo pipefail

sluice=$1
sluice_load=$2
viewers=${VIEWERS:-1000}
seconds=${SECONDS_OF_MEDIA:-10}
scratch=$(mktemp -d)
relay=

stop() {
	if [ -n "$relay" ]; then
		kill -TERM "$relay" 2>/dev/null || true
		wait "$relay" 2>/dev/null || true
	fi
	rm -rf "$scratch"
}
trap stop EXIT

# Own ports, free ones, and loopback only: a relay that already runs here is not disturbed.
"$sluice" --http 127.0.0.1:0 --udp 127.0.0.1:0 >"$scratch/ready" 2>"$scratch/log" &
relay=$!
for _ in $(seq 100); do
	grep -q '^ready ' "$scratch/ready" && break
	kill -0 "$relay" 2>/dev/null || break
	sleep 0.1
done
if ! grep -q '^ready ' "$scratch/ready"; then
	echo "demo: the relay did not start:" >&2
	cat "$scratch/log" >&2
	exit 1
fi
http=$(sed -nE 's/^ready .*http=([^ ]+).*/\1/p' "$scratch/ready")
echo "relay:   $(cat "$scratch/ready")"
echo "viewers: $viewers, each a WebRTC client of its own, for $seconds s (VP8 30 fps, Opus)"

status=0
"$sluice_load" bench --url "http://$http" --subscribers "$viewers" --duration "$seconds" \
	--verify 50 --pid "$relay" || status=$?

# Every worker carried packets, all through one UDP port.
info() {
	exec 3<>"/dev/tcp/${http%:*}/${http##*:}"
	printf 'GET /api/info HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n' "$http" >&3
	cat <&3
	exec 3>&-
}
workers=0 used=0
while read -r packets; do
	workers=$((workers + 1))
	[ "$packets" = 0 ] || used=$((used + 1))
done < <(info | grep -oE '"packets_out": *[0-9]+' | grep -oE '[0-9]+$')
echo "workers that sent packets: $used of $workers"

if [ $status != 0 ] || [ $workers = 0 ] || [ $used != $workers ]; then
	echo "demo: it did not hold; the relay's last lines:" >&2
	tail -n 20 "$scratch/log" >&2
	exit 1
fi
echo "demo: it held"
