#!/usr/bin/env python3
"""What it costs that viewers say when each packet came: the same stream with and without transport-cc.

1,000 viewers, one worker on core 0, generator on core 1, in turn. Of a stream with two temporal layers
each viewer's link is estimated, from its feedback or without; of one with a single layer none is, and
an offer of transport-cc must change nothing. Those without feedback rise to the larger layer slowly, so
they are measured later. Printed, not judged; build/bench/feedback.json has the same.

BENCH_FEEDBACK_ROUNDS (5), BENCH_FEEDBACK_SECONDS (3, measured in each run), BENCH_VIEWERS (1000).
"""
import os

from kit import alternate, machine, save, show, steady

ROUNDS = int(os.environ.get("BENCH_FEEDBACK_ROUNDS", "5"))
SECONDS = float(os.environ.get("BENCH_FEEDBACK_SECONDS", "3"))
VIEWERS = int(os.environ.get("BENCH_VIEWERS", "1000"))
LAYERS = ("--temporal-layers", "2")
FEEDBACK = ("--transport-cc",)
CASES = {
    "1 layer": ((), 2),
    "1 layer, transport-cc": (FEEDBACK, 2),
    "2 layers": (LAYERS, 16),
    "2 layers, transport-cc": (LAYERS + FEEDBACK, 3),
}
PAIRS = {name: name.removesuffix(", transport-cc") for name in CASES if "transport-cc" in name}


def measure(case):
    options, settle = CASES[case]
    return steady(VIEWERS, SECONDS, "--pacing", "browser", "--srtp", "gcm128", "--rate", "500",
                  *options, settle=settle)


def main():
    print(__doc__)
    print(f"{machine()}; {ROUNDS} rounds\n")
    rows = alternate(CASES, measure, ROUNDS)
    for case, base in PAIRS.items():
        for row, without in zip(rows[case], rows[base]):
            row["ns/packet, with / without"] = row["ns/packet"] / without["ns/packet"]
    for case, runs in rows.items():
        show(case, runs)
    save("feedback", rows)


main()
