"""A swarm of clients (tests/tools/swarm.c) and the state of a relay's process, for the tests of scale."""

import json
import os
import re
import select
import subprocess

from kit import BUILD, need, until


class Swarm:
    """Commands go in one by one; each returns what the swarm answered."""

    def __init__(self, relay, stream="x", *source):
        self.process = subprocess.Popen(
            [need(f"{BUILD}/swarm", "make tools"), relay.url, stream, *map(str, source)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)

    def ask(self, command):
        self.process.stdin.write(command + "\n")

    def answer(self, limit_s=60):
        ready, _, _ = select.select([self.process.stdout], [], [], limit_s)
        assert ready, f"no answer from the swarm within {limit_s} s"
        line = self.process.stdout.readline()
        assert line, f"the swarm ended with status {self.process.wait(10)}"
        answer = json.loads(line)
        assert not answer.get("error"), answer
        return answer

    def do(self, command, limit_s=60):
        self.ask(command)
        return self.answer(limit_s)

    def stats(self):
        return self.do("stats")

    def watch(self, count, rate, limit_s=60):
        """Until `count` more have both sound and picture."""
        there = self.stats()["joined"]
        self.do(f"watch {count} {rate}", limit_s)
        self.until_joined(there + count, limit_s)

    def until_joined(self, count, limit_s=60):
        def are_all():
            stats = self.stats()
            assert stats["failed"] == 0, stats
            return stats["joined"] == count
        until(f"{count} viewers have media", are_all, limit_s, every_s=0.1)

    def until_silent(self, silence_s=0.3, limit_s=20):
        until("nothing arrives any more",
              lambda: (lambda s: s["now_us"] - s["last_us"] > silence_s * 1e6)(self.stats()), limit_s)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def close(self):
        self.process.stdin.close()
        try:
            assert self.process.wait(30) == 0, f"swarm: status {self.process.returncode}"
        finally:
            self.kill()
            self.process.stdout.close()

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if kind is None:
            self.close()
        else:
            self.kill()


def assert_in_order(stats, lossless=True):
    """No number or timestamp went back; with `lossless` none is missing but what our own kernel dropped."""
    for wrong in ("seq_back", "timestamp_back", "ssrc_changes", "bad_auth", "repeated"):
        assert stats[wrong] == 0, (wrong, stats)
    if lossless:
        assert stats["lost"] <= stats["kernel_drops"], stats


def rss_bytes(relay):
    with open(f"/proc/{relay.process.pid}/status", encoding="ascii") as file:
        return int(re.search(r"^VmRSS:\s*(\d+) kB", file.read(), re.M)[1]) * 1024


def descriptors(relay):
    return len(os.listdir(f"/proc/{relay.process.pid}/fd"))


def objects(relay):
    return relay.get("/api/info")["objects"]


def per_worker(relay, metric):
    """The metric of each worker, in order."""
    from kit import request
    body = request("GET", relay.url + "/metrics").body
    return [float(v) for v in re.findall(rf'^{metric}\{{worker="\d+"\}} (\S+)$', body, re.M)]
