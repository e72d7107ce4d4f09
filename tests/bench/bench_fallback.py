#!/usr/bin/env python3
"""What the fast ways are worth: the cipher of OpenSSL in place of ipsec-mb, and no UDP_SEGMENT.

1,000 viewers, one worker on core 0, generator on core 1, in turn. Printed, not judged;
build/bench/fallback.json has the same.

BENCH_FALLBACK_ROUNDS (3), BENCH_SECONDS (5, measured in each run), BENCH_VIEWERS (1000).
"""
import os

from kit import alternate, machine, save, show, steady

ROUNDS = int(os.environ.get("BENCH_FALLBACK_ROUNDS", "3"))
SECONDS = float(os.environ.get("BENCH_SECONDS", "5"))
VIEWERS = int(os.environ.get("BENCH_VIEWERS", "1000"))
WAYS = {"as usual": "", "engine evp": "srtp: { engine: evp }", "no GSO": "udp: { gso: false }"}
CASES = [(way, srtp) for srtp in ("gcm128", "cm80") for way in WAYS]


def measure(case):
    way, srtp = case
    return steady(VIEWERS, SECONDS, "--pacing", "frame", "--srtp", srtp, config=WAYS[way])


def main():
    print(__doc__)
    print(f"{machine()}; {ROUNDS} rounds\n")
    rows = {f"{srtp} {way}": r for (way, srtp), r in alternate(CASES, measure, ROUNDS).items()}
    for case, runs in rows.items():
        show(case, runs)
    save("fallback", rows)


main()
