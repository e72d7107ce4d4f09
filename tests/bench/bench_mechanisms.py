#!/usr/bin/env python3
"""The closed word, the slab pool and the trigger, each beside what it stands in for.

What is measured is told at the head of bench_mechanisms.c. Printed, not judged; build/bench/ gets
mechanisms.json.
"""
import json
import os
import subprocess

rows = json.loads(subprocess.run(["build/bench_mechanisms", "--json"], check=True,
                                 stdout=subprocess.PIPE).stdout)
print(__doc__)
print(f"{'':57}{'threads':>8}   median (least to most)")
for row in rows:
    print(f"{row['group']:10}{row['name']:47}{row['threads']:8}   {row['median']:.4g} "
          f"({row['min']:.4g} to {row['max']:.4g}) {row['unit']}")
os.makedirs("build/bench", exist_ok=True)
with open("build/bench/mechanisms.json", "w") as f:
    json.dump(rows, f, indent=1)
