#!/usr/bin/env python3
"""Real rings of four agents, made uneven in three ways (ring.throttle): what the planner takes
against twenty plans that a person would try, each predicted and measured.

    bench_plan_real.py RINGPIPE [--steps N] [--rounds N] [--only CUT:MICRO ..]

A person's plans: five cuts (layers by number, by operations, by the boards' speeds, and that with
one layer more or less in front) with four sizes of a microbatch. `auto`: cut and microbatch are the
planner's. All are run once, in turn with the ways; then `auto` and the three fastest of a person
again, in turn, `--rounds` times, of which medians count. Seconds of a step: by the replay that a
plan is chosen by, and as the ring has taken them. The boards are far slower than this machine,
which has fewer cores than the ring has boards; what they compute and send is real.
`--only`: these plans of a person's.
"""
import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

WIDTHS = (128, 512, 256, 384, 256, 256, 512, 256, 128)
MODEL = "input: data\nlayers:\n  - {name: flatten, kind: flatten}\n" + "".join(
    f"  - {{name: fc{i}, kind: dense, out: {width}}}\n  - {{name: relu{i}, kind: relu}}\n"
    for i, width in enumerate(WIDTHS, 1)
) + "  - {name: last, kind: dense, out: classes}\n"
RUN = """\
model: net.yaml
data: {set: glyphs, train: 8192, test: 64}
ring: {boards: 4, throttle: %s}
train: {epochs: 9, steps: %d, batch: 64, microbatch: %s, seed: 1, eval_epochs: 0}
loss: cross-entropy
optimizer: {kind: sgd, lr: 0.005}
schedule: gpipe
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
# As somebody knows them who has set them.
SPEEDS = {"4 : 2 : 1 : 1": (4, 2, 1, 1), "one of four at an eighth": (8, 8, 1, 8),
          "20 ms an op on one, rest 1 : 2 : 3": (1, 6, 2, 3)}
MICROS = (4, 8, 16, 32)
LAYERS = [name for i in range(1, len(WIDTHS) + 1) for name in (f"fc{i}", f"relu{i}")] + ["last"]
PIXELS, CLASSES = 28 * 28, 10


def ringpipe(args, folder, verb, text, *words):
    (folder / "run.yaml").write_text(text)
    done = subprocess.run([args.program, verb, "run.yaml", *words], cwd=folder, text=True,
                          capture_output=True, timeout=1800, check=False)
    if done.returncode:
        sys.exit(f"{text}\n{done.stderr}")


def share(costs, speeds):
    """Layers where boards begin, so that each has about as much of the costs as of the speeds."""
    firsts, done, part, whole = [], 0, 0, sum(costs)
    for i, cost in enumerate(costs):
        k = len(firsts)
        if k + 1 < len(speeds):
            goal = whole * (part + speeds[k]) / sum(speeds)
            if i > 0 and (done + cost / 2 > goal or len(costs) - i < len(speeds) - k):
                firsts.append(i)
                part += speeds[k]
        done += cost
    while len(firsts) + 1 < len(speeds):
        firsts.append(firsts[-1] + 1)
    return firsts


def person_cuts(way):
    """By number of layers, by operations, by speed, and near that; no two alike."""
    wide = (PIXELS, *WIDTHS, CLASSES)
    ops = [a * b * part for a, b in zip(wide, wide[1:]) for part in (1, 0)][:len(LAYERS)]
    by_speed = share(ops, SPEEDS[way])
    found = {"layers": share([1] * len(ops), (1, 1, 1, 1)),
             "operations": share(ops, (1, 1, 1, 1)), "speed": by_speed}
    for name, step in (("speed, one less", -2), ("speed, one more", 2)):
        found[name] = [at + step for at in by_speed]
    for name, cut in found.items():
        cut = [max(1 + i, min(at, len(ops) - 3 + i)) for i, at in enumerate(cut)]
        yield name, "[" + ", ".join(LAYERS[at] for at in cut) + "]"


def train(args, folder, way, micro, cut):
    """Predicted and measured seconds of a step, and the stages' first layers."""
    name = f"run{next(args.count)}"
    ringpipe(args, folder, "train", RUN % (WAYS[way], args.steps, micro, cut),
             "--profile", "p.json", "--out", name)
    found = json.loads((folder / name / "summary.json").read_text())["prediction"]
    plan = json.loads((folder / name / "plan.json").read_text())
    firsts = " ".join(stage["layers"][0] for stage in plan["stages"][1:])
    return found["step_s"], found["measured_step_s"], plan["microbatch"], firsts


def put(way, name, row):
    print(f"| {way} | {name} | {row[2]} | {row[3]} | {row[0]:.4f} | {row[1]:.4f} | "
          f"{100 * (row[1] / row[0] - 1):+.1f} % |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", type=Path)
    parser.add_argument("--steps", type=int, default=18)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="+", help="like 'speed, one more:8'")
    args = parser.parse_args()
    args.program = args.program.resolve()
    args.count = itertools.count()
    ways = list(WAYS)
    errors, rows = [], {way: {} for way in ways}
    print("| boards | cut | microbatch | stages begin at | predicted s/step | measured s/step | "
          "off by |\n|---|---|---:|---|---:|---:|---:|", flush=True)
    with tempfile.TemporaryDirectory(prefix="ringpipe-plans-") as name:
        folder = Path(name)
        (folder / "net.yaml").write_text(MODEL)
        ringpipe(args, folder, "profile", RUN % (EVEN, args.steps, 8, "auto"), "--out", "p.json")
        tried = [(way, label, micro, cut) for way in ways for label, cut in person_cuts(way)
                 for micro in MICROS if not args.only or f"{label}:{micro}" in args.only]
        tried += [(way, "auto", "auto", "auto") for way in ways]
        for way, label, micro, cut in sorted(tried, key=lambda x: (str(x[2]), x[1])):
            row = train(args, folder, way, micro, cut)
            rows[way][(label, micro, cut)] = [row]
            errors.append(abs(row[1] / row[0] - 1))
            put(way, label, row)
        for way in ways:
            mine = sorted((key for key in rows[way] if key[0] != "auto"),
                          key=lambda key: rows[way][key][0][1])[:3]
            for _ in range(args.rounds):
                for key in (("auto", "auto", "auto"), *mine):
                    rows[way][key].append(train(args, folder, way, key[1], key[2]))
            took = {key: statistics.median(row[1] for row in rows[way][key][1:])
                    for key in (("auto", "auto", "auto"), *mine)}
            best = min(mine, key=took.get)
            own = took[("auto", "auto", "auto")]
            print(f"{way}: auto {own:.4f} s, the best of {len(rows[way]) - 1} by a person "
                  f"{took[best]:.4f} s ({best[0]}, {best[1]}): {took[best] / own:.3f} times as "
                  f"long; medians of {args.rounds}", flush=True)
    print(f"{len(errors)} plans: off by {100 * statistics.median(errors):.1f} % at the median, "
          f"{100 * max(errors):.1f} % at most; load {os.getloadavg()[1]:.1f}")


if __name__ == "__main__":
    main()
