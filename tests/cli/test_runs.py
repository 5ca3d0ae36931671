#!/usr/bin/env python3
"""ps, log and stop: runs seen and ended from another shell."""
import json
import os
import re
import shutil
import signal
from pathlib import Path

import program

THROTTLE = ("--set", "ring.throttle={forward_ms: 2}")


class Runs(program.Case):
    def listed(self, *words):
        out, _ = self.ringpipe("ps", *words, "--format", "json")
        found = json.loads(out)
        self.assertEqual(found["version"], 1)
        return found["runs"]

    def at_work(self, process):
        """What ps says without a folder of this test's run; other runs may be at work."""
        mine = [run for run in self.listed() if run["pid"] == process.pid]
        self.assertLessEqual(len(mine), 1)
        return mine[0] if mine else None

    def test_a_run_at_work_is_seen_followed_and_stopped(self):
        process = self.train_until("my run", 3, *THROTTLE)
        run = self.at_work(process)
        self.assertEqual(run["folder"], str(self.dir / "my run"))
        self.assertEqual((run["state"], run["model"], run["schedule"], run["steps"], run["boards"]),
                         ("training", "mlp", "gpipe", 4000, 2))
        self.assertGreaterEqual(run["step"], 3)
        for key in ("loss", "samples_per_s", "left_s"):
            self.assertGreater(run[key], 0, key)
        out, _ = self.ringpipe("ps")
        self.assertRegex(out, r"\n(\S*/)?my run +training +\d+/4000 ")
        self.assertEqual([r["folder"] for r in self.listed(".")], ["./my run"])
        follower = self.start("log", "my run", "-f")
        other = self.start("log", "my run", "--follow", "--all")
        first = other.stdout.readline()
        self.assertRegex(first, r"^ +\d+:\d\d  step 1  epoch 1  loss \d")
        out, _ = self.ringpipe("stop", "my run")  # it says that only at the end
        self.assertRegex(out, r"^interrupted: step \d+ of 4000, .*; "
                              r"continue it with `ringpipe resume 'my run'`\n$")
        self.assertIsNotNone(process.poll())
        _, err = self.finish(process, 130)
        self.assertIn("ringpipe: interrupted ", err)
        told, _ = self.finish(follower)
        self.assertTrue(told.endswith(out), told)
        told = first + other.stdout.read()
        self.finish(other)
        steps = [int(n) for n in re.findall(r"  step (\d+)  epoch", told)]
        self.assertEqual(steps, list(range(1, len(program.steps_of(self.dir / "my run/log.jsonl"))
                                           + 1)))
        self.assertFalse((self.dir / "my run" / "controller.json").exists())
        self.assertEqual(self.ringpipe("stop", "my run"), (out, ""))  # again: nothing is to be done

    def test_asked_twice_is_asked_once(self):
        process = self.train_until("out", 1, *THROTTLE, "--set", "ring.throttle={forward_ms: 30}")
        for _ in range(5):
            os.kill(process.pid, signal.SIGUSR1)
        _, err = self.finish(process, 130)
        self.assertNotIn("interrupted twice", err)
        self.assertEqual(self.listed("out")[0]["state"], "interrupted")
        self.assertTrue(list((self.dir / "out" / "checkpoint").glob("step-*.safetensors")))

    def test_a_copy_is_nobodys_and_the_wait_has_an_end(self):
        process = self.train_until("out", 1, *THROTTLE)
        os.kill(process.pid, signal.SIGSTOP)
        shutil.copytree(self.dir / "out", self.dir / "copy")
        run, = self.listed("copy")
        self.assertEqual((run["state"], run["pid"]), ("killed", None))
        out, _ = self.ringpipe("stop", "copy")
        self.assertIn("continue it with `ringpipe resume copy`", out)
        status = Path(f"/proc/{process.pid}/status").read_text(encoding="ascii")
        pending = int(re.search(r"ShdPnd:\s*(\w+)", status).group(1), 16)
        self.assertFalse(pending & 1 << signal.SIGUSR1 - 1)  # the original was asked for nothing
        error = self.refused("stop", "out", "--wait", "0", code=3)
        self.assertIn(f"process {process.pid}", error)
        os.kill(process.pid, signal.SIGCONT)
        self.finish(process, 130)  # it was asked, and ends when it can

    def test_a_killed_run_is_one(self):
        process = self.train_until("out", 2, *THROTTLE)
        process.kill()
        process.communicate(timeout=60)
        self.expect_no_agents()
        run, = self.listed("out")
        self.assertEqual((run["state"], run["pid"], run["left_s"]), ("killed", None, None))
        self.assertFalse([r for r in self.listed() if r["folder"] == str(self.dir / "out")])
        out, _ = self.ringpipe("stop", "out")
        self.assertIn("continue it with `ringpipe resume out`", out)
        log, _ = self.ringpipe("log", "out")
        self.assertTrue(log.endswith(out), log)

    def test_a_finished_run_has_a_story(self):
        self.ringpipe("train", self.run_file(), "--out", "runs/a", "--set", "train.epochs=3")
        self.ringpipe("train", self.run_file(), "--out", "runs/b")
        out, _ = self.ringpipe("log", "runs/a")
        self.assertRegex(out, r"step 4: test loss \d\.\d{4}, accuracy ")
        self.assertRegex(out, r"\n +\d+:\d\d  step 12  epoch 3  loss ")
        self.assertRegex(out, r"\nfinished: step 12 of 12, \d+ samples/s\n$")
        self.assertEqual([(r["folder"], r["state"], r["step"]) for r in self.listed("runs")],
                         [("runs/a", "finished", 12), ("runs/b", "finished", 4)])
        self.assertEqual(len(self.listed("runs/a", "runs/b", "runs/")), 2)

    def test_wrong_input(self):
        (self.dir / "empty").mkdir()
        self.assertIn("the folder contains no run", self.refused("ps", "empty"))
        self.assertIn("nowhere", self.refused("ps", "nowhere"))
        self.assertIn("expected a run folder", self.refused("ps", self.run_file()))
        for verb in ("log", "stop"):
            self.assertIn("this is not a run folder", self.refused(verb, "empty"))
            self.assertIn("the folder does not exist", self.refused(verb, "nowhere"))
            self.assertIn("expected DIR", self.refused(verb))
        self.assertIn("expected a number", self.refused("stop", "empty", "--wait", "long"))
        (self.dir / "empty" / "controller.json").write_text(
            '{"pid": 1, "start": 1, "host": "far", "boot": "b"}')
        self.assertIn("its controller runs on the machine far", self.refused("stop", "empty"))


if __name__ == "__main__":
    program.main()
