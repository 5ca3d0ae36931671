#!/usr/bin/python3
"""Trains a model of texts beside PyTorch, from the same weights and on the same batches.

    ./bootstrap build && tests/bench/bench_text.py --text FILE [--model gpt-nano] [--steps 300] ...

Needs Debian's python3-torch and python3-yaml. FILE is any text; its last tenth is held out. Dropout
is taken out of the model, because its masks differ. Prints the held-out loss in bits of a character
from both, and tokens a second; the difference of the bits is expected below 0.02.
"""
import argparse
import json
import math
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import torch  # noqa: E402
from torch_net import Net  # noqa: E402

SOURCE = Path(__file__).resolve().parents[2]


def read_windows(path, length):
    """Ids of the training windows and of the held-out ones, as the data set `text` cuts them."""
    text = Path(path).read_text()
    end = len(text) * 9 // 10
    chars = sorted(set(text[:end]))
    index = {c: i for i, c in enumerate(chars)}
    parts = []
    for part in (text[:end], text[end:]):
        ids = torch.tensor([index[c] for c in part])
        count = (len(ids) - 1) // length
        parts.append((ids[:count * length].view(count, length),
                      ids[1:count * length + 1].view(count, length)))
    return parts, len(chars)


def without_dropout(model, folder):
    """The model with dropout 0, whose layers then pass their input on."""
    text = (SOURCE / "host" / "models" / f"{model}.yaml").read_text()
    text = re.sub(r"kind: dropout, p: [\d.]+", "kind: dropout, p: 0", text)
    text = re.sub(r", dropout: [\d.]+", "", text)
    path = Path(folder) / "model.yaml"
    path.write_text(text)
    return path


def train_ring(args, model, folder, name, steps, lr):
    run = Path(folder) / f"{name}.yaml"
    run.write_text(f"""\
model: {model}
data: {{set: text, path: {Path(args.text).resolve()}, tokens: chars, time: {args.time},
       shuffle: false}}
ring: {{boards: {args.boards}, threads: {args.threads}}}
train: {{steps: {steps}, batch: {args.batch}, microbatch: {args.microbatch}, seed: 1,
        eval_epochs: 0}}
loss: cross-entropy
optimizer: {{kind: adamw, lr: {lr}, weight_decay: 0.01}}
schedule: gpipe
""")
    program = os.environ.get("RINGPIPE", SOURCE / "build" / "bin" / "ringpipe")
    out = Path(folder) / name
    subprocess.run([program, "train", run, "--out", out], check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    return out


def train_torch(args, net, parts):
    (x, y), _ = parts
    optimizer = torch.optim.AdamW(net.parameters(), lr=args.lr, weight_decay=0.01)
    count = len(x) // args.batch
    losses, times = [], []
    for step in range(args.steps):
        first = step % count * args.batch
        start = time.perf_counter()
        optimizer.zero_grad()
        out = net(x[first:first + args.batch])
        loss = torch.nn.functional.cross_entropy(out.flatten(0, 1),
                                                 y[first:first + args.batch].flatten())
        loss.backward()
        optimizer.step()
        times.append(time.perf_counter() - start)
        losses.append(loss.item())
    return losses, args.batch * args.time / statistics.median(times[2:])


def held_out(net, part):
    x, y = part
    total = 0.0
    with torch.no_grad():
        for first in range(0, len(x), 64):
            out = net(x[first:first + 64])
            total += torch.nn.functional.cross_entropy(out.flatten(0, 1),
                                                       y[first:first + 64].flatten(),
                                                       reduction="sum").item()
    return total / y.numel()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--text", required=True)
    parser.add_argument("--model", default="gpt-nano")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--microbatch", type=int, default=4)
    parser.add_argument("--time", type=int, default=64, help="tokens of a sample")
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--boards", type=int, default=1)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    parts, tokens = read_windows(args.text, args.time)
    with tempfile.TemporaryDirectory() as folder:
        model = without_dropout(args.model, folder)
        start = train_ring(args, model, folder, "start", 1, 0)
        ring = train_ring(args, model, folder, "ring", args.steps, args.lr)
        lines = [json.loads(line) for line in (ring / "log.jsonl").read_text().splitlines()]
        steps = [line for line in lines if "event" not in line]
        summary = json.loads((ring / "summary.json").read_text())
        net = Net(model, parts[0][0], tokens, tokens)
        net.load(start / "weights.safetensors")
        losses, rate = train_torch(args, net, parts)
        gaps = [b["time_s"] - a["time_s"] for a, b in zip(steps, steps[1:])]
        ours = args.batch * args.time / statistics.median(gaps[2:])
        bits = [summary["eval"]["bits"], held_out(net, parts[1]) / math.log(2)]
    first = max(abs(s["loss"] - t) for s, t in zip(steps[:10], losses))
    print(f"{args.model}: {args.steps} steps of {args.batch} x {args.time} on {args.boards} "
          f"board(s), {args.threads} thread(s)")
    print(f"first 10 losses differ by at most {first:.1e}")
    print(f"held-out bits: ringpipe {bits[0]:.4f}, PyTorch {bits[1]:.4f}, "
          f"difference {bits[0] - bits[1]:+.4f}")
    print(f"tokens/s: ringpipe {ours:.0f}, PyTorch {rate:.0f}, ratio {ours / rate:.2f}")


if __name__ == "__main__":
    sys.exit(main())
