"""Simulated runs with drawn faults, spread over the schedules, with options that are drawn for
every few seeds. Prints a line for these and a last one; fails when a run hung or ended wrong, or
when 900 runs and more come to a fault, to a decision of the controller, to a state that a fault
ended or to boards that join again too seldom.

    seeds.py RINGPIPE SEEDS [FIRST]        all of them
    seeds.py RINGPIPE SEEDS FIRST SEED     one of them again, with every event; its files are kept
"""
import collections
import json
import os
import pathlib
import random
import re
import shlex
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
# Three layers share weights, two of them also a bias.
TIED = """\
input: data
layers:
  - {name: fc1, kind: dense, out: 20}
  - {name: relu1, kind: relu}
  - {name: fc2, kind: dense, out: 20}
  - {name: relu2, kind: relu}
  - {name: fc3, kind: dense, out: 20, names: {weight: fc2.weight}}
  - {name: relu3, kind: relu}
  - {name: fc4, kind: dense, out: 20, names: {weight: fc2.weight, bias: fc2.bias}}
  - {name: fc5, kind: dense, out: classes}
"""
RUN = """\
model: %s
data: {set: glyphs, train: 64, test: 16}
ring: %s
train: {epochs: 13, steps: 50, batch: 16, microbatch: 4, seed: 1}
loss: cross-entropy
optimizer: {kind: sgd, lr: 0.05, momentum: 0.9}
schedule: %s
cut: %s
"""
CUT = "[relu1, fc2, relu2]"
SPARE = "b4"
# Boards that may be lost for good: a spare takes a place, and what does not depend on the cut goes
# on with one board fewer.
LEFT = "{roster: %s, at_least: 2}"
SPARED = "{roster: %s, spare: [" + SPARE + "], at_least: 2}"
DIALS = "{roster: %s, listen: 'tcp://host.example:7100'}"
# Slow, so that a board that was missed is back while the run is at work, and joins again.
BACK = "{roster: %s, at_least: 2, wait: 1, link: {delay_ms: 20}}"
# Slow, so that stages are shared: wires take less time than boards.
SLOW = "{boards: 4, throttle: {gflops: 0.02}}"
KEPT = "{roster: %s, spare: [" + SPARE + "], at_least: 4}"
# Boards keep copies for their neighbours, of every step that is not saved.
COPIES = "{boards: 4, copy_steps: 1}"
COPIES_3 = "{boards: 3, copy_steps: 1}"
COPIES_SPARED = "{roster: %s, spare: [" + SPARE + "], at_least: 2, copy_steps: 1}"
Case = collections.namedtuple("Case", "schedule ring cut shares settings",
                              defaults=("{boards: 4}", CUT, False, ()))


class Tied(Case):
    """A case with the net TIED."""


APART = "[relu1, relu2, relu3]"  # each of its layers with shared weights on a stage of its own
CASES = (Case("gpipe"), Case("1f1b"), Case("1f1b", shares=True), Case("pipedream"),
         Case("pipeoptim"), Case("ea-pipe"), Case("avgpipe"), Case("gpipe", LEFT, "auto"),
         Case("1f1b", SPARED, "auto"), Case("pipeoptim", KEPT), Case("ea-pipe", COPIES),
         Case("gpipe", COPIES_SPARED, "auto"),
         Case("zb-h1", LEFT, "auto", settings=("ring.orphan_wait=1", "plan.boards=auto")),
         Case("{kind: interleaved-1f1b, chunks: 2}", "{boards: 2}"),
         Case("{kind: umpipe, forward: [3, 16, 5, 1], backward: [7, 2, 16, 4]}", COPIES),
         Case("{kind: umpipe, forward: 5, backward: 3}", SPARED, "auto"),
         Case("{kind: umpipe, forward: [3, 16, 5, 1], backward: [7, 2, 16, 4]}",
              settings=("ring.verify=1/4",)),
         Case("{kind: umpipe, forward: 5, backward: 3}", SPARED, "auto",
              settings=("ring.verify=1/2",)),
         Case("async", settings=("ring.verify=1/8", "links.codec=int8")),
         Case("pipedream-2bw", settings=("ring.copy_steps=3",)),
         Case("spectrain", settings=("links.codec=f16", "ring.orphan_wait=300")),
         Case("xpipe", settings=("ring.copy_steps=2", "links.inputs=int8")),
         Case("1f1b", LEFT, "auto", settings=("ring.verify=1/4",)),
         Case("gpipe", SPARED, "auto", settings=("ring.verify=1/1", "train.microbatch=16")),
         Case("1f1b", BACK, "auto"), Case("gpipe", BACK, "auto"), Case("zb-h1", BACK, "auto"),
         Case("1f1b", BACK, "auto", settings=("ring.orphan_wait=1", "links.inputs=f16")),
         Case("gpipe", SLOW, "auto", settings=("plan={share: 3, drift: 0.05}",)),
         Case("gpipe", LEFT, "auto", settings=("train.microbatch=auto", "plan.drift=0.05")),
         Case("pipefb", cut="[fc2]"), Case("pipefb", KEPT, "[fc2]"),
         Case("{kind: pipefb, ahead: [5, 2], publish: 2}", COPIES, "[fc2]"),
         Case("{kind: pipefb, weights: pipeoptim}", KEPT, "[fc2]"),
         # Some stages have two boards, others one.
         Case("{kind: pipefb, split: [false, true, false]}", KEPT, "[relu1, relu2]"),
         Case("{kind: pipefb, split: [true, false], ahead: [5, 2], publish: 2}", COPIES_3, "[fc2]",
              settings=("recompute=[1]", "ring.verify=1/8")),
         # Rings that become smaller, where numbers depend on the cut: the ledger alone is compared.
         Case("pipeoptim", SPARED, "auto"), Case("ea-pipe", BACK, "auto"),
         Case("{kind: pipefb, split: [true, false, false, false]}", LEFT, "auto"),
         Case("{kind: pipefb, split: [false, true, true]}", BACK, "auto"),
         Case("pipefb", SPARED, "auto"),
         Case("1f1b", DIALS), Case("pipedream", DIALS, settings=("ring.orphan_wait=5",)),
         Tied("gpipe", COPIES, APART), Tied("1f1b", SPARED, "auto"),
         Tied("zb-h1", BACK, "auto", settings=("ring.verify=1/4",)),
         Tied("{kind: interleaved-1f1b, chunks: 2}", "{boards: 2}", APART),
         Tied("1f1b", cut="[relu1, fc3]", shares=True),
         Tied("pipedream-2bw", COPIES, APART), Tied("ea-pipe", KEPT, APART),
         Tied("avgpipe", cut=APART, settings=("ring.copy_steps=3",)),
         Tied("pipedream", COPIES, APART), Tied("pipeoptim", KEPT, APART),
         Tied("spectrain", cut=APART, settings=("ring.orphan_wait=5",)),
         Tied("xpipe", COPIES, APART), Tied("async", KEPT, APART),
         Tied("{kind: pipedream, vertical_sync: true}", cut=APART),
         Tied("pipefb", cut="[relu2]"),
         Tied("{kind: pipefb, weights: pipeoptim, ahead: [5, 2]}", COPIES, "[relu2]"),
         # States that only the first step sets have to survive.
         Case("1f1b", SPARED, "auto", settings=("train.anchor=0.1",)),
         Tied("pipedream", COPIES, APART, settings=("train.anchor=0.1",)))
SHARES = [[0, 1], [0, 0.3, 1], [0, 1]]  # boards for a stage

# Options drawn for a few seeds at a time, by the first of them: each is left out more often than
# not, so that runs with few and with many meet every fault.
SEEDS_A_DRAW = 12
OPTIONS = {"links.codec": ("f16", "bf16", "int8", "int4"), "links.inputs": ("f16", "int8"),
           "ring.copy_steps": ("0", "1", "2", "5", "auto"),
           "ring.orphan_wait": ("1", "5", "60", "300"), "ring.spare_wait": ("0.5", "2", "9"),
           "ring.wait": ("5", "12", "30", "90"), "train.microbatch": ("2", "8", "16"),
           "train.checkpoint_steps": ("3", "10", "25"),
           "ring.verify": ("1/1", "1/4", "1/8", "1/50"), "plan.drift": ("0.05", "0.3", "1")}
# With one microbatch a step 50 steps may be over before five faults have begun.
LONGER = ("train.epochs=26", "train.steps=100")
# A check pauses the ring, which makes a run slow and hides what happens in full flight.
RARE = {"ring.verify": 0.15}

# What no draw of seeds comes to by chance. Faults that have begun, with an effect: six are drawn at
# least, 10.4 are usual, and what a lost board has is none; one run in 2,000 had five.
FAULTS_LEAST = 2  # in every single run
FAULTS_USUAL = 8  # in a run, on the average of many
MANY = 900  # runs
# Of each mark: 16 batches of 920 runs had 60 to 80 of the rarest, and 66 to 126 of the next one.
MARKS_LEAST = 25  # in 1,000 runs
# Those that are never drawn, or need what no run here has, or few: local boards that can not start,
# links that are measured, layers with batch statistics, ring.verify, boards that outlive a
# controller, lanes, memory that is short; and what takes the copies of a few runs a moment.
NO_MARKS = {"failed_in": ("start", "restart", "adopt", "profile", "plan", "load", "statistics",
                          "round", "verify", "drain", "copy", "rescue"),
            "remedies": ("less", "give-up"), "faults": ("wrong", "interrupt"), "boards": ()}
# States between a fault and work again; not those of work itself.
NO_MARKS["way_back"] = ("train", "statistics", "round", "verify", "drain", "copy")


def has_already(case, option):
    """What a case can not have: options that its schedule, its plan or its ring say already."""
    said = {setting.partition("=")[0] for setting in case.settings}
    if any(setting.startswith("plan={") for setting in case.settings):
        said |= {"plan.drift"}
    said |= {f"ring.{key}" for key in ("wait", "copy_steps") if f"{key}:" in case.ring}
    if case.shares:
        said |= {"links.codec", "links.inputs", "train.microbatch"}  # its plan says the sizes
    if "pipefb" in case.schedule and "split" not in case.schedule:
        said |= {"ring.verify"}  # no board does both directions
    if isinstance(case, Tied) and not re.search(r"\b(1f1b|gpipe|zb-h1)", case.schedule):
        said |= {"ring.verify"}  # refused
    if "kind" in case.schedule:
        said |= {"train.microbatch"}  # sizes are divided, or listed
    if "interleaved" in case.schedule:
        said |= {"ring.verify"}
    if "%" not in case.ring:
        said |= {"ring.spare_wait", "ring.orphan_wait"}
    return option in said


def draw(case, first):
    """The case with the options of the seeds from `first` on."""
    chance = random.Random(f"options {first}")
    drawn = []
    for option, values in OPTIONS.items():
        takes, value = chance.random() < RARE.get(option, 0.4), chance.choice(values)
        if takes and not has_already(case, option):
            drawn.append(f"{option}={value}")
            drawn += LONGER if option == "train.microbatch" and value == "16" else ()
    return case._replace(settings=(*case.settings, *drawn))


def write_roster(folder, boards):
    """Any keys: nothing is encrypted in a simulation."""
    roster = pathlib.Path(folder) / "roster.yaml"
    lines = [f'  - {{name: b{i}, address: "tcp://b{i}.example:7000", key: "{i:05}{"abcde" * 7}"}}\n'
             for i in range(boards)]
    roster.write_text("boards:\n" + "".join(lines))
    return roster


def let_dial(roster):
    """Every second one of four boards dials the host."""
    lines = roster.read_text().splitlines()[:5]
    for i in (2, 4):
        lines[i] = re.sub(r'address: "[^"]*"', "address: dials", lines[i])
    roster.write_text("\n".join(lines) + "\n")


def write_shares(program, folder, run, row_cut):
    """Words for a run of four boards, of which two share the middle one of three stages."""
    row = pathlib.Path(tempfile.mkdtemp(dir=folder)) / "row"
    subprocess.run([program, "sim", run, "--set", "ring.boards=3", "--set", f"cut={row_cut}",
                    "--out", row], check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    plan = pathlib.Path(folder) / "shares.json"
    plan.write_text(json.dumps(spread(json.loads((row / "plan.json").read_text()), SHARES)))
    return ["--plan", plan, "--set", "cut=auto"]


def prepare(program, folder, case, faults):
    """Words of `ringpipe sim` for this case, whose files are written into the folder."""
    run = pathlib.Path(folder) / "run.yaml"
    model = pathlib.Path(folder) / "model.yaml"
    model.write_text(TIED if isinstance(case, Tied) else MODEL)
    ring = case.ring
    if "%" in ring:
        roster = write_roster(folder, 5)
        ring %= roster
        if case.ring == DIALS:
            let_dial(roster)
    run.write_text(RUN % (model, ring, case.schedule, case.cut))
    words = ["sim", run, "--faults", faults]
    for setting in case.settings:
        words += ["--set", setting]
    row_cut = case.cut if isinstance(case, Tied) else "[relu1, relu2]"
    return words + (write_shares(program, folder, run, row_cut) if case.shares else [])


def simulate(program, folder, case, first, last, faults="all"):
    """Exit code and tally of these seeds, on all cores; the tally has the bad ones, too."""
    words = prepare(program, folder, case, faults)
    words += ["--seeds", f"{first}..{last}", "--jobs", str(os.cpu_count() or 1), "--format", "json"]
    done = subprocess.run([program, *words], capture_output=True, text=True, errors="replace")
    if not done.stdout:
        sys.exit(f"{program}: no result, exit code {done.returncode}: {case}")
    tally = json.loads(done.stdout)
    boards = {LEFT: ", boards may be lost", SPARED: ", boards may be lost, one is a spare",
              KEPT: ", one board may be lost", DIALS: ", two boards dial",
              BACK: ", boards come back", COPIES: ", copies", COPIES_3: ", copies",
              COPIES_SPARED: ", copies, boards may be lost, one is a spare"}.get(case.ring, "")
    boards += ", a stage shared" if case.shares else ""
    boards += ", tied weights" if isinstance(case, Tied) else ""
    boards += "".join(f", {setting}" for setting in case.settings)
    tally["bad"] = re.findall(r"^seed (\d+): (hung|wrong)", done.stderr, re.M)
    told = {key: value for key, value in tally.items() if key not in ("marks", "bad")}
    print(f"{pathlib.Path(program).name}, {case.schedule}{boards}, seeds {first}..{last}: exit "
          f"code {done.returncode}, {told}", flush=True)
    return done.returncode, tally


def check_marks(marks, runs):
    """What the runs did not come to often enough; few runs are not asked."""
    seldom = []
    for group, counts in marks.items():
        print(f"{group}: " + ", ".join(f"{name} {count}" for name, count in counts.items()))
        seldom += [f"{group} {name}: {count}" for name, count in counts.items()
                   if count * 1000 < MARKS_LEAST * runs and name not in NO_MARKS[group]]
    return seldom if runs >= MANY else []


def draws(at, end):
    """First and last seeds of the draws of a case; one seed alone would be a run, and no tally."""
    count = max(1, (end - at) // SEEDS_A_DRAW)
    bounds = [at + (end - at) * i // count for i in range(count + 1)]
    return [(low, high - 1) for low, high in zip(bounds, bounds[1:])]


def list_draws(seeds, first):
    """Each case with its options, its first and its last seed."""
    each = max(2, -(-seeds // len(CASES)))
    return [(draw(case, low), low, high) for i, case in enumerate(CASES)
            for low, high in draws(first + i * each, first + (i + 1) * each)]


def repeat(program, seeds, first, seed):
    """The same run alone; what it was of and every event go into a folder."""
    case = next((case for case, low, high in list_draws(seeds, first) if low <= seed <= high), None)
    if not case:
        sys.exit(f"seed {seed} is none of these")
    folder = pathlib.Path(tempfile.mkdtemp(prefix=f"ringpipe-seed-{seed}-"))
    command = [program, *prepare(program, folder, case, "all"), "--seed", str(seed)]
    print(shlex.join(map(str, command)), flush=True)
    with open(folder / "events", "w", encoding="utf-8") as events:
        done = subprocess.run([*command, "--out", folder / "run", "--trace"], stdout=events)
    print(f"exit code {done.returncode}; every event: {folder}/events")
    sys.exit(done.returncode)


def main():
    program, seeds = sys.argv[1], int(sys.argv[2])
    first = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    if len(sys.argv) > 4:
        repeat(program, seeds, first, int(sys.argv[4]))
    fewest = []
    sums = dict.fromkeys(("runs", "finished", "stopped_resumable", "hung", "wrong", "faults"), 0)
    marks = collections.defaultdict(collections.Counter)
    codes = []
    bad = []
    began = time.monotonic()
    todo = list_draws(seeds, first)
    with tempfile.TemporaryDirectory() as folder:
        for case, low, high in todo:
            code, tally = simulate(program, folder, case, low, high)
            codes.append(code)
            fewest.append(tally["faults_min"])
            bad += tally["bad"]
            for key in sums:
                sums[key] += tally[key]
            for group, counts in tally["marks"].items():
                marks[group].update(counts)
    seldom = check_marks(marks, sums["runs"])
    if sums["runs"] >= MANY and sums["faults"] < FAULTS_USUAL * sums["runs"]:
        seldom.append(f"faults: {sums['faults']}")
    if seldom:
        print("too seldom: " + "; ".join(seldom))
    for seed, what in bad:
        print(f"{what}; again, with every event: "
              f"{shlex.join([sys.argv[0], program, str(seeds), str(first), seed])}")
    print(", ".join(f"{value} {key}" for key, value in sums.items()) +
          f", at least {min(fewest)} faults in each, {time.monotonic() - began:.1f} s")
    passed = (not any(codes) and not seldom and sums["runs"] == todo[-1][2] + 1 - first
              and sums["hung"] + sums["wrong"] == 0 and min(fewest) >= FAULTS_LEAST)
    sys.exit(0 if passed else 1)


if __name__ == "__main__":
    main()
