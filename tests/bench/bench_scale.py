#!/usr/bin/env python3
"""How far one relay goes: viewers on a core, cost by number of viewers, two workers, memory.

One worker on core 0 and the generator on core 1, unless said otherwise; each viewer gets the generated
stream, about 200 packets a second and 1.4 Mbit/s, in whole frames. CPU is run time of the relay's
threads (schedstat) over datagrams sent. Printed, not judged; build/bench/scale.json has the same.

BENCH_SECONDS (10, measured in each run; 60 for the largest number of viewers), BENCH_ROUNDS (3),
BENCH_LARGEST (3000).
"""
import json
import os
import re
import statistics
import time

from kit import LOAD_CORE, Relay, finish_load, machine, start_load

SECONDS = float(os.environ.get("BENCH_SECONDS", "10"))
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "3"))
LARGEST = int(os.environ.get("BENCH_LARGEST", "3000"))
COUNTS = [n for n in (500, 1000, 2000) if n < LARGEST] + [LARGEST]
RATE = 300


def histogram_p99(text, name):
    """Upper bound of the 99th percentile over all workers."""
    bounds = {}
    for le, n in re.findall(rf'^{name}_bucket{{worker="\d+",le="([^"]+)"}} (\d+)$', text, re.M):
        bounds[le] = bounds.get(le, 0) + int(n)
    total = bounds.get("+Inf", 0)
    for le, n in bounds.items():
        if le != "+Inf" and n >= 0.99 * total:
            return float(le)
    return float("inf")


def steady(viewers, seconds, workers=1, core=0, load_core=LOAD_CORE):
    relay = Relay(workers, core)
    try:
        idle_bytes = relay.rss_bytes()
        load = start_load(relay, viewers, seconds + 6, "--rate", str(RATE), "--pacing", "frame",
                          core=load_core)
        relay.wait_for_viewers(viewers, load)
        time.sleep(2)
        before = relay.sample()
        time.sleep(seconds)
        after = relay.sample()
        info = relay.info()
        result = finish_load(load)
    finally:
        relay.stop()
    packets = after["packets"] - before["packets"]
    elapsed = after["at_s"] - before["at_s"]
    shares = [(w["packets_out"], w["viewers"]) for w in info["workers"]]
    return {
        "ok": result["ok"],
        "lost": result["packets"]["lost"],
        "repaired": result["packets"]["repaired"],
        "received": result["packets"]["received"],
        "ns/packet": (after["cpu_ns"] - before["cpu_ns"]) / packets,
        "packets/s": packets / elapsed,
        "core busy %": (after["cpu_ns"] - before["cpu_ns"]) / elapsed / 1e7 / workers,
        "packets/message": packets / (after["messages"] - before["messages"]),
        "frame p99 us": result["latency_us"]["frame"]["p99"],
        "audio p99 us": result["latency_us"]["audio"]["p99"],
        "turn p99 ms": histogram_p99(after["text"], "sluice_loop_turn_seconds") * 1000,
        "KiB/viewer": result["server"]["rss_bytes_per_subscriber"] / 1024,
        "idle MiB": idle_bytes / 2**20,
        "wake-ups/s": (after["wakeups"] - before["wakeups"]) / elapsed,
        "share of packets to share of viewers": max(
            (p / sum(s[0] for s in shares)) / (v / sum(s[1] for s in shares))
            for p, v in shares if v),
    }


def show(title, rows):
    print(title)
    for name in rows[0]:
        values = [row[name] for row in rows]
        if isinstance(values[0], bool):
            print(f"    {name:38} {sum(values)} of {len(values)} runs")
        else:
            print(f"    {name:38} {statistics.median(values):10.5g}   ({min(values):.5g} to "
                  f"{max(values):.5g})")
    print(flush=True)
    return rows


def main():
    print(__doc__)
    print(f"{machine()}; {ROUNDS} rounds\n")
    results = {}
    for viewers in COUNTS:
        title = f"{viewers} viewers"
        results[title] = show(title, [steady(viewers, SECONDS) for _ in range(ROUNDS)])
    title = f"{LARGEST} viewers for 60 s"
    results[title] = show(title, [steady(LARGEST, 60)])
    for workers in (1, 2):
        title = f"1000 viewers, {workers} worker(s), relay and generator on both cores"
        results[title] = show(title, [steady(1000, SECONDS, workers, None, None)
                                      for _ in range(ROUNDS)])
    os.makedirs("build/bench", exist_ok=True)
    with open("build/bench/scale.json", "w") as f:
        json.dump({"machine": machine(), "results": results}, f, indent=1)
    print("written: build/bench/scale.json")


main()
