#!/usr/bin/env python3
"""Whether two builds of ringpipe do the same: simulated runs with faults, answers of the planner on
drawn profiles, and a few real runs, each compared byte by byte or by recorded hashes.

    same.py BEFORE AFTER               two programs; prints what differs first, with a diff
    same.py PROGRAM                    a program and the hashes of tests/sim/same.txt
    same.py --record FILE PROGRAM      writes these hashes
    --quick                            seeds 1 and 2 of each case, a fifth of the others
    --seeds N                          seeds 1 to N of each case (20); odd ones run the case as it
                                       stands, even ones with options that the seed draws
    --cases REGEX                      cases by their names only
    --jobs N                           runs at the same time (default: one a core)

Kinds of cases: sim/ are those of seeds.py with faults, of the digest executor; timed/ are simulated
runs on the timed executor with a profile of profiles.py, which take what the planner chose; plan/
are answers of `ringpipe plan` on such a profile; train/ are real runs with local agents.

A line of the recorded file: case, seed, and a hash each of
  events   exit code, standard output (every event of a simulation), messages, trace.json
  weights  weights.safetensors
  answers  plan.json, log.jsonl, summary.json and about.json of the run folder, and the names of
           its checkpoints; of plan/, the plan and the text

What is normalised, because it differs between two runs of one program:
  the temporary folder, wherever its path stands;
  the host's name, dates and the version of the program, in about.json;
  resident_bytes and agent_program_bytes, the sizes of a process and of a program, in plan.json;
  the size of the block in the message of a board that has no memory;
  the key and fingerprint of a board that dials with a key of its own, which the system draws.
A real run differs in times, rates, bytes and the device's name, too. Of its log.jsonl the losses
of the steps are compared, of its summary.json the keys of REAL_SUMMARY, of its plan.json all but
seconds, bytes, slots and windows, and no events.
What is left out: TensorBoard's file, which has the numbers of log.jsonl with the time of day, and
the bytes of checkpoints, whose form may change (tests/cli/test_old_runs.py resumes old ones).
"""
import argparse
import concurrent.futures
import difflib
import hashlib
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time

import profiles
import seeds

RECORDED = pathlib.Path(__file__).resolve().parent / "same.txt"
SEEDS, QUICK_SEEDS, QUICK_OF = 20, 2, 5
TIMEOUT_S = 900  # of a program; a run that hangs
COLUMNS = ("events", "weights", "answers")
DIFF_LINES = 60

# Real runs: every family of schedules, and what a resumed run finds again. No choice is left to
# times that are measured, so that two runs are the same.
TRAIN_RUN = """\
model: model.yaml
data: {set: glyphs, train: 64, test: 16, size: 12}
ring: {boards: 2, threads: 1}
train: {epochs: 2, batch: 16, microbatch: 4, seed: 1}
loss: cross-entropy
optimizer: {kind: sgd, lr: 0.05, momentum: 0.9}
schedule: gpipe
cut: [fc2]
"""
TRAIN = {
    "gpipe": (),
    "zb-h1-adamw": ("schedule=zb-h1", "optimizer={kind: adamw, lr: 0.001}", "ring.verify=1/4"),
    "1f1b-int8": ("schedule=1f1b", "links.codec=int8", "recompute=[0]"),
    "interleaved": ("schedule={kind: interleaved-1f1b, chunks: 2}", "cut=[relu1, fc2, relu2]"),
    "pipedream": ("schedule=pipedream", "train.microbatch=16", "ring.copy_steps=1"),
    "2bw": ("schedule={kind: pipedream-2bw, weights: pipeoptim}",),
    "spectrain": ("schedule={kind: spectrain, probe: 3}", "train.microbatch=16"),
    "pipeoptim": ("schedule={kind: pipeoptim, horizon: exact, advance: 2}", "train.microbatch=16",
                  "optimizer={kind: adamw, lr: 0.001}"),
    "ea-pipe": ("schedule={kind: ea-pipe, replicas: 2, period: 3}", "train.microbatch=16"),
    "umpipe": ("schedule={kind: umpipe, forward: [3, 16], backward: [7, 4]}",),
    "pipefb": ("schedule={kind: pipefb, ahead: [3, 1], publish: 2}", "ring.boards=4",
               "train.microbatch=16"),
    "lanes": ("lanes={count: 2, every: 2}",),
}
REAL_SUMMARY = ("status", "model", "schedule", "stages", "epochs", "steps", "samples", "train",
                "eval", "validation", "ledger")
NOT_IN_REAL_PLAN = re.compile(r"seconds|_s$|bytes|slots|window|boards_to|device")


# ---- the cases -----------------------------------------------------------------------------


def name_of(case):
    """Of a case of seeds.py: the same as long as the case is, wherever it stands in the list."""
    kind = re.search(r"[a-z0-9-]+", case.schedule.replace("kind:", "")).group()
    return f"sim/{kind}-{hashlib.sha256(repr(case).encode()).hexdigest()[:6]}"


CASES = {name_of(case): case for case in seeds.CASES}


def list_jobs(count, quick):
    """(case, seed) of everything, in the order of the recorded file."""
    jobs = [(name, seed) for name in CASES for seed in range(1, count + 1)]
    step = QUICK_OF if quick else 1
    for kind in ("timed", "plan"):
        jobs += [(f"{kind}/{number}", 0) for number in range(0, profiles.COUNT, step)]
    return jobs + [(f"train/{name}", 0) for name in list(TRAIN)[::step]]


# ---- runs ----------------------------------------------------------------------------------


def clean_environment(folder):
    """Nothing of this user's or this machine's is part of a run."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("RINGPIPE_")}
    return {**kept, "RINGPIPE_TUNING": str(folder / "no-tuning"), "RINGPIPE_PROFILES": "",
            "RINGPIPE_BINARIES": "1"}


def call(program, *words):
    done = subprocess.run([str(word) for word in (program, *words)], capture_output=True,
                          text=True, errors="replace", check=False, timeout=TIMEOUT_S,
                          stdin=subprocess.DEVNULL, env=clean_environment(pathlib.Path.cwd()))
    return f"exit code {done.returncode}\n", done.stdout, done.stderr


def read(path):
    try:
        return path.read_bytes().decode("utf-8", "surrogateescape")
    except FileNotFoundError:
        return ""


def read_folder(out):
    """The parts of a run folder that are compared: {column: {name: text}}."""
    checkpoints = sorted(path.name for path in (out / "checkpoint").glob("*"))
    return {
        "events": {"trace.json": read(out / "trace.json")},
        "weights": {"weights.safetensors": read(out / "weights.safetensors")},
        "answers": {
            **{name: read(out / name)
               for name in ("plan.json", "log.jsonl", "summary.json", "about.json")},
            "checkpoint": "\n".join(checkpoints)},
    }


def run_sim(program, name, seed):
    case = CASES[name]
    if seed % 2 == 0:
        case = seeds.draw(case, f"{name} {seed}")
    words = seeds.prepare(program, ".", case, "all")
    code, out, err = call(program, *words, "--seed", seed, "--trace", "--out", "run")
    parts = read_folder(pathlib.Path("run"))
    parts["events"].update({"code": code, "output": out, "messages": err})
    return parts


def prepare_profile(program, number, has_roster):
    if has_roster:
        seeds.write_roster(".", profiles.Ring(number, True).boards)
    return profiles.write(program, pathlib.Path("."), number, has_roster)


def run_timed(program, name, _seed):
    words = prepare_profile(program, int(name.partition("/")[2]), True)
    code, out, err = call(program, "sim", *words, "--executor", "timed", "--seed", 1, "--trace",
                          "--out", "run")
    parts = read_folder(pathlib.Path("run"))
    parts["events"].update({"code": code, "output": out, "messages": err})
    return parts


def run_plan(program, name, _seed):
    words = prepare_profile(program, int(name.partition("/")[2]), False)
    code, out, err = call(program, "plan", *words, "--out", "plan.json")
    return {"events": {"code": code, "messages": err}, "weights": {},
            "answers": {"text": out, "plan.json": read(pathlib.Path("plan.json"))}}


def without_times(value):
    if isinstance(value, dict):
        return {key: without_times(child) for key, child in value.items()
                if not NOT_IN_REAL_PLAN.search(key)}
    return [without_times(child) for child in value] if isinstance(value, list) else value


def run_train(program, name, _seed):
    pathlib.Path("model.yaml").write_text(seeds.MODEL.replace("90", "20"), encoding="utf-8")
    pathlib.Path("run.yaml").write_text(TRAIN_RUN, encoding="utf-8")
    words = [word for text in TRAIN[name.partition("/")[2]] for word in ("--set", text)]
    code, _, err = call(program, "train", "run.yaml", "--out", "run", *words)
    if code != "exit code 0\n":
        raise RuntimeError(f"{name}: {code}{err}")
    out = pathlib.Path("run")
    lines = [json.loads(line) for line in read(out / "log.jsonl").splitlines()]
    losses = [f"{line['step']} {line['loss']}" for line in lines
              if "loss" in line and "event" not in line]
    summary = json.loads(read(out / "summary.json"))
    summary = {key: summary[key] for key in REAL_SUMMARY if key in summary}
    plan = without_times(json.loads(read(out / "plan.json") or "{}"))
    return {"events": {"code": code},
            "weights": {"weights.safetensors": read(out / "weights.safetensors")},
            "answers": {"losses": "\n".join(losses), "plan.json": json.dumps(plan, indent=1),
                        "summary.json": json.dumps(without_times(summary), indent=1)}}


RUNS = {"sim": run_sim, "timed": run_timed, "plan": run_plan, "train": run_train}


def normalise(text, folder):
    """See above; the path of the folder also as its parents' links resolve it."""
    for path in {str(folder), os.path.realpath(folder)}:
        text = text.replace(path, "FOLDER")
    text = re.sub(r'"(resident|agent_program)_bytes": ?\d+', r'"\1_bytes": 0', text)
    text = re.sub(r'"(date|host|ringpipe)": ?"[^"]*"', r'"\1": "-"', text)
    text = text.replace(f'"{socket.gethostname()}"', '"-"')
    text = re.sub(r"\brpk1[a-z0-9]{20,}", "KEY", text)
    text = re.sub(r'fingerprint("?:?"? ?"?)[a-z0-9]{4}(-[a-z0-9]{4}){3}', r"fingerprint\1-", text)
    return re.sub(r"for a block of \d+ bytes", "for a block of N bytes", text)


def run(program, name, seed):
    """{column: {part: text}} of a case, in a folder that is gone afterwards."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="ringpipe-same-"))
    home = os.getcwd()
    os.chdir(folder)
    try:
        parts = RUNS[name.partition("/")[0]](program, name, seed)
    finally:
        os.chdir(home)
        shutil.rmtree(folder, ignore_errors=True)
    return {column: {part: normalise(text, folder) for part, text in parts[column].items()}
            for column in COLUMNS}


def hash_of(texts):
    digest = hashlib.sha256()
    for part in sorted(texts):
        digest.update(f"{part}\n".encode() + texts[part].encode("utf-8", "surrogateescape"))
    return digest.hexdigest()[:16]


def hashes(program, name, seed):
    parts = run(program, name, seed)
    return tuple(hash_of(parts[column]) for column in COLUMNS)


# ---- comparison ----------------------------------------------------------------------------


def show_difference(programs, name, seed):
    """What differs first, by a diff of the texts."""
    before, after = (run(program, name, seed) for program in programs)
    for column in COLUMNS:
        for part in sorted(set(before[column]) | set(after[column])):
            old, new = (side[column].get(part, "") for side in (before, after))
            if old == new:
                continue
            print(f"{name} {seed}: {part} ({column}) differs")
            if part == "weights.safetensors":
                continue
            lines = difflib.unified_diff(old.splitlines(), new.splitlines(), str(programs[0]),
                                         str(programs[1]), lineterm="", n=2)
            for _, line in zip(range(DIFF_LINES), lines):
                print(line[:300])


def each(pool, programs, jobs):
    """(case, seed, [hashes by program]), in order."""
    todo = [[pool.submit(hashes, program, *job) for program in programs] for job in jobs]
    for job, futures in zip(jobs, todo):
        yield *job, [future.result() for future in futures]


def compare_programs(pool, programs, jobs):
    wrong = 0
    for name, seed, (old, new) in each(pool, programs, jobs):
        if old != new:
            wrong += 1
            if wrong == 1:
                show_difference(programs, name, seed)
            else:
                told = [column for column, a, b in zip(COLUMNS, old, new) if a != b]
                print(f"{name} {seed}: {', '.join(told)}", flush=True)
    return wrong


def read_recorded(path):
    lines = (line.split() for line in path.read_text(encoding="utf-8").splitlines())
    return {(words[0], int(words[1])): tuple(words[2:])
            for words in lines if words and words[0] != "#"}


def compare_recorded(pool, program, jobs, path):
    wrong, recorded = 0, read_recorded(path)
    for name, seed, (new,) in each(pool, [program], jobs):
        old = recorded.get((name, seed))
        if old != new:
            wrong += 1
            told = [column for column, a, b in zip(COLUMNS, old or (), new) if a != b]
            print(f"{name} {seed}: {', '.join(told) or 'is not recorded'}", flush=True)
    if wrong:
        print("with a build of the commit that recorded these hashes, what differs is shown: "
              "same.py BEFORE AFTER")
    return wrong


def record(pool, program, jobs, path):
    lines = [f"# case seed {' '.join(COLUMNS)}; written by same.py --record"]
    for name, seed, (new,) in each(pool, [program], jobs):
        lines.append(f"{name} {seed} {' '.join(new)}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return 0


def read_words():
    words = argparse.ArgumentParser(description=__doc__,
                                    formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("programs", nargs="+", type=pathlib.Path, metavar="PROGRAM")
    words.add_argument("--record", type=pathlib.Path, metavar="FILE")
    words.add_argument("--recorded", type=pathlib.Path, default=RECORDED, metavar="FILE")
    words.add_argument("--seeds", type=int, default=SEEDS, metavar="N")
    words.add_argument("--quick", action="store_true")
    words.add_argument("--cases", default="", metavar="REGEX")
    words.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N")
    said = words.parse_args()
    if len(said.programs) > 2 or (said.record and len(said.programs) > 1):
        words.error("expected one program, or two to compare")
    said.programs = [program.resolve() for program in said.programs]
    for program in said.programs:
        if not program.is_file():
            words.error(f"{program}: no such program")
    return said


def main():
    said = read_words()
    count = min(said.seeds, QUICK_SEEDS) if said.quick else said.seeds
    jobs = [job for job in list_jobs(count, said.quick) if re.search(said.cases, job[0])]
    if not jobs:
        sys.exit(f"no case has a name with '{said.cases}'")
    began = time.monotonic()
    with concurrent.futures.ProcessPoolExecutor(said.jobs) as pool:
        if said.record:
            wrong = record(pool, said.programs[0], jobs, said.record)
        elif len(said.programs) == 2:
            wrong = compare_programs(pool, said.programs, jobs)
        else:
            wrong = compare_recorded(pool, said.programs[0], jobs, said.recorded)
    print(f"{len(jobs)} runs of {len({name for name, _ in jobs})} cases, {wrong} differ, "
          f"{time.monotonic() - began:.1f} s")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
