#!/usr/bin/env python3
"""Joins in a storm: 300 and 500 a second for 5 s onto a stream that 500 watch already.

The relay with one worker on core 0; publisher, the 500 and the joiners (build/swarm, a process each) on
core 1. Gaps are between packets of sound, sent every 20 ms, as the 500 get them while the others join;
a join is from the offer, HTTP included, to the first packet of media. Printed, not judged;
build/bench/storm.json has the same.

BENCH_ROUNDS (5), BENCH_STORM_SECONDS (5).
"""
import json
import os
import subprocess
import time

from kit import LOAD_CORE, ROUNDS, Relay, alternate, get, machine, save, show

VIEWERS = 500
RATES = (300, 500)
SECONDS = int(os.environ.get("BENCH_STORM_SECONDS", "5"))
JOIN_LIMIT_S = 30


class Swarm:
    def __init__(self, relay):
        self.process = subprocess.Popen(
            ["taskset", "-c", str(LOAD_CORE), "build/swarm", relay.url, "x"], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True, bufsize=1)

    def do(self, command):
        self.process.stdin.write(command + "\n")
        return json.loads(self.process.stdout.readline())

    def wait_for(self, joined):
        """@return how many have media when all have, or no more come"""
        end = time.monotonic() + JOIN_LIMIT_S
        while True:
            there = self.do("stats")["joined"]
            if there == joined or time.monotonic() > end:
                return there
            time.sleep(0.1)

    def close(self):
        self.process.stdin.close()
        self.process.wait(30)
        self.process.stdout.close()


def wait_until_published(relay):
    while not any(s["publisher"] and s["publisher"]["state"] == "connected"
                  for s in json.loads(get(relay.url + "/api/streams"))):
        time.sleep(0.05)


def storm(relay, rate, publisher, watching, joining):
    publisher.do("publish")
    wait_until_published(relay)
    watching.do(f"watch {VIEWERS} 100")
    watching.wait_for(VIEWERS)
    time.sleep(2)
    watching.do("mark")
    began = time.monotonic()
    joining.do(f"watch {rate * SECONDS} {rate}")
    joined = joining.wait_for(rate * SECONDS)
    took_s = time.monotonic() - began
    gaps = watching.do("stats")
    joins = joining.do("stats")
    return {
        "not joined": rate * SECONDS - joined,
        "all there after s": took_s,
        "gap p50 ms": gaps["gap_us"]["p50"] / 1000,
        "gap p99 ms": gaps["gap_us"]["p99"] / 1000,
        "gap p99.9 ms": gaps["gap_us"]["p999"] / 1000,
        "gap max ms": gaps["gap_us"]["max"] / 1000,
        "join p50 ms": joins["join_us"]["p50"] / 1000,
        "join p99 ms": joins["join_us"]["p99"] / 1000,
        "join max ms": joins["join_us"]["max"] / 1000,
        "lost by the 500": gaps["lost"],
    }


def measure(rate):
    relay = Relay()
    swarms = [Swarm(relay) for _ in range(3)]
    try:
        return storm(relay, rate, *swarms)
    finally:
        for swarm in swarms:
            swarm.close()
        relay.stop()


def main():
    print(__doc__)
    print(f"{machine()}; {ROUNDS} rounds\n")
    rows = {f"{rate} joins/s": runs for rate, runs in alternate(RATES, measure).items()}
    for title, runs in rows.items():
        show(title, runs)
    save("storm", rows)


main()
