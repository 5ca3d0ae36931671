#!/usr/bin/env python3
"""ring.verify: a microbatch is computed again on another board, and one that is wrong is found."""
import json
import re

import program
import test_keys


def events(folder, name):
    lines = (folder / "log.jsonl").read_text().splitlines()
    return [r for r in map(json.loads, lines) if r.get("event") == name]


def weights(folder):
    return (folder / "weights.safetensors").read_bytes()


class Right(program.Case):
    """Nothing is wrong: the same numbers, and all stages have been looked at."""

    def compare(self, *words):
        run = self.run_file(program.RUN.replace("boards: 2", "boards: 3"))
        words = ("--set", "train.epochs=6", "--set", "cut=[fc2, fc3]", *words)
        self.ringpipe("train", run, "--out", "plain", *words)
        self.ringpipe("train", run, "--out", "verified", "--set", "ring.verify=1/8", *words)
        self.assertTrue(weights(self.dir / "plain") == weights(self.dir / "verified"))
        found = events(self.dir / "verified", "verify")
        summary = json.loads((self.dir / "verified" / "summary.json").read_text())
        count = summary["verify"]["microbatches"]
        self.assertEqual(count, 12)
        self.assertEqual((summary["verify"]["stages"], summary["verify"]["wrong"]), (3 * count, 0))
        self.assertEqual(len(found), count)
        self.assertEqual({(e["kind"], e["verified"], e["board_count"]) for e in found},
                         {("verify_same", 3, 3)})
        self.assertNotIn("verify", json.loads((self.dir / "plain" / "summary.json").read_text()))
        self.assertEqual(events(self.dir / "plain", "verify"), [])

    def test_flushed(self):
        self.compare("--set", "schedule=1f1b", "--set", "optimizer={kind: adam, lr: 0.001}")

    def test_sizes(self):
        """Microbatches of a size by stage and direction, of which one sample is looked at."""
        self.compare("--set", "schedule={kind: umpipe, forward: [5, 16, 3], backward: [7, 2, 16]}")
        found = events(self.dir / "verified", "verify")
        self.assertEqual((found[0]["by_sample"], found[0]["verified"]), (1, 3))

    def test_refusals(self):
        run = self.run_file()
        for value in ("5", "1/0", "1/x", "2/3", "1/4x"):
            err = self.refused("train", run, "--out", "out", "--set", f"ring.verify={value}")
            self.assertIn(f"as in 1/200, found '{value}'", err)
        err = self.refused("train", run, "--out", "out", "--set", "ring.verify=1/9",
                           "--set", "ring.boards=1")
        self.assertIn("needs at least two boards", err)


class Wrong(test_keys.Case):
    """Board `two` has one wrong number in every forward, also when it checks another's."""

    def open(self, *names, schedule=None):
        controller = self.new("controller")
        lines = ""
        for name in names:
            public = self.new(name)
            self.ringpipe("keys", "trust", "--dir", name, "controller", controller)
            more = ("--wrong-every", "1") if name == "two" else ()
            _, address = self.agent(name, "--name", name, *more)
            lines += f"  - {{name: {name}, address: '{address}', key: {public}}}\n"
        (self.dir / "lab.yaml").write_text("boards:\n" + lines)
        text = program.RUN.replace("boards: 2", "roster: lab.yaml, verify: 1/4")
        if schedule:
            text = re.sub(r"(?m)^schedule: .*$", f"schedule: {schedule}", text)
        self.run_yaml = self.run_file(text + "keys: controller\n")

    def expect_without(self, folder, *others):
        """It goes on as if the board had never been there."""
        self.ringpipe("train", self.run_file(program.RUN.replace(
            "boards: 2", f"boards: {len(others)}")), "--out", "right")
        self.assertTrue(weights(self.dir / "right") == weights(folder), "other weights")
        plan = json.loads((folder / "plan.json").read_text())
        self.assertEqual([node["name"] for node in plan["nodes"]], list(others))
        summary = json.loads((folder / "summary.json").read_text())
        self.assertEqual((summary["status"], summary["verify"]["wrong"]), ("finished", 1))
        self.assertEqual([r["board"] for r in summary["recovery"]], [1])
        self.assertEqual((summary["ledger"]["lost"], summary["ledger"]["repeated"]), (0, 0))

    def test_the_ring_goes_on_without_it(self):
        self.open("one", "two", "three")
        _, err = self.ringpipe("train", self.run_yaml, "--out", "out")
        self.assertRegex(err, r"board two computed the forward of microbatch \d of step 0 on stage "
                         r"\d wrong: (one and three|three and one) agree on different bits")
        self.assertIn("two computes wrong: the model is cut again; boards in the ring: 2", err)
        self.expect_without(self.dir / "out", "one", "three")


# What the controller decides is in tests/scenarios.
load_tests = program.few_when_short("Right.test_flushed", "Right.test_refusals",
                                    "Wrong.test_the_ring_goes_on_without_it")


if __name__ == "__main__":
    program.main()
