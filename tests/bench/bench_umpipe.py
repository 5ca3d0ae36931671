#!/usr/bin/env python3
"""What unequal microbatches of umpipe gain over gpipe and pipedream, on profiles measured here.

    bench_umpipe.py RINGPIPE TEXT [--nets NAME ..]

TEXT: a text for the GPTs, such as tiny Shakespeare. For each net `ringpipe profile` measures the
layers on this machine; then `ringpipe plan` predicts a step on rings of 4 boards. Rings: `equal`;
`unequal`, whose boards need 1, 2, 0.5 and 1.5 times as long; each with the wires of this machine
and with wires of 100 Mbit/s and 5 ms. Every method has its best cut, and gpipe and pipedream their
best size of microbatches among the powers of two; umpipe's cut is that for gpipe's best size, or
for 4. A gain is how much longer the other's step takes.
"""
import argparse
import copy
import json
import subprocess
import tempfile
from pathlib import Path

BOARDS, SIZES = 4, (1, 2, 4, 8, 16)
SPEEDS = {"equal": (1, 1, 1, 1), "unequal": (1, 2, 0.5, 1.5)}
SLOW = {"latency_s": 5e-3, "bytes_per_s": 12.5e6}  # 100 Mbit/s
RUN = """\
model: {model}
data: {data}
ring: {{boards: 4}}
train: {{steps: 9, batch: {batch}, microbatch: 4, seed: 1}}
loss: cross-entropy
optimizer: {{kind: adamw, lr: 0.001}}
schedule: gpipe
cut: auto
"""
UMPIPE = "{kind: umpipe, planner: auto}"
TEXTS = "{{set: text, path: {text}, tokens: chars, time: 128}}"


def vgg16(side):
    """Configuration D without batch normalisation, with three dense layers."""
    lines, at = ["input: data", "layers:"], 0
    for width in (64, 64, 0, 128, 128, 0, 256, 256, 256, 0, 512, 512, 512, 0, 512, 512, 512, 0):
        at += 1
        lines += [f"  - {{name: conv{at}, kind: conv2d, out: {width}, kernel: 3, pad: 1}}",
                  f"  - {{name: relu{at}, kind: relu}}"] if width else [
                      f"  - {{name: pool{at}, kind: maxpool, kernel: 2}}"]
    for at, width in enumerate((4096, 4096, "classes"), 1):
        lines.append(f"  - {{name: fc{at}, kind: dense, out: {width}}}")
        lines += [f"  - {{name: act{at}, kind: relu}}"] if at < 3 else []
    return "\n".join(lines) + "\n", f"{{{{set: glyphs, train: 64, test: 8, size: {side}}}}}", 32


def gpt(blocks):
    """The first blocks of gpt1-14-narrow: the family of one to fourteen."""
    source = Path(__file__).resolve().parents[2] / "host/models/gpt1-14-narrow.yaml"
    lines = source.read_text().splitlines()
    kept = [line for line in lines if "name: h." not in line or
            int(line.split("name: h.")[1].split(".")[0]) < blocks]
    return "\n".join(kept) + "\n", TEXTS, 32


NETS = {"VGG16, images of 32": lambda: vgg16(32),
        "VGG16, images of 64": lambda: vgg16(64),
        "GPT-1, 14 blocks, 768 wide": lambda: ("gpt1-14", TEXTS, 16),
        "GPT-1, 14 blocks, 128 wide": lambda: gpt(14),
        "GPT-1, 4 blocks, 128 wide": lambda: gpt(4)}


class Bench:
    def __init__(self, options, folder):
        self.ringpipe, self.text = Path(options.ringpipe).resolve(), Path(options.text).resolve()
        self.folder = Path(folder)

    def call(self, *words):
        result = subprocess.run([self.ringpipe, *words], capture_output=True, text=True,
                                cwd=self.folder, check=False)
        if result.returncode != 0:
            raise SystemExit(f"{words}: {result.stderr}")
        return result.stdout

    def write_run(self, net):
        model, data, batch = NETS[net]()
        if "\n" in model:
            (self.folder / "net.yaml").write_text(model)
            model = "net.yaml"
        (self.folder / "run.yaml").write_text(RUN.format(
            model=model, data=data.format(text=self.text), batch=batch))
        return batch

    def predict(self, schedule, size=None):
        words = ["--set", f"schedule={schedule}"]
        words += ["--set", f"train.microbatch={size}"] if size else []
        said = json.loads(self.call("plan", "run.yaml", "--profile", "ring.json", "--format",
                                    "json", *words))
        return said["predicted"]["step_s"]

    def ring_of(self, profile, speeds, slow):
        ring = copy.deepcopy(profile)
        for board, times in zip(ring["boards"], speeds, strict=True):
            board["like"] = board["name"]
            for layer in board["layers"]:
                layer["update_s"] *= times
                for direction in ("forward", "backward", "backward_input", "backward_weight"):
                    for entry in layer[direction]:
                        entry["seconds"] *= times
        for wire in ring["wires"]:
            if slow:
                wire.update(SLOW, sizes=[])
        (self.folder / "ring.json").write_text(json.dumps(ring))

    def print_rows(self, net, profile, batch):
        sizes = [size for size in SIZES if size <= batch]
        for name, speeds in SPEEDS.items():
            for slow in (False, True):
                self.ring_of(profile, speeds, slow)
                even = {size: self.predict("gpipe", size) for size in sizes}
                best = min(even, key=even.get)
                umpipe = min(self.predict(UMPIPE, size) for size in {best, 4})
                stale = min(self.predict("pipedream", size) for size in sizes)
                gains = [100 * (other / umpipe - 1)
                         for other in (even[best], even[batch // BOARDS], stale)]
                print(f"| {net} | {name}{', 100 Mbit/s' if slow else ''} | {1e3 * umpipe:.1f} | "
                      f"{gains[0]:.1f} ({best}) | {gains[1]:.1f} | {gains[2]:.1f} |", flush=True)

    def run(self, net):
        batch = self.write_run(net)
        self.call("profile", "run.yaml", "-o", "profile.json", "--set", f"schedule={UMPIPE}")
        self.print_rows(net, json.loads((self.folder / "profile.json").read_text()), batch)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("ringpipe")
    parser.add_argument("text")
    parser.add_argument("--nets", nargs="*", choices=list(NETS), default=list(NETS))
    options = parser.parse_args()
    print("| net | ring | umpipe, ms a step | gpipe, best even size | gpipe, 4 microbatches | "
          "pipedream, best size |\n|---|---|---:|---:|---:|---:|")
    for net in options.nets:
        with tempfile.TemporaryDirectory() as folder:
            Bench(options, folder).run(net)


if __name__ == "__main__":
    main()
