#!/usr/bin/python3
"""PipeOptim's table of accuracies in small: nine pairs of a net and an optimiser, five methods.

    bench_papers.py RINGPIPE DATA WORK [--rows NAME ..] [--jobs 2]
    bench_papers.py RINGPIPE DATA WORK --table      what has been measured

DATA has cifar-10, imdb and multi30k; WORK keeps the sets, the nets and one comparison (`ringpipe
lab`) for each row: finished runs are kept. Guan et al., arXiv 2312.00839, table IV, train for 70 to
120 epochs on Tiny-ImageNet, CIFAR-100, IMDB and WMT16. Here a run takes minutes on two cores:

- Nets: the depth and the wiring of the paper's, a fraction of its width.
- Images: the first 10,000 and 2,000 of CIFAR-10, 2 x 2 pixels averaged into one where the net takes
  images of 16 x 16. Texts: 10,000 and 2,000 reviews of IMDB. Pairs: Multi30k, German to English.
- Four boards, minibatches of 32. gpipe and pipedream-2bw cut them into 4 microbatches, the other
  methods do not, as in the paper; so all make the same number of steps.
- Each method's rate is the best of three after half of the steps, on a validation part that is
  held out of the training part, with seed 101. Rows train on the whole training part with seeds
  1 to 5.
"""
import argparse
import json
import random
import re
import statistics
import subprocess
import sys
from pathlib import Path

import numpy as np

MODELS = Path(__file__).resolve().parents[2] / "host" / "models"
METHODS = ("gpipe", "pipedream", "pipedream-2bw", "spectrain", "pipeoptim")
SEEDS = [1, 2, 3, 4, 5]
SGDM = ("sgd", "{kind: sgd, lr: %g, momentum: 0.9, weight_decay: 5.0e-4}")
ADAM = ("adam", "{kind: adam, lr: %g}")
ADAMW = ("adamw", "{kind: adamw, lr: %g, weight_decay: 5.0e-4}")
TRAIN, TEST, HELD_OUT = 10_000, 2_000, 1_000


def narrower(name, divisor):
    """The model of the zoo with a part of its width; the classes and the kernels stay."""
    text = (MODELS / f"{name}.yaml").read_text()

    def less(match):
        return f"{match[1]}{max(4, int(match[2]) // divisor)}"

    text = re.sub(r"\b((?:out|hidden|growth): )(\d+)", less, text)
    return re.sub(r"shape: \[50\]", "shape: [20]", text)


def images(set_folder, folder, side):
    """CIFAR-10's binary files as arrays; `side` 16 averages 2 x 2 pixels."""
    def read(names, count):
        raw = np.concatenate([np.fromfile(set_folder / name, np.uint8) for name in names])
        raw = raw.reshape(-1, 3073)[:count]
        x = raw[:, 1:].reshape(-1, 3, 32, 32).astype(np.float32) / 64 - 2
        if side == 16:
            x = x.reshape(-1, 3, 16, 2, 16, 2).mean((3, 5))
        return np.ascontiguousarray(x, np.float32), raw[:, 0].astype(np.int32)

    parts = {"train": read([f"data_batch_{k}.bin" for k in range(1, 6)], TRAIN),
             "test": read(["test_batch.bin"], TEST)}
    for part, (x, y) in parts.items():
        np.save(folder / f"x_{part}.npy", x)
        np.save(folder / f"y_{part}.npy", y)
    return f"{{set: npy, path: {folder}}}"


def reviews(set_folder, folder, length):
    """The first lines of IMDB in an order drawn once; column 0 is the class."""
    for part, count in (("train", TRAIN), ("test", TEST)):
        lines = (set_folder / f"{part}.tsv").read_text().strip("\n").split("\n")
        random.Random(part).shuffle(lines)
        (folder / f"{part}.tsv").write_text("\n".join(lines[:count]) + "\n")
    return (f"{{set: tsv, path: {folder}, text: 3, label: 0, tokens: words, vocab: 5000, "
            f"lower: true, time: {length}}}")


def pairs(set_folder, _, length):
    return (f"{{set: pairs, path: {set_folder}, source: train.de, target: train.en, "
            f"test_source: test_2016_flickr.de, test_target: test_2016_flickr.en, "
            f"tokens: words, vocab: 2000, lower: true, time: {length}}}")


BATCH, MICRO = 32, 8
ACROSS = {"gpipe": MICRO, "pipedream-2bw": MICRO}  # samples of a microbatch; otherwise BATCH


class Row:
    """One line of the table: what is trained, and what the paper says of it."""

    def __init__(self, name, model, divisor, data, size, optimizer, rates, steps, cut, paper):
        self.name, self.model, self.divisor = name, model, divisor
        self.data, self.size, self.optimizer, self.rates = data, size, optimizer, rates
        self.steps, self.cut, self.paper = steps, cut, paper

    def folder(self, work):
        return work / self.name.lower().replace(", ", "-").replace(" ", "-")

    def write(self, sets, work):
        """The files of the comparison; returns that of `ringpipe lab`."""
        folder = self.folder(work)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "model.yaml").write_text(narrower(self.model, self.divisor))
        make, source = {"images": (images, "cifar-10"), "reviews": (reviews, "imdb"),
                        "pairs": (pairs, "multi30k")}[self.data]
        kept = folder / "data.txt"
        if not kept.exists():
            kept.write_text(make(sets / source, folder, self.size))
        loss = "{kind: cross-entropy, ignore: 0}" if self.data == "pairs" else "cross-entropy"
        (folder / "base.yaml").write_text(f"""\
model: {folder}/model.yaml
data: {kept.read_text()}
ring: {{boards: 4}}
train: {{steps: {self.steps}, batch: {BATCH}, microbatch: {BATCH}, eval_steps: 0}}
loss: {loss}
optimizer: {self.optimizer[1] % self.rates[0]}
schedule: gpipe
cut: [{", ".join(self.cut)}]
record: {{trace_mib: 0}}
""")
        methods = "\n".join(
            f"  {method}: {{schedule: {method}, train.microbatch: {ACROSS.get(method, BATCH)}, "
            f"optimizer.lr: {json.dumps(self.rates)}}}" for method in METHODS)
        lab = folder / "lab.yaml"
        lab.write_text(f"""\
base: base.yaml
seeds: {SEEDS}
baseline: gpipe
methods:
{methods}
tune: {{metric: accuracy, seeds: [101],
       set: {{data.validation: {HELD_OUT}, train.steps: {self.steps // 2}}}}}
""")
        return lab


SGD_RATES, ADAM_RATES = [0.01, 0.025, 0.06], [0.0005, 0.001, 0.003]
# The last column is table IV of the paper, gpipe to pipeoptim: BLEU of GNMT, otherwise % of the
# test part.
ROWS = [
    Row("VGG-16, AdamW", "vgg16", 8, "images", 32, ADAMW, ADAM_RATES, 500,
        ("conv3", "conv5", "conv8"), "67.05, 66.61, 66.92, -, 67.91"),
    Row("GoogleNet, AdamW", "googlenet-narrow", 2, "images", 16, ADAMW, ADAM_RATES, 400,
        ("inception3b.branch1.conv", "inception4b.branch1.conv", "inception4e.branch1.conv"),
        "73.91, 74.58, 74.73, -, 74.73"),
    Row("residual LSTM, AdamW", "residual-lstm", 2, "reviews", 100, ADAMW, ADAM_RATES, 300,
        ("lstm2", "lstm3", "lstm4"), "85.65, 84.82, 86.15, -, 86.38"),
    Row("GNMT-8, Adam", "gnmt-8", 16, "pairs", 20, ADAM, [0.001, 0.003, 0.01], 300,
        ("encoder.dropout.2", "decoder.att_rnn.attn.linear_k", "decoder.concat.1"),
        "21.22, 21.04, 21.20, -, 21.29"),
    Row("ResNet-101, SGDM", "resnet101-narrow", 2, "images", 16, SGDM, SGD_RATES, 300,
        ("layer2.1.conv1", "layer3.6.conv1", "layer3.17.conv1"),
        "66.64, 67.72, 66.94, 67.81, 67.84"),
    Row("Inception-V3, SGDM", "inception-v3-narrow", 4, "images", 32, SGDM, SGD_RATES, 200,
        ("Mixed_5c.branch1x1.conv", "Mixed_6b.branch1x1.conv", "Mixed_6e.branch1x1.conv"),
        "56.56, 56.88, 54.25, 57.13, 57.37"),
    Row("residual LSTM, Adam", "residual-lstm", 2, "reviews", 100, ADAM, ADAM_RATES, 300,
        ("lstm2", "lstm3", "lstm4"), "85.64, 85.52, 84.88, -, 85.52"),
    Row("GNMT-16, Adam", "gnmt-16", 16, "pairs", 20, ADAM, [0.001, 0.003, 0.01], 300,
        ("decoder.att_rnn.attn.linear_k", "decoder.concat.4", "decoder.classifier.classifier"),
        "not in the table"),
    Row("AlexNet, SGDM", "alexnet-cifar", 4, "images", 32, SGDM, [0.02, 0.05, 0.1], 800,
        ("conv3", "conv4", "conv5"), "51.93, 43.99, 47.96, 50.14, 49.23"),
]


def call(words):
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, words))}: {done.stderr}")
    return done.stdout


def bleu_of(program, run):
    said = call([program, "eval", run, "--bleu", "--format", "json"])
    return json.loads(said)["eval"]["bleu"]


def cells_of(program, row, out, table):
    """Of each method: mean and deviation, the mean difference to gpipe of equal seeds with its
    95 % interval, and the rate."""
    for line in table["model"][0]["row"]:
        accuracy, over = line["accuracy"], line["accuracy_difference"]
        rate = re.search(r"lr=([0-9.e-]+)", line["label"])
        if accuracy is None:  # the loss of a run is not finite
            yield f"{line['diverged']} of {line['seeds']} diverged; {rate[1] if rate else '?'}"
            continue
        text = f"{100 * accuracy['mean']:.1f} ± {100 * accuracy['deviation']:.1f}"
        if line["method"] != METHODS[0]:
            text += (f", {100 * over['mean']:+.1f} ({100 * over['low']:+.1f} to "
                     f"{100 * over['high']:+.1f})")
        if row.data == "pairs":
            runs = [out / "runs" / run["run"] for run in table["run"]
                    if run["label"] == line["label"] and not run["run"].endswith("/seed-101")]
            scores = [bleu_of(program, run) for run in runs]
            text += f"; BLEU {statistics.mean(scores):.2f} ± {statistics.stdev(scores):.2f}"
        yield f"{text}; {rate[1] if rate else '?'}"


def print_row(program, row, work):
    out = row.folder(work) / "out"
    if not (out / "table.json").exists():
        return
    table = json.loads((out / "table.json").read_text())
    if table["status"] == "finished":
        cells = " | ".join(cells_of(program, row, out, table))
        print(f"| {row.name} | {cells} | {row.paper} |", flush=True)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("ringpipe")
    parser.add_argument("data", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("--rows", nargs="*", help="parts of their names")
    parser.add_argument("--jobs", default="2")
    parser.add_argument("--table", action="store_true")
    args = parser.parse_args()
    rows = [row for row in ROWS if not args.rows or any(part in row.name for part in args.rows)]
    for row in rows:
        lab = row.write(args.data.resolve(), args.work.resolve())
        if not args.table:
            call([args.ringpipe, "lab", lab, "--out", lab.parent / "out", "--jobs", args.jobs])
    print(f"| net | {' | '.join(METHODS)} | paper |\n|---|{'---|' * (len(METHODS) + 1)}")
    for row in rows:
        print_row(args.ringpipe, row, args.work)


if __name__ == "__main__":
    sys.exit(main())
