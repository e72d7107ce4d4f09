#!/usr/bin/env python3
"""The relay under its own load generator: one core each, one worker, over loopback.

Printed, not judged. For each number of viewers, ROUNDS runs of a fresh relay; medians with the
least and the most. CPU per packet is the relay's (the larger of its threads' run time and, pinned
alone, its core's busy time) over the datagrams that viewers received; packets per message and
joins per second come from the relay's own counters.
"""
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import time
import urllib.request

VIEWERS = [int(n) for n in os.environ.get("BENCH_VIEWERS", "10 200 1000").split()]
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "3"))
DURATION_S = int(os.environ.get("BENCH_SECONDS", "10"))
RELAY_CPU, LOAD_CPU = (0, 1) if os.cpu_count() > 1 else (0, 0)


def get(url):
    with urllib.request.urlopen(url) as f:
        return f.read().decode()


def metric(text, name):
    return sum(float(n) for n in re.findall(rf"^{name}(?:\{{[^}}]*\}})? (\S+)$", text, re.M))


def start_relay():
    relay = subprocess.Popen(
        ["taskset", "-c", str(RELAY_CPU), "build/sluice", "--http", "127.0.0.1:0", "--udp",
         "127.0.0.1:0", "--workers", "1"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    ready = relay.stdout.readline()
    match = re.match(r"ready http=(\S+) ", ready)
    if not match:
        sys.exit(f"no ready line: {ready!r}")
    return relay, "http://" + match.group(1)


def watch_joins(base, viewers, load):
    """Seconds from the first viewer to the last, and the counters once all are there."""
    first = None
    while load.poll() is None:
        info = json.loads(get(base + "/api/info"))
        now = time.monotonic()
        joined = sum(w["viewers"] for w in info["workers"])
        if joined and first is None:
            first = now
        if joined >= viewers:
            return max(now - first, 0.001), get(base + "/metrics")
        time.sleep(0.02)
    return None, get(base + "/metrics")


def run(viewers):
    relay, base = start_relay()
    try:
        load = subprocess.Popen(
            ["taskset", "-c", str(LOAD_CPU), "build/sluice-load", "bench", "--url", base,
             "--subscribers", str(viewers), "--duration", str(DURATION_S), "--pid",
             str(relay.pid), "--json"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        join_s, before = watch_joins(base, viewers, load)
        time.sleep(DURATION_S - 2)
        after = get(base + "/metrics")
        out, _ = load.communicate(timeout=120)
    finally:
        relay.send_signal(signal.SIGTERM)
        relay.send_signal(signal.SIGTERM)
        relay.wait(30)
    result = json.loads(out)
    sent = metric(after, "sluice_datagrams_out_total") - metric(before, "sluice_datagrams_out_total")
    messages = metric(after, "sluice_messages_out_total") - metric(before, "sluice_messages_out_total")
    latency = result["latency_us"]
    return {
        "ok": result["ok"],
        "lost": result["packets"]["lost"],
        "relay us/packet": result["server"]["cpu_us_per_packet"],
        "load us/packet": result["client"]["cpu_us_per_packet"],
        "packets/message": sent / max(messages, 1),
        "packets/s": result["throughput"]["packets_per_s"],
        "KiB/viewer": result["server"]["rss_bytes_per_subscriber"] / 1024,
        "joins/s": viewers / join_s if join_s else 0,
        "frame p50 us": latency["frame"]["p50"],
        "frame p99 us": latency["frame"]["p99"],
        "audio p50 us": latency["audio"]["p50"],
        "audio p99 us": latency["audio"]["p99"],
    }


def cpu_name():
    with open("/proc/cpuinfo") as f:
        return re.search(r"^model name\s*:\s*(.*)$", f.read(), re.M)[1]


def main():
    print(__doc__)
    print(f"{cpu_name()}, {os.cpu_count()} cores, kernel {os.uname().release}; "
          f"{ROUNDS} rounds of {DURATION_S} s, relay on core {RELAY_CPU}, generator on {LOAD_CPU}\n")
    rows = {}
    for _ in range(ROUNDS):
        for viewers in VIEWERS:
            rows.setdefault(viewers, []).append(run(viewers))
    names = [name for name in rows[VIEWERS[0]][0] if name != "ok"]
    print(f"{'':18}" + "".join(f"{f'{v} viewers':>28}" for v in VIEWERS))
    for name in names:
        cells = []
        for viewers in VIEWERS:
            values = [row[name] for row in rows[viewers]]
            cells.append(f"{statistics.median(values):.5g} ({min(values):.5g} to {max(values):.5g})")
        print(f"{name:18}" + "".join(f"{cell:>28}" for cell in cells))
    failed = sum(not row["ok"] for runs in rows.values() for row in runs)
    print(f"\nruns that were not ok: {failed} of {ROUNDS * len(VIEWERS)}")


main()
