#!/usr/bin/env python3
"""One worker beside two with the same 1,000 viewers and the same generator, both free to use all cores.

Printed, not judged; build/bench/workers.json has the same. wake-ups/batch is of hand-offs, over the
reads that gave datagrams; share off is how far a worker's share of packets lies from its share of
viewers.

BENCH_ROUNDS (5), BENCH_SECONDS (5, measured in each run), BENCH_VIEWERS (1000).
"""
import os

from kit import ROUNDS, alternate, machine, save, show, steady

SECONDS = float(os.environ.get("BENCH_SECONDS", "5"))
VIEWERS = int(os.environ.get("BENCH_VIEWERS", "1000"))
CASES = {"1 worker": 1, "2 workers": 2}


def measure(case):
    return steady(VIEWERS, SECONDS, "--pacing", "frame", "--srtp", "gcm128", workers=CASES[case],
                  core=None, load_core=None)


def main():
    print(__doc__)
    print(f"{machine()}; {ROUNDS} rounds\n")
    rows = alternate(CASES, measure)
    for one, two in zip(rows["1 worker"], rows["2 workers"]):
        two["ns/packet, 2 workers / 1"] = two["ns/packet"] / one["ns/packet"]
    for case, runs in rows.items():
        show(case, runs)
    save("workers", rows)


main()
