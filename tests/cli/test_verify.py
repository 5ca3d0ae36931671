#!/usr/bin/env python3
"""ring.verify: a microbatch is computed again on another board, and one that is wrong is found."""
import json
import re
import unittest

import program
import test_keys
from spread import spread


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
        self.assertIn("3 of 3 boards' stages were computed again, with the same bits",
                      found[-1]["text"])
        self.assertNotIn("verify", json.loads((self.dir / "plain" / "summary.json").read_text()))
        self.assertEqual(events(self.dir / "plain", "verify"), [])

    def test_flushed(self):
        self.compare("--set", "schedule=1f1b", "--set", "optimizer={kind: adam, lr: 0.001}")

    def test_sizes(self):
        """Microbatches of a size by stage and direction, of which one sample is looked at."""
        self.compare("--set", "schedule={kind: umpipe, forward: [5, 16, 3], backward: [7, 2, 16]}")
        found = events(self.dir / "verified", "verify")
        self.assertRegex(found[0]["text"], r"^the microbatch of sample [0-9]+: 3 of 3 boards' ")

    def test_sizes_with_batch_statistics(self):
        model = self.dir / "norm.yaml"
        model.write_text("input: data\nlayers:\n- {name: fc1, kind: dense, out: 8}\n"
                         "- {name: fc2, kind: dense, out: 8}\n- {name: norm, kind: batchnorm}\n"
                         "- {name: fc3, kind: dense, out: classes}\n", encoding="utf-8")
        micro = re.search(r"microbatch: (\d+)", program.RUN)[1]
        sizes = f"forward: [5, {micro}, 3], backward: [7, {micro}, 16]"
        self.compare("--set", f"model={model}", "--set", f"schedule={{kind: umpipe, {sizes}}}")

    def test_shared(self):
        """All boards that have a part of the microbatch are looked at; of umpipe's one sample, of
        which a stage has one board."""
        run = self.run_file(program.RUN.replace("boards: 2", "boards: 3"))
        for name, schedule, most in (("1f1b", "1f1b", 5),
                                     ("umpipe", "{kind: umpipe, forward: 5, backward: 3}", 3)):
            with self.subTest(name):
                out = {folder: f"{folder}-{name}" for folder in ("row", "plain", "verified")}
                words = ("--set", "train.epochs=3", "--set", f"schedule={schedule}")
                self.ringpipe("sim", run, "--out", out["row"], *words, "--set", "cut=[fc2, fc3]")
                plan = json.loads((self.dir / out["row"] / "plan.json").read_text())
                (self.dir / "shared.json").write_text(json.dumps(
                    spread(plan, [[0, 1], [0, 0.3, 1], [0, 0.5, 1]])), encoding="utf-8")
                words = (*words, "--plan", "shared.json", "--set", "ring.boards=5", "--set",
                         "cut=auto")
                self.ringpipe("train", run, "--out", out["plain"], *words)
                self.ringpipe("train", run, "--out", out["verified"], *words, "--set",
                              "ring.verify=1/8")
                self.assertTrue(weights(self.dir / out["plain"]) ==
                                weights(self.dir / out["verified"]))
                count = len(events(self.dir / out["verified"], "verify"))
                summary = json.loads((self.dir / out["verified"] / "summary.json").read_text())
                self.assertGreater(count, 3)
                self.assertEqual(summary["verify"]["microbatches"], count)
                self.assertEqual(summary["verify"]["wrong"], 0)
                self.assertIn(summary["verify"]["stages"],
                              range(3 * count + (most > 3), most * count + 1))

    def test_split_backwards(self):
        self.compare("--set", "schedule=zb-h1")

    def test_in_flight(self):
        self.compare("--set", "schedule=pipeoptim")

    def test_replicas(self):
        self.compare("--set", "schedule=ea-pipe", "--set", "links={codec: int8}")

    def test_stages_that_are_not_split(self):
        """Half a stage is not computed again, but who has it computes what others have."""
        run = self.run_file(program.RUN.replace("boards: 2", "boards: 4"))
        words = ("--set", "train.epochs=6", "--set", "cut=[fc2, fc3]", "--set",
                 "schedule={kind: pipefb, ahead: [3, 2, 1], split: [false, true, false]}")
        self.ringpipe("train", run, "--out", "plain", *words)
        self.ringpipe("train", run, "--out", "verified", "--set", "ring.verify=1/8", *words)
        self.assertTrue(weights(self.dir / "plain") == weights(self.dir / "verified"))
        told = json.loads((self.dir / "verified" / "summary.json").read_text())["verify"]
        texts = [event["text"] for event in events(self.dir / "verified", "verify")]
        self.assertEqual(len(texts), told["microbatches"])
        counts = [int(re.search(r": ([0-9]+) of 4 boards' stages", text)[1]) for text in texts]
        self.assertEqual((told["stages"], told["wrong"]), (sum(counts), 0))
        self.assertEqual(max(counts), 2, counts)  # none where forwards came before a pause

    def test_interrupted(self):
        """A pause for a check alone saves nothing, and an interrupt there loses nothing."""
        run = self.run_file(program.RUN)
        words = ("--set", "ring.verify=1/4", "--set", "train.epochs=40")
        self.ringpipe("train", run, "--out", "whole", *words)
        process = self.start("train", run, "--out", "cut", *words)
        log = self.dir / "cut" / "log.jsonl"
        self.wait_for("step 9", lambda: len(program.steps_of(log)) >= 9, process=process)
        process.send_signal(2)
        _, err = self.finish(process, code=None)
        if process.returncode != 0:
            self.assertEqual(process.returncode, 130, err)
            self.ringpipe("resume", "cut")
        self.assertTrue(weights(self.dir / "whole") == weights(self.dir / "cut"))

    def test_refusals(self):
        run = self.run_file()
        for value in ("5", "1/0", "1/x", "2/3", "1/4x"):
            err = self.refused("train", run, "--out", "out", "--set", f"ring.verify={value}")
            self.assertIn(f"as in 1/200, found '{value}'", err)
        err = self.refused("train", run, "--out", "out", "--set", "ring.verify=1/9",
                           "--set", "ring.boards=1")
        self.assertIn("needs a second board", err)


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
                         r"\d wrong: (one and three|three and one) agree on other bits")
        self.assertIn("board two computes wrong: the model is cut anew over the 2 boards left", err)
        self.expect_without(self.dir / "out", "one", "three")

    def test_sizes_of_their_own(self):
        """What one board alone computes is found there, too."""
        sizes = "{kind: umpipe, forward: 5, backward: 3}"
        self.open("one", "two", "three", schedule=sizes)
        _, err = self.ringpipe("train", self.run_yaml, "--out", "out")
        self.assertRegex(err, r"board two computed the forward of the microbatch of sample \d+ of "
                         r"step 0 on stage \d wrong: (one and three|three and one) agree")

    def test_a_spare_takes_its_place(self):
        self.open("one", "two", "three", "four")
        _, err = self.ringpipe("train", self.run_yaml, "--out", "out", "--set",
                               "ring.spare=[four]")
        self.assertIn("board two computes wrong: the spare board four takes its place", err)
        self.expect_without(self.dir / "out", "one", "four", "three")

    def test_two_boards_can_not_say_which(self):
        self.open("one", "two")
        _, err = self.ringpipe("train", self.run_yaml, "--out", "out", code=3)
        self.assertRegex(err, "boards (one and two|two and one) computed other bits in the forward")
        self.assertIn("go on with: ", err)

    def test_nobody_can_take_its_place(self):
        self.open("one", "two", "three")
        _, err = self.ringpipe("train", self.run_yaml, "--out", "out", "--set", "ring.at_least=3",
                               code=3)
        self.assertIn("board two computed the forward", err)
        self.assertIn("go on with: ", err)


# Under a sanitizer, which makes a run slow: each verdict once.
load_tests = program.few_when_short("Right.test_flushed", "Right.test_refusals",
                                    "Wrong.test_the_ring_goes_on_without_it")


if __name__ == "__main__":
    program.main()
