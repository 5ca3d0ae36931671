#!/usr/bin/python3
"""Where the time of a training step goes: launches and device time of each kernel.

    ./bootstrap build && tests/bench/bench_kernels.py [--steps N] [--batch N] MODEL...  # glyphs
    tests/bench/bench_kernels.py --text FILE [--time N] gpt-micro
    tests/bench/bench_kernels.py --classes FOLDER [--time N] residual-lstm

One local agent trains with kernel_trace.c loaded, so each launch has an event with its times on the
device's clock. A step ends with the optimizer's last kernel; the first three steps do not count.
`step` is a median, all other figures are means of a step. `busy` is the sum of the kernels' times;
`idle before` is the time for which the device had nothing to run before these launches. The events
make a step longer, so bench_train.py and bench_text.py measure speed. TFLOP/s is the operations
that `ringpipe inspect` counts, divided by `busy`.
"""
import argparse
import collections
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("RINGPIPE", SOURCE / "build" / "bin" / "ringpipe")
TRACER = os.environ.get("KERNEL_TRACER", SOURCE / "build" / "tests" / "kernel_trace.so")
OPTIMIZERS = {"sgd", "adam"}
SKIPPED_STEPS = 3


def data_of(args):
    """The data set in the run file, and the shape of a sample."""
    if args.classes:
        return (f"{{set: tsv, path: {Path(args.classes).resolve()}, text: 0, label: 1, "
                f"tokens: words, time: {args.time}}}"), str(args.time)
    if args.text:
        return (f"{{set: text, path: {Path(args.text).resolve()}, tokens: chars, "
                f"time: {args.time}}}"), str(args.time)
    return (f"{{set: glyphs, size: {args.size}, train: {args.batch * args.steps}, test: 16}}",
            f"1,{args.size},{args.size}")


def train(args, model, folder):
    """Trains and returns the launches of the process that updates weights: begin, end, name."""
    run = Path(folder) / "run.yaml"
    optimizer = "{kind: adamw, lr: 0.001}" if args.text or args.classes else \
        "{kind: sgd, lr: 0.01, momentum: 0.9}"
    run.write_text(f"""\
model: {model}
data: {data_of(args)[0]}
ring: {{boards: 1, threads: {args.threads}}}
train: {{steps: {args.steps}, batch: {args.batch}, microbatch: {args.batch}, seed: 1,
        eval_epochs: 0}}
loss: cross-entropy
optimizer: {optimizer}
schedule: gpipe
""")
    environment = dict(os.environ, LD_PRELOAD=str(TRACER), KERNEL_TRACE=f"{folder}/trace")
    subprocess.run([PROGRAM, "train", "-q", run, "--out", f"{folder}/out"], check=True,
                   env=environment, stdout=subprocess.DEVNULL)
    for path in Path(folder).glob("trace.*"):
        lines = [line.split() for line in path.read_text().splitlines()]
        launches = [(int(begin), int(end), name) for begin, end, name in lines]
        if any(name in OPTIMIZERS for _, _, name in launches):
            return launches
    raise SystemExit(f"{model}: no process has launched an optimizer's kernel")


def cut_steps(launches):
    """The launches of each complete step after the last launch of the step before."""
    last = [i for i in range(len(launches) - 1)
            if launches[i][2] in OPTIMIZERS and launches[i + 1][2] not in OPTIMIZERS]
    return [launches[a:b + 1] for a, b in zip(last, last[1:])][SKIPPED_STEPS:]


def operations(args, model):
    """Floating-point operations of a step."""
    answer = json.loads(subprocess.run(
        [PROGRAM, "inspect", model, "--input", data_of(args)[1], "--format", "json"],
        check=True, capture_output=True, text=True).stdout)
    return args.batch * (answer["flops_forward"] + answer["flops_backward"])


def report(args, model):
    with tempfile.TemporaryDirectory() as folder:
        steps = cut_steps(train(args, model, folder))
    if not steps:
        raise SystemExit(f"{model}: no complete step in the trace; are there enough --steps?")
    length = statistics.median(step[-1][1] - step[0][1] for step in steps)
    times, counts, idle = (collections.Counter() for _ in range(3))
    for step in steps:
        for before, (begin, end, name) in zip(step, step[1:]):
            times[name] += end - begin
            counts[name] += 1
            idle[name] += max(0, begin - before[1])
    busy = sum(times.values()) / len(steps)
    print(f"{model}: batch {args.batch}, {len(steps)} steps; step {length / 1e6:.2f} ms, "
          f"busy {busy / 1e6:.2f} ms, {sum(counts.values()) / len(steps):.0f} launches, "
          f"{operations(args, model) / busy / 1e3:.2f} TFLOP/s")
    print(f"  {'kernel':32} {'launches':>8} {'us':>9} {'share':>6} {'idle before':>11}")
    for name, total in times.most_common():
        print(f"  {name:32} {counts[name] / len(steps):8.1f} {total / len(steps) / 1e3:9.1f} "
              f"{100 * total / len(steps) / busy:5.1f}% {idle[name] / len(steps) / 1e3:8.1f} us",
              flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--text")
    parser.add_argument("--classes")
    parser.add_argument("--time", type=int, default=128, help="tokens of a sample")
    parser.add_argument("--size", type=int, default=32, help="of the images")
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("models", nargs="+")
    args = parser.parse_args()
    for model in args.models:
        report(args, model)


if __name__ == "__main__":
    sys.exit(main())
