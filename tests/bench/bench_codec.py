"""What codecs save on slow links and what they cost: samples/s, bytes a sample on the first hop
up and down, the loss and accuracy on 500 test samples, of cnn-small on glyphs over three boards.

    bench_codec.py BIN [MBIT...]     a folder with ringpipe and ringpipe-agent; 10 and 1
"""
import json
import pathlib
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
CODECS = ("{codec: f32}", "{codec: f16, inputs: f16}", "{codec: int8, inputs: int8}")
SCHEDULES = (("gpipe", 64, "0.02", 0.9), ("{kind: async, advance: 4}", 8, "0.01", 0))


def measure(program, mbit, codec, schedule):
    kind, batch, lr, momentum = schedule
    samples = 3200
    with tempfile.TemporaryDirectory() as folder:
        run, out = pathlib.Path(folder) / "run.yaml", pathlib.Path(folder) / "out"
        run.write_text(RUN % (mbit, codec, samples // batch, batch, lr, momentum, kind))
        subprocess.run([pathlib.Path(program) / "ringpipe", "train", run, "--out", out],
                       capture_output=True, text=True, timeout=900, check=True)
        events = list(map(json.loads, (out / "log.jsonl").read_text().splitlines()))
        steps = [e for e in events if "loss" in e and "time_s" in e and "event" not in e]
        a, z = steps[len(steps) // 4], steps[-2]
        summary = json.loads((out / "summary.json").read_text())
    rate = (z["step"] - a["step"]) * batch / (z["time_s"] - a["time_s"])
    hop = {(l["from"], l["to"]): l["bytes"] for l in summary["link"]}
    scored = summary["eval"]["samples"]
    return (rate, hop[0, 1] / (samples + scored), hop[1, 0] / samples, summary["eval"]["loss"],
            summary["eval"]["accuracy"])


def main():
    program, *rates = sys.argv[1:]
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
