#!/usr/bin/env python3
"""How soon a run is at work again after a fault, and what is left of its samples/s: real agents on
this machine, of which one is killed every few seconds.

    tests/bench/bench_recover.py RINGPIPE [--every S] [--faults N] [--schedules NAME...]
                                 [--throttle MS] [--set KEY=VALUE...]

For every schedule an undisturbed run and a disturbed one; their weights must have the same bits.
With --throttle an op takes at least so long and leaves the cores idle, as on boards that have their
own: the two runs are at work at the same time then, and what else loads the machine hits both.
"""
import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

RUN = """\
model: cnn-small
data: {set: glyphs, train: 8192, test: 64, size: 28}
ring: {boards: 3}
train: {epochs: 1000, batch: 64, microbatch: 16, seed: 1, eval_epochs: 0}
loss: cross-entropy
optimizer: {kind: sgd, lr: 0.01, momentum: 0.9}
cut: auto
"""


def agents(parent):
    """Process ids of the agents that the controller has started."""
    listed = subprocess.run(["pgrep", "-P", str(parent), "-f", "ringpipe-agent"], text=True,
                            stdout=subprocess.PIPE, check=False)
    return [int(word) for word in listed.stdout.split()]


def train(args, folder, schedule, steps, resume_cut=()):
    words = [args.program, "train", folder / "run.yaml", "--out", folder / "run",
             "--set", f"schedule={schedule}", "--set", f"train.steps={steps}",
             "--set", f"train.checkpoint_steps={args.checkpoint}", *resume_cut]
    if args.throttle:
        throttle = f"ring.throttle={{forward_ms: {args.throttle}, backward_ms: {args.throttle}}}"
        words += ["--set", throttle]
    for setting in args.set:
        words += ["--set", setting]
    with open(folder / "told", "w", encoding="utf-8") as told:  # a pipe that is full holds it up
        return subprocess.Popen([str(word) for word in words], stdout=subprocess.DEVNULL,
                                stderr=told)


def finish(folder, process):
    if process.wait() != 0:
        told = (folder / "told").read_text(encoding="utf-8")
        sys.exit(f"exit code {process.returncode}\n{told[-2000:]}")


def result(folder):
    run = folder / "run"
    weights = (run / "weights.safetensors").read_bytes()
    return json.loads((run / "summary.json").read_text()), weights


def steps_of(folder):
    log = folder / "run" / "log.jsonl"
    return log.read_text().count('"loss"') if log.exists() else 0


def kill_some(args, folder, process, draw):
    """One agent every so often, from the first step on; how many there were."""
    while process.poll() is None and steps_of(folder) == 0:
        time.sleep(0.02)
    kills = 0
    while kills < args.faults:
        try:
            process.wait(args.every * (0.5 + draw.random()))
            return kills
        except subprocess.TimeoutExpired:
            alive = agents(process.pid)
            if alive:
                os.kill(draw.choice(alive), signal.SIGKILL)
                kills += 1
    return kills


def at(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def describe(values):
    return (f"p50 {at(values, 0.5):.2f} s, p95 {at(values, 0.95):.2f} s, "
            f"most {max(values):.2f} s")


def cut_of(folder, process):
    """Of the plan, which is written before the first step."""
    plan = folder / "run" / "plan.json"
    while not plan.exists() and process.poll() is None:
        time.sleep(0.1)
    time.sleep(0.5)
    return json.loads(plan.read_text())["cut"]


def run_both(args, schedule, steps):
    with tempfile.TemporaryDirectory() as calm, tempfile.TemporaryDirectory() as harsh:
        calm, harsh = Path(calm), Path(harsh)
        for folder in (calm, harsh):
            (folder / "run.yaml").write_text(RUN)
        undisturbed = train(args, calm, schedule, steps)
        if not args.throttle:
            finish(calm, undisturbed)
        cut = cut_of(calm, undisturbed)
        process = train(args, harsh, schedule, steps, ("--set", f"cut={json.dumps(cut)}"))
        kills = kill_some(args, harsh, process, random.Random(args.seed))
        finish(harsh, process)
        if args.throttle:
            finish(calm, undisturbed)
        return kills, result(calm), result(harsh)


def report(args, schedule, steps):
    kills, (calm, wanted), (harsh, weights) = run_both(args, schedule, steps)
    told = harsh["recovery"]
    back = [r["replan_s"] + r["restore_s"] for r in told]
    again = sum(r["replay_microbatches"] for r in told)
    # of the time behind the start of the agents, which both have
    goodput = (harsh["samples"] / harsh["seconds"]) / (calm["samples"] / calm["seconds"])
    print(f"{schedule:<10} {kills} kills, {len(told)} told, {harsh['seconds']:.0f} s "
          f"({calm['seconds']:.0f} s undisturbed): noticed p50 "
          f"{at([r['detect_s'] for r in told], 0.5):.2f} s, back at work {describe(back)}; "
          f"{again} microbatches again, goodput {100 * goodput:.1f} %; "
          f"weights {'the same' if weights == wanted else 'DIFFERENT'}", flush=True)
    return back, weights == wanted


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program", type=Path)
    parser.add_argument("--schedules", nargs="+",
                        default=["gpipe", "1f1b", "pipedream", "pipeoptim", "ea-pipe"])
    parser.add_argument("--every", type=float, default=3, help="seconds from fault to fault")
    parser.add_argument("--faults", type=int, default=10, help="of a run, at most")
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--checkpoint", type=int, default=50, help="steps")
    parser.add_argument("--throttle", type=float, default=0, help="ms of an op, at least")
    parser.add_argument("--set", action="append", default=[], help="of both runs: KEY=VALUE")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    every, good = [], True
    for schedule in args.schedules:
        back, same = report(args, schedule, args.steps)
        every += back
        good &= same
    print(f"all: {len(every)} ways back, {describe(every)}")
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
