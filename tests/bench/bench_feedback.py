#!/usr/bin/env python3
"""What layers and the viewers' feedback cost: CPU for a forwarded packet beside that of a plain stream.

1,000 viewers, one worker on core 0, generator on core 1, in turn. Of a stream with a single layer
nothing is estimated, and an offer of transport-cc must change nothing. Of one with two temporal layers
each viewer's link is estimated by its transport-wide feedback, about 20 a second. Where packets/s falls
behind, viewers were late to receive and got less, as behind a slow link: the machine was busy, and what
is left of the packets carries the whole cost. Printed, not judged; build/bench/feedback.json has the same.

BENCH_FEEDBACK_ROUNDS (5), BENCH_FEEDBACK_SECONDS (5, measured in each run), BENCH_VIEWERS (1000).
"""
import os

from kit import alternate, machine, save, show, steady

ROUNDS = int(os.environ.get("BENCH_FEEDBACK_ROUNDS", "5"))
SECONDS = float(os.environ.get("BENCH_FEEDBACK_SECONDS", "5"))
VIEWERS = int(os.environ.get("BENCH_VIEWERS", "1000"))
PLAIN = "1 layer"
CASES = {
    PLAIN: (),
    "1 layer, transport-cc": ("--transport-cc",),
    "2 layers, transport-cc": ("--temporal-layers", "2", "--transport-cc"),
}
SETTLE_SECONDS = 3  # all have risen to the larger layer


def measure(case):
    return steady(VIEWERS, SECONDS, "--pacing", "browser", "--srtp", "gcm128", *CASES[case],
                  settle=SETTLE_SECONDS)


def main():
    print(__doc__)
    print(f"{machine()}; {ROUNDS} rounds\n")
    rows = alternate(CASES, measure, ROUNDS)
    for case, runs in rows.items():
        for row, plain in zip(runs, rows[PLAIN]):
            if case != PLAIN:
                row["ns/packet, to 1 layer"] = row["ns/packet"] / plain["ns/packet"]
    for case, runs in rows.items():
        show(case, runs)
    save("feedback", rows)


main()
