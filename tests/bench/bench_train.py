#!/usr/bin/python3
"""Training steps a second of one agent against PyTorch, same net, batch and threads, in one run.

    ./bootstrap build && tests/bench/bench_train.py [--threads N] [--steps N] [--size N] [MODEL...]

Needs Debian's python3-torch and python3-yaml. Samples are glyphs, 32 x 32 unless told; the figures
are medians over the steps after the first few. Prints a ratio above 1 where ringpipe is faster.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch
import yaml

SOURCE = Path(__file__).resolve().parents[2]
BATCH = {"cnn-small": 64, "vgg16": 64, "resnet18": 64, "vgg11": 64, "mobilenet-small": 64}


class Net(torch.nn.Module):
    """The zoo's YAML as a PyTorch module."""

    def __init__(self, path, channels, size, classes):
        super().__init__()
        self.layers = yaml.safe_load(path.read_text())["layers"]
        self.made = torch.nn.ModuleDict()
        shapes = {None: torch.zeros(2, channels, size, size)}
        before = None
        for layer in self.layers:
            sources = layer.get("from", before)
            layer["from"] = sources if isinstance(sources, list) else [sources]
            inputs = [shapes[name] for name in layer["from"]]
            module = self.make(layer, inputs[0], classes)
            if module is not None:
                self.made[layer["name"].replace(".", "_")] = module
            shapes[layer["name"]] = self.apply_layer(layer, inputs)
            before = layer["name"]

    @staticmethod
    def make(layer, x, classes):
        kind, get = layer["kind"], layer.get
        if kind == "conv2d":
            return torch.nn.Conv2d(x.shape[1], get("out"), get("kernel"), get("stride", 1),
                                   get("pad", 0), get("dilation", 1), get("groups", 1),
                                   get("bias", True))
        if kind == "dense":
            out = classes if get("out") == "classes" else get("out")
            return torch.nn.Linear(x.flatten(1).shape[1], out, get("bias", True))
        if kind == "batchnorm":
            return torch.nn.BatchNorm2d(x.shape[1])
        if kind == "groupnorm":
            return torch.nn.GroupNorm(get("groups"), x.shape[1], get("eps", 1e-5))
        if kind == "layernorm":
            return torch.nn.LayerNorm(x.shape[1:], get("eps", 1e-5))
        if kind in ("maxpool", "avgpool"):
            window = get("kernel"), get("stride", get("kernel")), get("pad", 0)
            ceil = get("ceil_mode", False)
            if kind == "maxpool":
                return torch.nn.MaxPool2d(*window, ceil_mode=ceil)
            return torch.nn.AvgPool2d(*window, ceil, get("count_include_pad", True))
        if kind == "adaptiveavgpool":
            return torch.nn.AdaptiveAvgPool2d(get("out"))
        return {"relu": torch.nn.ReLU, "flatten": torch.nn.Flatten, "dropout": torch.nn.Dropout,
                "globalavgpool": lambda: torch.nn.AdaptiveAvgPool2d(1),
                "tanh": torch.nn.Tanh}.get(kind, lambda: None)()

    def apply_layer(self, layer, inputs):
        kind = layer["kind"]
        if kind == "add":
            return sum(inputs[1:], inputs[0])
        if kind == "concat":
            return torch.cat(inputs, 1)
        x = inputs[0].flatten(1) if kind == "dense" else inputs[0]
        return self.made[layer["name"].replace(".", "_")](x)

    def forward(self, x):
        values, before = {None: x}, None
        for layer in self.layers:
            values[layer["name"]] = self.apply_layer(layer, [values[n] for n in layer["from"]])
            before = layer["name"]
        return values[before]


def torch_rate(model, batch, threads, steps, size, device="cpu"):
    """In f32: PyTorch's default on a GPU lets convolutions round to TF32."""
    torch.set_num_threads(threads)
    torch.backends.cudnn.allow_tf32 = False
    wait = torch.cuda.synchronize if device == "cuda" else lambda: None
    net = Net(SOURCE / "host" / "models" / f"{model}.yaml", 1, size, 10).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    x, y = torch.randn(batch, 1, size, size), torch.randint(0, 10, (batch,))
    x, y = x.to(device), y.to(device)
    times = []
    for _ in range(steps):
        wait()
        start = time.perf_counter()
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(net(x), y).backward()
        optimizer.step()
        wait()
        times.append(time.perf_counter() - start)
    return batch / statistics.median(times[2:])


def ring_rate(model, batch, threads, steps, size, boards=1):
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run.yaml"
        run.write_text(f"""\
model: {model}
data: {{set: glyphs, size: {size}, train: {batch * steps}, test: 16}}
ring: {{boards: {boards}, threads: {threads}}}
train: {{epochs: 1, batch: {batch}, seed: 1, eval_epochs: 0}}
loss: cross-entropy
optimizer: {{kind: sgd, lr: 0.01, momentum: 0.9}}
schedule: gpipe
""")
        program = os.environ.get("RINGPIPE", SOURCE / "build" / "bin" / "ringpipe")
        subprocess.run([program, "train", run, "--out", f"{folder}/out"], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        lines = [json.loads(line) for line in open(f"{folder}/out/log.jsonl")]
        times = [line["time_s"] for line in lines if "loss" in line and "event" not in line]
        gaps = [b - a for a, b in zip(times, times[1:])]
        return batch / statistics.median(gaps[2:])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--size", type=int, default=32, help="of the images")
    parser.add_argument("--torch-device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("models", nargs="*", default=["cnn-small", "vgg16", "resnet18"])
    args = parser.parse_args()
    if args.steps < 4:
        parser.error("--steps: at least 4, the first few do not count")
    print(f"{'model':16} {'batch':>5} {'ringpipe/s':>11} {'PyTorch/s':>10} {'ratio':>6}")
    for model in args.models:
        batch = BATCH.get(model, 64)
        steps = args.steps * (4 if model == "cnn-small" else 1)
        ours = ring_rate(model, batch, args.threads, steps, args.size)
        theirs = torch_rate(model, batch, args.threads, steps, args.size, args.torch_device)
        print(f"{model:16} {batch:5} {ours:11.1f} {theirs:10.1f} {ours / theirs:6.2f}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
