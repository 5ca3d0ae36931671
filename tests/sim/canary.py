"""A canary, a program with one mistake, is found by the seeds; the program without it passes the
same seeds.

    canary.py CANARY RINGPIPE SCHEDULE
"""
import json
import pathlib
import subprocess
import sys
import tempfile

RUN = """\
model: mlp
data: {set: glyphs, train: 64, test: 16}
ring: {boards: 4}
train: {epochs: 13, steps: 50, batch: 16, microbatch: 4, seed: 1}
loss: cross-entropy
optimizer: {kind: sgd, lr: 0.05, momentum: 0.9}
schedule: %s
cut: [relu1, fc2, relu2]
"""
SEEDS = "1..60"


def simulate(program, run):
    done = subprocess.run([program, "sim", run, "--faults", "all", "--seeds", SEEDS, "--jobs", "2",
                           "--format", "json"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          text=True)
    if not done.stdout:
        sys.exit(f"{program}: no result, exit code {done.returncode}")
    tally = json.loads(done.stdout)
    print(f"{pathlib.Path(program).name}: exit code {done.returncode}, {tally}")
    return done.returncode, tally


def main():
    canary, ringpipe, schedule = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        run = pathlib.Path(folder) / "run.yaml"
        run.write_text(RUN % schedule)
        code, tally = simulate(canary, run)
        if code != 3 or tally["hung"] + tally["wrong"] == 0:
            sys.exit("the mistake was not found")
        code, tally = simulate(ringpipe, run)
        if code != 0 or tally["hung"] + tally["wrong"] > 0:
            sys.exit("the program without the mistake does not pass the same seeds")


main()
