#!/usr/bin/env python3
"""What a viewer with readers costs a training on the same machine.

bench_view.py BUILD [--readers N] [--pairs N] [--steps N] [--boards N] [--hertz N]

Trains alternately without a viewer and with one that has N readers of events, which read all that
they get, and a program that asks for /metrics --hertz times a second.
Prints the samples a second of each pair and their ratio, and whether the weights are the same.
Without a GPU, boards, viewer and readers share the processor: the ratio is the worst case of one
machine for everything."""
import argparse
import hashlib
import http.client
import json
import os
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

RUN = """\
model: mlp
data: {set: glyphs, train: 4096, test: 256}
ring: {boards: BOARDS}
train: {steps: STEPS, batch: 128, microbatch: 32, seed: 1}
loss: cross-entropy
optimizer: {kind: sgd, lr: 0.05, momentum: 0.9}
schedule: 1f1b
cut: auto
"""


class Readers:
    """Threads that read events, and one that asks for metrics."""

    def __init__(self, port, readers, hertz):
        self.port, self.hertz = port, hertz
        self.ended = threading.Event()
        self.bytes = [0] * readers
        self.threads = [threading.Thread(target=self.read, args=(i,)) for i in range(readers)]
        self.threads.append(threading.Thread(target=self.scrape))
        self.scrapes = 0
        for thread in self.threads:
            thread.start()

    def read(self, index):
        with socket.create_connection(("127.0.0.1", self.port), timeout=1) as connection:
            host = f"Host: 127.0.0.1:{self.port}"
            connection.sendall(f"GET /events HTTP/1.1\r\n{host}\r\n\r\n".encode())
            while not self.ended.is_set():
                try:
                    got = len(connection.recv(65536))
                except TimeoutError:
                    continue
                if got == 0:
                    return
                self.bytes[index] += got

    def scrape(self):
        while not self.ended.wait(1 / self.hertz):
            try:
                connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
                connection.request("GET", "/metrics")
                self.scrapes += connection.getresponse().status == 200
                connection.close()
            except OSError:
                return

    def end(self):
        self.ended.set()
        for thread in self.threads:
            thread.join()


def processor_s(pid):
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_mib(pid):
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024


def watch(program, folder, out, options, run):
    """Serves the run to readers until it ends; what it cost, in words."""
    while not (folder / out / "log.jsonl").exists() and run.poll() is None:
        time.sleep(0.05)
    viewer = subprocess.Popen([program, "view", out, "--listen", "127.0.0.1:0"], cwd=folder,
                              stdout=subprocess.PIPE, text=True)
    try:
        port = int(re.search(r":(\d+)/", viewer.stdout.readline())[1])
        readers = Readers(port, options.readers, options.hertz)
        run.wait()
        said = (f"viewer {processor_s(viewer.pid):.2f} s of the processor, "
                f"{resident_mib(viewer.pid):.1f} MiB; {sum(readers.bytes) / 1e6:.1f} MB read, "
                f"{readers.scrapes} scrapes")
        readers.end()
    finally:
        viewer.send_signal(signal.SIGTERM)
        viewer.wait()
    if min(readers.bytes) == 0:
        sys.exit("a reader got nothing")
    return said


def train(program, folder, out, options, watched):
    """(samples a second, digest of the weights) of a run, and what its viewer says."""
    command = [program, "train", "run.yaml", "--out", out, "--quiet"]
    run = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL)
    said = ""
    if watched:
        said = watch(program, folder, out, options, run)
    if run.wait() != 0:
        sys.exit(f"the run {out} ended with {run.returncode}")
    steps = [json.loads(line) for line in (folder / out / "log.jsonl").read_text().splitlines()]
    steps = [step for step in steps if "event" not in step]
    half = steps[len(steps) // 4:]  # the viewer and its readers are there by then
    seconds = half[-1]["time_s"] - half[0]["time_s"]
    weights = (folder / out / "weights.safetensors").read_bytes()
    return 128 * (len(half) - 1) / seconds, hashlib.sha256(weights).hexdigest(), said


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path)
    parser.add_argument("--readers", type=int, default=40)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--boards", type=int, default=2)
    parser.add_argument("--hertz", type=float, default=10)
    options = parser.parse_args()
    program = str((options.build / "bin/ringpipe").resolve())
    ratios, digests = [], set()
    with tempfile.TemporaryDirectory(prefix="ringpipe-bench-") as name:
        folder = Path(name)
        (folder / "run.yaml").write_text(RUN.replace("BOARDS", str(options.boards))
                                         .replace("STEPS", str(options.steps)), encoding="utf-8")
        for pair in range(options.pairs):
            speeds = {}
            for watched in (pair % 2 == 0, pair % 2 == 1):
                out = f"{pair}-{'watched' if watched else 'alone'}"
                speeds[watched], digest, said = train(program, folder, out, options, watched)
                digests.add(digest)
                print(f"  {out}: {speeds[watched]:.0f} samples/s  {said}", flush=True)
            ratios.append(speeds[True] / speeds[False])
            print(f"pair {pair}: {ratios[-1]:.4f}", flush=True)
    print(f"ratio: median {statistics.median(ratios):.4f}, {min(ratios):.4f} to {max(ratios):.4f}; "
          f"weights {'identical' if len(digests) == 1 else 'DIFFER'}")
    return 0 if len(digests) == 1 else 1


if __name__ == "__main__":
    sys.exit(main())
