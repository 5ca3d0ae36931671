#!/usr/bin/env python3
"""Scenarios of this folder: `ringpipe sim` runs them, and what it writes is compared.

run.py                every scenario of every file
run.py FILE...        those of these files
run.py FILE NAME      one, and its folder is kept

README.md says what a file contains. RP_BUILD_DIR: where bin/ringpipe is (default: build)."""
import concurrent.futures
import copy
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import yaml

from damage import damage
from expect import check_keys, check_part, read_json
from plans import write_plan, write_profile

HERE = Path(__file__).resolve().parent
BUILD = Path(os.environ.get("RP_BUILD_DIR", HERE.parents[1] / "build"))
RINGPIPE = BUILD / "bin" / "ringpipe"
LIMIT_S = 120

RUN = {
    "model": "mlp",
    "data": {"set": "glyphs", "train": 64, "test": 16},
    "ring": {"boards": 3},
    "train": {"epochs": 13, "steps": 50, "batch": 16, "microbatch": 4, "seed": 1},
    "loss": "cross-entropy",
    "optimizer": {"kind": "sgd", "lr": 0.05, "momentum": 0.9},
    "schedule": "1f1b",
    "cut": ["fc2", "fc3"],
}
FILE_KEYS = {"base", "scenarios"}
PART_KEYS = {"set", "faults", "seed", "once", "damage", "plan", "expect"}
SCENARIO_KEYS = PART_KEYS | {"name", "about", "roster", "files", "executor", "profile",
                             "schedules", "states", "parts"}
NODE_KEYS = {"name", "dials", "labels"}


class Failed(Exception):
    """The scenario is not as it is expected, or not well written."""


def merged(base, own):
    """A scenario with what it does not say of the base; settings are put together."""
    both = {**copy.deepcopy(base), **own}
    both["set"] = {**base.get("set", {}), **own.get("set", {})}
    return both


def put_schedule(one, schedule):
    if schedule is None:
        return one
    kind = schedule if isinstance(schedule, str) else json.dumps(schedule)
    return {**one, "name": f"{one['name']} [{kind}]", "set": {**one["set"], "schedule": schedule}}


def put_state(one, state):
    """Faults that are in `each` state are in this one."""
    if state is None:
        return one
    out = {**copy.deepcopy(one), "name": f"{one['name']}, in {state}"}
    for part in [out, *out.get("parts", [])]:
        for fault in part.get("faults", []):
            fault["in"] = state if fault.get("in") == "each" else fault.get("in", "")
            if not fault["in"]:
                del fault["in"]
    return out


def read(path):
    """The scenarios of a file, each schedule and state by itself."""
    found = yaml.safe_load(path.read_text(encoding="utf-8"))
    check_keys(path.name, found, FILE_KEYS)
    base = found.get("base", {})
    check_keys(f"{path.name}: base", base, SCENARIO_KEYS - {"name", "parts"})
    out = []
    for own in found["scenarios"]:
        check_keys(f"{path.name}: {own.get('name')}", own, SCENARIO_KEYS)
        for part in own.get("parts", []):
            check_keys(f"{path.name}: {own['name']}: parts", part, PART_KEYS)
        one = merged(base, own)
        out += [put_schedule(put_state(one, state), schedule) for state in one.get("states", [None])
                for schedule in one.get("schedules", [None])]
    names = [one["name"] for one in out]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise Failed(f"{path.name}: the same name twice: {twice}")
    return out


def roster_text(nodes):
    """Boards that listen, or dial; their keys are of this simulation."""
    lines = []
    for node in nodes:
        node = {"name": node} if isinstance(node, str) else dict(node)
        check_keys("roster", node, NODE_KEYS)
        name = node["name"]
        dials = node.pop("dials", False)
        key = re.sub("[^a-z0-9]", "", name).replace("l", "k").ljust(40, "a")
        lines.append({**node, "address": "dials" if dials else f"tcp://{name}.example:7000",
                      "key": key})
    return json.dumps({"boards": lines})


class Scenario:
    """One, in a folder of its own."""

    def __init__(self, what, folder):
        self.what, self.dir = what, folder
        self.run = copy.deepcopy(RUN)
        for name, text in what.get("files", {}).items():
            text = text if isinstance(text, str) else yaml.safe_dump(text, sort_keys=False)
            (folder / name).write_text(text, encoding="utf-8")
        if "roster" in what:
            (folder / "roster.yaml").write_text(roster_text(what["roster"]), encoding="utf-8")
            self.run["ring"] = {"roster": "roster.yaml", "listen": "tcp://host.example:7100"}
        (folder / "run.yaml").write_text(yaml.safe_dump(self.run), encoding="utf-8")
        if what.get("profile"):
            write_profile(folder / "profile.json", what["profile"])

    def sets(self, part):
        """Words for the settings of the scenario and of a part."""
        both = {**self.what["set"], **part.get("set", {})}
        return [word for key, value in both.items() if value is not None
                for word in ("--set", f"{key}={text(value)}")]

    def sim(self, *words):
        """A process; its result with the texts that it has said."""
        command = [str(RINGPIPE), "sim", "run.yaml", *map(str, words)]
        # What is tuned or measured on this machine is no part of a scenario.
        own = {"RINGPIPE_TUNING": str(self.dir / "none"), "RINGPIPE_PROFILES": ""}
        try:
            return subprocess.run(command, cwd=self.dir, env={**os.environ, **own}, timeout=LIMIT_S,
                                  capture_output=True, text=True, check=False)
        except subprocess.TimeoutExpired as error:
            raise Failed(f"no end after {LIMIT_S} s: {' '.join(command)}") from error

    def more(self):
        words = ["--executor", self.what.get("executor", "digest")]
        words += ["--profile", "profile.json"] if self.what.get("profile") else []
        return words

    def make_plan(self, change, number):
        """The plan of an undisturbed run, changed as the scenario says."""
        if change is None:
            return []
        out, name = f"planned-{number}", f"mine-{number}.json"
        done = self.sim(*self.more(), *self.sets({"set": change.get("set", {})}), "--out", out)
        if done.returncode != 0:
            raise Failed(f"no plan to change\n{done.stderr[-2000:]}")
        write_plan(self.dir / out / "plan.json", self.dir / name, change)
        return ["--plan", name]

    def whole(self, words):
        """Weights of the same run without faults, in one go."""
        done = self.sim(*words, "--out", "whole")
        if done.returncode != 0:
            raise Failed(f"the undisturbed run failed\n{done.stderr[-2000:]}")
        return (self.dir / "whole" / "weights.safetensors").read_bytes()

    def do_part(self, number, part):
        if str(part.get("set", {}).get("train.steps", "")).startswith("+"):
            done = read_json(self.dir / "out" / "summary.json")["steps"]
            part = merged(part, {"set": {"train.steps": done + int(part["set"]["train.steps"])}})
        plan = self.make_plan(part.get("plan", self.what.get("plan")), number)
        base = [*self.more(), *plan, *self.sets(part)]
        words = [*base, "--resume" if number > 0 else "--out", "out"]
        if part.get("faults"):
            name = f"faults-{number}.yaml"
            (self.dir / name).write_text(json.dumps({"faults": part["faults"]}), encoding="utf-8")
            words += ["--faults", name]
        words += ["--seed", part["seed"]] if "seed" in part else []
        words += ["--once"] if part.get("once") else []
        if "damage" in part:
            damage(self.dir / "out" / "checkpoint", part["damage"])
        expected = part.get("expect", {})
        done = self.sim(*words, *(["--trace"] if {"trace", "untraced"} & expected.keys() else []))
        weights = self.whole(base) if expected.get("undisturbed") else None
        wrong = check_part(expected, self.dir / "out", done, weights)
        if wrong:
            raise Failed("\n".join([f"part {number + 1}: {line}" for line in wrong]
                                   + [events(self.dir / "out"), messages(done.stderr)]))

    def do(self):
        for number, part in enumerate(self.what.get("parts", [self.what])):
            self.do_part(number, part)


def text(value):
    return value if isinstance(value, str) else json.dumps(value)


def messages(said):
    """What was said, without the progress."""
    return "\n".join(line[:400] for line in said.splitlines()
                     if not re.match("epoch|step .*evaluated", line))[-4000:]


def events(folder):
    log = folder / "log.jsonl"
    lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
    return "\n".join(line[:400] for line in lines if '"event"' in line and '"eval"' not in line)


def run_one(what, keep):
    """Name, seconds, and what is wrong."""
    folder = Path(tempfile.mkdtemp(prefix="ringpipe-scenario-"))
    start = time.monotonic()
    wrong = ""
    try:
        Scenario(what, folder).do()
    except (Failed, KeyError, ValueError) as error:
        wrong = f"{type(error).__name__}: {error}"
    finally:  # also when the run of one goes wrong in a way that ends this program
        if keep:
            print(f"kept: {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)
    return what["name"], time.monotonic() - start, wrong


def main(words):
    if not RINGPIPE.exists():
        sys.exit(f"no {RINGPIPE}: set RP_BUILD_DIR to the build folder")
    name = words.pop() if len(words) == 2 and not words[1].endswith(".yaml") else None
    paths = [HERE / Path(word).name for word in words] or sorted(HERE.glob("*.yaml"))
    try:
        all_of = [one for path in paths for one in read(path)]
    except (ValueError, yaml.YAMLError) as error:
        sys.exit(f"{error}")
    chosen = [one for one in all_of if name in (None, one["name"])]
    if not chosen:
        sys.exit(f"no scenario '{name}'; there are: {', '.join(o['name'] for o in all_of)}")
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for title, seconds, wrong in pool.map(lambda one: run_one(one, name is not None), chosen):
            failed += bool(wrong)
            print(f"{'FAIL' if wrong else 'ok'}  {title}  ({seconds:.1f} s)", flush=True)
            if wrong:
                print("    " + wrong.replace("\n", "\n    "))
    print(f"{len(chosen)} scenarios, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main(sys.argv[1:])
