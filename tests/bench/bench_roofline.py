#!/usr/bin/python3
"""A roofline table: time, operations and bytes of each layer, and its share of the device's peak.

    ./bootstrap build && tests/bench/bench_roofline.py [--threads N] [--batch N] [--size N]
        [--rows N] NET..

Times are those of `ringpipe profile` for one local board, operations those of `ringpipe inspect`.
Bytes are the least that a layer can move in f32: forward its inputs, its parameters and its output;
backward the output's gradient, the inputs, the parameters, and the gradients of both. The peak is
the highest of five measurements of `ringpipe doctor`. A layer far below the peak whose GB/s are
near those of memory is bound by memory. Images are of random glyphs; nets of texts are those of
bench_train.py. `all` is the sum over the layers, without loss and optimizer.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml
from bench_train import SOURCE, TEXTS, write_run

PROGRAM = os.environ.get("RINGPIPE", SOURCE / "build" / "bin" / "ringpipe")
FLOAT = 4
SAMPLES = 16  # in the data set; a profile needs no more


def ask(*words):
    done = subprocess.run([PROGRAM, *map(str, words)], check=True, capture_output=True, text=True)
    return json.loads(done.stdout.strip().splitlines()[-1])


def peak_of(threads):
    return max(ask("doctor", "-q", "--threads", threads, "--format", "json")["peak_gflops"] or 0
               for _ in range(5))


def inputs_of(net):
    """The names of each layer's inputs; `data` is the sample."""
    before, found = "data", {}
    for layer in yaml.safe_load((SOURCE / "host" / "models" / f"{net}.yaml").read_text())["layers"]:
        named = layer.get("from", before)
        found[layer["name"]] = [named] if isinstance(named, str) else named
        before = layer["name"]
    return found


def sample_shape(args, net):
    kind, length, _ = TEXTS.get(net, (None, 0, 0))
    if kind is None:
        return f"1,{args.size},{args.size}"
    return str(length)


def rows_of(profile, inspected, inputs, batch):
    """name, kind, milliseconds, operations and bytes of each layer, forward and backward."""
    count = {"data": 1}
    for number in inspected["input"]:
        count["data"] *= number
    times = {layer["name"]: layer for layer in profile["layers"]}
    for layer in inspected["layers"]:
        outputs = layer["activation_bytes"] / FLOAT
        taken = sum(count.get(name, 0) for name in inputs[layer["name"]])
        count[layer["name"]] = outputs
        time = times[layer["name"]]
        forward = batch * (taken + outputs) + layer["parameters"]
        backward = batch * (2 * taken + outputs) + 2 * layer["parameters"]
        yield (layer["name"], layer["kind"],
               (time["forward_s"], batch * layer["flops_forward"], FLOAT * forward),
               (time["backward_s"], batch * layer["flops_backward"], FLOAT * backward))


def cells(seconds, operations, moved, peak):
    if seconds <= 0:
        return "| 0.000 | | | "
    rate = operations / seconds / 1e9
    return (f"| {1e3 * seconds:.3f} | {rate:.1f} | {100 * rate / peak:.0f} % "
            f"| {moved / seconds / 1e9:.1f} ")


def report(args, net, peak):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run = write_run(folder, net, args.batch, args.threads, SAMPLES, 1, args.size)
        subprocess.run([PROGRAM, "profile", "-q", run, "--out", folder / "profile.json"],
                       check=True, stdout=subprocess.DEVNULL)
        profile = json.loads((folder / "profile.json").read_text())
    inspected = ask("inspect", net, "--input", sample_shape(args, net), "--format", "json")
    rows = list(rows_of(profile, inspected, inputs_of(net), args.batch))
    total = tuple(tuple(sum(row[side][i] for row in rows) for i in range(3)) for side in (2, 3))
    rows.sort(key=lambda row: -(row[2][0] + row[3][0]))
    print(f"\n{net}, batch {args.batch}, {args.threads} threads, peak {peak:.0f} GFLOP/s\n\n"
          "| layer | kind | forward ms | GFLOP/s | of peak | GB/s "
          "| backward ms | GFLOP/s | of peak | GB/s |\n|---|---|" + "---:|" * 8)
    for name, kind, forward, backward in [("all", "", *total)] + rows[:args.rows]:
        print(f"| {name} | {kind} {cells(*forward, peak)}{cells(*backward, peak)}|", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--size", type=int, default=32, help="of the images")
    parser.add_argument("--rows", type=int, default=12, help="layers that take longest")
    parser.add_argument("nets", nargs="+")
    args = parser.parse_args()
    peak = peak_of(args.threads)
    if not peak:
        raise SystemExit("ringpipe doctor: the device's peak could not be measured")
    for net in args.nets:
        report(args, net, peak)


if __name__ == "__main__":
    sys.exit(main())
