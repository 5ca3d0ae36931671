#!/usr/bin/env python3
"""Simulated federated runs of 20 rounds with drawn faults, spread over rules and options of
`sites`. Prints a line for each case and a last one; fails when a run hung or ended wrong, or when
800 runs and more come to a fault, or to a state in which the host is killed, too seldom.

    seeds.py RINGPIPE SEEDS [FIRST]        all of them
    seeds.py RINGPIPE SEEDS FIRST SEED     one of them again, with every event
"""
import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

# Small: a run reads its data and its model whenever it starts again, and its rounds write weights.
MODEL = """\
input: data
layers:
  - {name: fc1, kind: dense, out: classes, bias: false}
"""
# With running statistics, which do not pass through momentum and moments.
STATISTICS = """\
input: data
layers:
  - {name: fc1, kind: dense, out: classes, bias: false}
  - {name: bn1, kind: batchnorm}
"""
RUN = """\
model: model.yaml
data: {set: table, path: ., shuffle: true}
ring: {boards: 1, link: {rate_mbit: 0.01, delay_ms: 20}}
train: {epochs: 1, batch: 4, microbatch: 2, seed: 1, eval_epochs: 0}
loss: cross-entropy
optimizer: {kind: sgd, lr: 0.05}
schedule: gpipe
cut: []
"""
SAMPLES = 24
TRACE = {"site-0": {"active": [0], "inactive": [100], "finish_time": 100},
         "site-1": {"active": [0, 50], "inactive": [30, 100], "finish_time": 100},
         "site-2": {"active": [0], "inactive": [70], "finish_time": 100}}
# Options of `sites`. Without `take` every case has the same centre with and without faults.
CASES = ("rule: fedavg", "rule: gossip, at_once: 3, take: {least: 2, wait: 5}",
         "rule: fedavg, at_once: 3", "rule: {kind: fedavgm, nesterov: true}",
         "rule: {kind: fedadam, variant: flower}, count: 2", "rule: fednova, epochs: 1, at_once: 2",
         "rule: elastic, at_once: 3", "rule: elastic, count: 2",
         "rule: median, availability: {trace: trace.json, seconds: 10}",
         "rule: fedavg, at_once: 3, take: {least: 2, wait: 4}",
         "rule: fedyogi, at_once: 2, take: {least: 1, wait: 60}",
         "rule: elastic, at_once: 3, take: {least: 2}",
         "rule: trimmed-mean, at_once: 3, take: {least: 2, wait: 6}, "
         "availability: {trace: trace.json, seconds: 15}",
         "rule: {kind: fedavg, weights: equal}, drift: true, at_once: 3",
         "rule: fedavg, clip: 0.2, count: 2",
         "rule: fedavgm, keep: ['bn1.*'], optimizer: keep, at_once: 2, count: 2",
         "rule: elastic, delta: {codec: int8}, at_once: 3",
         "rule: fedavg, keep: ['bn1.*'], optimizer: keep, delta: {codec: topk, share: 0.4}, "
         "at_once: 3, take: {least: 1, wait: 5}",
         "rule: fedadam, optimizer: keep, delta: {codec: int8}, at_once: 3, "
         "take: {least: 2, wait: 6}, availability: {trace: trace.json, seconds: 12}")
MANY = 800
MARKS_LEAST = 5  # of 1,000 runs: kills in each state, faults of each kind that sites have
KINDS = ("crash", "suspend", "slow", "partition", "host-crash", "save-crash", "host-suspend",
         "interrupt", "gone", "wrong")
NO_KILLS = {"scored"}  # there is no test part


def prepare(program, folder, case):
    """Writes the files of a case; returns its run file."""
    folder = pathlib.Path(folder)
    averages = any(word in case for word in ("fedavgm", "fedadam", "fedyogi", "bn1", "clip"))
    (folder / "model.yaml").write_text(STATISTICS if averages else MODEL)
    (folder / "train.csv").write_text("".join(f"{i},{i * i % 7},{i % 3}\n" for i in range(SAMPLES)))
    (folder / "trace.json").write_text(json.dumps(TRACE))
    (folder / "whole.yaml").write_text(RUN)
    run = folder / "run.yaml"
    steps = "" if "epochs" in case else ", steps: 3"
    run.write_text(f"{RUN}sites: {{split: split.json, rounds: 20{steps}, {case}}}\n")
    if not (folder / "split.json").exists():
        subprocess.run([program, "data", "split", folder / "whole.yaml", "--sites", "3", "--by",
                        "iid", "--out", folder / "split.json"], check=True,
                       stdout=subprocess.DEVNULL)
    return run


def simulate(program, folder, case, first, last):
    """Exit code and tally of these seeds, on all cores."""
    run = prepare(program, folder, case)
    words = ["sim", run, "--faults", "all", "--seeds", f"{first}..{last}", "--jobs",
             str(os.cpu_count() or 1), "--format", "json"]
    done = subprocess.run([program, *words], capture_output=True, text=True, errors="replace")
    if not done.stdout:
        sys.exit(f"{program}: no result, exit code {done.returncode}: {case}\n{done.stderr}")
    tally = json.loads(done.stdout)
    told = {key: value for key, value in tally.items() if key != "marks"}
    print(f"{case}, seeds {first}..{last}: exit code {done.returncode}, {told}", flush=True)
    return done.returncode, tally


def check_marks(marks, runs):
    """What the runs did not come to often enough; few runs are not asked."""
    wanted = [("faults", kind) for kind in KINDS]
    wanted += [("killed_in", state) for state in marks["killed_in"] if state not in NO_KILLS]
    for group in ("faults", "killed_in"):
        print(f"{group}: " + ", ".join(f"{name} {count}" for name, count in marks[group].items()
                                       if count))
    return [f"{group} {name}: {marks[group][name]}" for group, name in wanted
            if runs >= MANY and marks[group][name] * 1000 < MARKS_LEAST * runs]


def bounds(seeds, first):
    """Each case with its first and its last seed."""
    each = max(2, -(-seeds // len(CASES)))
    return [(case, first + i * each, first + (i + 1) * each - 1) for i, case in enumerate(CASES)]


def repeat(program, seeds, first, seed):
    case = next((case for case, low, high in bounds(seeds, first) if low <= seed <= high), None)
    if not case:
        sys.exit(f"seed {seed} is none of these")
    with tempfile.TemporaryDirectory() as folder:
        run = prepare(program, folder, case)
        sys.exit(subprocess.run([program, "sim", run, "--faults", "all", "--seed", str(seed),
                                 "--trace"], check=False).returncode)


def main():
    program, seeds = sys.argv[1], int(sys.argv[2])
    first = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    if len(sys.argv) > 4:
        repeat(program, seeds, first, int(sys.argv[4]))
    sums = dict.fromkeys(("runs", "finished", "stopped_resumable", "hung", "wrong", "faults"), 0)
    marks = collections.defaultdict(collections.Counter)
    codes = []
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        for case, low, high in bounds(seeds, first):
            code, tally = simulate(program, folder, case, low, high)
            codes.append(code)
            for key in sums:
                sums[key] += tally[key]
            for group in ("faults", "killed_in"):
                marks[group].update(tally["marks"][group])
    seldom = check_marks(marks, sums["runs"])
    if seldom:
        print("too seldom: " + ", ".join(seldom))
    print(f"{sums['runs']} runs: {sums['finished']} finished, {sums['stopped_resumable']} stopped "
          f"and resumed, {sums['hung']} hung, {sums['wrong']} wrong; {sums['faults']} faults in "
          f"{time.monotonic() - began:.1f} s")
    good = not any(codes) and not seldom and sums["hung"] == sums["wrong"] == 0
    sys.exit(0 if good and sums["runs"] >= seeds else 1)


if __name__ == "__main__":
    main()
