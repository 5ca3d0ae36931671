#!/usr/bin/env python3
"""A run that loses a board goes on by itself, and ends with the bits of an undisturbed one."""
import json
import os
import random
import re
import signal
import time
import unittest

import program

HANGING = program.BUILD / "tests" / "hanging_device.so"

WHOLE = ("--set", "train.epochs=60", "--set", "ring.boards=3", "--set", "cut=[fc2, fc3]",
         "--set", "train.microbatch=32")
PERIOD_S = 0.7  # from one kill to the next


class Case(program.Case):
    def train(self, out, *words):
        self.ringpipe("train", self.run_file(), "--out", out, *words)
        return (self.dir / out / "weights.safetensors").read_bytes()

    def summary(self, out):
        return json.loads((self.dir / out / "summary.json").read_text())

    def events(self, out, name):
        lines = (self.dir / out / "log.jsonl").read_text().splitlines()
        return [r for r in map(json.loads, lines) if r.get("event") == name]

    def expect_whole(self, out, steps, recoveries=None):
        """Every step once, in order, and nothing lost or repeated."""
        summary = self.summary(out)
        self.assertEqual(summary["status"], "finished")
        self.assertEqual(summary["steps"], steps)
        self.assertEqual((summary["ledger"]["lost"], summary["ledger"]["repeated"]), (0, 0))
        self.assertEqual(summary["ledger"]["samples"], summary["samples"])
        log = self.dir / out / "log.jsonl"
        self.assertEqual([r["step"] for r in program.steps_of(log)], list(range(1, steps + 1)))
        told = len(summary["recovery"])
        self.assertEqual(len(self.events(out, "recovered")), told)
        self.assertGreaterEqual(len(self.events(out, "fault")), told)
        if recoveries is not None:
            self.assertEqual(told, recoveries)


class Recover(Case):
    def killed(self, schedule, *more):
        """Agents are killed one after the other, whatever the run does just then."""
        words = (*WHOLE, "--set", f"schedule={schedule}", *more)
        wanted = self.train("whole", *words)
        draw = random.Random(schedule)
        process = self.start("train", self.run_file(), "--out", "killed", *words)
        kills = 0
        while process.poll() is None and kills < 4:
            time.sleep(PERIOD_S * draw.random() * 2)
            agents = self.agents()
            if agents:
                os.kill(draw.choice(agents), signal.SIGKILL)
                kills += 1
        self.finish(process, seconds=120)
        self.assertTrue(self.events("killed", "recovered"), "every kill came too late")
        self.expect_whole("killed", 240)
        weights = (self.dir / "killed" / "weights.safetensors").read_bytes()
        self.assertTrue(weights == wanted, "other weights")

    def test_in_flight(self):
        """What was in flight at the checkpoint is in flight again."""
        self.killed("{kind: pipeoptim, horizon: measured, probe: 5}")

    def test_an_agent_that_hangs(self):
        """It is missed after 10 s, ended, and started again."""
        wanted = self.train("whole", *WHOLE)
        process = self.start("train", self.run_file(), "--out", "hung", *WHOLE)
        log = self.dir / "hung" / "log.jsonl"
        self.wait_for("step 9", lambda: len(program.steps_of(log)) >= 9, process=process)
        agent = self.agents()[1]
        os.kill(agent, signal.SIGSTOP)
        _, err = self.finish(process)
        self.assertRegex(err, r"board 1 has been silent for 1\d s")
        self.assertNotIn(agent, self.agents())
        self.expect_whole("hung", 240, 1)
        weights = (self.dir / "hung" / "weights.safetensors").read_bytes()
        self.assertTrue(weights == wanted, "other weights")
        # Its neighbour may miss it first, over their hop, and the neighbour was never silent.
        if "has been silent" in self.events("hung", "fault")[0]["error"]:
            self.assertGreater(self.summary("hung")["recovery"][0]["detect_s"], 9)


    @unittest.skipUnless(HANGING.exists(), "a sanitizer has to be loaded first")
    def test_a_device_that_hangs(self):
        """Its agent answers, and is ended and started again after 30 s."""
        wanted = self.train("whole", *WHOLE)
        process = self.start("train", self.run_file(), "--out", "hung", *WHOLE,
                             env={"LD_PRELOAD": HANGING, "RP_HANG": self.dir / "hang"})
        log = self.dir / "hung" / "log.jsonl"
        self.wait_for("step 9", lambda: len(program.steps_of(log)) >= 9, process=process)
        (self.dir / "hang").touch()
        _, err = self.finish(process, seconds=120)
        self.assertRegex(err, r"board \d: its device hangs: one op has been running for 3\d s")
        self.expect_whole("hung", 240, 1)
        weights = (self.dir / "hung" / "weights.safetensors").read_bytes()
        self.assertTrue(weights == wanted, "other weights")


class Copies(Case):
    """Boards keep copies for each other: what is done again is behind the last of them."""

    WORDS = (*WHOLE, "--set", "data.train=16384", "--set", "train.epochs=1")  # one checkpoint: 256

    def kill_behind(self, process, steps):
        log = self.dir / "killed" / "log.jsonl"
        self.wait_for(f"step {steps}", lambda: len(program.steps_of(log)) >= steps, process=process)
        os.kill(self.agents()[1], signal.SIGKILL)

    def killed(self, schedule):
        """Nothing was saved of late, so a checkpoint would cost more steps."""
        words = (*self.WORDS, "--set", f"schedule={schedule}")
        wanted = self.train("whole", *words)
        process = self.start("train", self.run_file(), "--out", "killed", *words,
                             "--set", "ring.copy_steps=5")
        self.kill_behind(process, 40)
        _, err = self.finish(process)
        self.expect_whole("killed", 256, 1)
        came, back = map(int, re.search(r"from step (\d+) to step (\d+) ", err).groups())
        self.assertEqual(back % 5, 0)
        self.assertGreater(back, 0)
        told = self.summary("killed")["recovery"][0]
        self.assertEqual(told["replay_microbatches"], (came - back) * 2)
        self.assertIn(f"what the boards held after step {back} was restored from copies", err)
        weights = (self.dir / "killed" / "weights.safetensors").read_bytes()
        self.assertTrue(weights == wanted, "other weights")

    def test_in_flight(self):
        """What was in flight is in the copies, too."""
        self.killed("{kind: pipeoptim, horizon: measured, probe: 5}")


# What the controller decides is in tests/scenarios; the numbers of other methods are for the night.
load_tests = program.few_when_short("Recover.test_in_flight")


if __name__ == "__main__":
    program.main()
