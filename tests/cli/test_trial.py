#!/usr/bin/env python3
"""`plan.trial`: a few cuts are tried in the running ring, and the fastest is kept."""
import json
import unittest

import program
from test_drift import MODEL, RUN


class Trial(program.Case):
    def setUp(self):
        super().setUp()
        (self.dir / "net.yaml").write_text(MODEL, encoding="utf-8")

    def write_profile(self):
        # A profile that says that board 1 takes seconds, which it does not: the cut that the
        # planner takes leaves it one layer, and is the slowest of those that are tried.
        self.ringpipe("profile", self.run_file(RUN), "--out", "p.json")
        path = self.dir / "p.json"
        found = json.loads(path.read_text(encoding="utf-8"))
        for board in found["boards"]:
            for layer in board["layers"]:
                for kind in ("forward", "backward", "backward_input", "backward_weight"):
                    for point in layer[kind]:
                        point["seconds"] = 0.1 * point["samples"] if board["name"] == "1" else 0
        path.write_text(json.dumps(found), encoding="utf-8")

    def train(self, out, steps, *words):
        self.ringpipe("train", self.run_file(RUN), "--out", out, "--set", f"train.steps={steps}",
                      "--set", "train.eval_epochs=0", *words)
        return self.told(out)

    def told(self, out):
        """Lines of the log, and the layer that the second stage begins with."""
        folder = self.dir / out
        log = [json.loads(x) for x in (folder / "log.jsonl").read_text().splitlines()]
        plan = json.loads((folder / "plan.json").read_text(encoding="utf-8"))
        return ([(x["step"], x["text"]) for x in log if x.get("event") == "trial"],
                plan["stages"][1]["layers"][0])

    def weights(self, out):
        return (self.dir / out / "weights.safetensors").read_bytes()

    def check_kept(self, told, layer):
        """By the milliseconds that were said; which these are is the machine's business."""
        seconds = {text.split()[1]: float(text.split()[3]) for _, text in told[:3]}
        self.assertEqual(len(seconds), 3)
        self.assertIn(f" {min(seconds.values()):.4g} ms a step", told[3][1])
        self.assertEqual(seconds[told[3][1].split()[1]], min(seconds.values()))
        self.assertEqual(told[3][1].split()[1], f"[{layer}]")

    def test_the_fastest_is_kept(self):
        """Each for five steps and the one that fills the pipes; the weights are those of a run
        without, also where it is interrupted in the middle of a trial and goes on."""
        self.write_profile()
        by = ("--profile", "p.json")
        none, before = self.train("none", 30, *by)
        self.assertEqual((none, before), ([], "fc5"))
        told, after = self.train("tried", 30, *by, "--set", "plan.trial=5")
        print(*told, sep="\n")
        self.assertEqual([step for step, _ in told[:1]], [6])
        self.assertEqual(len(told), 4)
        for _, text in told[:3]:
            self.assertRegex(text, r"^cut \[[a-z0-9]+\] tried: [0-9.]+ ms a step, the median of 5;")
        self.assertRegex(told[3][1], r"^cut \[[a-z0-9]+\] is kept, the fastest of 3 that were "
                         r"tried: [0-9.]+ ms a step, the others [0-9.]+ ms [0-9.]+ ms$")
        self.check_kept(told, after)
        self.assertEqual(self.weights("tried"), self.weights("none"))
        # Step 9 is in the middle of the second plan's time.
        told, _ = self.train("parts", 9, *by, "--set", "plan.trial=5")
        self.assertEqual(len(told), 1)
        self.ringpipe("train", self.run_file(RUN), "--resume", "parts", "--set", "train.steps=30",
                      "--set", "train.eval_epochs=0", "--set", "plan.trial=5")
        told, kept = self.told("parts")
        self.assertEqual([text.split()[2] for _, text in told], ["tried:"] * 3 + ["is"])
        self.check_kept(told, kept)
        self.assertEqual(self.weights("parts"), self.weights("none"))

    def test_microbatches_that_can_not_be_chosen(self):
        words = ("--set", "train.microbatch=auto")
        for sets, wanted in (("schedule=async", "with a flush"),
                             ("schedule={kind: umpipe, forward: 4, backward: 4}", "one size"),
                             ("model=resnet-narrow", "normalises over a microbatch"),
                             ("train.microbatch=some", "microbatch")):
            err = self.refused("train", self.run_file(RUN), *words, "--set", sets)
            self.assertIn(wanted, err)

    def test_what_it_is_not_for(self):
        for sets, wanted in ((("cut=[fc3]",), "expected cut: auto"),
                             (("schedule=async",), "expected a schedule with a flush"),
                             (("schedule={kind: umpipe, planner: dgap}",), "schedule.planner"),
                             (("plan.trial=1001",), "1000"), (("plan.trial=often",), "trial")):
            words = [word for item in ("plan.trial=5", *sets) for word in ("--set", item)]
            self.assertIn(wanted, self.refused("train", self.run_file(RUN), *words))


# What the controller decides is in tests/scenarios. By day, what is refused.
load_tests = program.few_when_short("Trial.test_what_it_is_not_for",
                                    "Trial.test_microbatches_that_can_not_be_chosen")


if __name__ == "__main__":
    unittest.main(verbosity=2)
