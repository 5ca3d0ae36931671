#!/usr/bin/env python3
"""The same seed gives the same bytes: twice, over other cuts, and over an interruption."""
import json
import signal

import program


class Repeat(program.Case):
    EPOCHS = 40

    def weights(self, out):
        return (self.dir / out / "weights.safetensors").read_bytes()

    def tensors(self, out):
        return program.read_safetensors(self.dir / out / "weights.safetensors")

    def train(self, out, *words):
        self.ringpipe("train", self.run_file(), "--out", out, *words)
        return self.weights(out)

    def losses(self, out):
        return [r["loss"] for r in program.steps_of(self.dir / out / "log.jsonl")]

    def test_twice(self):
        first = self.train("a")
        self.assertTrue(first == self.train("b"), "other weights")
        self.assertEqual(self.losses("a"), self.losses("b"))
        self.assertTrue(first != self.train("c", "--set", "train.seed=2"), "the same weights")

    def test_cuts(self):
        """Flushed schedules: as many stages as one likes, the numbers are the same."""
        for schedule in ("gpipe", "1f1b", "zb-h1",
                         "{kind: umpipe, forward: 5, backward: 3}"):
            wanted = None
            for boards in (1, 2, 3):
                out = f"{schedule}-{boards}"
                self.train(out, "--set", "schedule=" + schedule, "--set", f"ring.boards={boards}")
                wanted = wanted or self.tensors(out)
                with self.subTest(out):
                    self.assertTrue(self.tensors(out) == wanted, "other weights")

    def resumed(self, how, *more):
        whole = ("--set", f"train.epochs={self.EPOCHS}", *more)
        wanted = self.train("whole", *whole)
        process = self.start("train", self.run_file(), "--out", "cut", *whole)
        log = self.dir / "cut" / "log.jsonl"
        self.wait_for("step 9", lambda: len(program.steps_of(log)) >= 9, process=process)
        process.send_signal(how)
        self.finish(process, code=None)
        self.assertFalse((self.dir / "cut" / "weights.safetensors").exists(), "came too late")
        self.expect_no_agents()
        self.ringpipe("train", self.run_file(), "--resume", "cut", *whole)
        self.assertTrue(wanted == self.weights("cut"), "other weights")
        self.assertEqual(self.losses("whole"), self.losses("cut"))
        summary = json.loads((self.dir / "cut" / "summary.json").read_text())
        self.assertEqual(summary["status"], "finished")
        self.assertEqual(summary["steps"], 4 * self.EPOCHS)

    def test_resume_after_kill(self):
        self.resumed(signal.SIGKILL)


load_tests = program.few_when_short("Repeat.test_resume_after_kill",
                                    sanitized=("Repeat.test_twice",))


if __name__ == "__main__":
    program.main()
