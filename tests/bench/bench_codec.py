"""What codecs save on slow links and what they cost: samples/s, bytes a sample on the first hop
up and down, the loss and accuracy on 500 test samples, of cnn-small on glyphs over three boards.

    bench_codec.py BIN [MBIT...]     a folder with ringpipe and ringpipe-agent; 10 and 1
    bench_codec.py BIN accuracy DATA [SEEDS [CODEC...]]
    bench_codec.py BIN seconds

The second form: what each codec costs in accuracy on Fashion-MNIST, whose files are in DATA, with
paired differences to f32 over SEEDS (5) seeds; of all codecs, or of f32 and these. The third: what
each codec wins in seconds of 8 epochs of 1,280 glyphs, on a virtual clock (boards that take what a
throttle says, wires of 1 and 10 Mbit/s with 50 ms).
"""
import json
import math
import pathlib
import statistics
import subprocess
import sys
import tempfile

RUN = """\
model: cnn-small
data: {set: glyphs, train: 20000, test: 500}
ring: {boards: 3, link: {rate_mbit: %s, delay_ms: 50}}
links: %s
train: {epochs: 1, steps: %d, batch: %d, microbatch: 8, seed: 3, eval_epochs: 0}
loss: cross-entropy
optimizer: {kind: sgd, lr: %s, momentum: %s}
schedule: %s
cut: [flatten, fc]
"""
CODECS = ("{codec: f32}", "{codec: f16, inputs: f16}", "{codec: int8, inputs: int8}",
          "{codec: int4, inputs: int8}")
SCHEDULES = (("gpipe", 64, "0.02", 0.9), ("{kind: async, advance: 4}", 8, "0.01", 0))


ACCURACY = """\
model: cnn-small
data: {set: fashion-mnist, path: %s}
ring: {boards: 3}
links: {codec: %s}
train: {epochs: 1, steps: 100, batch: 64, microbatch: 8, seed: %d, eval_epochs: 0}
loss: cross-entropy
optimizer: {kind: sgd, lr: 0.05, momentum: 0.9}
schedule: gpipe
cut: [flatten, fc]
"""
PRICED = ("f16", "bf16", "int8", "int4", "{activations: int4, gradients: int8}",
          "{gradients: topk-0.1}", "{gradients: topk-0.03}", "{gradients: topk-0.01}",
          "{activations: int8, gradients: topk-0.1}")


EPOCHS = """\
model: cnn-small
data: {set: glyphs, train: 1280, test: 2000}
ring: {boards: 3}
links: {codec: %s}
train: {epochs: 8, batch: 64, microbatch: 16, seed: 1, eval_epochs: 0}
loss: cross-entropy
optimizer: {kind: sgd, lr: 0.02, momentum: 0.9}
schedule: gpipe
cut: [flatten, fc]
"""
TIMES = """\
ring:
  boards: 3
  link: {rate_mbit: %s, delay_ms: 50}
  throttle: {forward_ms: 4, backward_ms: 8}
"""


def train(program, folder, text):
    """Its summary and its log."""
    run, out = pathlib.Path(folder) / "run.yaml", pathlib.Path(folder) / "out"
    run.write_text(text)
    subprocess.run([pathlib.Path(program) / "ringpipe", "train", run, "--out", out],
                   capture_output=True, text=True, timeout=900, check=True)
    log = list(map(json.loads, (out / "log.jsonl").read_text().splitlines()))
    return json.loads((out / "summary.json").read_text()), log


def price(program, text):
    """Accuracy, bytes a sample on all hops, the largest l2_error of a hop."""
    with tempfile.TemporaryDirectory() as folder:
        summary, _ = train(program, folder, text)
    hops = [wire for wire in summary["wire"] if wire["kind"] == "hop"]
    scored = summary["eval"]["samples"]
    return (summary["eval"]["accuracy"],
            sum(hop["bytes"] for hop in hops) / (summary["samples"] + scored),
            max(hop.get("l2_error", 0) for hop in hops))


def print_prices(program, text_of, seeds, codecs):
    plain = []
    print("| codec | accuracy | to f32, paired | B a sample | l2_error at most |")
    print("|---|---|---|---|---|", flush=True)
    for codec in ("f32", *codecs):
        runs = [price(program, text_of(codec, seed)) for seed in range(1, seeds + 1)]
        own, size, error = zip(*runs)
        plain = plain or own
        apart = [100 * (a - b) for a, b in zip(own, plain)]
        spread = statistics.stdev(apart) / math.sqrt(seeds)
        print(f"| {codec} | {100 * statistics.mean(own):.2f} % | {statistics.mean(apart):+.2f} "
              f"+- {spread:.2f} | {statistics.mean(size):.0f} | {max(error):.4f} |", flush=True)


def virtual_seconds(program, codec, mbit):
    """Of training in 8 epochs, without start-up and evaluation."""
    text = EPOCHS % codec + TIMES % mbit
    with tempfile.TemporaryDirectory() as folder:
        run, out = pathlib.Path(folder) / "run.yaml", pathlib.Path(folder) / "out"
        run.write_text(text.replace("ring: {boards: 3}\n", ""))
        subprocess.run([pathlib.Path(program) / "ringpipe", "sim", run, "--executor", "timed",
                        "--out", out], capture_output=True, text=True, timeout=900, check=True)
        return json.loads((out / "summary.json").read_text())["seconds"]


def print_seconds(program):
    plain = None
    print("| codec | 1 Mbit/s: s | to f32 | 10 Mbit/s: s | to f32 |\n|---|---|---|---|---|")
    for codec in ("f32", *PRICED):
        own = [virtual_seconds(program, codec, mbit) for mbit in (1, 10)]
        plain = plain or own
        cells = " | ".join(f"{s:.0f} | {f / s:.2f}" for s, f in zip(own, plain))
        print(f"| {codec} | {cells} |", flush=True)


def measure(program, mbit, codec, schedule):
    kind, batch, lr, momentum = schedule
    samples = 3200
    with tempfile.TemporaryDirectory() as folder:
        summary, events = train(program, folder, RUN % (
            mbit, codec, samples // batch, batch, lr, momentum, kind))
    steps = [e for e in events if "loss" in e and "time_s" in e and "event" not in e]
    a, z = steps[len(steps) // 4], steps[-2]
    rate = (z["step"] - a["step"]) * batch / (z["time_s"] - a["time_s"])
    hop = {(l["from"], l["to"]): l["bytes"] for l in summary["link"]}
    scored = summary["eval"]["samples"]
    return (rate, hop[0, 1] / (samples + scored), hop[1, 0] / samples, summary["eval"]["loss"],
            summary["eval"]["accuracy"])


def main():
    program, *rates = sys.argv[1:]
    if rates[:1] == ["accuracy"]:
        data = pathlib.Path(rates[1]).resolve()
        print_prices(program, lambda codec, seed: ACCURACY % (data, codec, seed),
                     int(rates[2]) if len(rates) > 2 else 5, rates[3:] or PRICED)
        return
    if rates == ["seconds"]:
        print_seconds(program)
        return
    print("| Mbit/s | schedule | links | samples/s | B a sample up | down | loss | accuracy |")
    print("|---|---|---|---|---|---|---|---|")
    for mbit in rates or ("10", "1"):
        for schedule in SCHEDULES:
            for codec in CODECS:
                rate, up, down, loss, accuracy = measure(program, mbit, codec, schedule)
                print(f"| {mbit} | {schedule[0]} | {codec} | {rate:.1f} | {up:.0f} | {down:.0f} | "
                      f"{loss:.4f} | {100 * accuracy:.1f} % |", flush=True)


if __name__ == "__main__":
    main()
