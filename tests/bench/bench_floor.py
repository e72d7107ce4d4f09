#!/usr/bin/env python3
"""The relay beside the floor: what forwarding costs, and what it would cost if nothing else was done.

For each case (protection profile, publisher's pacing, receiver with or without GRO) BENCH_ROUNDS
times in turn: a fresh relay of one worker under the load generator, then the floor, which replays the
very messages that one viewer of that relay got, recorded on the loopback device, and then a plain
sendto() of each packet, all to the same receivers. Relay and floor run on one core, generator and
receivers on the other.

CPU per packet is run time of threads (schedstat) over datagrams sent, so that other programs on the
machine do not count. Printed, not judged; medians with the least and the most. build/bench/ gets
floor.json and floor.svg.

BENCH_VIEWERS (1000), BENCH_ROUNDS (5), BENCH_SECONDS (4, measured in each run), BENCH_CASES (a regular
expression that chooses among the cases' names).

On a busy machine joins fail and queues grow, so that rounds are dropped or mean little; a session of its
own takes precedence: setsid -w sh -c 'echo -15 >/proc/self/autogroup; exec make bench'
"""
import collections
import json
import os
import re
import subprocess
import sys
import time

from kit import (LOAD_CORE, OUT, RELAY_CORE, ROUNDS, Relay, alternate, finish_load, machine, save, show,
                 start_load, summarise)
from plot import write_bars

VIEWERS = int(os.environ.get("BENCH_VIEWERS", "1000"))
SECONDS = float(os.environ.get("BENCH_SECONDS", "4"))
CHOSEN = os.environ.get("BENCH_CASES", "")
RECORD_SECONDS = 4.1  # one whole loop of the generator's media
SETTLE_SECONDS = 1

Case = collections.namedtuple("Case", "name srtp pacing gro")
CASES = [
    Case(f"{srtp} {pacing} {'GRO' if gro else 'no GRO'}", srtp, pacing, gro)
    for srtp in ("gcm128", "cm80") for gro in (True, False) for pacing in ("frame", "browser")
]


def record(relay, case, path):
    """The messages of a viewer in the middle; no file where the kernel does not let us look."""
    number = VIEWERS // 2
    address = f"127.1.{(number + 1) // 256}.{(number + 1) % 256}"
    done = subprocess.run(
        ["taskset", "-c", str(LOAD_CORE), "build/floor", "record", "--port", relay.udp_port, "--to",
         address, "--seconds", str(RECORD_SECONDS), "--srtp", case.srtp, "--output", path])
    if done.returncode and os.path.exists(path):
        os.remove(path)


def measure_relay(case, trace):
    relay = Relay()
    try:
        options = ["--pacing", case.pacing, "--srtp", case.srtp]
        if not case.gro:
            options.append("--no-gro")
        load = start_load(relay, VIEWERS, SETTLE_SECONDS + SECONDS + RECORD_SECONDS + 1, *options)
        relay.wait_for_viewers(VIEWERS, load)
        time.sleep(SETTLE_SECONDS)
        before = relay.sample()
        time.sleep(SECONDS)
        after = relay.sample()
        record(relay, case, trace)
        result = finish_load(load)
    finally:
        relay.stop()
    if result["subscribers"]["joined"] < VIEWERS:
        return None
    packets = after["packets"] - before["packets"]
    latency = result["latency_us"]
    return {
        "relay ns/packet": (after["cpu_ns"] - before["cpu_ns"]) / packets,
        "relay packets/message": packets / (after["messages"] - before["messages"]),
        "relay frame p50 us": latency["frame"]["p50"],
        "relay frame p99 us": latency["frame"]["p99"],
        "relay audio p50 us": latency["audio"]["p50"],
        "relay audio p99 us": latency["audio"]["p99"],
        "relay lost": result["packets"]["lost"],
        "relay repaired": result["packets"]["repaired"],
    }


def measure_floor(case, trace):
    command = ["build/floor", "--viewers", str(VIEWERS), "--srtp", case.srtp, "--pacing",
               case.pacing, "--rounds", "1", "--seconds", str(SECONDS / 2), "--cores",
               f"{RELAY_CORE},{LOAD_CORE}", "--json"]
    if trace:
        command += ["--trace", trace]
    if not case.gro:
        command.append("--no-gro")
    result = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    gso, sendto = result["gso"], result["sendto"]
    row = {
        "floor ns/packet": gso["schedstat_ns_per_packet"]["median"],
        "sendto ns/packet": sendto["schedstat_ns_per_packet"]["median"],
        "floor packets/message": gso["packets_per_message"]["median"],
        "floor frame p50 us": gso["frame_us_p50"]["median"],
        "floor frame p99 us": gso["frame_us_p99"]["median"],
        "floor audio p50 us": gso["audio_us_p50"]["median"],
        "floor audio p99 us": gso["audio_us_p99"]["median"],
    }
    if "check" in result:
        row["floor / expected"] = result["check"]["measured_ns"] / result["check"]["expected_ns"]
    return row


def video_packets_per_message(path):
    """Of the messages that carry video, by the trace."""
    messages = [m for m in open(path).read().split("message\n")[1:] if "video" in m]
    return sum(m.count("video") for m in messages) / max(len(messages), 1)


def measure(case):
    trace = f"{OUT}/floor-{case.name.replace(' ', '-')}.trace"
    row = measure_relay(case, trace)
    if row is None:
        return None
    if os.path.exists(trace):
        row["relay video packets/message"] = video_packets_per_message(trace)
    row.update(measure_floor(case, trace if os.path.exists(trace) else None))
    row["relay / floor"] = row["relay ns/packet"] / row["floor ns/packet"]
    row["relay / sendto"] = row["relay ns/packet"] / row["sendto ns/packet"]
    row["floor / sendto"] = row["floor ns/packet"] / row["sendto ns/packet"]
    print(f"{case.name}: relay {row['relay ns/packet']:.0f}, floor {row['floor ns/packet']:.0f}, sendto "
          f"{row['sendto ns/packet']:.0f} ns/packet, relay / floor {row['relay / floor']:.2f}",
          file=sys.stderr, flush=True)
    return row


def plot(results):
    series = ("relay ns/packet", "floor ns/packet", "sendto ns/packet")
    bars = {name: [summary[key] for key in series] for name, summary in results.items()}
    write_bars(f"{OUT}/floor.svg", bars, [s.split()[0] for s in series],
               f"CPU ns per packet, {VIEWERS} viewers; median, least and most of {ROUNDS} rounds",
               machine())


def main():
    print(__doc__)
    print(f"{machine()}; {ROUNDS} rounds\n", flush=True)
    os.makedirs(OUT, exist_ok=True)
    cases = [case for case in CASES if re.search(CHOSEN, case.name)]
    rows = {case.name: runs for case, runs in alternate(cases, measure).items() if runs}
    for name, runs in rows.items():
        show(f"{name}, {VIEWERS} viewers", runs)
    save("floor", rows, viewers=VIEWERS)
    if rows:
        plot({name: summarise(runs) for name, runs in rows.items()})


main()
