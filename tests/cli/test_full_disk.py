#!/usr/bin/env python3
"""A disk that fills up in the middle of a run: a pause where there is room again soon; else it
stops, says so, and can be resumed."""
import json
import re
import resource
import time

import program


class FullDisk(program.Case):
    def setUp(self):
        super().setUp()
        self.disk = self.small_disk("disk", "16m")

    def test_full_from_the_start(self):
        self.fill(0)
        err = self.refused("train", self.run_file(), "--out", "disk/out")
        self.assertIn("No space left", err)

    def test_full_for_good(self):
        process = self.train_until("disk/out", 2, "--set", "ring.wait=0")
        self.fill(0)
        _, err = self.finish(process, code=3)
        self.assertIn("No space left", err)
        self.assertNotIn("Traceback", err)
        (self.disk / "filler").unlink()
        steps = len(program.steps_of(self.disk / "out" / "log.jsonl"))
        bound = ("--set", f"train.steps={steps + 4}")
        self.ringpipe("train", self.run_file(), "--resume", "disk/out", *program.LONG, *bound)

    def test_full_for_two_seconds(self):
        """It costs lines and checkpoints, not the run."""
        process = self.start("train", self.run_file(), "--out", "disk/out", "--set",
                             "data.train=12800", "--set", "ring.throttle={forward_ms: 4}", "--set",
                             "train.checkpoint_steps=10")
        log = self.disk / "out" / "log.jsonl"
        self.wait_for("step 5", lambda: len(program.steps_of(log)) >= 5, process=process)
        self.fill(0)
        time.sleep(2)  # until there is room again
        (self.disk / "filler").unlink()
        _, err = self.finish(process, code=0)
        self.assertRegex(err, "can ?not be written: No space left")
        self.assertIn("the run goes on without", err)
        for name in ("log.jsonl", "trace.json", "events.out.tfevents.ringpipe"):
            self.assertLessEqual(len(re.findall(f"{name}: can ?not be written", err)), 1, err)
        lines = [json.loads(line) for line in log.read_text().splitlines()]  # whole ones
        self.assertIn("No space left", err)
        self.assertEqual([line["event"] for line in lines if "event" in line].count("saved"), 1)
        steps = [line["step"] for line in lines if "event" not in line]
        self.assertEqual(steps, sorted(set(steps)))
        self.assertEqual(steps[-1], 200)
        summary = json.loads((self.disk / "out" / "summary.json").read_text())
        self.assertEqual((summary["status"], summary["steps"]), ("finished", 200))
        text = (self.disk / "out" / "trace.json").read_text()
        self.assertGreater(len(json.loads(text)), 100)

    def fill(self, leave):
        with open(self.disk / "filler", "wb", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(4096))
            except OSError:
                file.truncate(max(0, file.tell() - leave))


class SizeLimit(program.Case):
    def test_a_checkpoint_beyond_the_limit(self):
        """`ulimit -f` is like a full disk: the message names the file, and the run stops."""
        limit = (1 << 20, resource.getrlimit(resource.RLIMIT_FSIZE)[1])
        process = self.start("train", self.run_file(), "--out", "out", "--set", "ring.wait=0",
                             preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limit))
        _, err = self.finish(process, code=3)
        self.assertRegex(err, "out/checkpoint/step-.*: File too large")
        self.assertIn("files may not be larger than 1048576 bytes here (`ulimit -f`)",
                      (self.dir / "out" / "agent-0.log").read_text())


if __name__ == "__main__":
    program.main()
