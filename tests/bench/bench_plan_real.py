#!/usr/bin/env python3
"""Predicted against measured: real rings of four agents, made uneven in three ways (ring.throttle).

    bench_plan_real.py RINGPIPE [--steps N] [--schedules gpipe 1f1b]

For each way, schedule and size of a microbatch two plans: the layers shared out as if all boards
were alike, and by what each takes (`cut: auto`). Seconds of a step: by the replay that the plan is
chosen by, and as the ring has taken them. The boards are far slower than this machine, which has
fewer cores than the ring has boards; what they compute and send is real.
"""
import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

MODEL = "input: data\nlayers:\n  - {name: flatten, kind: flatten}\n" + "".join(
    f"  - {{name: fc{i}, kind: dense, out: {width}}}\n  - {{name: relu{i}, kind: relu}}\n"
    for i, width in enumerate((128, 512, 256, 384, 256, 256, 512, 256, 128), 1)
) + "  - {name: last, kind: dense, out: classes}\n"
RUN = """\
model: net.yaml
data: {set: glyphs, train: 8192, test: 64}
ring: {boards: 4, throttle: %s}
train: {epochs: 9, steps: %d, batch: 64, microbatch: %d, seed: 1, eval_epochs: 0}
loss: cross-entropy
optimizer: {kind: sgd, lr: 0.005}
schedule: %s
cut: %s
"""
WAYS = {
    "4 : 2 : 1 : 1":
        "{boards: {0: {gflops: 1}, 1: {gflops: 0.5}, 2: {gflops: 0.25}, 3: {gflops: 0.25}}}",
    "one of four at an eighth": "{gflops: 0.8, boards: {2: {gflops: 0.1}}}",
    "20 ms an op on one, rest 1 : 2 : 3":
        "{boards: {0: {gflops: 0.25}, 1: {gflops: 1.5, forward_op_ms: 20, backward_op_ms: 20}, "
        "2: {gflops: 0.5}, 3: {gflops: 0.75}}}",
}
EVEN = "{gflops: 0.25}"


def ringpipe(args, folder, verb, text, *words):
    (folder / "run.yaml").write_text(text)
    done = subprocess.run([args.program, verb, "run.yaml", *words], cwd=folder, text=True,
                          capture_output=True, timeout=1800, check=False)
    if done.returncode:
        sys.exit(f"{text}\n{done.stderr}")


def cut_of(args, folder, throttle, micro, schedule):
    ringpipe(args, folder, "plan", RUN % (throttle, args.steps, micro, schedule, "auto"),
             "--profile", "p.json", "--out", "plan.json")
    stages = json.loads((folder / "plan.json").read_text())["stages"]
    return "[" + ", ".join(stage["layers"][0] for stage in stages[1:]) + "]"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", type=Path)
    parser.add_argument("--steps", type=int, default=24)
    parser.add_argument("--micros", nargs="+", type=int, default=[8, 16])
    parser.add_argument("--schedules", nargs="+", default=["gpipe", "1f1b"])
    args = parser.parse_args()
    args.program = args.program.resolve()
    errors, gains = [], []
    print("| boards | schedule | microbatch | cut | predicted s/step | measured s/step | off by |")
    print("|---|---|---:|---|---:|---:|---:|", flush=True)
    with tempfile.TemporaryDirectory(prefix="ringpipe-plans-") as name:
        folder = Path(name)
        (folder / "net.yaml").write_text(MODEL)
        for micro in args.micros:
            ringpipe(args, folder, "profile", RUN % (EVEN, args.steps, micro, "gpipe", "auto"),
                     "--out", "p.json")
            for schedule in args.schedules:
                for way, throttle in WAYS.items():
                    took = {}
                    for kind, slow in (("even", EVEN), ("by speed", throttle)):
                        out = folder / f"{micro}-{schedule}-{len(errors)}"
                        cut = cut_of(args, folder, slow, micro, schedule)
                        ringpipe(args, folder, "train",
                                 RUN % (throttle, args.steps, micro, schedule, cut),
                                 "--profile", "p.json", "--out", out.name)
                        found = json.loads((out / "summary.json").read_text())["prediction"]
                        predicted, took[kind] = found["step_s"], found["measured_step_s"]
                        errors.append(took[kind] / predicted - 1)
                        print(f"| {way} | {schedule} | {micro} | {kind} | {predicted:.4f} | "
                              f"{took[kind]:.4f} | {100 * errors[-1]:+.1f} % |", flush=True)
                    gains.append(took["even"] / took["by speed"])
    sizes = sorted(abs(e) for e in errors)
    print(f"\n{len(errors)} plans: off by {100 * statistics.median(sizes):.1f} % at the median, "
          f"{100 * sizes[-1]:.1f} % at most; by speed {statistics.median(gains):.2f} times as fast "
          f"as even at the median, {min(gains):.2f} to {max(gains):.2f}")


if __name__ == "__main__":
    main()
