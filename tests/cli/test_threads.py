#!/usr/bin/env python3
"""How many cores an agent computes on: CPU seconds per second of wall-clock time."""
import json
import os
import time
import unittest
from pathlib import Path

import program

CORES = len(os.sched_getaffinity(0))
TICKS = os.sysconf("SC_CLK_TCK")
SECONDS = 3
ENOUGH_S = 1  # of CPU time by each agent, to tell how many of its threads compute
LONGEST_S = 120
# A thread may be counted a little above a second per second, and an agent's own thread works, too.
SPARE = 0.5
# One large product after the other: a device with two threads keeps two cores busy.
HEAVY = (
    program.RUN.replace("model: mlp", "model: vgg-narrow")
    .replace("batch: 64, microbatch: 16", "batch: 128")
    .replace("ring: {boards: 2}", "ring: {boards: %u}")
)


def cpu_seconds(pid):
    """{thread: its CPU seconds so far}"""
    seconds = {}
    for folder in Path(f"/proc/{pid}/task").iterdir():
        fields = (folder / "stat").read_text().rsplit(")", 1)[1].split()
        seconds[folder.name] = (int(fields[11]) + int(fields[12])) / TICKS
    return seconds


@unittest.skipIf(CORES < 2, "one core: an agent can not compute on more")
class Threads(program.Case):
    def expect_cores(self, cores, boards, *words):
        """Each agent of a local ring that trains computes on so many cores."""
        run = self.run_file(HEAVY % boards)
        process = self.start("train", run, "--out", "out", *program.LONG, *words)
        log = self.dir / "out" / "log.jsonl"
        self.wait_for("step 3", lambda: len(program.steps_of(log)) >= 3, process=process)
        agents = self.agents()
        self.assertEqual(len(agents), boards)
        begin, before = time.monotonic(), [cpu_seconds(pid) for pid in agents]
        worked = seconds = 0
        while worked < ENOUGH_S and seconds < LONGEST_S:  # others may have the cores
            time.sleep(SECONDS)
            after, seconds = [cpu_seconds(pid) for pid in agents], time.monotonic() - begin
            worked = min(sum(new.values()) - sum(old.values()) for old, new in zip(before, after))
        process.kill()
        for old, new in zip(before, after):
            spent = [new[thread] - old.get(thread, 0) for thread in new]
            self.assertGreater(sum(spent), ENOUGH_S / 2)
            busy, alike = sum(spent) / seconds, sum(spent) / max(spent)
            print(f"{busy:.2f} CPU seconds per second, {alike:.2f} of the busiest thread's")
            self.assertLess(busy, cores + SPARE)
            # On a machine that others use, too: threads that compute have about the same time.
            self.assertLess(alike, cores + SPARE)

    def test_one_thread(self):
        self.expect_cores(1, 1, "--set", "ring.threads=1")

    def test_cores_are_shared(self):
        """By default each of two boards has half of the cores."""
        # Both have work: a planner leaves one board most of it where a step is one microbatch.
        self.expect_cores(max(CORES // 2, 1), 2, "--set", "cut=[pool2]")

    def test_a_number_for_each_board(self):
        run = self.run_file(program.RUN)
        process = self.start("train", run, *program.LONG, "--set", "ring.threads=[2, 1]")
        self.wait_for("two agents", lambda: len(self.agents()) == 2, process=process)
        threads = {}
        for pid in self.agents():
            words = Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8").split("\0")
            threads[words[words.index("--name") + 1]] = words[words.index("--threads") + 1]
        process.kill()
        self.assertEqual(threads, {"0": "2", "1": "1"})


class Units(program.Case):
    """What the driver itself says: no timing decides."""

    def units(self, *words):
        out, _ = self.ringpipe("doctor", "--format", "json", *words)
        return json.loads(out)["compute_units"]

    @unittest.skipIf(CORES < 2, "one core: a device has one unit whatever is asked")
    def test_doctor(self):
        if self.units("--board", "pocl-cpu") < 2:
            self.skipTest("the device has one compute unit")
        self.assertEqual(self.units("--board", "pocl-cpu", "--threads", "1"), 1)
        self.assertEqual(self.units("--threads", "1"), 1)


if __name__ == "__main__":
    program.main()
