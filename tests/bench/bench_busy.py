#!/usr/bin/env python3
"""A core that is 65 to 75 % busy: how long turns of its loop take, and who gets late what is late.

The number of viewers is sought first. A frame or a packet of sound is late when it took longer than
about 99 of 100 of all viewers' did; printed is the largest share of late ones that a viewer has, over
the mean share. Printed, not judged; build/bench/busy.json has the same.

BENCH_BUSY_SECONDS (60, measured in each run), BENCH_BUSY_RUNS (1).
"""
import os

from kit import machine, save, show, steady

SECONDS = float(os.environ.get("BENCH_BUSY_SECONDS", "60"))
RUNS = int(os.environ.get("BENCH_BUSY_RUNS", "1"))
WANTED, LEAST, MOST = 70, 65, 75
TRIES = 5


def measure(viewers, seconds):
    return steady(viewers, seconds, "--pacing", "browser", "--srtp", "gcm128")


def seek():
    viewers = 1500
    for _ in range(TRIES):
        row = measure(viewers, 5)
        if row and LEAST + 2 <= row["core busy %"] <= MOST - 2:
            break
        viewers = int(viewers * WANTED / row["core busy %"]) if row else viewers // 2
    return viewers


def main():
    print(__doc__)
    print(machine() + "\n")
    viewers = seek()
    rows = [row for row in (measure(viewers, SECONDS) for _ in range(RUNS)) if row]
    show(f"{viewers} viewers", rows)
    save("busy", {"busy": rows}, viewers=viewers)


main()
