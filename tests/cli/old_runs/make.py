#!/usr/bin/env python3
"""Makes the run folders of tests/cli/test_old_runs.py with a program of an older version.

    make.py RINGPIPE COMMIT [NAME...]     all of them, or these; the others stay as they are

Each run is interrupted in the middle, so that its checkpoint has what the method leaves there. The
same program then resumes a copy of it, twice, and has to end with the same weights both times. The
folders go into runs.tar.xz next to this file, and what they end with into weights.json:
{name: {"commit", "stopped": steps done, "weights": sha256 of weights.safetensors}}. A run with
something that later versions do not have stays, and has {"commit", "refused": their message}.

To make them again, build that commit in a worktree (git worktree add --detach OLD COMMIT; cmake;
ninja) and give OLD/build/bin/ringpipe. The runs that are committed are of 9060dfb. Runs of a later
version are added under new names; those of older versions stay.
"""
import hashlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ARCHIVE, WEIGHTS = HERE / "runs.tar.xz", HERE / "weights.json"

MODEL = """\
input: data
layers:
  - {name: flat, kind: flatten}
  - {name: fc1, kind: dense, out: 8}
  - {name: relu1, kind: relu}
  - {name: fc2, kind: dense, out: 8}
  - {name: relu2, kind: relu}
  - {name: fc3, kind: dense, out: classes}
"""
NORMED = MODEL.replace("relu1, kind: relu", "relu1, kind: batchnorm")
# Slow enough to be interrupted in the middle of an epoch, at the next pause of three steps.
RUN = """\
model: model.yaml
data: {set: glyphs, train: 160, test: 16, size: 12}
ring: {boards: 3, threads: 1, throttle: {forward_op_ms: 8, backward_op_ms: 8}}
train: {epochs: 2, batch: 16, microbatch: 4, seed: 1, checkpoint_steps: 3}
record: {trace_mib: 0}
loss: cross-entropy
optimizer: {kind: sgd, lr: 0.05, momentum: 0.9}
schedule: gpipe
cut: [fc2, fc3]
"""
STOP = 4  # steps of 20 after which a run is interrupted
WHOLE = "train.microbatch=16"  # a microbatch a step
ADAMW = "optimizer={kind: adamw, lr: 0.001}"
SLOW_WIRE = "ring.link={hops: [{between: [0, 1], rate_mbit: 0.02}]}"
BY_SAMPLES = "ring.throttle={forward_ms: 20, backward_ms: 30}"
RUNS = {
    "gpipe": (),
    "1f1b": ("schedule=1f1b", ADAMW),
    "zb_h1": ("schedule=zb-h1",),
    "interleaved": ("schedule={kind: interleaved-1f1b, chunks: 2}", "ring.boards=2",
                    "cut=[relu1, fc2, fc3]"),
    "async": ("schedule=async",),
    "pipedream": ("schedule=pipedream", WHOLE),
    "vertical_sync": ("schedule={kind: pipedream, vertical_sync: true}", WHOLE),
    "2bw": ("schedule=pipedream-2bw",),
    "2bw_predicted": ("schedule={kind: pipedream-2bw, weights: pipeoptim}",),
    "spectrain": ("schedule={kind: spectrain, probe: 3}", WHOLE),
    "xpipe": ("schedule=xpipe", ADAMW),
    "pipeoptim": ("schedule={kind: pipeoptim, horizon: exact}", WHOLE, ADAMW),
    "pipeoptim_measured": ("schedule={kind: pipeoptim, horizon: measured, probe: 2}", WHOLE),
    "ea_pipe": ("schedule={kind: ea-pipe, replicas: 2, period: 3}", WHOLE),
    "ea_pipe_lean": ("schedule={kind: ea-pipe, lean: true, order: before, evaluate: mean}", WHOLE),
    "avgpipe": ("schedule={kind: avgpipe, replicas: 3}", WHOLE),
    "umpipe": ("schedule={kind: umpipe, forward: [3, 16, 5], backward: [7, 2, 16]}",),
    "pipefb": ("schedule={kind: pipefb, publish: 2}", WHOLE, "ring.boards=4", "cut=[fc2]"),
    "pipefb_some": ("schedule={kind: pipefb, publish: 2, split: [false, true]}", WHOLE,
                    "cut=[fc2]"),
    "pipefb_measured": ("schedule={kind: pipefb, ahead: measured}", WHOLE, "ring.boards=4",
                        "cut=auto"),
    "statistics": ("model=normed.yaml", "schedule={kind: ea-pipe, replicas: 2}", WHOLE,
                   "train.recalibrate=2"),
    "advance_auto": ("schedule={kind: async, advance: auto}", "ring.link={delay_ms: 20}"),
    "advance_auto_ea_pipe": ("schedule={kind: ea-pipe, advance: auto}", WHOLE,
                             "ring.link={delay_ms: 9}"),
    "codec_topk": ("schedule=1f1b", "links={codec: {activations: int4, gradients: topk-0.1}}"),
    "codec_auto": ("links={codec: auto, max_error: 0.004}", SLOW_WIRE),
    "cut_auto": ("cut=auto", "schedule=1f1b"),
    "trial": ("cut=auto", "plan.trial=3"),
    "drift": ("cut=auto", "plan.drift=0.3"),
    "share": ("cut=auto", "plan.share=2", "ring.boards=4"),
    "microbatch_auto": ("cut=auto", "train.microbatch=auto", BY_SAMPLES),
    "planner_sizes": ("schedule={kind: umpipe, planner: auto}", BY_SAMPLES),
    "schedules": ("cut=auto", "plan.schedules=[1f1b, zb-h1]"),
    "verify_copies": ("schedule=1f1b", "ring.verify=1/4", "ring.copy_steps=2"),
    "validation": ("data.validation=16", "train.epochs=3", "schedule=1f1b",
                   "checkpoint.best=loss"),
    "offload": ("schedule=1f1b", "offload=[0]", "recompute=[1]"),
    "lanes": ("lanes={count: 2, every: 2}", "ring.boards=2", "cut=[fc2]"),
}


def environment(home):
    kept = {key: value for key, value in os.environ.items() if not key.startswith("RINGPIPE_")}
    return {**kept, "RINGPIPE_TUNING": str(home / "no-tuning"), "RINGPIPE_PROFILES": "",
            "RINGPIPE_BINARIES": "1"}


def steps_done(folder):
    """Of the lane that has done the fewest where a run has lanes."""
    logs = list(folder.glob("lane-*/log.jsonl")) or [folder / "log.jsonl"]
    return min(sum('"loss"' in line and '"event"' not in line
                   for line in log.read_text(encoding="utf-8").splitlines()) if log.exists() else 0
               for log in logs)


def interrupt(program, home, name):
    """A run that was interrupted; gives the steps that it had done."""
    words = [word for text in RUNS[name] for word in ("--set", text)]
    process = subprocess.Popen([program, "train", "run.yaml", "--out", name, *words], cwd=home,
                               env=environment(home), stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE, text=True)
    while process.poll() is None and steps_done(home / name) < STOP:
        time.sleep(0.005)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=300)
    if process.returncode != 130:
        raise RuntimeError(f"{name}: exit code {process.returncode} in place of 130\n{err}")
    return steps_done(home / name)


def resume(program, home, name):
    """The weights that a copy of the run ends with."""
    copy = home / "copy" / name
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(home / name, copy)
    done = subprocess.run([program, "resume", copy], env=environment(home), capture_output=True,
                          text=True, check=False, timeout=600)
    if done.returncode != 0:
        raise RuntimeError(f"{name}: resume: exit code {done.returncode}\n{done.stderr}")
    return hashlib.sha256((copy / "weights.safetensors").read_bytes()).hexdigest()


def make(program, commit, home, name):
    stopped = interrupt(program, home, name)
    first, second = (resume(program, home, name) for _ in range(2))
    size = sum(path.stat().st_size for path in (home / name).rglob("*") if path.is_file())
    print(f"{name}: {stopped} steps, {size} bytes, {first[:12]}"
          f"{'' if first == second else ': NOT THE SAME WEIGHTS TWICE'}", flush=True)
    return {"commit": commit, "stopped": stopped, "weights": first} if first == second else None


def pack(home):
    """Nothing but names and bytes: the archive is the same for the same folders."""
    def plain(entry):
        entry.uid = entry.gid = entry.mtime = 0
        entry.uname = entry.gname = ""
        return entry
    with tarfile.open(ARCHIVE, "w:xz", preset=9) as out:
        for name in sorted(json.loads(WEIGHTS.read_text(encoding="utf-8"))):
            out.add(home / name, name, filter=plain)


def main():
    program, commit = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]
    found = json.loads(WEIGHTS.read_text(encoding="utf-8")) if WEIGHTS.exists() else {}
    with tempfile.TemporaryDirectory(prefix="ringpipe-old-") as folder:
        home = pathlib.Path(folder)
        if ARCHIVE.exists():
            with tarfile.open(ARCHIVE) as old:
                old.extractall(home)
        (home / "run.yaml").write_text(RUN, encoding="utf-8")
        (home / "model.yaml").write_text(MODEL, encoding="utf-8")
        (home / "normed.yaml").write_text(NORMED, encoding="utf-8")
        for name in sys.argv[3:] or RUNS:
            shutil.rmtree(home / name, ignore_errors=True)
            try:
                made = make(program, commit, home, name)
            except RuntimeError as error:
                made = print(error, flush=True)
            found = {**found, name: made} if made else {k: v for k, v in found.items() if k != name}
        WEIGHTS.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        pack(home)


if __name__ == "__main__":
    main()
