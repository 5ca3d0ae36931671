#!/usr/bin/env python3
"""`plan.boards`: which boards of a roster a run has, and in which order; the others are spares."""
import json

import program
import test_lost_boards

# Every op of this board takes a tenth of a second: it holds up two that are fast.
SLOW = "ring.throttle={boards: {two: {forward_op_ms: 100, backward_op_ms: 100}}}"


class Chosen(test_lost_boards.Roster):
    SETS = ()

    def train(self, out, *words):
        self.ringpipe("train", self.run_yaml, "--out", out, *self.SETS, *words)
        return self.nodes(out)

    def events(self, out):
        lines = map(json.loads, (self.dir / out / "log.jsonl").read_text().splitlines())
        return [line for line in lines if line.get("event") == "boards"]

    def weights(self, out):
        return (self.dir / out / "weights.safetensors").read_bytes()


class Boards(Chosen):
    MORE = ("three",)
    SETS = ("--set", "cut=auto")

    def test_a_board_that_holds_up_is_left_out(self):
        words = ("--set", SLOW, "--set", "plan.boards=auto", "--set", "train.epochs=1")
        nodes = self.train("auto", *words)
        self.assertNotIn("two", nodes)
        said, = self.events("auto")
        self.assertEqual((said["board_count"], said["boards_before"], said["spares"]),
                         (len(nodes), 3, 3 - len(nodes)))
        self.assertLess(said["step_s"], said["step_before_s"])
        self.assertEqual(said["boards"].split(), nodes)
        # Again by the run file that the run has written, and the run itself goes on with them.
        text = (self.dir / "auto" / "run.yaml").read_text()
        self.assertNotIn("boards: auto", text)
        names = ", ".join(nodes)
        self.assertEqual(self.train("named", "--set", f"plan.boards=[{names}]",
                                    "--set", "train.epochs=1"), nodes)
        self.assertTrue(self.weights("auto") == self.weights("named"))
        self.ringpipe("train", self.dir / "auto", "--resume", "auto", "--set", "train.epochs=2")
        self.assertEqual(self.nodes("auto"), nodes)
        self.assertEqual(len(self.events("auto")), 1)

    def test_boards_in_an_order(self):
        self.assertEqual(self.train("out", "--set", "plan.boards=[three, one]",
                                    "--set", "train.epochs=1"), ["three", "one"])
        out, _ = self.ringpipe("plan", self.run_yaml, *self.SETS, "--set", SLOW,
                               "--set", "plan.boards=auto")
        self.assertRegex(out, r"[12] of 3 boards are faster")
        self.assertRegex(out, r"Left out: .*board two \([0-9.]+ s for a microbatch\)")

    def test_what_is_refused(self):
        for value, why in (("some", "expected all, auto, or a list"),
                           ("[one, four]", "board 'four' is not in the roster"),
                           ("[one, one]", "board 'one' is listed twice"),
                           ("[]", "expected all, auto, or a list"),
                           ("{one: 1}", "expected all, auto, or a list")):
            err = self.refused("train", self.run_yaml, *self.SETS, "--set", f"plan.boards={value}")
            self.assertIn(why, err)
        local = ("--set", "plan.boards=auto")
        err = self.refused("train", self.run_file(program.RUN), *local)
        self.assertIn("needs `ring.roster`", err)


class Halves(Chosen):
    """Forwards and backwards of stages on boards of their own."""
    MORE = ("three", "four")
    EVEN = "ring.throttle={gflops: 0.02}"
    BACKWARDS = ("ring.throttle={gflops: 0.02, boards: "
                 "{three: {backward_op_ms: 400}, four: {backward_op_ms: 400}}}")
    # What wires take is said: on a machine with other work it may be measured as anything.
    SETS = ("--set", "cut=auto", "--set", "model=equal.yaml", "--set", "data.size=12",
            "--set", "ring.link={rate_mbit: 800}")
    WORDS = ("--set", BACKWARDS, "--set", "schedule=pipefb", "--set", "train.steps=6")

    def setUp(self):
        super().setUp()
        layers = "".join(f"  - {{name: fc{i}, kind: dense, out: {'classes' if i == 8 else 64}}}\n"
                         for i in range(1, 9))
        (self.dir / "equal.yaml").write_text(
            "input: data\nlayers:\n  - {name: flat, kind: flatten}\n" + layers)

    def test_who_is_slow_in_backwards_has_forwards(self):
        nodes = self.train("auto", *self.WORDS, "--set", "plan.boards=auto")
        self.assertEqual(sorted(nodes[:2]), ["four", "three"])
        self.assertEqual(sorted(nodes[2:]), ["one", "two"])
        said, = self.events("auto")
        self.assertIn("the first half of them have forwards, the remaining ones backwards",
                      said["limits"])
        self.assertEqual(self.train("named", *self.WORDS, "--set",
                                    f"plan.boards=[{', '.join(nodes)}]"), nodes)
        cut = json.loads((self.dir / "auto" / "plan.json").read_text())["cut"]
        if cut == json.loads((self.dir / "named" / "plan.json").read_text())["cut"]:
            self.assertTrue(self.weights("auto") == self.weights("named"))

    def test_some_stages_are_split(self):
        """A board that is slow in backwards has forwards; two of three stages have one board."""
        layers = "".join(f"  - {{name: fc{i}, kind: dense, out: {'classes' if i == 14 else 64}}}\n"
                         for i in range(1, 15))
        (self.dir / "equal.yaml").write_text(
            "input: data\nlayers:\n  - {name: flat, kind: flatten}\n" + layers)
        words = ("--set", "ring.throttle={gflops: 0.02, boards: {two: {backward_op_ms: 900}}}",
                 "--set", "schedule=pipefb", "--set", "train.checkpoint_steps=3", "--set",
                 "plan.boards=auto")
        nodes = self.train("whole", *words, "--set", "train.steps=6")
        plan = json.loads((self.dir / "whole" / "plan.json").read_text())
        split = plan["method"]["split"]
        self.assertEqual((sum(split), len(split), len(nodes)), (1, 3, 4))
        self.assertEqual(nodes[split.index(True)], "two")
        said, = self.events("whole")
        self.assertIn("the first ones of them have forwards, and all else of stages",
                      said["limits"])
        self.train("part", *words, "--set", "train.steps=3")
        part = json.loads((self.dir / "part" / "plan.json").read_text())
        self.ringpipe("resume", "part", "--set", "train.steps=6")
        after = json.loads((self.dir / "part" / "plan.json").read_text())
        self.assertEqual((after["cut"], after["method"]["split"]),
                         (part["cut"], part["method"]["split"]))

    def test_a_plan_says_whether_a_split_pays(self):
        words = ("plan", self.run_yaml, *self.SETS, "--set")
        out, _ = self.ringpipe(*words, self.BACKWARDS, "--set", "schedule=pipedream")
        self.assertRegex(out, r"\(pipefb\) pays: [0-9.e-]+ s a step instead of [0-9.e-]+ by "
                              r"pipedream's best plan, x[12]\.\d\d, because backwards take board "
                              r"(three|four) ")
        out, _ = self.ringpipe(*words, self.EVEN, "--set", "schedule=1f1b")
        self.assertRegex(out, r"\(pipefb\) does not pay: ")


if __name__ == "__main__":
    program.main()
