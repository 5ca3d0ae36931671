#!/usr/bin/env python3
"""The doors of the tests: ./bootstrap test installs what they need and calls this program.

doors.py smoke | gate | night     the steps of a door, one after the other
doors.py night STEP...            a part of the night, recorded in the row of its commit
doors.py STEP...                  these steps
doors.py --list                   the doors, and what each step runs

A step is a function of steps.py. A check leaves one line in build/results.txt; the last line
that is printed counts them: `N passed, N failed, N skipped`.
"""
import shutil
import sys
import time

import night
import steps
from checks import SOURCE, Results, report, say

DOORS = {
    "smoke": ("two minutes, for every change", ("product", "tidy", "touched")),
    "gate": (
        "under 20 minutes, what .ci/run calls; `./bootstrap test` without a word",
        ("build", "tidy", "plain", "process", "seeds", "asan", "oclgrind", "canaries"),
    ),
    "night": (
        "everything; leaves a row in tests/NIGHT.md",
        (
            "build",
            "tidy",
            "unit",
            "whole",
            "seeds_night",
            "same",
            "asan_whole",
            "tsan",
            "oclgrind_all",
            "fuzz",
            "canaries_all",
            "cross",
            "package",
            "guest",
            "image",
            "flower",
            "benches",
        ),
    ),
}


STEPS = {
    name.removeprefix("step_"): function
    for name, function in vars(steps).items()
    if name.startswith("step_")
}


def print_doors():
    width = max(map(len, STEPS))
    for door, (about, names) in DOORS.items():
        say(f"{door}: {about}")
        for step in names:
            first, *more = STEPS[step].__doc__.split("\n")
            say(f"  {step:{width}} {first}")
            for line in more:
                say(f"  {'':{width}} {line.strip()}")
        say("")
    say("./bootstrap test STEP... runs these steps alone.")


def run(names, is_night):
    results = Results()
    for step in names:
        say(f"\n== {step}: {' '.join(STEPS[step].__doc__.split())}")
        began, before = time.monotonic(), len(results.rows)
        STEPS[step](results)
        seconds = results.steps[step] = time.monotonic() - began
        say(f"{step} took {seconds:.0f} s")
        if is_night:
            night.record(SOURCE, steps.commit(), steps.kernels_digest(), step, seconds,
                         results.rows[before:])
    told = ", ".join(f"{step} {seconds:.0f}" for step, seconds in results.steps.items())
    say(f"\n== seconds: {told}; {sum(results.steps.values()):.0f} in all")
    return results


def chosen(words):
    """Whether it is a night, and the steps."""
    is_night = words[:1] == ["night"]
    if is_night and words[1:]:
        return True, words[1:]
    return is_night, [step for word in words for step in
                      (DOORS[word][1] if word in DOORS else (word,))]


def main():
    words = sys.argv[1:]
    if words == ["--list"]:
        print_doors()
        return 0
    is_night, names = chosen(words)
    unknown = [name for name in names if name not in STEPS]
    if not names or unknown:
        print(f"doors.py: no door or step '{unknown[0]}'" if unknown else __doc__,
              file=sys.stderr)
        print("doors: " + " ".join(DOORS) + "\nsteps: " + " ".join(STEPS), file=sys.stderr)
        return 2
    if not shutil.which("ninja"):
        print("doors.py: ninja is missing; ./bootstrap test installs it", file=sys.stderr)
        return 2
    results = run(names, is_night)
    return report.summary(results.rows, SOURCE / ".ci/may-skip")


if __name__ == "__main__":
    sys.exit(main())
