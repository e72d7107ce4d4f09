#!/usr/bin/env python3
"""The relay under its own load generator: one core each, one worker, over loopback.

Printed, not judged. For each number of viewers, ROUNDS runs of a fresh relay; medians with the
least and the most. CPU per packet is run time of the relay's threads (schedstat) over the datagrams
it sent; packets per message and joins per second come from its own counters.
"""
import os
import statistics
import time

from kit import LOAD_CORE, RELAY_CORE, Relay, finish_load, machine, start_load

VIEWERS = [int(n) for n in os.environ.get("BENCH_VIEWERS", "10 200 1000").split()]
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "3"))
DURATION_S = int(os.environ.get("BENCH_SECONDS", "10"))
def watch_joins(relay, viewers, load):
    """Seconds from the first viewer to the last."""
    first = None
    while load.poll() is None:
        joined = relay.viewers()
        now = time.monotonic()
        if joined and first is None:
            first = now
        if joined >= viewers:
            return max(now - first, 0.001)
        time.sleep(0.02)
    return None


def run(viewers):
    relay = Relay()
    try:
        load = start_load(relay, viewers, DURATION_S)
        join_s = watch_joins(relay, viewers, load)
        before = relay.sample()
        time.sleep(DURATION_S - 2)
        after = relay.sample()
        result = finish_load(load)
    finally:
        relay.stop()
    sent = after["packets"] - before["packets"]
    messages = after["messages"] - before["messages"]
    latency = result["latency_us"]
    return {
        "ok": result["ok"],
        "lost": result["packets"]["lost"],
        "relay us/packet": (after["cpu_ns"] - before["cpu_ns"]) / 1000 / max(sent, 1),
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


def main():
    print(__doc__)
    print(f"{machine()}; {ROUNDS} rounds of {DURATION_S} s, relay on core {RELAY_CORE}, "
          f"generator on {LOAD_CORE}\n")
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
