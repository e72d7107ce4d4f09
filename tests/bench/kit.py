"""What the benchmarks share: a relay on its core, the generator on the other, samples between."""
import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request

RELAY_CORE, LOAD_CORE = (0, 1) if os.cpu_count() > 1 else (0, 0)


def get(url):
    with urllib.request.urlopen(url) as f:
        return f.read().decode()


def metric(text, name):
    """Sum over all labels."""
    return sum(float(n) for n in re.findall(rf"^{name}(?:\{{[^}}]*\}})? (\S+)$", text, re.M))


def run_time_ns(pid, name=""):
    """Of all threads, or of those whose name begins so."""
    total = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/comm") as f:
            if not f.read().startswith(name):
                continue
        with open(f"/proc/{pid}/task/{task}/schedstat") as f:
            total += int(f.read().split()[0])
    return total


def machine():
    with open("/proc/cpuinfo") as f:
        cpu = re.search(r"^model name\s*:\s*(.*)$", f.read(), re.M)
    return (f"{cpu[1] if cpu else os.uname().machine}, {os.cpu_count()} cores, "
            f"kernel {os.uname().release}")


class Relay:
    def __init__(self, workers=1, core=RELAY_CORE):
        pin = ["taskset", "-c", str(core)] if core is not None else []
        self.process = subprocess.Popen(
            pin + ["build/sluice", "--http", "127.0.0.1:0", "--udp", "127.0.0.1:0", "--workers",
                   str(workers)],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        ready = self.process.stdout.readline()
        match = re.match(r"ready http=(\S+) udp=\S+:(\d+) ", ready)
        if not match:
            sys.exit(f"no ready line: {ready!r}")
        self.url, self.udp_port = "http://" + match[1], match[2]
        self.pid = self.process.pid

    def info(self):
        return json.loads(get(self.url + "/api/info"))

    def viewers(self):
        return sum(w["viewers"] for w in self.info()["workers"])

    def sample(self):
        text = get(self.url + "/metrics")
        return {
            "cpu_ns": run_time_ns(self.pid),
            "packets": metric(text, "sluice_datagrams_out_total"),
            "messages": metric(text, "sluice_messages_out_total"),
            "wakeups": metric(text, "sluice_wakeups_sent_total"),
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
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(30)


def start_load(relay, viewers, duration, *options, core=LOAD_CORE):
    pin = ["taskset", "-c", str(core)] if core is not None else []
    return subprocess.Popen(
        pin + ["build/sluice-load", "bench", "--url", relay.url, "--subscribers", str(viewers),
               "--duration", str(int(duration)), "--pid", str(relay.pid), "--json", *options],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def finish_load(load):
    return json.loads(load.communicate(timeout=180)[0])
