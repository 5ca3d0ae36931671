"""A canary, a program with one mistake, is found by the seeds; the program without it passes the
same seeds.

    canary.py CANARY RINGPIPE SCHEDULE
"""
import sys
import tempfile

from seeds import simulate

FIRST, LAST = 1, 60


def main():
    canary, ringpipe, schedule = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        code, tally = simulate(canary, folder, schedule, FIRST, LAST)
        found = tally["hung"] + tally["wrong"]
        print(f"{found} of {LAST - FIRST + 1} seeds find the mistake")
        if code != 3 or found == 0:
            sys.exit("the mistake was not found")
        code, tally = simulate(ringpipe, folder, schedule, FIRST, LAST)
        if code != 0 or tally["hung"] + tally["wrong"] > 0:
            sys.exit("the program without the mistake does not pass the same seeds")


main()
