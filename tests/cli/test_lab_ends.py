#!/usr/bin/env python3
"""However a comparison ends, nothing outlives it, and the same command goes on."""
import os
import signal
import unittest

import lab
import program
from lab import LAB, SOME


class Ends(lab.Case):
    def test_interrupt_and_go_on(self):
        file = self.lab_file(LAB, SOME)
        for how in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(how.name):
                name = "mlp/slow/seed-1" if how == signal.SIGINT else "mlp/fast/seed-1"
                process = self.lab_until(name, 3, file)
                process.send_signal(how)
                _, err = self.finish(process, code=130, seconds=30)
                self.assertIn("the same command goes on", err)
                self.expect_nothing_left()
                self.assertEqual(self.table()["status"], "interrupted")
        self.assertLess(len(self.losses(self.dir / "out/runs/mlp/fast/seed-1")), 12 * 32)
        _, err = self.lab(file)
        self.assertIn("goes on", err)
        self.assertEqual(self.table()["status"], "finished")
        self.ringpipe("train", self.run_file(SOME), "--out", "alone", "--set", "schedule=1f1b")
        alone = self.losses(self.dir / "alone")
        self.assertEqual(alone, self.losses(self.dir / "out/runs/mlp/fast/seed-1"))

    def test_killed(self):
        """Nothing outlives it, however it ends."""
        file = self.lab_file(LAB, SOME)
        process = self.lab_until("mlp/slow/seed-1", 3, file)
        self.assertEqual(len(self.trainings()), 1)
        process.kill()
        self.finish(process, code=-signal.SIGKILL)
        self.expect_nothing_left()
        self.lab(file)
        self.assertEqual(self.table()["runs_finished"], 4)

    def test_a_failed_run_stops_no_other(self):
        file = self.lab_file(LAB, SOME.replace("boards: 2", "boards: 2, wait: 0"))
        process = self.lab_until("mlp/slow/seed-1", 3, file)
        os.kill(self.agents()[0], signal.SIGKILL)
        out, err = self.finish(process, code=3, seconds=120)
        self.assertIn("the same command", err)
        table = self.table()
        self.assertEqual(table["runs_finished"], 3)
        self.assertEqual(table["runs_failed"], 1)
        failed = [run for run in table["run"] if run["status"] == "failed"]
        self.assertEqual([run["run"] for run in failed], ["mlp/slow/seed-1"])
        self.assertIn("killed", failed[0]["note"])
        self.assertIn("1 of 2, 1 failed", out)
        self.lab(file)
        self.assertEqual(self.table()["runs_finished"], 4)

    def test_a_run_that_is_killed(self):
        file = self.lab_file(LAB, SOME)
        process = self.lab_until("mlp/slow/seed-1", 3, file)
        os.kill(self.trainings()[0], signal.SIGKILL)
        self.finish(process, code=3, seconds=120)
        failed = [run for run in self.table()["run"] if run["status"] == "failed"]
        self.assertEqual(len(failed), 1)
        self.assertIn("signal 9", failed[0]["note"])

    def test_two_in_one_folder(self):
        file = self.lab_file(LAB, SOME)
        process = self.lab_until("mlp/slow/seed-1", 1, file)
        self.assertIn("another", self.refused("lab", file, "--out", "out"))
        process.send_signal(signal.SIGINT)
        self.finish(process, code=130, seconds=30)


# Under a sanitizer, which makes a run slow: one that is interrupted and one that
# fails; test_lab goes on with a comparison.
load_tests = program.few_when_short("Ends.test_a_run_that_is_killed",
                                    sanitized=("Ends.test_two_in_one_folder",))


if __name__ == "__main__":
    program.main()
