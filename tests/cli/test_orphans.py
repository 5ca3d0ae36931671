#!/usr/bin/env python3
"""A controller that is killed: the next one goes on with what the boards hold."""
import json
import random
import time

import program
import test_lost_boards


class Orphans(test_lost_boards.Roster):
    """The controller is killed; its boards live, and another one takes them over."""

    LONG = ("--set", "data.train=16384", "--set", "train.epochs=1000")

    def steps(self, out):
        return program.steps_of(self.dir / out / "log.jsonl")

    def killed_behind(self, step, *command):
        """At some moment behind this step."""
        process = self.start(*command)
        log = self.dir / "out" / "log.jsonl"
        self.wait_for(f"step {step}",
                      lambda: log.exists() and len(self.steps("out")) >= step, process=process)
        process.kill()
        process.communicate()

    def adopted(self):
        lines = (self.dir / "out" / "log.jsonl").read_text().splitlines()
        return [r for r in map(json.loads, lines) if r.get("event") == "adopted"]

    def expect_whole(self, words):
        steps = len(self.steps("out")) + 5
        self.ringpipe("resume", "out", "--set", f"train.steps={steps}")
        self.assertEqual([r["step"] for r in self.steps("out")], list(range(1, steps + 1)))
        summary = json.loads((self.dir / "out" / "summary.json").read_text())
        self.assertEqual((summary["ledger"]["lost"], summary["ledger"]["repeated"]), (0, 0))
        self.assertEqual(summary["ledger"]["samples"], summary["samples"])
        self.ringpipe("train", self.run_yaml, "--out", "whole", *words,
                      "--set", f"train.steps={steps}")
        for key in ("weights.safetensors",):
            whole, adopted = ((self.dir / out / key).read_bytes() for out in ("whole", "out"))
            self.assertTrue(whole == adopted, f"other {key}")
        whole, adopted = ([r["loss"] for r in self.steps(out)] for out in ("whole", "out"))
        self.assertEqual(whole, adopted)

    def test_a_schedule_that_flushes(self):
        """In the middle of a long segment, again and again: no step is done twice."""
        self.killed_behind(9, "train", self.run_yaml, "--out", "out", *self.LONG)
        for kill in range(2):
            done = len(self.steps("out"))
            self.killed_behind(done + 7 * (kill + 1), "resume", "out")
            said = self.adopted()
            self.assertEqual(len(said), kill + 1)
            self.assertEqual(said[-1]["kind"], "adopted")
            # The last step may wait for its decision.
            self.assertGreaterEqual(said[-1]["step"], done - 1)
        self.expect_whole(self.LONG)

    def at_any_moment(self, schedule, *more):
        """Also while it starts, evaluates, saves, and while it takes over."""
        words = ("--set", "train.epochs=1000", "--set", f"schedule={schedule}", *more)
        draw = random.Random(schedule)
        self.killed_behind(9, "train", self.run_yaml, "--out", "out", *words)
        for _ in range(5):
            process = self.start("resume", "out")
            time.sleep(0.3 + 2 * draw.random() * program.SLOWER)
            self.assertIsNone(process.poll())
            process.kill()
            process.communicate()
        self.killed_behind(len(self.steps("out")) + 9, "resume", "out")
        self.expect_whole(words)

    def test_at_any_moment_in_flight(self):
        self.at_any_moment("pipeoptim", "--set", "data.train=512")

    def test_other_settings(self):
        """What was trained with those of before is no checkpoint of a run with these."""
        self.killed_behind(9, "train", self.run_yaml, "--out", "out", *self.LONG)
        self.ringpipe("resume", "out", "--set", "train.seed=2", "--set", "train.steps=20")
        said = self.adopted()[0]
        self.assertEqual((said["kind"], said["checkpoint_step"]), ("adopted_not", 0))
        self.assertIn("the settings are different now: train.seed: 2 (was 1)", said["why"])


# What the controller decides is in tests/scenarios.
load_tests = program.few_when_short("Orphans.test_a_schedule_that_flushes")


if __name__ == "__main__":
    program.main()
