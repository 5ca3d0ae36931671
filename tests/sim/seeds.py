"""Many seeds over many schedules: what `bootstrap test sim` runs. Prints one line a schedule and a
last one; fails when a run hung or ended wrong.

    seeds.py RINGPIPE SEEDS
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

# Small, and with a tensor that travels in two pieces (RP_AGENT_PIECE_FLOATS).
MODEL = """\
input: data
layers:
  - {name: fc1, kind: dense, out: 90}
  - {name: relu1, kind: relu}
  - {name: fc2, kind: dense, out: 16}
  - {name: relu2, kind: relu}
  - {name: fc3, kind: dense, out: classes}
"""
RUN = """\
model: %s
data: {set: glyphs, train: 64, test: 16}
ring: {boards: 4}
train: {epochs: 13, steps: 50, batch: 16, microbatch: 4, seed: 1}
loss: cross-entropy
optimizer: {kind: sgd, lr: 0.05, momentum: 0.9}
schedule: %s
cut: [relu1, fc2, relu2]
"""
FAULTS_LEAST = 5  # that have begun, with an effect, in every single run
SCHEDULES = ("gpipe", "1f1b", "pipedream", "pipeoptim", "ea-pipe", "avgpipe")


def simulate(program, folder, schedule, first, last):
    """Exit code and tally of these seeds, on all cores."""
    run = pathlib.Path(folder) / f"{schedule}.yaml"
    model = pathlib.Path(folder) / "model.yaml"
    model.write_text(MODEL)
    run.write_text(RUN % (model, schedule))
    words = ["sim", run, "--faults", "all", "--seeds", f"{first}..{last}",
             "--jobs", str(os.cpu_count() or 1), "--format", "json"]
    done = subprocess.run([program, *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          text=True)
    if not done.stdout:
        sys.exit(f"{program}: no result, exit code {done.returncode}")
    tally = json.loads(done.stdout)
    print(f"{pathlib.Path(program).name}, {schedule}, seeds {first}..{last}: exit code "
          f"{done.returncode}, {tally}", flush=True)
    return done.returncode, tally


def main():
    program, seeds = sys.argv[1], int(sys.argv[2])
    each = -(-seeds // len(SCHEDULES))
    fewest = []
    sums = dict.fromkeys(("runs", "finished", "stopped_resumable", "hung", "wrong", "faults"), 0)
    codes = []
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        for i, schedule in enumerate(SCHEDULES):
            code, tally = simulate(program, folder, schedule, i * each + 1, (i + 1) * each)
            codes.append(code)
            fewest.append(tally["faults_min"])
            for key in sums:
                sums[key] += tally[key]
    print(", ".join(f"{value} {key}" for key, value in sums.items()) +
          f", at least {min(fewest)} faults in each, {time.monotonic() - began:.1f} s")
    passed = (not any(codes) and sums["runs"] == each * len(SCHEDULES)
              and sums["hung"] + sums["wrong"] == 0 and min(fewest) >= FAULTS_LEAST)
    sys.exit(0 if passed else 1)


if __name__ == "__main__":
    main()
