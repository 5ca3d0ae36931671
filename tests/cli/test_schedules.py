#!/usr/bin/env python3
"""`plan.schedules`: the planner takes a schedule, and the run, its files and the run that goes on
have it."""
import json
import unittest

import program

# Every op takes as long on all boards, so a flush costs what it costs.
RUN = """\
model: mlp
data: {set: glyphs, train: 96, test: 24, size: 12}
ring: {boards: 3, threads: 1, throttle: {forward_op_ms: 10, backward_op_ms: 20}}
train: {epochs: 2, batch: 16, microbatch: 4, seed: 1}
loss: cross-entropy
optimizer: {kind: sgd, lr: 0.05}
schedule: gpipe
plan: {schedules: [1f1b, {kind: pipedream, vertical_sync: true}]}
cut: auto
"""


class Schedules(program.Case):
    def read(self, out, name):
        return json.loads((self.dir / out / name).read_text(encoding="utf-8"))

    def events(self, out, event):
        lines = map(json.loads, (self.dir / out / "log.jsonl").read_text().splitlines())
        return [line["why"] for line in lines if line.get("event") == event]

    def weights(self, out):
        return (self.dir / out / "weights.safetensors").read_bytes()

    def expect_taken(self, out):
        self.assertEqual(self.read(out, "summary.json")["schedule"], "pipedream")
        method = self.read(out, "plan.json")["method"]
        self.assertEqual((method["kind"], method["weights"]), ("pipedream", "entry"))
        text = (self.dir / out / "run.yaml").read_text(encoding="utf-8")
        self.assertRegex(text, r"(?m)^schedule: \{kind: pipedream, vertical_sync: true[,}]")

    def test_it_is_trained_and_goes_on(self):
        run = self.run_file(RUN)
        self.ringpipe("train", run, "--out", "whole")
        self.expect_taken("whole")
        said, = self.events("whole", "schedule")
        self.assertRegex(said, r"^schedule pipedream instead of gpipe saves [1-4][0-9] % of "
                               r"0\.[0-9]+ s a step; a gradient of the first stage is up to 1 "
                               r"update old, which may cost accuracy; 1f1b takes 0\.[0-9]+ s$")
        # The same as if somebody had named it, with the same cut.
        cut = [stage["layers"][0] for stage in self.read("whole", "plan.json")["stages"]][1:]
        named = ("--set", "schedule={kind: pipedream, vertical_sync: true}", "--set",
                 "plan.schedules=none", "--set", f"cut=[{', '.join(cut)}]")
        self.ringpipe("train", run, "--out", "named", *named)
        self.assertEqual(self.weights("whole"), self.weights("named"))
        # By its folder, and by the file that it began with. Pipes are empty at the end of the first
        # epoch, as they are in the named one.
        self.ringpipe("train", run, "--out", "longer", *named, "--set", "train.epochs=1")
        self.ringpipe("resume", "longer", "--set", "train.epochs=2")
        for out, words in (("folder", ("resume", "folder")),
                           ("file", ("train", run, "--resume", "file"))):
            self.ringpipe("train", run, "--out", out, "--set", "train.epochs=1", "--set",
                          "cut=auto")
            self.expect_taken(out)
            begun = self.read(out, "plan.json")["stages"]
            self.ringpipe(*words, "--set", "train.epochs=2")
            self.expect_taken(out)
            self.assertEqual(len(self.events(out, "schedule")), 1)
            if [s["layers"] for s in begun] == \
                    [s["layers"] for s in self.read("longer", "plan.json")["stages"]]:
                self.assertEqual(self.weights(out), self.weights("longer"))

    def test_a_plan_says_it(self):
        run = self.run_file(RUN)
        out, _ = self.ringpipe("plan", run, "--out", "plan.json")
        self.assertRegex(out, r"By prediction, schedule pipedream instead of gpipe saves ")
        self.assertEqual(json.loads((self.dir / "plan.json").read_text())["method"]["kind"],
                         "pipedream")
        self.ringpipe("train", run, "--plan", "plan.json", "--out", "given", "--set",
                      "train.epochs=1")
        self.expect_taken("given")
        other = self.refused("train", run, "--plan", "plan.json", "--out", "other", "--set",
                             "plan.schedules=[1f1b]")
        self.assertIn("schedule: is pipedream, the run file's is gpipe", other)

    def test_what_is_refused(self):
        run = self.run_file(RUN)
        for words, why in (
                (("plan.schedules=pipedream",), "expected none, or a list of 1 to 8 schedules"),
                (("plan.schedules=[]",), "expected none, or a list of 1 to 8 schedules"),
                (("plan.schedules=[gpip]",), "no schedule 'gpip'"),
                (("plan.schedules=[{kind: pipedream, advances: 1}]",), "advances"),
                (("plan.schedules=[umpipe]",), "one size for all microbatches"),
                (("plan.schedules=[interleaved-1f1b]",), "one stage on each board"),
                (("schedule=umpipe",), "one size for all microbatches"),
                (("cut=[fc2, fc3]",), "expected cut: auto, and no lanes"),
                (("plan.share=2",), "share: boards can share a stage only with"),
                (("train.microbatch=auto",), "microbatch: auto needs a schedule with a flush"),
                (("optimizer.clip_norm=1",), "with schedule pipedream no step waits"),
                (("recompute=all", "plan.schedules=[pipeoptim]"),
                 "does not apply to schedule pipeoptim"),
        ):
            sets = [word for one in words for word in ("--set", one)]
            with self.subTest(words):
                self.assertIn(why, self.refused("train", run, "--out", "no", *sets))
        self.assertIn("plan.schedules: ", self.refused("sim", run, "--seeds", "1..2"))


# What the controller decides is in tests/scenarios. By day, the verb plan.
load_tests = program.few_when_short("Schedules.test_a_plan_says_it",
                                    "Schedules.test_what_is_refused")


if __name__ == "__main__":
    unittest.main(verbosity=2)
