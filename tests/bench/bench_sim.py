#!/usr/bin/env python3
"""What simulated rings of many boards cost: `ringpipe sim` with one dense layer a board.

    tests/bench/bench_sim.py [--boards N,N,..] [--steps FEW,MANY] [--executor digest|timed]
                             [--once] [RINGPIPE]

A run is made with few and with many steps; a step costs their difference. CPU seconds are user +
system of all processes, memory is the largest process's. `--once`: only the run with few steps, and
only whether it ends with the reference's digests; no time is judged.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]

RUN = """\
model: {folder}/model.yaml
data: {{set: glyphs, train: 64, test: 16}}
ring: {{boards: {boards}}}
train: {{epochs: 1000, steps: {steps}, batch: 16, microbatch: 4, seed: 1}}
loss: cross-entropy
optimizer: {{kind: sgd, lr: 0.05}}
schedule: 1f1b
cut: [{cut}]
"""


def write_run(folder, boards, steps):
    names = [f"fc{i}" for i in range(boards)]
    layers = [f"  - {{name: {name}, kind: dense, out: 4}}" for name in names[:-1]]
    layers.append(f"  - {{name: {names[-1]}, kind: dense, out: classes}}")
    (folder / "model.yaml").write_text("input: data\nlayers:\n" + "\n".join(layers) + "\n")
    run = folder / "run.yaml"
    run.write_text(RUN.format(folder=folder, boards=boards, steps=steps,
                              cut=", ".join(names[1:])))
    return run


def simulate(program, executor, boards, steps):
    """CPU seconds, wall seconds, virtual seconds, MiB of one run."""
    with tempfile.TemporaryDirectory() as name:
        run = write_run(Path(name), boards, steps)
        command = [program, "sim", run, "--executor", executor, "--seed", "1", "--out",
                   Path(name) / "out"]
        began = time.monotonic()
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                 text=True)
        words = child.stderr.read()
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode != 0:
            sys.exit(f"{boards} boards, {steps} steps: exit code {child.returncode}\n{words}")
        seconds = time.monotonic() - began
        virtual = json.loads((Path(name) / "out/summary.json").read_text())["seconds"]
        return used.ru_utime + used.ru_stime, seconds, virtual, used.ru_maxrss / 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--boards", default="8,64,256,1000")
    parser.add_argument("--steps", default="4,24")
    parser.add_argument("--executor", default="digest")
    parser.add_argument("--once", action="store_true")
    parser.add_argument("ringpipe", nargs="?", default=SOURCE / "build/bin/ringpipe")
    args = parser.parse_args()
    few, many = (int(word) for word in args.steps.split(","))
    if args.once:
        for boards in args.boards.split(","):
            simulate(args.ringpipe, args.executor, int(boards), few)
            print(f"{boards} boards, {few} steps: the reference's digests")
        return
    print(f"{'boards':>6} {'CPU s, ' + str(few):>11} {'CPU s, ' + str(many):>11} {'MiB':>7} "
          f"{'us a step and board':>20} {'virtual s a CPU s of training':>30}")
    for boards in (int(word) for word in args.boards.split(",")):
        short, _, virtual_short, _ = simulate(args.ringpipe, args.executor, boards, few)
        long, _, virtual_long, mib = simulate(args.ringpipe, args.executor, boards, many)
        cost = (long - short) / (many - few)
        rate = (virtual_long - virtual_short) / (long - short)
        print(f"{boards:>6} {short:>11.2f} {long:>11.2f} {mib:>7.0f} {1e6 * cost / boards:>20.0f} "
              f"{rate:>30.2f}", flush=True)


main()
