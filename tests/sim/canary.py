"""A canary, a program with one mistake, is found by the seeds. The program without it passes a
thousand of them: `bootstrap test sim`.

    canary.py CANARY SCHEDULE
"""
import sys
import tempfile

from seeds import simulate

FIRST, LAST = 1, 60


def main():
    canary, schedule = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        code, tally = simulate(canary, folder, schedule, FIRST, LAST)
        found = tally["hung"] + tally["wrong"]
        print(f"{found} of {LAST - FIRST + 1} seeds find the mistake")
        if code != 3 or found == 0:
            sys.exit("the mistake was not found")


main()
