#!/usr/bin/env python3
"""How far one relay goes: cost, latency and memory by number of viewers, and many for a minute.

One worker on core 0 and the generator on core 1. Each viewer gets the generated stream, about 195
packets a second and 1.4 Mbit/s, in whole frames, sealed with AEAD_AES_128_GCM. Printed, not judged;
build/bench/scale.json has the same.

BENCH_ROUNDS (5), BENCH_SECONDS (5, measured in each run), BENCH_COUNTS, BENCH_LARGEST (3100) viewers
are held for BENCH_LONG seconds (60).
"""
import os

from kit import ROUNDS, alternate, machine, save, show, steady

SECONDS = float(os.environ.get("BENCH_SECONDS", "5"))
COUNTS = [int(n) for n in os.environ.get("BENCH_COUNTS", "10 500 1000 2000 3000").split()]
LARGEST = int(os.environ.get("BENCH_LARGEST", "3100"))
LONG_SECONDS = float(os.environ.get("BENCH_LONG", "60"))


def measure(viewers, seconds=SECONDS):
    return steady(viewers, seconds, "--pacing", "frame", "--srtp", "gcm128")


def main():
    print(__doc__)
    print(f"{machine()}; {ROUNDS} rounds\n")
    rows = {f"{n} viewers": r for n, r in alternate(COUNTS, measure).items()}
    held = measure(LARGEST, LONG_SECONDS)
    rows["held"] = [held] if held else []
    for title, runs in rows.items():
        show(title if title != "held" else f"{LARGEST} viewers for {LONG_SECONDS:.0f} s", runs)
    save("scale", rows, largest=LARGEST)


main()
