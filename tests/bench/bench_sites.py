#!/usr/bin/python3
"""Federated rules side by side: rounds, bytes and seconds to a goal, and the worst sites.

    bench_sites.py RINGPIPE DATA WORK [--sets fashion-mnist] [--splits iid dirichlet:0.5 ..]
                   [--rules fedavg ..] [--seeds 1 2 3] [--rounds 30] [--port 47000] [--table]

DATA has fashion-mnist (IDX files, .gz) and cifar-10 (binary files); WORK keeps data, splits and
runs: a finished run is kept and one that was interrupted goes on. --table prints what there is.
A board for each site, and one that evaluates the centre, are agents that this program starts with
one thread each, on the ports from --port on.

- Eight sites with 1,000 samples each on the average, and a tenth of each as its validation part.
  Half of the sites are there in a round, by a trace drawn once with stays of 4 to 10 rounds. 25
  steps of 32 samples a round; lenet for Fashion-MNIST, cnn-small for CIFAR-10.
- Each rule's rates are the best of a few after half of the rounds, by the mean accuracy of the
  sites' validation parts, with seed 101, on the same split; those of iid are of dirichlet:0.5.
- A run that ends because gradients are not finite is one that diverged.
- A run's cells: rounds until the centre reaches the goal on the test part, MB from and to all sites
  until then, seconds of these rounds on two kinds of lines, final accuracy, and accuracy of the
  worst tenth of the sites' validation parts.
- Seconds are those of `ringpipe train --dry-run`, for boards of 5 GFLOP/s: a round's slowest site.
"""
import argparse
import atexit
import gzip
import itertools
import json
import os
import random
import statistics
import subprocess
import sys
from pathlib import Path

import numpy as np

SITES, EACH, TEST, STEPS, BATCH, AT_ONCE = 8, 1000, 2000, 25, 32, 4
TUNE_SEED, TUNE_SPLITS = 101, {"iid": "dirichlet:0.5"}
SETS = {"fashion-mnist": ("lenet", 0.8), "cifar-10": ("cnn-small", 0.45)}  # net, goal
LINES = {"wifi": "{rate_mbit: 50, delay_ms: 3}", "lte": "{rate_mbit: 10, delay_ms: 40}"}
SGD = "{kind: sgd, lr: %g}"
RATES = (0.02, 0.05, 0.1)


def server(kind, rates, extra=""):
    return [(f"lr={rate:g} local={local:g}",
             {"sites.rule": f"{{kind: {kind}, lr: {rate:g}{extra}}}", "optimizer": SGD % local})
            for rate, local in itertools.product(rates, (0.05, 0.1))]


def local(rule, **more):
    return [(f"local={rate:g}", {"sites.rule": rule, "optimizer": SGD % rate, **more})
            for rate in RATES]


# The choices of each rule, by a name that a folder can have.
RULES = {
    "fedavg": local("fedavg"),
    "fedavgm": server("fedavgm", (0.3, 1), ", momentum: 0.9"),
    "fedadam": server("fedadam", (0.003, 0.01)),
    "fedprox": [(f"mu={mu:g} local={rate:g}",
                 {"sites.rule": "fedavg", "optimizer": SGD % rate,
                  "train.anchor": f"{{mu: {mu:g}}}"})
                for mu, rate in itertools.product((0.01, 0.1), (0.05, 0.1))],
    "drift": local("{kind: fedavg, weights: equal}", **{"sites.drift": "true"}),
    "fednova": local("fednova"),
    "diloco": [(f"lr={rate:g}",
                {"sites.rule": f"{{kind: fedavgm, lr: {rate:g}, momentum: 0.9, nesterov: true, "
                               "weights: equal}",
                 "sites.optimizer": "keep", "optimizer": "{kind: adamw, lr: 0.001}"})
               for rate in (0.3, 0.7)],
    "elastic": local("elastic"),
    "int8": local("fedavg", **{"sites.delta": "{codec: int8}"}),
    "topk": local("fedavg", **{"sites.delta": "{codec: topk}"}),
}


def read_idx(path, skip):
    return np.frombuffer(gzip.decompress(path.read_bytes())[skip:], np.uint8)


def arrays_of(data, name):
    """(images, classes) of each part."""
    if name == "fashion-mnist":
        return {part: (read_idx(data / name / f"{file}-images-idx3-ubyte.gz", 16)
                       .reshape(-1, 1, 28, 28),
                       read_idx(data / name / f"{file}-labels-idx1-ubyte.gz", 8))
                for part, file in (("train", "train"), ("test", "t10k"))}
    found = {}
    for part, files in (("train", [f"data_batch_{k}.bin" for k in range(1, 6)]),
                        ("test", ["test_batch.bin"])):
        raw = np.concatenate([np.fromfile(data / name / file, np.uint8) for file in files])
        raw = raw.reshape(-1, 3073)
        found[part] = raw[:, 1:].reshape(-1, 3, 32, 32), raw[:, 0]
    return found


class Boards:
    """An agent for each site and one for the centre, so that kernels are loaded once."""

    def __init__(self, program, folder, port):
        self.program, self.folder, self.port = Path(program).resolve(), folder, port
        self.roster, self.keys = folder / "roster.yaml", folder / "host"
        if not self.roster.exists():
            self.write()
        for at, name in enumerate(self.names()):
            agent = subprocess.Popen(
                [self.program.with_name("ringpipe-agent"), "--listen", self.address(at), "--keys",
                 folder / name, "--threads", "1"],
                stdout=subprocess.DEVNULL, stderr=open(folder / f"{name}.log", "w"),
                env={**os.environ, "RINGPIPE_BINARIES": "1"})
            atexit.register(agent.terminate)

    @staticmethod
    def names():
        return [f"site-{at}" for at in range(SITES)] + ["centre"]

    def address(self, at):
        return f"tcp://127.0.0.1:{self.port + 10 * at}"

    def call(self, *words):
        return subprocess.run([self.program, "keys", *map(str, words)], check=True,
                              capture_output=True, text=True).stdout

    def write(self):
        self.folder.mkdir(parents=True, exist_ok=True)
        self.call("new", "--dir", self.keys)
        key = self.call("show", "--dir", self.keys).split()[-1]
        lines = ["boards:\n"]
        for at, name in enumerate(self.names()):
            self.call("new", "--dir", self.folder / name)
            self.call("trust", "host", key, "--dir", self.folder / name)
            lines.append(self.call("show", "--roster", name, self.address(at), "--dir",
                                   self.folder / name))
        self.roster.write_text("".join(lines))

    def ring(self, name):
        return f"ring: {{roster: {self.roster}, where: {{name: {name}}}}}\nkeys: {self.keys}\n"


class Set:
    """Files that all runs of a set and split share."""

    def __init__(self, args, name, split, boards):
        self.program, self.name, self.split = args.ringpipe, name, split
        self.boards = boards
        self.model, self.goal = SETS[name]
        self.rounds = args.rounds
        self.base = args.work / name
        self.folder = self.base / split.replace(":", "-")
        self.data = args.data

    def call(self, *words, also=()):
        """What it prints; None if it ends with an exit code in `also`."""
        done = subprocess.run([self.program, *map(str, words)], capture_output=True, text=True)
        if done.returncode not in (0, *also):
            raise SystemExit(f"{' '.join(map(str, words))}: {done.stderr}")
        return done.stdout if done.returncode == 0 else None

    def write(self):
        self.folder.mkdir(parents=True, exist_ok=True)
        if not (self.base / "y_test.npy").exists():
            for part, count in (("train", SITES * EACH), ("test", TEST)):
                x, y = arrays_of(self.data, self.name)[part]
                np.save(self.base / f"x_{part}.npy", x[:count].astype(np.float32) / 64 - 2)
                np.save(self.base / f"y_{part}.npy", y[:count].astype(np.int32))
        whole = self.folder / "whole.yaml"
        whole.write_text("ring: {boards: 1}\n" + self.run_text(SGD % RATES[0]))
        split = self.folder / "split.json"
        if not split.exists():
            self.call("data", "split", whole, "--sites", SITES, "--by", self.split, "--least", 64,
                      "--validation", 0.1, "--seed", 1, "--out", split)
            names = [site["name"] for site in json.loads(split.read_text())["sites"]]
            (self.folder / "trace.json").write_text(json.dumps(draw_trace(names)))
        # Boards at home, for the seconds of a round.
        (self.folder / "plan.yaml").write_text(whole.read_text() + self.sites_text(SITES))

    def run_text(self, optimizer, seed=1, more=""):
        return f"""\
model: {self.model}
data: {{set: npy, path: {self.base}, normalise: none}}
train: {{epochs: 1, batch: {BATCH}, microbatch: {BATCH}, seed: {seed}, eval_epochs: 1{more}}}
loss: cross-entropy
optimizer: {optimizer}
schedule: gpipe
cut: []
record: {{trace_mib: 0}}
"""

    def sites_text(self, at_once):
        return f"""\
sites:
  split: {self.folder}/split.json
  rounds: {self.rounds}
  steps: {STEPS}
  at_once: {at_once}
  availability: {{trace: {self.folder}/trace.json, seconds: 1}}
  take: {{least: 1, wait: 600}}
"""

    def write_run(self, folder, changes):
        """A run whose sites have boards, and so run files, of their own."""
        folder.mkdir(parents=True, exist_ok=True)
        anchor = changes.get("train.anchor")
        text = self.run_text(changes["optimizer"], changes["train.seed"],
                             f", anchor: {anchor}" if anchor else "")
        files = []
        for name in self.boards.names()[:SITES]:
            (folder / f"{name}.yaml").write_text(self.boards.ring(name) + text)
            files.append(f"{name}: {folder}/{name}.yaml")
        run = folder / "run.yaml"
        run.write_text(self.boards.ring("centre") + text + self.sites_text(AT_ONCE) +
                       f"  files: {{{', '.join(files)}}}\n")
        return run

    def sets_of(self, changes):
        return [word for key, value in changes.items() for word in ("--set", f"{key}={value}")]

    def run(self, out, changes):
        """The summary and the log of a finished run; None: it diverged."""
        summary, diverged = out / "summary.json", out.with_name(f"{out.name}.diverged")
        if not diverged.exists() and not (
                summary.exists() and json.loads(summary.read_text())["status"] == "finished"):
            if out.exists():
                words = "resume", out, "--quiet"
            else:
                run = self.write_run(out.with_name(f"{out.name}.files"), changes)
                words = "train", run, "--out", out, "--quiet", *self.sets_of(changes)
            if self.call(*words, also=(3,)) is None:
                said = "".join(log.read_text() for log in (out / "sites").glob("*.log"))
                if "gradient has not been finite" not in said:
                    raise SystemExit(f"{out}: the run ended with exit code 3")
                diverged.touch()
        return self.read(out)

    @staticmethod
    def read(out):
        if out.with_name(f"{out.name}.diverged").exists():
            return None
        return (json.loads((out / "summary.json").read_text()),
                [json.loads(line) for line in open(out / "log.jsonl")])

    def choose(self, rule):
        """The name and the keys of the rule's best rates."""
        scores = {}
        for name, changes in RULES[rule]:
            out = self.folder / "tune" / rule / name.replace(" ", "-")
            found = self.run(out, {**changes, "train.seed": TUNE_SEED, "train.eval_epochs": 0,
                                   "sites.rounds": self.rounds // 2})
            score = (found[0].get("site_accuracy") or {}).get("mean") if found else None
            scores[name] = score if score is not None and score == score else -1
        best = max(scores, key=scores.get)
        return best, dict(RULES[rule])[best]

    def seconds(self, changes, line):
        said = self.call("train", self.folder / "plan.yaml", "--dry-run", "--format", "json",
                         *self.sets_of({**changes, "ring.throttle": "{gflops: 5}",
                                        "ring.link": LINES[line]}))
        return json.loads(said)["round"]["seconds"]


def draw_trace(names):
    """Each site is there for half of the time, in stays of 4 to 10 rounds of one second."""
    draw = random.Random(1)
    traces = {}
    for name in names:
        at, on, active, inactive = 0, draw.random() < 0.5, [], []
        while at < 400:
            if on:
                active.append(at)
            at += draw.randint(4, 10)
            if on:
                inactive.append(at)
            on = not on
        traces[name] = {"active": active, "inactive": inactive, "finish_time": at}
    return traces


def to_goal(lines, goal, down):
    """Rounds, and MB up and down, until the centre reaches the goal; None: it never does. `down`:
    bytes of the weights that each site of a round is given."""
    up = rounds_of_sites = 0
    for line in lines:
        if line.get("event") == "site":
            up += line.get("up_bytes", 0)
            rounds_of_sites += 1
        if line.get("event") == "eval" and (line.get("accuracy") or 0) >= goal:
            return line["step"], up / 1e6, rounds_of_sites * down / 1e6
    return None


def mean_cell(values, digits=1):
    if any(value is None for value in values):
        found = [value for value in values if value is not None]
        return f"{len(found)} of {len(values)} runs" if found else "-"
    more = f" ± {statistics.stdev(values):.{digits}f}" if len(values) > 1 else ""
    return f"{statistics.mean(values):.{digits}f}{more}"


def row_of(one, rule, seeds, best, changes):
    folders = [one.folder / "runs" / rule / f"seed-{seed}" for seed in seeds]
    runs = [one.read(folder) for folder in folders]
    ended = [run for run in runs if run]
    goals = [run and to_goal(run[1], one.goal, (folder / "center.safetensors").stat().st_size)
             for folder, run in zip(folders, runs)]
    rounds, up, down = ([goal[at] if goal else None for goal in goals] for at in range(3))
    seconds = []
    for line in LINES:
        each = one.seconds(changes, line)
        seconds.append(mean_cell([None if count is None or each is None else count * each
                                  for count in rounds], 0))
    last = [100 * [line["accuracy"] for line in lines if line.get("event") == "eval"][-1]
            for _, lines in ended]
    worst = [100 * summary["site_accuracy"]["worst_decile"] for summary, _ in ended]
    lost = f"{len(runs) - len(ended)} of {len(runs)} diverged"
    cells = [one.name, one.split, rule, mean_cell(rounds), mean_cell(up), mean_cell(down), *seconds,
             *(mean_cell(cell) if len(ended) == len(runs) else lost for cell in (last, worst)),
             best]
    return f"| {' | '.join(cells)} |"


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("ringpipe")
    parser.add_argument("data", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=list(SETS))
    parser.add_argument("--splits", nargs="+", default=["iid", "dirichlet:0.5", "dirichlet:0.1"])
    parser.add_argument("--rules", nargs="+", default=list(RULES), choices=list(RULES))
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--port", type=int, default=47000)
    parser.add_argument("--table", action="store_true", help="of the runs that there are")
    args = parser.parse_args()
    args.work, args.data = args.work.resolve(), args.data.resolve()
    boards = None if args.table else Boards(args.ringpipe, args.work / "boards", args.port)
    print("| set | split | rule | rounds to the goal | MB up | MB down | s, wifi | s, lte | "
          "last accuracy | worst tenth of sites | rates |\n" + 11 * "|---" + "|")
    for name, split, rule in itertools.product(args.sets, args.splits, args.rules):
        one, tuned = (Set(args, name, by, boards) 
                      for by in (split, TUNE_SPLITS.get(split, split)))
        done = [one.folder / "runs" / rule / f"seed-{seed}.files" for seed in args.seeds]
        if args.table and not all(path.exists() for path in done):
            continue
        one.write()
        tuned.write()
        best, changes = tuned.choose(rule)
        for seed in args.seeds:
            one.run(one.folder / "runs" / rule / f"seed-{seed}", {**changes, "train.seed": seed})
        print(row_of(one, rule, args.seeds, best, changes), flush=True)


if __name__ == "__main__":
    sys.exit(main())
