#!/usr/bin/python3
"""Trains a model of texts beside PyTorch, from the same weights and on the same batches.

    ./bootstrap build && tests/bench/bench_text.py --text FILE [--model gpt-nano] [--steps 300] ...
    tests/bench/bench_text.py --classes FOLDER --model residual-lstm --time 56 --batch 64 ...
    tests/bench/bench_text.py --pairs train.de,train.en,test.de,test.en --model gnmt-narrow ...

Needs Debian's python3-torch and python3-yaml. FILE is any text; its last tenth is held out. FOLDER
has train.tsv and test.tsv, a text and its class in each line. The files of pairs are of one folder:
line n of the second is the translation of line n of the first; BLEU of both is counted by `ringpipe
eval --bleu`. --seed N draws the initial weights and, of classes and pairs, the order of the lines
that are trained on. Dropout is taken out of the model, because its masks differ. Prints what both
reach on the held-out part, and tokens a second. With the same batches the bits of a character are
expected to differ by less than 0.02.
"""
import argparse
import collections
import json
import math
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import torch  # noqa: E402
from torch_net import Net, write_safetensors  # noqa: E402

SOURCE = Path(__file__).resolve().parents[2]
IGNORE = 0  # the label of padding in pairs


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


def read_classes(folder, length, most):
    """Ids of texts, cut or padded with 0, and classes, as the data set `tsv` makes them."""
    rows = {}
    for part in ("train", "test"):
        lines = (Path(folder) / f"{part}.tsv").read_text().splitlines()
        rows[part] = [line.split("\t")[:2] for line in lines]
    split = re.compile(r"\w+|[^\w\s]").findall
    counts = collections.Counter(word for text, _ in rows["train"] for word in split(text))
    words = sorted(counts, key=lambda word: (-counts[word], word.encode()))[:most - 4]
    index = {word: i + 4 for i, word in enumerate(words)}
    parts = []
    for part in ("train", "test"):
        x = torch.zeros(len(rows[part]), length, dtype=torch.int64)
        for i, (text, _) in enumerate(rows[part]):
            ids = [index.get(word, 1) for word in split(text)[:length]]
            x[i, :len(ids)] = torch.tensor(ids)
        parts.append((x, torch.tensor([int(label) for _, label in rows[part]])))
    return parts, len(words) + 4


def read_lines(path):
    split = re.compile(r"\w+|[^\w\s]").findall
    return [split(line) for line in Path(path).read_text().split("\n")[:-1]]


def read_pairs(files, length, most):
    """Ids of source, <begin> and target, and of target and <end>, as the data set `pairs` makes
    them of words."""
    texts = [read_lines(path) for path in files.split(",")]
    counts = collections.Counter(word for lines in texts[:2] for line in lines for word in line)
    words = sorted(counts, key=lambda word: (-counts[word], word.encode()))[:most - 4]
    index = {word: i + 4 for i, word in enumerate(words)}
    parts = []
    for source, target in (texts[:2], texts[2:]):
        x = torch.zeros(len(source), 2 * length, dtype=torch.int64)
        y = torch.zeros(len(source), length, dtype=torch.int64)
        for i, both in enumerate(zip(source, target)):
            a, b = ([index.get(word, 1) for word in line] for line in both)
            a, b = a[:length], b[:length - 1]
            x[i, :len(a)] = torch.tensor(a)
            x[i, length:length + 1 + len(b)] = torch.tensor([2, *b])
            y[i, :len(b) + 1] = torch.tensor([*b, 3])
        parts.append((x, y))
    return parts, len(words) + 4


def reorder_lines(args, folder):
    """Lets the arguments name copies whose training lines have another order."""
    names = [Path(args.classes) / "train.tsv", Path(args.classes) / "test.tsv"] if args.classes \
        else [Path(name) for name in args.pairs.split(",")]
    trained = 1 if args.classes else 2
    texts = [name.read_text().split("\n")[:-1] for name in names]
    order = list(range(len(texts[0])))
    random.Random(args.seed).shuffle(order)
    copies = [Path(folder) / name.name for name in names]
    for i, (copy, lines) in enumerate(zip(copies, texts)):
        lines = [lines[k] for k in order] if i < trained else lines
        copy.write_text("".join(line + "\n" for line in lines))
    if args.classes:
        args.classes = folder
    else:
        args.pairs = ",".join(map(str, copies))


def data_of(args):
    """The data set in the run file."""
    if args.pairs:
        names = [Path(path).resolve() for path in args.pairs.split(",")]
        keys = ("source", "target", "test_source", "test_target")
        given = ", ".join(f"{key}: {path.name}" for key, path in zip(keys, names))
        return (f"{{set: pairs, path: {names[0].parent}, {given}, tokens: words, "
                f"vocab: {args.vocab}, time: {args.time}, shuffle: false}}")
    if args.classes:
        return (f"{{set: tsv, path: {Path(args.classes).resolve()}, text: 0, label: 1, "
                f"tokens: words, vocab: {args.vocab}, time: {args.time}, shuffle: false}}")
    return (f"{{set: text, path: {Path(args.text).resolve()}, tokens: chars, time: {args.time}, "
            "shuffle: false}")


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
data: {data_of(args)}
ring: {{boards: {args.boards}, threads: {args.threads}}}
train: {{steps: {steps}, batch: {args.batch}, microbatch: {args.microbatch}, seed: {args.seed},
        eval_epochs: 0}}
loss: {{kind: cross-entropy, ignore: {IGNORE if args.pairs else -100}}}
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
    wait = torch.cuda.synchronize if args.torch_device == "cuda" else lambda: None
    optimizer = torch.optim.AdamW(net.parameters(), lr=args.lr, weight_decay=0.01)
    count = len(x) // args.batch
    losses, times = [], []
    for step in range(args.steps):
        first = step % count * args.batch
        wait()
        start = time.perf_counter()
        optimizer.zero_grad()
        out = net(x[first:first + args.batch])
        loss = torch.nn.functional.cross_entropy(out.flatten(0, -2),
                                                 y[first:first + args.batch].flatten(),
                                                 ignore_index=IGNORE if args.pairs else -100)
        loss.backward()
        optimizer.step()
        wait()
        times.append(time.perf_counter() - start)
        losses.append(loss.item())
    return losses, args.batch * args.time / statistics.median(times[2:])


def held_out(net, part, ignore):
    """Mean loss, and share of targets that are right."""
    x, y = part
    total = right = 0.0
    counted = (y != ignore).sum().item()
    with torch.no_grad():
        for first in range(0, len(x), 64):
            out, wanted = net(x[first:first + 64]).flatten(0, -2), y[first:first + 64].flatten()
            total += torch.nn.functional.cross_entropy(out, wanted, reduction="sum",
                                                       ignore_index=ignore).item()
            right += ((out.argmax(1) == wanted) & (wanted != ignore)).sum().item()
    return total / counted, right / counted


def bleu_of(folder, weights):
    """BLEU of the run's net with these weights."""
    program = os.environ.get("RINGPIPE", SOURCE / "build" / "bin" / "ringpipe")
    done = subprocess.run([program, "eval", Path(folder) / "ring.yaml", "--weights", weights,
                           "--bleu", "--format", "json"], check=True, capture_output=True)
    return json.loads(done.stdout)["eval"]["bleu"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--text")
    parser.add_argument("--classes")
    parser.add_argument("--pairs")
    parser.add_argument("--vocab", type=int, default=10000, help="of the classes' words")
    parser.add_argument("--model", default="gpt-nano")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--microbatch", type=int, default=4)
    parser.add_argument("--time", type=int, default=64, help="tokens of a sample")
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--seed", type=int, help="also another order of lines")
    parser.add_argument("--boards", type=int, default=1)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--torch-device", choices=("cpu", "cuda"), default="cpu")
    args = parser.parse_args()
    if [args.text, args.classes, args.pairs].count(None) != 2:
        parser.error("expected --text, --classes or --pairs")
    torch.set_num_threads(args.threads)
    torch.backends.cudnn.allow_tf32 = False  # PyTorch's default on a GPU lets LSTMs round to TF32
    bleu = None
    with tempfile.TemporaryDirectory() as folder:
        if args.seed is not None and not args.text:
            reorder_lines(args, folder)
        args.seed = args.seed or 1
        if args.classes:
            parts, tokens = read_classes(args.classes, args.time, args.vocab)
            classes = int(parts[0][1].max()) + 1
        else:
            parts, tokens = read_pairs(args.pairs, args.time, args.vocab) if args.pairs \
                else read_windows(args.text, args.time)
            classes = tokens
        model = without_dropout(args.model, folder)
        start = train_ring(args, model, folder, "start", 1, 0)
        ring = train_ring(args, model, folder, "ring", args.steps, args.lr)
        lines = [json.loads(line) for line in (ring / "log.jsonl").read_text().splitlines()]
        steps = [line for line in lines if "event" not in line]
        summary = json.loads((ring / "summary.json").read_text())
        net = Net(model, parts[0][0], classes, tokens)
        net.load(start / "weights.safetensors")
        net.to(args.torch_device)
        parts = [[tensor.to(args.torch_device) for tensor in part] for part in parts]
        losses, rate = train_torch(args, net, parts)
        gaps = [b["time_s"] - a["time_s"] for a, b in zip(steps, steps[1:])]
        ours = args.batch * args.time / statistics.median(gaps[2:])
        loss, right = held_out(net, parts[1], IGNORE if args.pairs else -100)
        if args.pairs:
            write_safetensors(Path(folder) / "torch.safetensors", dict(net.named()))
            bleu = [bleu_of(folder, weights) for weights in
                    (ring / "weights.safetensors", Path(folder) / "torch.safetensors")]
    first = max(abs(s["loss"] - t) for s, t in zip(steps[:10], losses))
    print(f"{args.model}: {args.steps} steps of {args.batch} x {args.time} on {args.boards} "
          f"board(s), {args.threads} thread(s)")
    print(f"first 10 losses differ by at most {first:.1e}")
    if args.text:
        bits = [summary["eval"]["bits"], loss / math.log(2)]
        print(f"held-out bits: ringpipe {bits[0]:.4f}, PyTorch {bits[1]:.4f}, "
              f"difference {bits[0] - bits[1]:+.4f}")
    ours_right = summary["eval"]["accuracy"]
    print(f"held-out accuracy: ringpipe {100 * ours_right:.2f} %, PyTorch {100 * right:.2f} %; "
          f"loss {summary['eval']['loss']:.4f}, {loss:.4f}")
    if bleu:
        print(f"BLEU: ringpipe {bleu[0]:.2f}, PyTorch {bleu[1]:.2f}")
    print(f"tokens/s: ringpipe {ours:.0f}, PyTorch {rate:.0f}, ratio {ours / rate:.2f}")


if __name__ == "__main__":
    sys.exit(main())
