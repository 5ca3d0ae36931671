#!/usr/bin/env python3
"""Are the tests able to find mistakes? Each canary of canaries.txt is the product with one mistake,
which the test that the list names has to find.

canaries.py              every canary; exit 1 when a test misses one
canaries.py NAME...      these
canaries.py --draw N     N of those that smoke or gate have to catch, drawn by the commit's hash
canaries.py --check      runs nothing: does every canary still apply to the sources?
canaries.py --list       the table

A canary is one source file, compiled again with the mistake and linked in front of the room's
library, so that it takes seconds. canaries.txt says what an entry has. RP_BUILD_DIR: a build folder
of Ninja (default: build); what is missing in it is built."""
import argparse
import hashlib
import json
import os
import random
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent
BUILD = Path(os.environ.get("RP_BUILD_DIR", SOURCE / "build")).resolve()
LIST = SOURCE / "tests/canaries.txt"
DOORS = ("smoke", "gate", "night")
KEYS = ("bug", "file", "door", "test")
LIMIT_S = 300
SKIPPED = 77
# Seeds with faults that are drawn; and with one that is aimed at the mistake, of which a run lasts
# longer than anything waits on purpose.
SEEDS, AIMED_SEEDS, LONG_S = 60, 10, 200


class Wrong(Exception):
    """The list or a canary is not as it has to be."""


# ---- the list -----------------------------------------------------------------------------------


class Canary:
    def __init__(self, name, line):
        self.name, self.line = name, line
        self.bug = self.file = self.door = self.test = ""
        self.edits = []  # [old, new]

    def take(self, line):
        """A line of its entry: KEY TEXT, or -OLD and +NEW of an edit."""
        if line[0] in "-+":
            old = line[0] == "-"
            if old and (not self.edits or self.edits[-1][1]):
                self.edits.append([[], []])
            if not self.edits:
                raise Wrong(f"{self.name}: a line with + before one with -")
            self.edits[-1][0 if old else 1].append(line[1:])
            return
        key, _, text = line.partition(" ")
        if key not in KEYS or getattr(self, key):
            raise Wrong(f"{self.name}: expected each of {', '.join(KEYS)} once, found '{line}'")
        setattr(self, key, text.strip())

    def apply(self, text):
        """The source with the mistake in it."""
        for old, new in self.edits:
            was = "".join(part + "\n" for part in old)
            found = text.count(was)
            if found != 1:
                raise Wrong(f"{self.name}: its text is {found} times in {self.file}, expected once:"
                            f" {old[0].strip()}")
            text = text.replace(was, "".join(part + "\n" for part in new))
        return text


def read_list(text):
    canaries = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("canary "):
            canaries.append(Canary(line.split(" ", 1)[1].strip(), number))
        elif line and line[0] != "#":
            if not canaries:
                raise Wrong(f"line {number}: expected `canary NAME` first")
            canaries[-1].take(line)
    names = [canary.name for canary in canaries]
    for name in names:
        if names.count(name) > 1:
            raise Wrong(f"{name}: is there twice")
    return canaries


def test_file(test):
    """Where the test is written that has to find the mistake."""
    kind, _, rest = test.partition(" ")
    if kind in ("seeds", "aimed"):
        return "tests/sim/seeds.py"
    if kind in ("scenarios", "cli"):
        return f"tests/{kind}/{rest.split(' ')[0]}"
    return f"tests/{kind}.c"


def check_canary(canary):
    if not canary.edits or not all(getattr(canary, key) for key in KEYS):
        raise Wrong(f"{canary.name}: expected {', '.join(KEYS)} and an edit")
    if canary.door not in DOORS:
        raise Wrong(f"{canary.name}: door: expected one of {', '.join(DOORS)}")
    if not (SOURCE / canary.file).is_file() or not canary.file.endswith(".c"):
        raise Wrong(f"{canary.name}: file: '{canary.file}' is not a source file")
    if not (SOURCE / test_file(canary.test)).is_file():
        raise Wrong(f"{canary.name}: test: {test_file(canary.test)} is missing")
    text = (SOURCE / canary.file).read_text(encoding="utf-8")
    if canary.apply(text) == text:
        raise Wrong(f"{canary.name}: its edit changes nothing")


def check_all(canaries):
    bad = 0
    for canary in canaries:
        try:
            check_canary(canary)
        except Wrong as wrong:
            print(f"tests/canaries.txt:{canary.line}: {wrong}")
            bad += 1
    print(f"{len(canaries)} canaries, {bad} do not apply")
    return bad == 0


# ---- building -----------------------------------------------------------------------------------


def run_quietly(words, **options):
    done = subprocess.run(words, capture_output=True, text=True, check=False, **options)
    if done.returncode != 0:
        raise Wrong(f"{shlex.join(map(str, words))[:200]}:\n{done.stdout}{done.stderr}"[:4000])
    return done.stdout


class Builder:
    """Compiles and links as the build folder does, with one file in another form."""

    def __init__(self):
        self.commands = None

    def need(self, *targets):
        run_quietly(["ninja", "-C", BUILD, *targets])

    def find_command(self, file):
        if self.commands is None:
            all_of = json.loads(run_quietly(["ninja", "-C", BUILD, "-t", "compdb"]))
            self.commands = {one["file"]: one for one in all_of if one["file"].endswith(".c")
                             and "/tests/" not in one["output"]}
        try:
            return self.commands[str(SOURCE / file)]
        except KeyError:
            raise Wrong(f"{file}: nothing in {BUILD} compiles it") from None

    def compile(self, canary, folder):
        """The object, and the one that it stands for."""
        command = self.find_command(canary.file)
        source = folder / Path(canary.file).name
        made = source.with_suffix(".o")
        text = (SOURCE / canary.file).read_text(encoding="utf-8")
        source.write_text(canary.apply(text), encoding="utf-8")
        words = shlex.split(command["command"])
        for option in ("-MT", "-MF"):
            if option in words:
                at = words.index(option)
                del words[at:at + 2]
        words = [word for word in words if word != "-MD"]
        words[words.index("-o") + 1] = str(made)
        words[words.index(command["file"])] = str(source)
        run_quietly([*words, "-w", "-iquote", str((SOURCE / canary.file).parent)], cwd=BUILD)
        return made, command["output"]

    def link(self, target, made, replaced, out):
        """False: the target has nothing of the file."""
        command = run_quietly(["ninja", "-C", BUILD, "-t", "commands", "-s", target]).strip()
        words = command.split(" ")
        room = re.match(r"(?:firmware|host)/(\w+)/", replaced).group(1)
        if replaced in words:
            words[words.index(replaced)] = str(made)
        elif any(word.endswith(f"/librp_{room}.a") for word in words):
            words.insert(words.index("-o"), str(made))
        else:
            return False
        out.parent.mkdir(parents=True, exist_ok=True)
        words[words.index("-o") + 1] = str(out)
        run_quietly(["sh", "-c", " ".join(words)], cwd=BUILD)
        return True


# ---- running ------------------------------------------------------------------------------------


def environment(build):
    return {**os.environ, "RP_SOURCE_DIR": str(SOURCE), "RP_BUILD_DIR": str(build),
            "RINGPIPE_TUNING": "/nonexistent", "RINGPIPE_BOARDS": str(SOURCE / "boards"),
            "RINGPIPE_MODELS": str(SOURCE / "host/models"), "PYTHONDONTWRITEBYTECODE": "1"}


def fails(words, build, log):
    """Whether a test finds the mistake: it fails, crashes or does not end."""
    with open(log, "w", encoding="utf-8") as out:
        try:
            code = subprocess.run(words, env=environment(build), cwd=build, stdout=out,
                                  stderr=subprocess.STDOUT, timeout=LIMIT_S,
                                  check=False).returncode
        except subprocess.TimeoutExpired:
            return True
    if code == SKIPPED:
        raise Wrong("the test was skipped")
    return code != 0


def seeds_module():
    sys.path.insert(0, str(SOURCE / "tests/sim"))
    import seeds  # pylint: disable=import-outside-toplevel
    return seeds


def seeds_find(program, schedule):
    seeds = seeds_module()
    with tempfile.TemporaryDirectory() as folder:
        code, tally = seeds.simulate(program, folder, seeds.Case(schedule), 1, SEEDS)
    return code != 0 and tally["hung"] + tally["wrong"] > 0


def aimed_seconds(program, schedule, fault):
    """Virtual seconds of a run, in the mean."""
    seeds = seeds_module()
    with tempfile.TemporaryDirectory() as folder:
        faults = Path(folder) / "faults.yaml"
        faults.write_text(f"faults: [{fault}]\n", encoding="utf-8")
        _, tally = seeds.simulate(program, folder, seeds.Case(schedule), 1, AIMED_SEEDS, faults)
    return tally["virtual_seconds"] / tally["runs"]


def link_programs(builder, made, replaced, folder, targets):
    """A build folder whose programs have the mistake where they have the file."""
    linked = [builder.link(target, made, replaced, folder / target) for target in targets]
    if not any(linked):
        raise Wrong(f"none of {', '.join(targets)} has the file")
    for target in targets:
        if not (folder / target).exists():
            (folder / target).symlink_to(BUILD / target)


def targets_of(test):
    kind = test.partition(" ")[0]
    if "/" in kind:
        return (f"tests/tests_{kind.split('/')[0]}",)
    return ("bin/ringpipe", "bin/ringpipe-agent") if kind == "cli" else ("bin/ringpipe",)


def finds(test, build, log):
    """Whether the test finds a mistake in the programs of this build folder."""
    kind, _, rest = test.partition(" ")
    if "/" in kind:
        room, name = kind.split("/")
        return fails([build / f"tests/tests_{room}", name], BUILD, log)
    if kind == "seeds":
        return seeds_find(build / "bin/ringpipe", rest)
    if kind == "aimed":
        return aimed_seconds(build / "bin/ringpipe", *rest.split(" ", 1)) > LONG_S
    file, _, more = rest.partition(" ")
    words = ["python3", SOURCE / "tests/scenarios/run.py"] if kind == "scenarios" else ["python3"]
    words += [SOURCE / "tests" / kind / file]
    words += more.split() if kind == "cli" else [more] if more else []
    return fails(words, build, log)


def run_canary(builder, canary, folder, healthy):
    """Whether the test finds it; the test has to pass without the mistake."""
    targets = targets_of(canary.test)
    builder.need(*targets)
    if canary.test not in healthy:
        if finds(canary.test, BUILD, folder / "healthy.log"):
            raise Wrong(f"the test fails without the mistake: {folder}/healthy.log")
        healthy.add(canary.test)
    made, replaced = builder.compile(canary, folder)
    link_programs(builder, made, replaced, folder, targets)
    for other in BUILD.glob("tests/*.so"):  # which a test may preload
        (folder / "tests").mkdir(exist_ok=True)
        (folder / "tests" / other.name).symlink_to(other)
    return finds(canary.test, folder, folder / "log")


def run_all(canaries):
    builder, missed, healthy = Builder(), [], set()
    for canary in canaries:
        began = time.monotonic()
        folder = BUILD / "canaries" / canary.name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        try:
            check_canary(canary)
            result = "caught" if run_canary(builder, canary, folder, healthy) else "MISSED"
        except Wrong as wrong:
            result = f"FAILED: {wrong}"
        seconds = time.monotonic() - began
        print(f"{canary.name:22} {canary.door:6} {seconds:6.1f} s  {result}  by {canary.test}",
              flush=True)
        if result == "caught":
            shutil.rmtree(folder)
        else:
            missed.append(canary.name)
    print(f"{len(canaries) - len(missed)} of {len(canaries)} canaries caught"
          + (f"; not: {', '.join(missed)}" if missed else ""))
    return not missed


# ---- which --------------------------------------------------------------------------------------


def commit():
    """The commit's hash; where there is no git, that of the list."""
    done = subprocess.run(["git", "-C", SOURCE, "rev-parse", "HEAD"], capture_output=True,
                          text=True, check=False)
    return done.stdout.strip() or hashlib.sha256(LIST.read_bytes()).hexdigest()


def draw(canaries, count, word):
    drawn = [canary for canary in canaries if canary.door != "night"]
    return random.Random(word).sample(drawn, min(count, len(drawn)))


def choose(canaries, args):
    if args.draw is not None:
        word = commit()
        print(f"drawn by {word}")
        return draw(canaries, args.draw, word)
    known = {canary.name: canary for canary in canaries}
    unknown = [name for name in args.name if name not in known]
    if unknown:
        sys.exit(f"no canary '{unknown[0]}'; there are: {', '.join(known)}")
    return [known[name] for name in args.name] or canaries


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("name", nargs="*", help="of canaries.txt")
    parser.add_argument("--draw", type=int, metavar="N", help="so many, by the commit's hash")
    parser.add_argument("--check", action="store_true", help="does each still apply?")
    parser.add_argument("--list", action="store_true", help="the table")
    args = parser.parse_args()
    try:
        canaries = read_list(LIST.read_text(encoding="utf-8"))
    except Wrong as wrong:
        sys.exit(f"tests/canaries.txt: {wrong}")
    if args.list:
        for canary in canaries:
            room = canary.file.split("/")[1]
            print(f"{canary.name:22} {room:11} {canary.door:6} {canary.test:40} {canary.bug}")
        return
    good = check_all(canaries) if args.check else run_all(choose(canaries, args))
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
