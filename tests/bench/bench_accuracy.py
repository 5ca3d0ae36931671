#!/usr/bin/env python3
"""Time to accuracy on slow links: seconds of training until a net scores well on a validation part.

    bench_accuracy.py BIN DATA WORK tune     what each candidate needs without links
    bench_accuracy.py BIN DATA WORK timed    every cell, its links on a virtual clock
    bench_accuracy.py BIN DATA WORK [--links NAME...] [--methods NAME...] [--seeds N...]
    bench_accuracy.py BIN DATA WORK control  rates by stage with and without staleness
    bench_accuracy.py BIN DATA WORK table    what has been measured

BIN has ringpipe and ringpipe-agent, DATA the files of Fashion-MNIST, or with `--set cifar10` those
of CIFAR-10; WORK keeps results.jsonl, one line a measurement: what is there is not measured again.
The goal is 80 % of Fashion-MNIST, 40 % of CIFAR-10.

A measurement is two runs of real processes. The first one has no emulated links and evaluates on
its way: it says after which step the net is good enough. The second one has the links, trains to
that step and evaluates nothing; it says when that was. Both have the same cut, codecs, staleness
and seed, and so the same losses, digit by digit: where they have not, the measurement is refused.
`timed` has `ringpipe sim --executor timed` in place of the second one: what an idle machine gives.
A rate is chosen by `tune` on a seed that is in no row; what it chose is in CHOSEN.

With `--samples-s N` a run with links begins when those that are at work would train fewer samples a
second than N with it, by the virtual clock: slow links go side by side, fast ones do not. Runs
without links are nicer than others and as many at once as there are cores.
"""
import argparse
import hashlib
import json
import math
import os
import shutil
import signal
import statistics
import subprocess
import threading
import time
from contextlib import contextmanager
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

BASE = """\
model: lenet
data: {set: %s, path: %s, validation: 2000}
train: {epochs: 1, eval_epochs: 0}
loss: cross-entropy
cut: [conv2, fc1]
record: {trace_mib: 0}
"""
BOARDS = 3
GOALS = {"fashion-mnist": 0.8, "cifar10": 0.4}
EVERY = 640  # samples from one evaluation to the next
SAMPLES_MAX = 26_000  # of a run without links: not reached
FORWARD_MS, BACKWARD_MS = 0.5, 1  # of a sample: how fast an emulated board is at most
TUNED_ON = 101
NICER = ("nice", "-n", "10")

LINKS = {  # the first ones first
    f"{rate} Mbit/s, {delay} ms": f"{{rate_mbit: {rate}, delay_ms: {delay}}}"
    for rate, delay in ((10, 50), (1, 50), (10, 0), (100, 50), (10, 200), (1, 0), (1, 200),
                        (100, 0), (100, 200))
} | {
    "10 Mbit/s, 50 ms, 10 % outage":
        "{rate_mbit: 10, delay_ms: 50, outage: every 20s for 2s}",
    "wifi-walking-away": "{profile: wifi-walking-away}",
}

SGD, HALF, PLAIN = (f"{{kind: sgd, lr: %s, momentum: {momentum}}}" for momentum in (0.9, 0.5, 0))
ADAM = "{kind: adam, lr: %s}"
STALE = "{kind: adam, lr: %s, betas: [0, 0.99], staleness_power: 1}"


def slower(optimizer):
    """With rates that know staleness."""
    return optimizer.replace("}", ", staleness_power: 1}")


def candidates(schedule, micros, optimizers, batch=None, codec="f32"):
    return [{"schedule": schedule, "batch": batch or micro, "microbatch": micro,
             "optimizer": optimizer % rate, "codec": codec}
            for micro in micros for optimizer, rates in optimizers for rate in rates]


UNFLUSHED = [(SGD, (0.01, 0.02)), (HALF, (0.03, 0.06)), (PLAIN, (0.05, 0.1)),
             (STALE, (0.003, 0.006))]
# A campaign measures them in this order.
METHODS = {
    "gpipe": candidates("{kind: gpipe}", (8,),
                        [(SGD, (0.03, 0.05, 0.1)), (HALF, (0.1, 0.2)), (PLAIN, (0.2, 0.4)),
                         (ADAM, (0.002, 0.004, 0.008, 0.016)), (STALE, (0.002, 0.004))], 64),
    "combination": candidates("{kind: async, advance: auto}", (16,),
                              [(STALE, (0.004, 0.008, 0.016)), (slower(SGD), (0.02, 0.04)),
                               (slower(HALF), (0.1, 0.2)), (slower(PLAIN), (0.2, 0.4)),
                               (slower(ADAM), (0.004, 0.008))], codec="auto"),
    "1f1b": ("gpipe", {"schedule": "{kind: 1f1b}"}),
    "pipedream": candidates("{kind: pipedream}", (16,), UNFLUSHED),
    "pipeoptim": candidates("{kind: pipeoptim}", (16,), UNFLUSHED),
    "spectrain": candidates("{kind: spectrain}", (16,), UNFLUSHED),
    "ea-pipe": candidates("{kind: ea-pipe, alpha: 0.5}", (16,),
                          [(SGD, (0.05, 0.1)), (HALF, (0.1, 0.2)), (PLAIN, (0.1, 0.2)),
                           (STALE, (0.003, 0.006))]),
    "gpipe, codec: auto": ("gpipe", {"codec": "auto"}),
    "combination, f32": ("combination", {"codec": "f32"}),
    "combination, int4": ("combination", {"codec": "auto, max_error: 0.1"}),
}
# What `tune` has chosen; of other methods it measures the candidates first.
CHOSEN = {
    "fashion-mnist": {"gpipe": ADAM % 0.008, "combination": STALE % 0.008,
                      "pipedream": STALE % 0.006, "pipeoptim": STALE % 0.003,
                      "spectrain": STALE % 0.003, "ea-pipe": SGD % 0.05},
    "cifar10": {"gpipe": ADAM % 0.004, "combination": STALE % 0.004, "pipedream": STALE % 0.003,
                "pipeoptim": STALE % 0.003, "spectrain": STALE % 0.003,
                "ea-pipe": STALE % 0.003},
}


class Load:
    """How many samples a second the runs at work train, at most `most` unless one alone does."""

    def __init__(self, most):
        self.most, self.now, self.change = most, 0.0, threading.Condition()

    @contextmanager
    def of(self, rate):
        with self.change:
            self.change.wait_for(lambda: self.now <= 1e-6 or self.now + rate <= self.most)
            self.now += rate
        try:
            yield
        finally:
            with self.change:
                self.now -= rate
                self.change.notify_all()


class Work:
    """The folder with what has been measured, and how to measure more."""

    def __init__(self, args):
        self.args, self.file = args, args.work / "results.jsonl"
        self.lock, self.doing = threading.Lock(), {}
        self.cores = threading.Semaphore(os.cpu_count() or 1)  # of runs without a clock
        self.load, self.begins = Load(args.samples_s), threading.Lock()
        self.args.work.mkdir(parents=True, exist_ok=True)
        self.rows = {row["key"]: row for row in map(json.loads, self.file.read_text().splitlines())
                     } if self.file.exists() else {}
        self.base = self.args.work / f"base-{os.getpid()}.yaml"
        self.base.write_text(BASE % (args.set, args.data))
        self.goal = GOALS[args.set]

    def once(self, key, measure):
        """The row of `key`: as it is there, or measured by one of those who ask for it."""
        with self.lock:
            mine = key not in self.rows and key not in self.doing
            done = self.doing.setdefault(key, threading.Event())
        if not mine:
            if key not in self.rows:
                done.wait()
            if "failed" in self.rows[key]:
                raise RuntimeError(f"{key} has failed")
            return self.rows[key]
        row = None
        try:
            row = measure()
            return row
        finally:
            with self.lock:
                self.rows[key] = row = dict(row or {"failed": True}, key=key)
                if "failed" not in row:
                    with open(self.file, "a", encoding="utf-8") as file:
                        file.write(json.dumps(row) + "\n")
            done.set()

    def folder(self, name):
        short = hashlib.sha1(name.encode()).hexdigest()[:16]
        folder = self.args.work / "runs" / f"{short}-{os.getpid()}"
        shutil.rmtree(folder, ignore_errors=True)
        folder.parent.mkdir(exist_ok=True)
        return folder

    def start(self, name, settings, before=()):
        folder = self.folder(name)
        said = open(f"{folder}.log", "w", encoding="utf-8")
        words = [*before, self.args.bin / "ringpipe", "train", self.base, "--out", folder]
        return folder, subprocess.Popen([str(word) for word in words + words_of(settings)],
                                        stdout=said, stderr=said)

    def call(self, verb, *words):
        words = (*NICER, self.args.bin / "ringpipe", verb, self.base, *words)
        with self.cores:
            done = subprocess.run([str(word) for word in words], capture_output=True, text=True,
                                  check=False)
        if done.returncode != 0:
            raise RuntimeError(f"{verb}: {done.stderr}")


def words_of(settings):
    return [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]


def settings_of(choice, seed):
    micro = choice["microbatch"]
    return {"train.batch": choice["batch"], "train.microbatch": micro, "train.seed": seed,
            "optimizer": choice["optimizer"], "schedule": choice["schedule"]}


def lines_of(folder):
    """Of a log that may be at work: its whole lines."""
    path = folder / "log.jsonl"
    text = path.read_text() if path.exists() else ""
    return [json.loads(line) for line in text[:text.rfind("\n") + 1].splitlines()]


def steps_of(lines):
    return {line["step"]: line for line in lines if "event" not in line}


def end(process):
    """As Ctrl-C does: the run has a summary then."""
    for number, patience_s in ((signal.SIGINT, 60), (signal.SIGKILL, None)):
        if process.poll() is None:
            process.send_signal(number)
            try:
                process.wait(patience_s)
            except subprocess.TimeoutExpired:
                pass


def train_until(process, folder, is_enough, limit_s):
    """Its lines when they are enough, or when it has ended or takes too long."""
    began = time.monotonic()
    try:
        while True:
            over = process.poll() is not None or time.monotonic() - began > limit_s
            lines = lines_of(folder)
            if over or is_enough(lines):
                return lines
            time.sleep(1)
    finally:
        end(process)


# ---- without links: after which step ----

def good_after(lines, goal):
    """The step of the first evaluation that is good enough, or None."""
    return next((line["step"] for line in lines if line.get("event") == "eval"
                 and line["split"] == "validation" and line["accuracy"] >= goal), None)


def diverged(lines):
    return any("has not been finite" in line.get("text", "") for line in lines)


def reference(work, choice, advance, codecs, seed):
    """Which step reaches the goal (None: none), and the losses up to there."""
    kind = choice["schedule"].replace("advance: auto", f"advance: {advance}")
    links = f"{{codec: [{', '.join(codecs)}]}}"
    key = f"reference {kind} {choice['batch']}/{choice['microbatch']} {choice['optimizer']} " \
          f"{links} seed {seed}"

    def measure():
        settings = settings_of(choice, seed) | {
            "ring": f"{{boards: {BOARDS}, threads: 1}}", "schedule": kind, "links": links,
            "train.eval_steps": EVERY // choice["batch"],
            "train.steps": SAMPLES_MAX // choice["batch"]}
        with work.cores:
            folder, process = work.start(key, settings, NICER)
            lines = train_until(process, folder, lambda lines: good_after(lines, work.goal),
                                work.args.limit_s)
        step, trained = good_after(lines, work.goal), steps_of(lines)
        if step is None and len(trained) < SAMPLES_MAX // choice["batch"] and not diverged(lines):
            raise RuntimeError(f"{folder} has ended early")
        losses = [trained[k]["loss"] for k in sorted(trained) if step is None or k <= step]
        shutil.rmtree(folder)
        return {"step": step, "losses": losses,
                "best": max((line["accuracy"] for line in lines if line.get("event") == "eval"),
                            default=None)}
    return work.once(key, measure)


# ---- with links: when ----

def codecs_of(plan):
    """By boundary, as `links.codec` reads them."""
    ways = {(edge["carries"], min(int(edge["from"]), int(edge["to"]))): edge["codec"]
            for edge in plan["edges"] if "host" not in (edge["from"], edge["to"])}
    return [f"{{activations: {ways['activation', k]}, gradients: {ways['gradient', k]}}}"
            for k in range(BOARDS - 1)]


def seconds_to(step, trained):
    """Of training; what the first step took is told by the others."""
    times = [trained[k]["time_s"] for k in (1, step)]
    return (times[1] - times[0]) * step / (step - 1)


def linked_by(choice, link):
    micro = choice["microbatch"]
    throttle = f"{{forward_ms: {FORWARD_MS * micro}, backward_ms: {BACKWARD_MS * micro}}}"
    return {"ring": f"{{boards: {BOARDS}, threads: 1, throttle: {throttle}, link: {LINKS[link]}}}",
            "links": f"{{codec: {choice['codec']}}}"}


def linked(work, method, choice, link, seed):
    """Seconds to the goal, None: it is not reached; and what limited them."""
    key = f"linked {method}: {choice} over {link} seed {seed}"

    def measure():
        with work.begins:  # the plan goes by how long layers take now
            folder, process = work.start(key, settings_of(choice, seed) | linked_by(choice, link))
            while not (folder / "plan.json").exists() and process.poll() is None:
                time.sleep(0.3)
        try:
            while not steps_of(lines_of(folder)):
                if process.poll() is not None:
                    raise RuntimeError(f"{folder} has failed")
                time.sleep(1)
            plan = json.loads((folder / "plan.json").read_text())
            advance, codecs = plan["method"].get("advance", 0), codecs_of(plan)
            wanted = reference(work, choice, advance, codecs, seed)
            step = wanted.get("step")
            lines = train_until(process, folder, lambda lines: step is None or
                                step in steps_of(lines), work.args.limit_s)
        finally:
            end(process)
        trained = steps_of(lines)
        row = {"method": method, "link": link, "seed": seed, "step": step, "advance": advance,
               "codecs": codecs, "batch": choice["batch"], "seconds": None,
               "load": os.getloadavg()[1]}
        if step in trained:
            losses = [trained[k]["loss"] for k in range(1, step + 1)]
            if losses != wanted["losses"]:
                raise RuntimeError(f"{folder} has other losses than without links")
            row["seconds"] = seconds_to(step, trained)
        row["wires"] = [[wire[k] for k in ("kind", "from", "to", "utilisation", "delay_p50_ms")]
                        for wire in json.loads((folder / "summary.json").read_text())["wire"]]
        shutil.rmtree(folder)
        return row
    return work.once(key, measure)


# ---- with links, on a virtual clock ----

def simulated(work, choice, link):
    """When each step is done on boards that take as long as the throttle says, and nobody else's
    work is in the way."""
    key = f"simulated {choice} over {link}"

    def costs():
        """Of layers that take no time: the throttle is all that counts."""
        path = work.folder(f"{key} costs").with_suffix(".json")
        work.call("profile", "--out", path, *words_of(settings_of(choice, 1) |
                                                      {"ring": f"{{boards: {BOARDS}}}"}))
        told = json.loads(path.read_text())
        for layer in told["layers"]:
            layer["forward_s"] = layer["backward_s"] = 1e-6
        return told

    def measure():
        profile = work.folder(f"{key} profile").with_suffix(".json")
        profile.write_text(json.dumps(work.once(f"profile of {choice['microbatch']}", costs)))
        folder = work.folder(key)
        work.call("sim", "--executor", "timed", "--profile", profile, "--out", folder,
                  *words_of(settings_of(choice, 1) | linked_by(choice, link) |
                            {"train.steps": SAMPLES_MAX // choice["batch"]}))
        plan = json.loads((folder / "plan.json").read_text())
        trained = steps_of(lines_of(folder))
        shutil.rmtree(folder)
        return {"advance": plan["method"].get("advance", 0), "codecs": codecs_of(plan),
                "times": [trained[k]["time_s"] for k in sorted(trained)]}
    return work.once(key, measure)


def simulate(work, method, choice, link, seed):
    key = f"timed {method}: {choice} over {link} seed {seed}"

    def measure():
        clock = simulated(work, choice, link)
        step = reference(work, choice, clock["advance"], clock["codecs"], seed).get("step")
        return {"timed": True, "method": method, "link": link, "seed": seed, "step": step,
                "advance": clock["advance"], "codecs": clock["codecs"], "batch": choice["batch"],
                "seconds": clock["times"][step - 1] if step else None}
    return work.once(key, measure)


# ---- rates by stage with and without staleness ----

def controls(work):
    """What is compared, by its name: async, and gpipe with one microbatch a step, which has no
    staleness and the bits of one process, with the rates by stage of async and with one rate."""
    def one(schedule, optimizer):
        return {"schedule": schedule, "batch": 16, "microbatch": 16, "optimizer": optimizer,
                "codec": "f32"}

    rate = CHOSEN[work.args.set]["combination"]
    rows = {}
    for advance in (1, 4):
        rows[f"async, advance {advance}"] = one(f"{{kind: async, advance: {advance}}}", rate)
        rows[f"sequential, the rates of advance {advance}"] = one(
            "{kind: gpipe}", rate.replace("}", f", staleness_per_stage: {1 + advance}}}"))
    for lr in (0.0005, 0.001, 0.002, 0.004):
        rows[f"sequential, rate {lr} everywhere"] = one("{kind: gpipe}", STALE % lr)
    return rows | {"gpipe, 64 samples a step": chosen(work, "gpipe")}


def control(work):
    """Samples to the goal, seed by seed."""
    with ThreadPoolExecutor(work.args.at_once) as pool:
        rows = {name: [pool.submit(samples_of, work, choice, seed) for seed in work.args.seeds]
                for name, choice in controls(work).items()}
        print(f"| training | samples, seeds {', '.join(map(str, work.args.seeds))} | mean |\n"
              "|---|---|---|")
        for name, jobs in rows.items():
            samples = [job.result() for job in jobs]
            print(f"| {name} | {', '.join(f'{count:,}' for count in samples)} | "
                  f"{spread(samples, 0)} |", flush=True)


# ---- what to measure ----

def samples_of(work, choice, seed=TUNED_ON):
    """To the goal, on the seed for that: as the links would have it that are asked first."""
    fast = "auto" not in choice["schedule"]
    codec = "int8" if choice["codec"] == "auto" else "f32"
    codecs = [f"{{activations: {codec}, gradients: {codec}}}"] * (BOARDS - 1)
    row = reference(work, choice, 0 if fast else 4, codecs, seed)
    return row["step"] * choice["batch"] if row.get("step") else math.inf


def tune(work):
    """Of every method the candidate that needs the fewest samples."""
    with ThreadPoolExecutor(work.args.at_once) as pool:
        jobs = [(method, choice, pool.submit(samples_of, work, choice))
                for method in work.args.methods if isinstance(METHODS[method], list)
                for choice in METHODS[method]]
        for method, choice, job in jobs:
            print(f"{method:<20} {choice['batch']:>3} {choice['optimizer']:<66} "
                  f"{job.result():>6}", flush=True)


def chosen(work, method):
    """Rates of a variant are those of what it is a variant of."""
    if isinstance(METHODS[method], tuple):
        whose, other = METHODS[method]
        return chosen(work, whose) | other
    optimizer = CHOSEN[work.args.set].get(method)
    if optimizer:
        return next(choice for choice in METHODS[method] if choice["optimizer"] == optimizer)
    return min(METHODS[method], key=lambda choice: samples_of(work, choice))


def linked_side_by_side(work, method, choice, link, seed):
    """As far as the machine can do what the virtual clock says that they need."""
    clock = simulate(work, method, choice, link, seed)
    if not clock.get("seconds"):
        return clock
    with work.load.of(clock["step"] * clock["batch"] / clock["seconds"]):
        return linked(work, method, choice, link, seed)


def campaign(work):
    if work.args.samples_s < math.inf:
        measure = linked_side_by_side
        cells = [(link, method, seed) for link in work.args.links
                 for seed in work.args.seeds for method in work.args.methods]
    else:
        measure = linked
        cells = [(link, method, seed) for seed in work.args.seeds
                 for link in work.args.links for method in work.args.methods]
    if work.args.what == "timed":
        measure = simulate

    def cell(link, method, seed):
        try:
            row = measure(work, method, chosen(work, method), link, seed)
            text = f"{row['seconds']:.1f} s" if row.get("seconds") else "not reached"
            text += f" after step {row.get('step')}, advance {row.get('advance')}"
        except (RuntimeError, OSError, ValueError, KeyError) as problem:
            text = f"FAILED {problem!r}"
        print(f"{time.strftime('%H:%M:%S')} {link}: {method}, seed {seed}: {text}", flush=True)

    with ThreadPoolExecutor(work.args.at_once) as pool:
        for job in [pool.submit(cell, *of) for of in cells]:
            job.result()


def print_ratios(rows):
    """Real processes' seconds over those of the virtual clock, seed by seed, and their loads."""
    seconds = [{(row["link"], row["method"], row["seed"]): row["seconds"] for row in rows
                if row.get("timed", False) == timed and row["seconds"]} for timed in (False, True)]
    both = {cell: seconds[0][cell] / seconds[1][cell] for cell in seconds[0] if cell in seconds[1]}
    names = [name for name in METHODS if any(cell[1] == name for cell in both)]
    print(f"Real processes over the virtual clock:\n\n| link | {' | '.join(names)} | load |\n"
          f"|{'---|' * (len(names) + 2)}")
    for link in (link for link in LINKS if any(cell[0] == link for cell in both)):
        of = {name: [both[cell] for cell in both if cell[:2] == (link, name)] for name in names}
        loads = [row["load"] for row in rows if row["link"] == link and "load" in row]
        print(f"| {link} | " + " | ".join(spread(of[name], 2) if of[name] else "–"
                                          for name in names)
              + f" | {min(loads, default=0):.0f} to {max(loads, default=0):.0f} |")


def table(work):
    """Links by methods; of `combination` what was chosen, too."""
    for timed, title in ((False, "Real processes"), (True, "Virtual clock")):
        rows = [row for row in work.rows.values() if row.get("timed", False) == timed
                and row.get("method") in METHODS]
        names = [name for name in METHODS if any(row["method"] == name for row in rows)]
        links = [link for link in LINKS if any(row["link"] == link for row in rows)]
        print(f"{title}, seconds:\n\n| link | {' | '.join(names)} | samples | advance | codecs |\n"
              f"|{'---|' * (len(names) + 4)}")
        for link in links:
            of = {name: [row for row in rows if (row["link"], row["method"]) == (link, name)]
                  for name in names}
            plain = {row["seed"]: row["seconds"] for row in of.get("gpipe", [])}
            cells = [seconds_of(of[name], {} if name == "gpipe" else plain) for name in names]
            print(f"| {link} | {' | '.join(cells)} | {how(of.get('combination', []))} |")
        print()
    print_ratios([row for row in work.rows.values() if row.get("method") in METHODS])


def spread(values, digits):
    mean = f"{statistics.mean(values):.{digits}f}"
    return mean + (f" ± {statistics.stdev(values):.{digits}f}" if len(values) > 1 else "")


def seconds_of(rows, plain):
    """With how often that goes into gpipe's, seed by seed."""
    reached = [row for row in rows if row["seconds"]]
    if not reached:
        return f"not reached, {len(rows)} seeds" if rows else "–"
    ratios = [plain[row["seed"]] / row["seconds"] for row in reached if plain.get(row["seed"])]
    text = spread([row["seconds"] for row in reached], 0 if reached[0]["seconds"] > 100 else 1)
    if ratios:
        text += f", ×{statistics.mean(ratios):.2f}"
    return text + ("" if len(reached) == 3 else f" ({len(reached)} of {len(rows)} seeds)")


def how(rows):
    reached = [row for row in rows if row["seconds"]]
    if not reached:
        return "– | – | –"
    codecs = sorted({", ".join(codec.strip("{}").replace("activations: ", "").replace(
        ", gradients: ", "/") for codec in row["codecs"]) for row in reached})
    return (f"{spread([row['step'] * row['batch'] for row in reached], 0)} | "
            f"{', '.join(map(str, sorted({row['advance'] for row in reached})))} | "
            f"{'; '.join(codecs)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", type=lambda text: Path(text).resolve())
    parser.add_argument("data", type=lambda text: Path(text).resolve())
    parser.add_argument("work", type=lambda text: Path(text).resolve())
    parser.add_argument("what", nargs="?", choices=("tune", "timed", "control", "table"))
    parser.add_argument("--set", default="fashion-mnist", choices=list(GOALS))
    parser.add_argument("--links", nargs="+", default=list(LINKS), choices=list(LINKS))
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--at-once", type=int, default=6, help="measurements side by side")
    parser.add_argument("--samples-s", type=float, default=math.inf,
                        help="of all runs with links together")
    parser.add_argument("--limit-s", type=float, default=1800, help="of a run")
    args = parser.parse_args()
    {"tune": tune, "control": control, "table": table}.get(args.what, campaign)(Work(args))


if __name__ == "__main__":
    main()
