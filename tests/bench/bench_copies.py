#!/usr/bin/env python3
"""What copies that boards keep of each other cost (ring.copy_steps): samples/s and CPU seconds
with them over those without, in pairs one behind the other, so that both meet the machine's other
work.

    bench_copies.py BIN [PAIRS [COPY_STEPS]]     a folder with ringpipe and ringpipe-agent; 5, auto
"""
import json
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile

RUN = """\
model: cnn-small
data: {set: glyphs, train: 20000, test: 8}
ring: {boards: 3, copy_steps: %s%s}
train: {epochs: 1, steps: %d, batch: 32, microbatch: 8, seed: 3, eval_epochs: 0}
loss: cross-entropy
optimizer: {kind: sgd, lr: 0.01, momentum: 0.9}
schedule: %s
cut: [flatten, fc]
"""
CASES = (("", 300, "gpipe"), ("", 300, "async"),
         (", link: {rate_mbit: 10, delay_ms: 20}", 120, "1f1b"))


def cpu_s():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def train(program, case, copy_steps):
    """Samples a second without the first quarter, CPU seconds of all processes, the log's word."""
    link, steps, schedule = case
    before = cpu_s()
    with tempfile.TemporaryDirectory() as folder:
        run, out = pathlib.Path(folder) / "run.yaml", pathlib.Path(folder) / "out"
        run.write_text(RUN % (copy_steps, link, steps, schedule))
        subprocess.run([pathlib.Path(program) / "ringpipe", "train", run, "--out", out],
                       capture_output=True, timeout=900, check=True)
        log = list(map(json.loads, (out / "log.jsonl").read_text().splitlines()))
    done = [e for e in log if "loss" in e and "event" not in e]
    a, z = done[len(done) // 4], done[-2]
    rate = (z["step"] - a["step"]) * 32 / (z["time_s"] - a["time_s"])
    return rate, cpu_s() - before, [e["text"] for e in log if e.get("event") == "copies"]


def main():
    program, *rest = sys.argv[1:]
    pairs, copy_steps = int(rest[0]) if rest else 5, (rest[1:] or ["auto"])[0]
    print("| link | schedule | samples/s without | with | ratio: median (all) | CPU s: ratio |")
    print("|---|---|---|---|---|---|")
    for case in CASES:
        runs = []
        for pair in range(pairs):  # each is the first of its pair in turn
            order = (copy_steps, 0) if pair % 2 else (0, copy_steps)
            own = {which: train(program, case, which) for which in order}
            runs.append((own[0], own[copy_steps]))
        rates = sorted(b[0] / a[0] for a, b in runs)
        plain, copied = (statistics.median(pair[i][0] for pair in runs) for i in (0, 1))
        print(f"| {case[0][2:] or 'none'} | {case[2]} | {plain:.1f} | {copied:.1f} | "
              f"{statistics.median(rates):.3f} "
              f"({' '.join(f'{r:.3f}' for r in rates)}) | "
              f"{statistics.median(b[1] / a[1] for a, b in runs):.3f} |", flush=True)
        print("\n".join(runs[-1][1][2]), file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
