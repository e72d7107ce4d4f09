"""What the end-to-end tests share: a relay of their own, HTTP, waiting, the order of the tests.

Every wait has a bound that a slow machine does not reach; none is a sleep where the thing itself
can be awaited. A failure ends with the relay's last words.
"""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import urllib.error
import urllib.request

BUILD = os.environ.get("BUILD", "build")
SLUICE = f"{BUILD}/sluice"
READY_S = 30
STOP_S = 60
LOG_LINES = 25
SKIP = 77


class Reply:
    """An HTTP answer, whatever its status."""

    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def json(self):
        return json.loads(self.body)

    def __repr__(self):
        return f"{self.status} {dict(self.headers)} {self.body[:300]!r}"


# Only ever this host: a proxy of the environment has no business here.
_opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def request(method, url, body=None, headers=None, timeout=30):
    if isinstance(body, str):
        body = body.encode()
    asked = urllib.request.Request(url, data=body, method=method, headers=headers or {})
    try:
        with _opener.open(asked, timeout=timeout) as answer:
            return Reply(answer.status, answer.headers, answer.read().decode())
    except urllib.error.HTTPError as refusal:
        return Reply(refusal.code, refusal.headers, refusal.read().decode())


def until(what, condition, limit_s=60, every_s=0.05):
    """The first true value of condition(); for states of another process that tell nobody."""
    end = time.monotonic() + limit_s
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"after {limit_s} s still not: {what}")
        time.sleep(every_s)


class Relay:
    """A relay process on free ports of 127.0.0.1, in a temporary folder of its own."""

    def __init__(self, *flags, config="", program=SLUICE, udp="127.0.0.1:0"):
        self.folder = tempfile.mkdtemp(prefix="sluice-e2e-")
        self.log_path = os.path.join(self.folder, "log")
        self.config_path = os.path.join(self.folder, "sluice.yaml")
        with open(self.config_path, "w", encoding="utf-8") as file:
            file.write(config or "drain_ms: 0\n")
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(
                # A test that crashes takes its relay along.
                ["setpriv", "--pdeathsig", "KILL", *([program] if isinstance(program, str) else program),
                 "-c", self.config_path, "--http", "127.0.0.1:0", "--udp", udp, *flags],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, text=True)
        with bounded(READY_S, self.process):
            self.ready = self.process.stdout.readline()
        found = re.match(r"ready http=(\S+:\d+) udp=(\S+:(\d+)) workers=(\d+)", self.ready)
        if not found:
            self.kill()
            raise AssertionError(f"the relay did not start: {self.ready!r}\n{self.log_tail()}")
        self.url = f"http://{found[1]}"
        self.udp_port = int(found[3])
        self.workers = int(found[4])
        tcp = re.search(r" tcp=\S+:(\d+)", self.ready)
        self.tcp_port = int(tcp[1]) if tcp else None

    def get(self, path):
        answer = request("GET", self.url + path)
        assert answer.status == 200, (path, answer)
        return answer.json()

    def metrics(self):
        """Summed over workers: {"name{other labels}": value}."""
        answer = request("GET", self.url + "/metrics")
        assert answer.status == 200, answer
        sums = {}
        for line in answer.body.splitlines():
            if line and not line.startswith("#"):
                name, value = line.rsplit(" ", 1)
                name = re.sub(r'worker="\d+",?', "", name).replace("{}", "")
                sums[name] = sums.get(name, 0) + float(value)
        return sums

    def stream(self, name):
        return next((s for s in self.get("/api/streams") if s["name"] == name), None)

    def codecs(self, name):
        """{"audio": "opus", "video": ...} of a stream, in small letters."""
        stream = self.stream(name)
        return {t["kind"]: t["codec"].lower() for t in stream["tracks"]} if stream else {}

    def until_published(self, name, limit_s=60):
        def is_live():
            stream = self.stream(name)
            return stream and stream["publisher"] and stream["publisher"]["state"] == "connected"
        until(f"{name} is published", is_live, limit_s)

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as file:
            return file.read()

    def log_tail(self):
        return "".join(f"    {line}\n" for line in self.log().splitlines()[-LOG_LINES:])

    def send_signal(self, signo):
        self.process.send_signal(signo)

    def wait(self, limit_s=STOP_S):
        return self.process.wait(limit_s)

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def close(self, failed=False):
        """SIGTERM must end it, with status 0 and without a word of a sanitizer."""
        try:
            if self.process.poll() is None and not failed:
                self.send_signal(signal.SIGTERM)
                assert self.wait() == 0, f"exit status {self.process.returncode}"
                assert "Sanitizer" not in self.log(), "a sanitizer spoke"
        except BaseException:
            failed = True
            raise
        finally:
            self.kill()
            self.process.stdout.close()
            if failed:
                print(f"the relay's last words:\n{self.log_tail()}", flush=True)
            shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        self.close(failed=kind is not None)


@contextlib.contextmanager
def bounded(limit_s, process):
    """Kills the process when the block takes longer, which ends reads from it."""
    timer = threading.Timer(limit_s, process.kill)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def need(program, how):
    """A program that the build makes; a test without it has failed, not been skipped."""
    if not os.access(program, os.X_OK):
        sys.exit(f"{program} is missing: {how}")
    return program


def skip(reason):
    print(reason)
    sys.exit(SKIP)


def run(names, limit_s=280):
    """Run each test_* of a module's names in order; exit 1 with a trace when one fails."""
    def overdue(signo, _frame):
        raise TimeoutError("the test's time is up" if signo == signal.SIGALRM else "ended from outside")

    signal.signal(signal.SIGALRM, overdue)
    signal.signal(signal.SIGTERM, overdue)
    signal.alarm(limit_s)
    tests = [(name, f) for name, f in names.items() if name.startswith("test_") and callable(f)]
    for name, test in tests:
        began = time.monotonic()
        try:
            test()
            print(f"{name} ({time.monotonic() - began:.1f} s)", flush=True)
        except BaseException:  # pylint: disable=broad-except
            traceback.print_exc(file=sys.stdout)
            print(f"FAILED {name}", flush=True)
            # Threads of media libraries must not keep a failed test from ending.
            os._exit(1)
    assert tests, "no test"
    sys.stdout.flush()
    os._exit(0)
