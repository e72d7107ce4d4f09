#!/usr/bin/env python3
"""The targets of the data plane beside what the benchmarks found last (build/bench/*.json).

Medians of the runs; a figure of a single run is that. Allocations and locks on the packet path are
counted by tests/e2e/test_quiet, which fails when there are any that grow with packets.
"""
import json
import os

from kit import OUT


def load(name):
    try:
        with open(f"{OUT}/{name}.json") as f:
            return json.load(f)
    except FileNotFoundError:
        return None


def median(result, case, name):
    spread = result["cases"].get(case, {}).get(name)
    return spread["median"] if spread else None


def ratio(result, case, base, name):
    of, to = median(result, case, name), median(result, base, name)
    return of / to if of and to else None


class Table:
    def __init__(self):
        self.rows = []

    def add(self, what, value, most=None, least=None, unit=""):
        if value is None:
            verdict, target = "no figure", ""
        else:
            held = (most is None or value <= most) and (least is None or value >= least)
            verdict = "met" if held else "MISSED"
            verdict = verdict if most is not None or least is not None else ""
            value = f"{value:.4g}{unit}"
        target = f"<= {most:g}{unit}" if most is not None else ""
        target += f" >= {least:g}{unit}" if least is not None else ""
        self.rows.append((what, target.strip(), value or "-", verdict))

    def print(self):
        widths = [max(len(row[i]) for row in self.rows) for i in range(4)]
        for row in self.rows:
            print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())


def floor(table, result):
    for case, figures in result["cases"].items():
        def figure(name, spread=figures):
            return spread[name]["median"] if name in spread else None

        if case.endswith("no GRO"):
            bound = 0.60 if case.startswith("cm80") else None
            table.add(f"{case}: relay / sendto", figure("relay / sendto"), most=bound)
            continue
        table.add(f"{case}: relay / floor", figure("relay / floor"), most=1.25)
        table.add(f"{case}: video packets/message", figure("relay video packets/message"), least=4)
        for unit in ("frame", "audio"):
            for quantile, margin in (("p50", 1), ("p99", 5)):
                name = f"{unit} {quantile} us"
                table.add(f"{case}: {unit} {quantile}, relay - floor",
                          (figure(f"relay {name}") - figure(f"floor {name}")) / 1000, most=margin,
                          unit=" ms")


def scale(table, result):
    largest, held = result["largest"], result["cases"]["held"]
    for unit in ("frame", "audio"):
        table.add(f"10 viewers: {unit} p50", median(result, "10 viewers", f"{unit} p50 us") / 1000,
                  most=0.5, unit=" ms")
    table.add(f"{largest} viewers for a minute: packets/s", median(result, "held", "packets/s"),
              least=600000)
    table.add(f"{largest} viewers for a minute: lost", median(result, "held", "lost"), most=0)
    if held:
        table.add(f"{largest} viewers for a minute: repaired / received",
                  held["repaired"]["median"] / held["received"]["median"], most=1e-5)
    costs = [median(result, f"{n} viewers", "ns/packet") for n in (500, 1000, 2000, 3000)]
    if all(costs):
        table.add("ns/packet at 3000 viewers / at 500", costs[-1] / costs[0], most=1)
    table.add("memory per viewer at 2000", median(result, "2000 viewers", "KiB/viewer"), most=24,
              unit=" KiB")
    table.add("memory of an idle relay", median(result, "10 viewers", "idle MiB"), most=40,
              unit=" MiB")


def workers(table, result):
    table.add("ns/packet, 2 workers / 1", median(result, "2 workers", "ns/packet, 2 workers / 1"),
              most=1.15)
    table.add("packets/message with 1 worker", median(result, "1 worker", "packets/message"))
    table.add("packets/message with 2 workers", median(result, "2 workers", "packets/message"))
    table.add("share of packets off share of viewers", median(result, "2 workers", "share off %"),
              most=2, unit=" %")
    table.add("wake-ups for a batch", median(result, "2 workers", "wake-ups/batch"), most=1)


def busy(table, result):
    table.add(f"{result['viewers']} viewers: core busy", median(result, "busy", "core busy %"),
              least=65, most=75, unit=" %")
    table.add("so busy: turn of the loop p99", median(result, "busy", "turn p99 ms"), most=5,
              unit=" ms")
    table.add("so busy: late share, worst viewer / mean",
              median(result, "busy", "late share, worst / mean"), most=2)


def storm(table, result):
    for case in result["cases"]:
        is_judged = case == "300 joins/s"
        for name, bound, unit in (("not joined", 0, ""), ("gap p99.9 ms", 60, " ms"),
                                  ("gap max ms", 120, " ms"), ("join p99 ms", 500, " ms")):
            table.add(f"{case}: {name.removesuffix(' ms')}", median(result, case, name),
                      most=bound if is_judged else None, unit=unit)


def fallback(table, result):
    for case in result["cases"]:
        table.add(f"{case}: CPU/packet", median(result, case, "ns/packet"), unit=" ns")


def feedback(table, result):
    for case, most in (("1 layer, transport-cc", 1.05), ("2 layers, transport-cc", 1.15)):
        table.add(f"{case}: CPU/packet to 1 layer", median(result, case, "ns/packet, to 1 layer"),
                  most=most)
        for name in ("packets/message", "packets/s"):
            table.add(f"{case}: {name} to 1 layer", ratio(result, case, "1 layer", name))


def mechanisms(table, rows):
    def cost(name, threads):
        return next(r["median"] for r in rows if r["name"] == name and r["threads"] == threads)

    pool = [cost("slab pool", n) for n in (1, 2, 4, 8, 16)]
    table.add("slab get and put, 16 threads / 1", pool[-1] / pool[0])
    table.add("freelist behind a mutex / slab, 16 threads",
              cost("freelist behind a mutex", 16) / pool[-1], least=20)
    for row in rows:
        if row["name"] == "100 triggers that nobody asks" and "CPU" not in row["unit"]:
            table.add(f"{row['name']}: {row['unit']}", row["median"], most=0)


def main():
    table = Table()
    for tell in (floor, scale, workers, busy, storm, fallback, feedback, mechanisms):
        result = load(tell.__name__)
        if result:
            tell(table, result)
    print(__doc__)
    table.print()
    if os.path.exists(f"{OUT}/floor.svg"):
        print(f"\nplot: {OUT}/floor.svg")


main()
