#!/usr/bin/env python3
"""Federated runs of real processes with faults: does each come to the bits of one without?

    bench_site_faults.py RINGPIPE [--rounds 20] [--sites 3] [--boards 2] [--ahead 1] [--seed 1]
                         [--cases calm site host away]

The runs have the same file and seed, and all that a site and a rule can keep: momentum of the rule,
a kept optimiser, coded differences with their errors. Compared are the centres of all rounds, the
result, the rule's state, and what each site keeps.

- calm  a second run without faults
- site  in each round the process of a drawn site is killed, as soon as it has a run
- host  the host is killed in each state of a round, then resumed, in one round after the other;
        with --ahead N in every second life N rounds later
- away  in every fourth round all processes of a drawn site stand still for some seconds

A kill in a state is exact: killed.so counts the host's calls (tests/cli/killed.c)."""
import argparse
import collections
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

RUN = """\
model: mlp
data: {{set: glyphs, train: 384, test: 64}}
ring: {{boards: {boards}}}
train: {{epochs: 1, batch: 16, microbatch: 8, seed: 3, eval_epochs: 0}}
loss: cross-entropy
optimizer: {{kind: sgd, lr: 0.05, momentum: 0.9}}
schedule: gpipe
cut: [{cut}]
"""
SITES = """\
sites: {{split: split.json, rounds: {rounds}, steps: 2, at_once: {at_once}, optimizer: keep,
        rule: {{kind: fedavgm, lr: 0.7}}, delta: {{codec: int8}}}}
"""
KEPT = ("weights.safetensors", "center.safetensors", "state.safetensors")
AWAY_S, LIMIT_S = 5, 600  # LIMIT_S: without a closed round

# Where the host is killed, in this order: the name of the state (federation/engine.h) and the call,
# with the round and the site, and the number of the call in a life that has closed `ahead` rounds.
STATES = (
    ("begin", lambda run, ahead, number: f"before fork {ahead * run.sites + 1} -"),
    ("answer", lambda run, ahead, number: f"before fork {(ahead + 1) * run.sites} -"),
    ("average", lambda run, ahead, number: f"before rename {ahead + 1} /federation.json"),
    ("journal", lambda run, ahead, number: f"after rename {ahead + 1} /federation.json"),
    ("placing", lambda run, ahead, number: f"before rename {ahead + 1} /center.safetensors"),
    ("placed", lambda run, ahead, number: f"after rename {ahead + 1} /center.safetensors"),
    ("log", lambda run, ahead, number:
     f"before unlink 1 /rounds/{number}/site-0/start.safetensors"),
    ("cleared", lambda run, ahead, number:
     f"after unlink 1 /rounds/{number}/site-{run.sites - 1}/run/events.out.tfevents.ringpipe"),
)
ENDS = {"scored": "after rename 1 /federation.json", "exported": "before rename 1 /summary.json"}


class Run:
    def __init__(self, args, folder):
        self.program, self.sites, self.rounds = args.program, args.sites, args.rounds
        self.ahead, self.folder, self.seed = args.ahead, folder, args.seed
        self.killer = args.program.parent.parent / "tests" / "killed.so"
        whole = RUN.format(boards=args.boards, cut="fc2" if args.boards > 1 else "")
        (folder / "whole.yaml").write_text(whole)
        (folder / "run.yaml").write_text(whole + SITES.format(
            rounds=args.rounds, at_once=max(1, args.sites - 1)))
        subprocess.run([self.program, "data", "split", "whole.yaml", "--sites", str(args.sites),
                        "--by", "dirichlet:1", "--least", "40", "--out", "split.json"], cwd=folder,
                       check=True, stdout=subprocess.DEVNULL)

    def start(self, out, **environment):
        """Begins the run, or goes on with it."""
        begun = (self.folder / out / "federation.json").exists()
        words = ("resume", out) if begun else ("train", "run.yaml", "--out", out)
        return subprocess.Popen([self.program, *words, "--quiet"], cwd=self.folder, text=True,
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                env={**os.environ, **environment})

    def end(self, process, code):
        """Returns what is wrong with its end, or an empty text."""
        _, said = process.communicate(timeout=LIMIT_S * self.rounds)
        return "" if process.returncode == code else (
            f"exit code {process.returncode} instead of {code}: {said[-500:]}")

    def closed(self, out):
        try:
            return json.loads((self.folder / out / "federation.json").read_text())["round"]
        except FileNotFoundError:
            return 0

    def site_pid(self, out, number, site):
        """The process of a site that works on this round; None: not yet, or no longer."""
        path = self.folder / out / f"rounds/{number}/site-{site}/run/controller.json"
        try:
            pid = json.loads(path.read_text())["pid"]
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except (OSError, ValueError, KeyError):
            return None
        return pid if b"round" in words else None

    def bits(self, out):
        """Every file and digest that has to be the same."""
        folder = self.folder / out
        lines = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
        found = {f"round {line['round']}": line["digest"] for line in lines if "digest" in line}
        found |= {name: (folder / name).read_bytes() for name in KEPT}
        return found | {str(path.relative_to(folder)): path.read_bytes()
                        for path in folder.glob("sites/*.state/*")}


def each_round(run, out, act):
    """Calls act(round) in every round until it returns true."""
    process, number, done = run.start(out), 1, 0
    while process.poll() is None:
        number = run.closed(out) + 1
        if number > done and act(number):
            done = number
        time.sleep(0.01)
    return run.end(process, 0)


def calm(run, out):
    return run.end(run.start(out), 0), {}


def site(run, out):
    draw, counts = random.Random(f"{run.seed} site"), collections.Counter()
    drawn = [draw.randrange(run.sites) for _ in range(run.rounds + 2)]

    def kill(number):
        pid = run.site_pid(out, number, drawn[number])
        if pid:
            os.kill(pid, signal.SIGKILL)
            counts["kills"] += 1
        return pid
    wrong = each_round(run, out, kill)
    few = f"only {counts['kills']} kills" if 2 * counts["kills"] < run.rounds else ""
    return wrong or few, counts


def host(run, out):
    counts = collections.Counter()
    for life in range(4 * run.rounds + len(STATES)):
        closed = run.closed(out)
        state, call = STATES[life % len(STATES)]
        if closed < run.rounds:
            ahead = min(run.ahead * (life % 2), run.rounds - closed - 1)
            where = call(run, ahead, closed + ahead + 1)
        else:
            state = next((name for name in ENDS if counts[name] == 0), None)
            where = ENDS.get(state)
        if not where:
            break
        wrong = run.end(run.start(out, LD_PRELOAD=str(run.killer), RP_KILL_AT=where),
                        -signal.SIGKILL)
        if wrong:
            return f"{state} ({where}): {wrong}", counts
        counts[state] += 1
    missed = [name for name in (*(name for name, _ in STATES), *ENDS) if counts[name] == 0]
    wrong = run.end(run.start(out), 0)
    return wrong or ("never killed in " + ", ".join(missed) if missed else ""), counts


def away(run, out):
    draw, counts = random.Random(f"{run.seed} away"), collections.Counter()
    drawn = [draw.randrange(run.sites) for _ in range(run.rounds + 2)]

    def stop(number):
        pid = number % 4 == 1 and run.site_pid(out, number, drawn[number])
        if pid:
            family = [pid, *map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())]
            for one in family:
                os.kill(one, signal.SIGSTOP)
            time.sleep(AWAY_S)
            for one in family:
                os.kill(one, signal.SIGCONT)
            counts["stops"] += 1
        return pid or number % 4 != 1
    wrong = each_round(run, out, stop)
    return wrong or ("" if counts["stops"] else "no site was away"), counts


CASES = {"calm": calm, "site": site, "host": host, "away": away}


def compare(before, now):
    names = [name for name in {**before, **now} if before.get(name) != now.get(name)]
    return "other bits: " + ", ".join(names[:5]) if names else ""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program", type=lambda text: Path(text).resolve())
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--sites", type=int, default=3)
    parser.add_argument("--boards", type=int, choices=(1, 2), default=2)
    parser.add_argument("--ahead", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    args = parser.parse_args()
    good = True
    with tempfile.TemporaryDirectory(prefix="ringpipe-site-faults-") as name:
        run = Run(args, Path(name))
        wrong, _ = calm(run, "whole")
        if wrong:
            sys.exit(f"the run without faults: {wrong}")
        whole = run.bits("whole")
        for case in args.cases:
            wrong, counts = CASES[case](run, case)
            wrong = wrong or compare(whole, run.bits(case))
            good &= not wrong
            told = ", ".join(f"{name} {count}" for name, count in counts.items())
            print(f"{case}: {wrong or f'the same bits over {args.rounds} rounds'}"
                  f"{f' ({told})' if told else ''}", flush=True)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
