"""What three boards get over a far or slow path: samples/s of `ringpipe train`, cnn-small on
glyphs, from a quarter of the steps on. Programs are compared in turn, row by row.

    bench_path.py BIN [BIN...]      folders with ringpipe and ringpipe-agent
"""
import json
import pathlib
import subprocess
import sys
import tempfile

RUN = """\
model: cnn-small
data: {set: glyphs, train: 4096, test: 64}
ring: {boards: 3, link: {%s}, throttle: {forward_ms: 5, backward_ms: 5}}
train: {epochs: 1, steps: %d, batch: %d, microbatch: 8, seed: 3, eval_epochs: 0}
loss: cross-entropy
optimizer: {kind: sgd, lr: 0.01}
schedule: %s
cut: [flatten, fc]
"""
FAR, SLOW = "delay_ms: 50", "delay_ms: 50, rate_mbit: 10"
ROWS = [(link, schedule, batch) for link in (FAR, SLOW) for schedule, batch in (
    ("gpipe", 64), ("{kind: async, advance: 4}", 8), ("{kind: async, advance: auto}", 8),
    ("{kind: async, advance: {max_staleness: 22}}", 8))]


def rate(program, link, schedule, batch):
    """Samples/s, and what `advance` was chosen; None where the program refuses the run."""
    with tempfile.TemporaryDirectory() as folder:
        run, out = pathlib.Path(folder) / "run.yaml", pathlib.Path(folder) / "out"
        run.write_text(RUN % (link, 2400 // batch, batch, schedule))
        done = subprocess.run([pathlib.Path(program) / "ringpipe", "train", run, "--out", out],
                              capture_output=True, text=True, timeout=300)
        if done.returncode:
            return None, "refused"
        steps = [e for e in map(json.loads, (out / "log.jsonl").read_text().splitlines())
                 if "loss" in e and "time_s" in e]
        a, z = steps[len(steps) // 4], steps[-2]
        chosen = json.loads((out / "plan.json").read_text()).get("advance", {}).get("chosen", "")
    return (z["step"] - a["step"]) * batch / (z["time_s"] - a["time_s"]), chosen


def main():
    for row in ROWS:
        got = [rate(program, *row) for program in sys.argv[1:]]
        print(f"| {row[0]} | {row[1]} | " +
              " | ".join("-" if r is None else f"{r:.0f}" for r, _ in got) +
              f" | {got[-1][1]} |", flush=True)


if __name__ == "__main__":
    main()
