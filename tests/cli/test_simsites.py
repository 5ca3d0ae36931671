#!/usr/bin/env python3
"""`ringpipe sim` of a run file with `sites`, and how long a round takes before it starts."""
import json
import time
import unittest

import program

RUN = """\
model: mlp
data: {set: glyphs, train: 400, test: 8}
ring: {boards: 2, throttle: {forward_ms: 5, backward_ms: 10}, link: {rate_mbit: 8, delay_ms: 10}}
train: {epochs: 1, batch: 4, microbatch: 2, seed: 3}
loss: cross-entropy
optimizer: {kind: sgd, lr: 0.05}
schedule: gpipe
cut: [fc2]
"""


class Simulated(program.Case):
    def setUp(self):
        super().setUp()
        self.whole = self.run_file(RUN, "whole.yaml")

    def split(self, sites, keys):
        self.ringpipe("data", "split", self.whole, "--sites", str(sites), "--by", "iid", "--out",
                      "split.json")
        return self.run_file(f"{RUN}sites: {{split: split.json, {keys}}}\n")

    def test_many_sites(self):
        """200 sites, 20 rounds: the bytes of the model, virtual seconds, in some real seconds."""
        run = self.split(200, "rounds: 20, steps: 4, at_once: 64")
        began = time.monotonic()
        out, _ = self.ringpipe("sim", run, "--format", "json", "--quiet", "--set",
                               "train.eval_epochs=0", seconds=100)
        self.assertLess(time.monotonic() - began, 60)
        summary = json.loads(out)
        self.assertEqual((summary["status"], summary["steps"], len(summary["sites"])),
                         ("finished", 20, 200))
        checked, _ = self.ringpipe("train", run, "--dry-run", "--format", "json")
        a_round = json.loads(checked)["round"]
        for way in ("up", "down"):
            self.assertEqual(summary["bytes"][way], 20 * a_round[f"{way}_bytes"])
        scored = 0.5  # once, at the end
        self.assertAlmostEqual(summary["seconds"], 20 * a_round["seconds"] + scored, places=3)

    def test_same_seed(self):
        """The same seed gives the same output; without `take` faults change nothing but time."""
        run = self.split(3, "rounds: 4, steps: 4")
        said = [self.ringpipe("sim", run, "--faults", "all", "--seed", "5", "--trace")[0]
                for _ in range(2)]
        self.assertEqual(said[0], said[1])
        self.assertIn("fault: ", said[0])
        self.ringpipe("sim", run, "--out", "calm", "--quiet")
        self.ringpipe("sim", run, "--out", "faults", "--quiet", "--faults", "all", "--seed", "5")
        self.assertFalse((self.dir / "calm/now.json").exists())
        for name in ("center.safetensors", "weights.safetensors"):
            self.assertEqual((self.dir / "calm" / name).read_bytes(),
                             (self.dir / "faults" / name).read_bytes())
        out, _ = self.ringpipe("sim", run, "--faults", "all", "--seeds", "1..6", "--format", "json")
        tally = json.loads(out)
        self.assertEqual((tally["runs"], tally["hung"], tally["wrong"]), (6, 0, 0))
        self.assertGreater(sum(tally["marks"]["faults"].values()), 6)

    def test_timed(self):
        """Rounds take as long as the dry run says."""
        run = self.split(3, "rounds: 5, steps: 4, at_once: 3")
        sets = ("--set", "train.eval_epochs=0")
        out, _ = self.ringpipe("sim", run, "--executor", "timed", "--format", "json", "--quiet",
                               *sets)
        checked, _ = self.ringpipe("train", run, "--dry-run", "--format", "json", *sets)
        predicted = json.loads(checked)["round"]["seconds"]
        scored = 0.5  # once, at the end
        self.assertAlmostEqual(json.loads(out)["seconds"], 5 * predicted + scored, places=3)

    def test_late(self):
        """A site that is out misses rounds, and the result names it."""
        run = self.split(3, "rounds: 4, steps: 4, at_once: 3, take: {least: 2, wait: 6}")
        faults = self.run_file("faults:\n  - {kind: partition, from: 1, to: host, at_s: 0, for_s: "
                               "8}\n", "faults.yaml")
        out, _ = self.ringpipe("sim", run, "--faults", faults)
        self.assertRegex(out, r"missed rounds: site-1 [12] late, 0 failed")

    def test_gossip(self):
        """A rule that only the simulation has."""
        run = self.split(4, "rounds: 4, steps: 4, rule: gossip")
        out, _ = self.ringpipe("sim", run, "--faults", "all", "--seeds", "1..4", "--format", "json")
        tally = json.loads(out)
        self.assertEqual((tally["runs"], tally["hung"], tally["wrong"]), (4, 0, 0))
        for words in (("--out", "x"), ("--dry-run",)):
            self.assertIn("gossip is simulated only", self.refused("train", run, *words))
        self.assertFalse((self.dir / "x").exists())

    def test_refused(self):
        run = self.split(3, "rounds: 4, steps: 4")
        self.run_file("faults:\n  - {kind: loss, from: 0, to: 1, at_s: 0, amount: 0.1}\n", "l.yaml")
        self.run_file("faults:\n  - {kind: partition, from: 0, to: 1, at_s: 0}\n", "p.yaml")
        self.run_file("faults:\n  - {kind: crash, node: 3, at_s: 0}\n", "n.yaml")
        for words, part in ((("--once",), "--once is for a single ring"),
                            (("--plan", "plan.json"), "--plan is for a single ring"),
                            (("--faults", "l.yaml"), "fault 'loss' is one of a ring's boards"),
                            (("--faults", "p.yaml"), "lines to the host only"),
                            (("--faults", "n.yaml"), "node"),
                            (("--executor", "timed", "--set", "ring.throttle={}"),
                             "time of a step of site site-0 is unknown")):
            self.assertIn(part, self.refused("sim", run, *words))

    def test_plan(self):
        """`plan` ends with a round; what is unknown is said to be."""
        run = self.split(3, "rounds: 4, steps: 4")
        out, _ = self.ringpipe("plan", run, "--set", "cut=auto", seconds=120)
        self.assertRegex(out, r"a round takes: [0-9.]+ s; site site-\d: start 2.3 s, centre down "
                              r"0.951 s, 4 steps of [0-9.]+ s, weights up 0.951 s\n")
        out, _ = self.ringpipe("train", run, "--dry-run", "--set", "ring.throttle={}", "--set",
                               "ring.link={}")
        self.assertIn("a round takes: unknown; site site-0: start 0.8 s, centre down unknown, 4 "
                      "steps of unknown, weights up unknown\n", out)
        out, _ = self.ringpipe("plan", run, "--format", "json", seconds=120)
        plan = json.loads(out)
        self.assertEqual((plan["round"]["sites"], plan["round"]["steps"]), (3, 4))
        self.assertEqual(len(plan["stages"]), 2)


if __name__ == "__main__":
    unittest.main()
