"""What the benchmarks share: a relay on its core, the generator on the other, samples between, tables.

CPU is run time of the relay's threads (schedstat), so that other programs on the machine do not count.
"""
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

RELAY_CORE, LOAD_CORE = (0, 1) if os.cpu_count() > 1 else (0, 0)
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "5"))
JOINS_PER_S = 500
SETTLE_SECONDS = 1
OUT = "build/bench"


def get(url):
    with urllib.request.urlopen(url) as f:
        return f.read().decode()


def metric(text, name):
    """Sum over all labels."""
    return sum(float(n) for n in re.findall(rf"^{name}(?:\{{[^}}]*\}})? (\S+)$", text, re.M))


def per_worker(text, name):
    """Of each worker, in order."""
    return [float(n) for n in re.findall(rf'^{name}\{{worker="\d+"\}} (\S+)$', text, re.M)]


def buckets(text, name):
    """{upper bound: values up to it}, over all workers."""
    sums = {}
    for le, n in re.findall(rf'^{name}_bucket\{{worker="\d+",le="([^"]+)"\}} (\d+)$', text, re.M):
        sums[float(le)] = sums.get(float(le), 0) + int(n)
    return sums


def p99_between(before, after, name):
    """Upper bound of the 99th percentile of what a histogram got between two samples."""
    was, now = buckets(before, name), buckets(after, name)
    total = now[float("inf")] - was[float("inf")]
    return min(le for le in now if now[le] - was[le] >= 0.99 * total)


def run_time_ns(pid):
    total = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/schedstat") as f:
            total += int(f.read().split()[0])
    return total


def machine():
    with open("/proc/cpuinfo") as f:
        cpu = re.search(r"^model name\s*:\s*(.*)$", f.read(), re.M)
    return (f"{cpu[1] if cpu else os.uname().machine}, {os.cpu_count()} cores, "
            f"kernel {os.uname().release}")


class Relay:
    def __init__(self, workers=1, core=RELAY_CORE, config=""):
        pin = ["taskset", "-c", str(core)] if core is not None else []
        self.config = tempfile.NamedTemporaryFile("w", suffix=".yaml")
        self.config.write(f"drain_ms: 0\n{config}\n")
        self.config.flush()
        self.process = subprocess.Popen(
            pin + ["build/sluice", "-c", self.config.name, "--http", "127.0.0.1:0", "--udp",
                   "127.0.0.1:0", "--workers", str(workers)],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        ready = self.process.stdout.readline()
        match = re.match(r"ready http=(\S+) udp=\S+:(\d+) ", ready)
        if not match:
            sys.exit(f"no ready line: {ready!r}")
        self.url, self.udp_port = "http://" + match[1], match[2]
        self.pid = self.process.pid

    def viewers(self):
        return sum(w["viewers"] for w in json.loads(get(self.url + "/api/info"))["workers"])

    def sample(self):
        text = get(self.url + "/metrics")
        return {
            "cpu_ns": run_time_ns(self.pid),
            "packets": metric(text, "sluice_datagrams_out_total"),
            "messages": metric(text, "sluice_messages_out_total"),
            "at_s": time.monotonic(),
            "text": text,
        }

    def wait_for_viewers(self, viewers, load):
        while load.poll() is None and self.viewers() < viewers:
            time.sleep(0.1)

    def rss_bytes(self):
        with open(f"/proc/{self.pid}/statm") as f:
            return int(f.read().split()[1]) * os.sysconf("SC_PAGESIZE")

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(30)
        self.config.close()


def start_load(relay, viewers, duration, *options, core=LOAD_CORE):
    pin = ["taskset", "-c", str(core)] if core is not None else []
    return subprocess.Popen(
        pin + ["build/sluice-load", "bench", "--url", relay.url, "--subscribers", str(viewers),
               "--rate", str(JOINS_PER_S), "--duration", str(int(duration)), "--pid",
               str(relay.pid), "--json", *options],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def finish_load(load):
    return json.loads(load.communicate(timeout=180)[0])


def worst_share(before, after):
    """How far, in per cent, a worker's share of packets lies from its share of viewers, at most."""
    packets = [b - a for a, b in zip(*(per_worker(s["text"], "sluice_datagrams_out_total")
                                       for s in (before, after)))]
    viewers = per_worker(after["text"], "sluice_worker_viewers")
    shares = [(p / sum(packets)) / (v / sum(viewers)) for p, v in zip(packets, viewers) if v]
    return max(abs(share - 1) for share in shares) * 100


def steady(viewers, seconds, *options, workers=1, core=RELAY_CORE, load_core=LOAD_CORE, config="",
           settle=SETTLE_SECONDS):
    """A fresh relay with so many viewers, measured once all are there. None: not all joined."""
    relay = Relay(workers, core, config)
    try:
        idle_bytes = relay.rss_bytes()
        load = start_load(relay, viewers, settle + seconds + 1, *options, core=load_core)
        relay.wait_for_viewers(viewers, load)
        time.sleep(settle)
        before = relay.sample()
        time.sleep(seconds)
        after = relay.sample()
        result = finish_load(load)
    finally:
        relay.stop()
    if result["subscribers"]["joined"] < viewers:
        return None
    packets = after["packets"] - before["packets"]
    elapsed = after["at_s"] - before["at_s"]

    def grew(name):
        return metric(after["text"], name) - metric(before["text"], name)

    return {
        "ns/packet": (after["cpu_ns"] - before["cpu_ns"]) / packets,
        "packets/s": packets / elapsed,
        "core busy %": (after["cpu_ns"] - before["cpu_ns"]) / elapsed / 1e7 / workers,
        "packets/message": packets / (after["messages"] - before["messages"]),
        "lost": result["packets"]["lost"],
        "repaired": result["packets"]["repaired"],
        "received": result["packets"]["received"],
        "frame p50 us": result["latency_us"]["frame"]["p50"],
        "frame p99 us": result["latency_us"]["frame"]["p99"],
        "audio p50 us": result["latency_us"]["audio"]["p50"],
        "audio p99 us": result["latency_us"]["audio"]["p99"],
        "turn p99 ms": p99_between(before["text"], after["text"], "sluice_loop_turn_seconds") * 1000,
        "late share, worst / mean": result["late"]["share_max"] / (result["late"]["share_mean"] or 1),
        "KiB/viewer": result["server"]["rss_bytes_per_subscriber"] / 1024,
        "idle MiB": idle_bytes / 2**20,
        "join p99 ms": result["join_ms"]["p99"],
        "share off %": worst_share(before, after),
        "wake-ups/s": grew("sluice_wakeups_sent_total") / elapsed,
        "wake-ups/batch": grew("sluice_wakeups_sent_total") / grew("sluice_receive_batches_total"),
        "feedback/s": grew("sluice_link_feedback_total") / elapsed,
        "generator ns/packet": result["client"]["cpu_us_per_packet"] * 1000,
        "generator drops": result["client"]["socket_drops"],
    }


def alternate(cases, measure, rounds=ROUNDS):
    """{case: rows}: each case once a round, in turn. measure(case) gives a row, or None."""
    rows = {case: [] for case in cases}
    for number in range(rounds):
        for case in cases:
            row = measure(case)
            if row is None:
                print(f"round {number + 1}, {case}: not all joined", file=sys.stderr, flush=True)
            else:
                rows[case].append(row)
    return rows


def spread(rows, name):
    values = [row[name] for row in rows if name in row]
    if not values:
        return None
    return {"median": statistics.median(values), "min": min(values), "max": max(values)}


def summarise(rows):
    names = {name: None for row in rows for name in row}
    return {name: spread(rows, name) for name in names}


def show(title, rows):
    print(f"{title} ({len(rows)} runs)")
    for name, s in summarise(rows).items():
        print(f"    {name:28} {s['median']:10.5g}   ({s['min']:.5g} to {s['max']:.5g})")
    print(flush=True)


def save(name, rows, **more):
    """rows: {case: rows}; the cases' medians and every single run."""
    os.makedirs(OUT, exist_ok=True)
    path = f"{OUT}/{name}.json"
    with open(path, "w") as f:
        json.dump({"machine": machine(), **more, "cases": {c: summarise(r) for c, r in rows.items()},
                   "runs": rows}, f, indent=1)
    print(f"written: {path}\n", flush=True)
