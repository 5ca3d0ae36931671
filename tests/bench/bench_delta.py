#!/usr/bin/env python3
"""Whether copies to a neighbour would be smaller as changes: two checkpoints some steps apart, as
they are, by byte planes, and as the exclusive or of both by byte planes, each through zlib's
fastest level.

    bench_delta.py RINGPIPE [--after 100] [--steps 2]

Needs numpy (Debian: python3-numpy).
"""
import argparse
import json
import subprocess
import sys
import tempfile
import time
import zlib
from pathlib import Path

try:
    import numpy
except ImportError:
    sys.exit("bench_delta.py needs numpy (Debian: python3-numpy)")

RUN = """\
model: cnn-small
data: {set: glyphs, train: 9600, test: 1000, size: 28}
train: {epochs: 3, batch: 48, microbatch: 16, seed: 1, eval_epochs: 0}
loss: cross-entropy
schedule: gpipe
ring: {boards: 1}
"""
OPTIMIZERS = ("{kind: sgd, lr: 0.02, momentum: 0.9}", "{kind: adam, lr: 0.001}")


def state(program, folder, optimizer, steps):
    """What a checkpoint behind so many steps holds, without its header."""
    out = folder / f"run-{steps}"
    sets = (f"optimizer={optimizer}", f"train.steps={steps}", f"train.checkpoint_steps={steps}")
    subprocess.run([program, "train", folder / "run.yaml", "--out", out, "--quiet",
                    *(w for s in sets for w in ("--set", s))],
                   check=True, stdout=subprocess.DEVNULL)
    last = sorted((out / "checkpoint").glob("step-*.safetensors"))[-1].read_bytes()
    header = int.from_bytes(last[:8], "little")
    json.loads(last[8:8 + header])
    return numpy.frombuffer(last[8 + header:], dtype=numpy.uint8)


def planes(of):
    """The first bytes of all numbers, then the second ones, and so on."""
    return numpy.ascontiguousarray(of.reshape(-1, 4).T)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--after", type=int, default=100)
    parser.add_argument("--steps", type=int, default=2)
    args = parser.parse_args()
    print("| optimizer | as | bytes | of them left | MB/s |\n|---|---|---|---|---|")
    for optimizer in OPTIMIZERS:
        with tempfile.TemporaryDirectory(prefix="ringpipe-delta-") as name:
            folder = Path(name)
            (folder / "run.yaml").write_text(RUN)
            old, new = (state(args.program, folder, optimizer, steps)
                        for steps in (args.after, args.after + args.steps))
        for how, raw in (("they are", new), ("byte planes", planes(new)),
                         ("byte planes of the change", planes(old ^ new))):
            began = time.perf_counter()
            left = len(zlib.compress(raw.tobytes(), 1))
            speed = raw.size / (time.perf_counter() - began) / 1e6
            print(f"| {optimizer} | {how} | {raw.size} | {100 * left / raw.size:.1f} % "
                  f"| {speed:.0f} |")


if __name__ == "__main__":
    main()
