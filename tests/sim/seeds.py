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

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cli"))
from spread import spread  # noqa: E402

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
SHARES = [[0, 1], [0, 0.3, 1], [0, 1]]  # several boards for a stage, in half of the runs with 1f1b


def write_shares(program, folder, run):
    """Words for a run of four boards, of which two share the middle one of three stages."""
    row = pathlib.Path(folder) / "row"
    subprocess.run([program, "sim", run, "--set", "ring.boards=3", "--set", "cut=[relu1, relu2]",
                    "--out", row], check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    plan = pathlib.Path(folder) / "shares.json"
    plan.write_text(json.dumps(spread(json.loads((row / "plan.json").read_text()), SHARES)))
    return ["--plan", plan, "--set", "cut=auto"]


def simulate(program, folder, schedule, first, last, shares=False):
    """Exit code and tally of these seeds, on all cores."""
    run = pathlib.Path(folder) / f"{schedule}.yaml"
    model = pathlib.Path(folder) / "model.yaml"
    model.write_text(MODEL)
    run.write_text(RUN % (model, schedule))
    words = ["sim", run, "--faults", "all", "--seeds", f"{first}..{last}",
             "--jobs", str(os.cpu_count() or 1), "--format", "json"]
    words += write_shares(program, folder, run) if shares else []
    done = subprocess.run([program, *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          text=True)
    if not done.stdout:
        sys.exit(f"{program}: no result, exit code {done.returncode}")
    tally = json.loads(done.stdout)
    boards = ", a stage shared" if shares else ""
    print(f"{pathlib.Path(program).name}, {schedule}{boards}, seeds {first}..{last}: exit code "
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
            shared = each // 2 if schedule == "1f1b" else 0
            parts = [(i * each + 1, (i + 1) * each - shared, False)]
            parts += [((i + 1) * each - shared + 1, (i + 1) * each, True)] if shared else []
            for part in parts:
                code, tally = simulate(program, folder, schedule, *part)
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
