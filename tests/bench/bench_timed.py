#!/usr/bin/env python3
"""What `ringpipe sim --executor timed` predicts against what `ringpipe train` measures.

    tests/bench/bench_timed.py [--steps N] [--only TEXT] [RINGPIPE]

Schedules, cuts and emulated links; `ring.throttle` makes the boards slow, so that the cores of this
machine do not decide. A profile is made for each microbatch size. Prints milliseconds a step, as
the mean over the steps after the first ones without the extremes, a line a run, and the median of
the errors.
"""
import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
FIRST = 5  # steps left out: the pipe fills, kernels are met for the first time

THROTTLE = "throttle: {forward_ms: 10, backward_ms: 20}"
TWO, THREE = "[fc2]", "[fc2, fc3]"
# (schedule, cut, batch, microbatch, link)
RUNS = [
    ("{kind: gpipe}", TWO, 64, 16, ""),
    ("{kind: gpipe}", THREE, 64, 16, "{rate_mbit: 50, delay_ms: 2}"),
    ("{kind: gpipe}", THREE, 64, 8, "{rate_mbit: 10, delay_ms: 5}"),
    ("{kind: 1f1b}", TWO, 64, 16, "{rate_mbit: 100, delay_ms: 1}"),
    ("{kind: 1f1b}", THREE, 64, 8, ""),
    ("{kind: 1f1b}", THREE, 64, 8, "{rate_mbit: 5, delay_ms: 2}"),
    ("{kind: 1f1b}", "[relu1, relu2]", 64, 16, "{rate_mbit: 50, delay_ms: 20}"),
    ("{kind: zb-h1}", THREE, 64, 16, "{rate_mbit: 50, delay_ms: 2}"),
    ("{kind: pipedream}", TWO, 16, 16, "{rate_mbit: 100, delay_ms: 2}"),
    ("{kind: pipedream}", THREE, 16, 16, "{rate_mbit: 5, delay_ms: 2}"),
    ("{kind: pipedream-2bw}", THREE, 32, 8, "{delay_ms: 5}"),
    ("{kind: pipeoptim}", THREE, 32, 8, "{rate_mbit: 50, delay_ms: 2, jitter_ms: 1}"),
]


def text_of(run, steps):
    schedule, cut, batch, micro, link = run
    boards = cut.count(",") + 2
    ring = f"boards: {boards}, {THROTTLE}" + (f", link: {link}" if link else "")
    return (f"model: mlp\ndata: {{set: glyphs}}\nring: {{{ring}}}\ncut: {cut}\n"
            f"schedule: {schedule}\noptimizer: {{kind: adam, lr: 0.001}}\n"
            f"train: {{batch: {batch}, microbatch: {micro}, steps: {steps}, seed: 1}}\n")


def step_ms(folder):
    """Mean time between the ends of two steps."""
    lines = [json.loads(s) for s in (folder / "log.jsonl").read_text().splitlines()]
    ends = [line["time_s"] for line in lines if "lr" in line]
    if len(ends) < FIRST + 4:
        sys.exit(f"{folder}: {len(ends)} steps in its log, at least {FIRST + 4} are needed")
    gaps = [b - a for a, b in zip(ends[FIRST:], ends[FIRST + 1:])]
    return 1e3 * middle_mean(gaps)


def middle_mean(values):
    """Mean without the largest and the smallest tenth: reports come in pairs in some schedules."""
    edge = max(1, len(values) // 10)
    return statistics.mean(sorted(values)[edge:-edge])


def call(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: {done.stderr}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--only", default="", help="runs whose line contains this text")
    parser.add_argument("ringpipe", nargs="?", default=SOURCE / "build/bin/ringpipe")
    args = parser.parse_args()
    errors = []
    print(f"{'schedule':22} {'cut':16} {'batch':>8} {'link':44} {'timed':>8} {'real':>8}  error")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for index, run in enumerate(RUNS):
            if args.only not in str(run):
                continue
            path, profile = folder / f"{index}.yaml", folder / f"profile-{run[3]}.json"
            path.write_text(text_of(run, args.steps))
            if not profile.exists():
                call(args.ringpipe, "profile", path, "-o", profile)
            call(args.ringpipe, "sim", path, "--executor", "timed", "--profile", profile,
                 "-o", folder / f"sim-{index}")
            call(args.ringpipe, "train", path, "-o", folder / f"real-{index}")
            told, real = step_ms(folder / f"sim-{index}"), step_ms(folder / f"real-{index}")
            errors.append(abs(told / real - 1))
            print(f"{run[0]:22} {run[1]:16} {run[2]:>4}/{run[3]:<3} {run[4]:44} "
                  f"{told:8.1f} {real:8.1f}  {100 * (told / real - 1):+.1f} %", flush=True)
    print(f"median error {100 * statistics.median(errors):.1f} %, "
          f"largest {100 * max(errors):.1f} %, {len(errors)} runs")


if __name__ == "__main__":
    main()
