"""Runs the built programs from outside: nothing is known here but the interface."""
import fcntl
import functools
import hashlib
import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import uuid
from pathlib import Path

SOURCE = Path(os.environ.get("RP_SOURCE_DIR", Path(__file__).resolve().parents[2]))
BUILD = Path(os.environ.get("RP_BUILD_DIR", SOURCE / "build"))
RINGPIPE = BUILD / "bin" / "ringpipe"
AGENT = BUILD / "bin" / "ringpipe-agent"

# Small enough for a second or two, with more than one stage, step and epoch.
RUN = """\
model: mlp
data: {set: glyphs, train: 256, test: 64}
ring: {boards: 2}
train: {epochs: 1, batch: 64, microbatch: 16, seed: 1}
loss: cross-entropy
optimizer: {kind: sgd, lr: 0.05, momentum: 0.9}
schedule: gpipe
cut: auto
"""

# The same, but long enough to be interrupted.
LONG = ("--set", "train.epochs=1000")

# Sanitizers make everything slower.
SLOWER = int(os.environ.get("RP_SLOWER", "1"))


def patient(seconds):
    """How long a wait for so many seconds takes until it fails: other tests are at work, and
    machines differ."""
    return SLOWER * max(seconds, min(3 * seconds, 180))


def reads_interrupts(process):
    """Does the process, which runs, read SIGINT instead of ending by it?"""
    if process.poll() is not None:
        return False
    status = Path(f"/proc/{process.pid}/status").read_text(encoding="utf-8")
    blocked = re.search(r"^SigBlk:\s*(\w+)", status, re.M)
    return bool(blocked and int(blocked[1], 16) >> (signal.SIGINT - 1) & 1)


class Case(unittest.TestCase):
    """A folder of its own, and an eye on every process that it leaves."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="ringpipe-test-")
        self.addCleanup(folder.cleanup)
        self.dir = Path(folder.name)
        self.mark = "RP_TEST_MARK=" + uuid.uuid4().hex
        self.addCleanup(self.expect_no_agents)

    def environment(self, **changes):
        name, value = self.mark.split("=")
        # What somebody has tuned or measured here is no part of a test.
        own = {"RINGPIPE_TUNING": str(self.dir / "no-tuning"), "RINGPIPE_PROFILES": "",
               "RINGPIPE_BINARIES": "1"}  # agents start by the hundred
        return {**os.environ, **own, name: value, **changes}

    def run_file(self, text=RUN, name="run.yaml"):
        path = self.dir / name
        path.write_text(text, encoding="utf-8")
        return path

    def small_disk(self, name, size):
        """A folder that is a disk of its own; the test is skipped where none can be made."""
        path = self.dir / name
        path.mkdir()
        words = ["mount", "-t", "tmpfs", "-o", f"size={size}", "ringpipe-test", str(path)]
        try:
            mounted = subprocess.run(words, capture_output=True, text=True, check=False)
        except FileNotFoundError:
            self.skipTest("no mount program to make a small disk with")
        if mounted.returncode != 0:
            self.skipTest(f"may not mount a small disk: {mounted.stderr.strip()}")
        self.addCleanup(subprocess.run, ["umount", "-l", str(path)], check=True)
        return path

    def start(self, *words, program=RINGPIPE, env=None, stdin_bytes=b"", **options):
        """A running program; standard output and standard error are pipes of text."""
        stdin = subprocess.DEVNULL
        if stdin_bytes:
            stdin, writer = os.pipe()
            self.addCleanup(os.close, stdin)
            threading.Thread(target=feed, args=(writer, stdin_bytes), daemon=True).start()
        process = subprocess.Popen(
            [str(w) for w in (program, *words)],
            cwd=self.dir,
            env=self.environment(**(env or {})),
            stdin=stdin,
            stdout=subprocess.PIPE,
            text=True,
            **{"stderr": subprocess.PIPE, **options},
        )
        self.addCleanup(self.end, process)
        return process

    def end(self, process):
        if process.poll() is None:
            process.kill()
        process.communicate()

    def finish(self, process, code=0, seconds=60):
        """Waits for a started program and checks its exit code."""
        try:
            out, err = process.communicate(timeout=patient(seconds))
            err = err or ""  # it may go to a file
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGABRT)
            out, err = process.communicate()
            self.fail(f"no end after {seconds} s: {process.args}\n{out[-3000:]}\n{err[-3000:]}")
        said = f"{process.args}\n{out[-3000:]}\n{err[-3000:]}"
        if code is not None:
            self.assertEqual(process.returncode, code, said)
        self.assertNotIn("Sanitizer", err, said)
        return out, err

    def ringpipe(self, *words, code=0, seconds=60, **options):
        """Runs the program to its end; gives standard output and standard error."""
        return self.finish(self.start(*words, **options), code, seconds)

    def refused(self, *words, code=2, **options):
        """Runs it, wants this exit code, and gives the message. 2: nothing was started."""
        out, err = self.ringpipe(*words, code=code, **options)
        if code == 2:
            self.assertEqual(out, "")
        self.assertTrue(err.strip(), "no message")
        lines = err.splitlines()
        self.assertEqual(lines.count(lines[-1]), 1, f"said twice: {err}")
        return err

    # ---- processes ----

    def agents(self):
        """Process ids of the agents that this test started, by way of a controller too."""
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                if self.mark.encode() not in (folder / "environ").read_bytes().split(b"\0"):
                    continue
                state = (folder / "stat").read_text().rsplit(")", 1)[1].split()[0]
                if state != "Z" and os.readlink(folder / "exe").startswith(str(AGENT)):
                    found.append(int(folder.name))
            except OSError:
                continue
        return sorted(found)

    def wait_for(self, what, condition, seconds=60, process=None):
        end = time.monotonic() + patient(seconds)
        while time.monotonic() < end:
            value = condition()
            if value:
                return value
            if process is not None and process.poll() is not None:
                out, err = process.communicate()
                self.fail(f"ended with {process.returncode} before {what}\n{out}\n{err[-3000:]}")
            time.sleep(0.02)
        return self.fail(f"no {what} after {seconds} s")

    def expect_no_agents(self, seconds=10):
        self.wait_for("end of the agents", lambda: not self.agents(), seconds)

    def train_until(self, out, steps, *words, **options):
        """A training in work that has done some steps."""
        process = self.start("train", self.run_file(), "--out", out, *LONG, *words, **options)
        log = Path(self.dir, out, "log.jsonl")
        self.wait_for(f"step {steps}", lambda: len(steps_of(log)) >= steps, process=process)
        return process


def feed(writer, data):
    """Writes it all and closes; the reader may have ended before."""
    try:
        with open(writer, "wb") as pipe:
            pipe.write(data)
    except BrokenPipeError:
        pass


def steps_of(log):
    """The step records of a log.jsonl, which may be in the middle of being written."""
    if not log.exists():
        return []
    lines = log.read_text(encoding="utf-8").splitlines(keepends=True)
    records = [json.loads(line) for line in lines if line.endswith("\n")]
    return [record for record in records if "loss" in record and "event" not in record]


def write_safetensors(path, tensors):
    """tensors: {name: (shape, floats)}; the format is two lines long, so written by hand."""
    header, data = {}, b""
    for name, (shape, values) in tensors.items():
        raw = struct.pack(f"<{len(values)}f", *values)
        span = [len(data), len(data) + len(raw)]
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": span}
        data += raw
    text = json.dumps(header).encode()
    Path(path).write_bytes(struct.pack("<Q", len(text)) + text + data)


def read_safetensors(path):
    """{name: (shape, floats)}, without the metadata."""
    raw = Path(path).read_bytes()
    (size,) = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8 : 8 + size])
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        first, end = (8 + size + offset for offset in entry["data_offsets"])
        count = (end - first) // 4
        tensors[name] = (entry["shape"], list(struct.unpack(f"<{count}f", raw[first:end])))
    return tensors


# In the short form one of so many other methods runs too, so that all are met within some gates.
DRAWN_OF = 12


def is_drawn(name, chance):
    """Whether a commit, whose hash is `chance`, draws the method of this name."""
    digest = hashlib.sha256(f"{chance} {name}".encode()).digest()
    return bool(chance) and int.from_bytes(digest[:4], "big") % DRAWN_OF == 0


def few_when_short(*names, sanitized=()):
    """Where RP_SHORT is set, a test program has only these tests and those that RP_DRAW draws;
    under a sanitizer only these and `sanitized`, which are enough to run all of the code.
    `load_tests` of unittest."""
    def load_tests(loader, tests, _pattern):
        if SLOWER == 1 and not os.environ.get("RP_SHORT"):
            return tests
        here = sys.modules["__main__"]
        chosen = names + (tuple(sanitized) if SLOWER > 1 else ())
        short = loader.loadTestsFromNames(chosen, here)
        have = {test.id() for test in each_test(short)}
        chance = os.environ.get("RP_DRAW", "") if SLOWER == 1 else ""
        short.addTests(test for test in each_test(tests)
                       if test.id() not in have and is_drawn(test.id(), chance))
        return short
    return load_tests


def each_test(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from each_test(test)
        else:
            yield test


def main():
    """Like unittest.main(), with CTest's rule: all skipped is exit 77 with the reason."""
    if not RINGPIPE.exists():
        sys.exit(f"no {RINGPIPE}: set RP_BUILD_DIR to the build folder")
    program = unittest.main(exit=False, verbosity=2)
    result = program.result
    for _, reason in result.skipped:
        print("SKIP:", reason)
    if not result.wasSuccessful():
        sys.exit(1)
    sys.exit(77 if result.skipped and len(result.skipped) == result.testsRun else 0)


class Ports:
    """Below those that the system gives to whoever asks for any: a block for each test program."""

    FIRST, BLOCK, BLOCKS = 20000, 64, 180

    def __init__(self):
        for number in range(self.BLOCKS):
            # Open until this process ends; of all builds on this machine.
            name = f"ringpipe-{os.getuid()}-ports-{number}.lock"
            lock = open(Path(tempfile.gettempdir()) / name, "w", encoding="utf-8")
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                lock.close()
                continue
            self.lock, self.base, self.next = lock, self.FIRST + number * self.BLOCK, 0
            return
        raise RuntimeError("every block of ports is in use")

    def find(self, count):
        """The first of so many that nobody has now."""
        for _ in range(self.BLOCK // count):
            first = self.base + self.next
            self.next = (self.next + count) % (self.BLOCK - self.BLOCK % count)
            if all(is_free(port) for port in range(first, first + count)):
                return first
        raise RuntimeError(f"the ports from {self.base} on are in use")


def is_free(port):
    with socket.socket() as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            one.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


@functools.cache
def ports():
    return Ports()


def place(err):
    """`file:line` of a message, or an empty text."""
    found = re.search(r"[\w.-]+\.(yaml|csv):\d+", err)
    return found.group() if found else ""
