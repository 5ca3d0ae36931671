"""A canary, a program with one mistake, is found by the seeds. The program without it passes a
thousand of them: `bootstrap test sim`.

    canary.py CANARY SCHEDULE [PROGRAM FAULTS]

With FAULTS, a fault in words, that one is aimed at the mistake: every run takes it, and with the
mistake one lasts longer than anything waits on purpose; with PROGRAM, which has none, none does.
"""
import pathlib
import sys
import tempfile

from seeds import Case, simulate

FIRST, LAST = 1, 60
AIMED_LAST = 10
LONG_S = 200  # of virtual time


def aim(program, folder, schedule, fault):
    """Virtual seconds of a run, in the mean."""
    faults = pathlib.Path(folder) / "faults.yaml"
    faults.write_text(f"faults: [{fault}]\n")
    code, tally = simulate(program, folder, Case(schedule), FIRST, AIMED_LAST, faults)
    mean = tally["virtual_seconds"] / tally["runs"]
    print(f"{pathlib.Path(program).name}: {mean:.1f} virtual seconds a run")
    return code, mean


def main():
    canary, schedule = sys.argv[1:3]
    with tempfile.TemporaryDirectory() as folder:
        if len(sys.argv) > 3:
            code, mean = aim(sys.argv[3], folder, schedule, sys.argv[4])
            if code != 0 or mean > LONG_S:
                sys.exit("the program without the mistake does not pass")
            _, mean = aim(canary, folder, schedule, sys.argv[4])
            if mean <= LONG_S:
                sys.exit("the mistake was not found")
            return
        code, tally = simulate(canary, folder, Case(schedule), FIRST, LAST)
        found = tally["hung"] + tally["wrong"]
        print(f"{found} of {LAST - FIRST + 1} seeds find the mistake")
        if code != 3 or found == 0:
            sys.exit("the mistake was not found")


main()
