#!/usr/bin/env python3
"""Is a ring left alone that is slow, and whose controller sleeps? Two boards of a roster whose ops
take long, and a controller that is stopped for a while in the first step: nobody may be taken for
lost, and nothing may be done again.

    tests/bench/bench_patience.py RINGPIPE [--op-s S] [--asleep-s S] [--steps N]
"""
import argparse
import json
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import roster

RUN = """\
model: mlp
data: {set: glyphs, train: 64, test: 16}
ring: {roster: lab.yaml, throttle: {forward_ms: %d, backward_ms: %d}}
keys: controller
train: {epochs: 10, steps: %d, batch: 16, microbatch: 16, seed: 1, eval_epochs: 0}
loss: cross-entropy
optimizer: {kind: sgd, lr: 0.01}
schedule: 1f1b
cut: [fc2]
"""
BOARDS = {"one": "tcp://127.77.1.1:7000", "two": "tcp://127.77.1.2:7000"}


def start_agent(args, folder, name):
    with open(folder / f"{name}.log", "w", encoding="utf-8") as journal:
        return subprocess.Popen([args.program.parent / "ringpipe-agent", "--keys", name, "--name",
                                 name, "--threads", "1", "--listen", BOARDS[name]],
                                cwd=folder, stdout=journal, stderr=journal)


def train(args, folder):
    """Seconds, and the messages."""
    began = time.monotonic()
    with open(folder / "told", "w", encoding="utf-8") as told:
        run = subprocess.Popen([args.program, "train", "run.yaml", "--out", "out"], cwd=folder,
                               stdout=subprocess.DEVNULL, stderr=told)
    time.sleep(1.5 * args.op_s)
    run.send_signal(signal.SIGSTOP)
    time.sleep(args.asleep_s)
    run.send_signal(signal.SIGCONT)
    code = run.wait()
    told = (folder / "told").read_text(encoding="utf-8")
    if code != 0:
        sys.exit(f"exit code {code}\n{told}")
    return time.monotonic() - began, told


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=lambda text: Path(text).resolve())
    parser.add_argument("--op-s", type=float, default=30)
    parser.add_argument("--asleep-s", type=float, default=60)
    parser.add_argument("--steps", type=int, default=2)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        roster.make(args.program, folder, "controller", BOARDS)
        (folder / "run.yaml").write_text(RUN % (1000 * args.op_s, 1000 * args.op_s, args.steps))
        agents = [start_agent(args, folder, board) for board in BOARDS]
        try:
            took_s, told = train(args, folder)
        finally:
            for agent in agents:
                agent.kill()
                agent.wait()
        lines = map(json.loads, (folder / "out" / "log.jsonl").read_text().splitlines())
        faults = [line["text"] for line in lines if line.get("event") in ("fault", "recovered")]
        summary = json.loads((folder / "out" / "summary.json").read_text())
    print(f"{args.steps} steps of {4 * args.op_s:.0f} s, the controller stopped for "
          f"{args.asleep_s:.0f} s: {took_s:.0f} s, {len(faults)} faults, "
          f"{len(summary['recovery'])} ways back, ledger {summary['ledger']}")
    print(told)
    sys.exit(1 if faults or summary["recovery"] or summary["ledger"]["repeated"] else 0)


if __name__ == "__main__":
    main()
