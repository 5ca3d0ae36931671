#!/usr/bin/env python3
"""A run of lanes: rings of their own, drawn together; what is away is not waited for."""
import json
import os
import pathlib
import resource
import signal
import time
import unittest

import program

RUN = """\
model: mlp
data: {set: glyphs, train: 480, test: 64}
ring: {boards: 2}
train: {epochs: 4, batch: 16, microbatch: 8, seed: 3, eval_epochs: 0}
loss: cross-entropy
optimizer: {kind: sgd, lr: 0.05, momentum: 0.9}
schedule: 1f1b
cut: [fc2]
lanes: {count: 2, every: 10, lag: 0}
"""
STEPS = 60  # of a lane: 240 samples an epoch, 15 steps
# Long enough for somebody to be killed, and to come back.
LONG = ("--set", "train.epochs=400", "--set", "ring.throttle={forward_ms: 2, backward_ms: 2}")


class Lanes(program.Case):
    def train(self, out, *words, **options):
        self.ringpipe("train", self.run_file(RUN), "--out", out, *words, seconds=200, **options)

    def begin(self, out, *words):
        return self.start("train", self.run_file(RUN), "--out", out, *words)

    def lines(self, out):
        log = self.dir / out / "log.jsonl"
        text = log.read_text() if log.exists() else ""
        return [json.loads(line) for line in text.splitlines(keepends=True) if line[-1] == "\n"]

    def rounds(self, out):
        return [line for line in self.lines(out) if "round" in line]

    def events(self, out, name):
        return [line for line in self.lines(out) if line.get("event") == name]

    def summary(self, out):
        return json.loads((self.dir / out / "summary.json").read_text())

    def weights(self, out):
        return (self.dir / out / "weights.safetensors").read_bytes()

    def wait_rounds(self, out, count, process, seconds=200):
        self.wait_for(f"round {count}", lambda: len(self.rounds(out)) >= count, seconds, process)

    def controller(self, out, lane):
        return json.loads((self.dir / out / f"lane-{lane}" / "controller.json").read_text())["pid"]

    def agents_of(self, pid):
        """Processes of agents that this controller has started."""
        def parent_of(agent):
            stat = pathlib.Path(f"/proc/{agent}/stat").read_text()
            return int(stat.rsplit(")", 1)[1].split()[1])

        return [agent for agent in self.agents() if parent_of(agent) == pid]

    def test_same_bits(self):
        self.train("first", "--format", "json")
        self.train("again")
        summary = self.summary("first")
        rounds = self.rounds("first")
        self.assertEqual(summary["status"], "finished")
        self.assertEqual((summary["steps"], summary["samples"]), (STEPS, 2 * STEPS * 16))
        self.assertEqual(len(summary["stage"]), 4)
        self.assertEqual(summary["eval"]["samples"], 64)
        self.assertEqual([line["step"] for line in rounds], list(range(10, STEPS + 1, 10)))
        self.assertTrue(all(line["lanes"] == [0, 1] for line in rounds))
        self.assertTrue(all(line["lags"] == [0, 0] for line in rounds))
        self.assertEqual([line["digest"] for line in rounds],
                         [line["digest"] for line in self.rounds("again")])
        self.assertTrue(self.weights("first") == self.weights("again"), "other weights")
        for lane in (0, 1):
            own = self.summary(f"first/lane-{lane}")
            self.assertEqual((own["status"], own["steps"]), ("finished", STEPS))
            self.assertEqual((own["ledger"]["lost"], own["ledger"]["repeated"]), (0, 0))
        out, _ = self.ringpipe("eval", "first", "--format", "json")
        self.assertEqual(json.loads(out)["eval"], summary["eval"])
        _, err = self.ringpipe("resume", "first")
        self.assertIn("nothing is left to do", err)
        err = self.refused("resume", "first/lane-0")
        self.assertIn("one lane of a run", err)

    def test_lost_agent(self):
        """The others go on meanwhile; the lane comes back, and is told to be late."""
        process = self.begin("run", *LONG)
        self.wait_rounds("run", 3, process)
        os.kill(self.agents_of(self.controller("run", 1))[0], signal.SIGKILL)
        self.wait_for("a round without it",
                      lambda: [r for r in self.rounds("run") if r["lanes"] == [0]], 100, process)
        late = self.wait_for("the lane, late",
                             lambda: [r for r in self.rounds("run") if max(r["lags"]) > 0], 100,
                             process)[0]
        self.assertIn(1, late["lanes"])
        at = late["lanes"].index(1)
        self.assertGreater(late["lags"][at], 0)
        self.assertAlmostEqual(late["alphas"][at], 0.45 / (1 + late["lags"][at]))
        self.assertTrue(self.events("run", "away"))
        self.stop(process)
        self.assertEqual(self.summary("run")["lanes"][0]["restarts"], 0)
        self.assertGreaterEqual(len(self.summary("run")["recovery"]), 1)

    def test_lost_controller(self):
        process = self.begin("run", *LONG)
        self.wait_rounds("run", 2, process)
        os.kill(self.controller("run", 0), signal.SIGKILL)
        self.wait_for("its end", lambda: self.events("run", "away"), 60, process)
        self.wait_for("the lane, late",
                      lambda: [r for r in self.rounds("run") if max(r["lags"]) > 0], 200, process)
        self.stop(process)
        self.assertEqual([lane["restarts"] for lane in self.summary("run")["lanes"]], [1, 0])

    def stop(self, process):
        process.send_signal(signal.SIGINT)
        _, err = self.finish(process, code=130, seconds=120)
        self.assertIn("ringpipe resume run", err)
        self.assertEqual(self.summary("run")["status"], "interrupted")

    def test_interrupted_and_killed(self):
        """Whatever ends the run, it goes on, and comes to the same bits."""
        self.train("whole", "--set", "train.epochs=12")
        process = self.begin("run", "--set", "train.epochs=12")
        self.wait_rounds("run", 2, process)
        self.stop(process)
        process = self.start("resume", "run")
        self.wait_rounds("run", 6, process)
        process.kill()
        process.communicate()
        self.expect_no_agents(30)
        self.ringpipe("resume", "run", seconds=200)
        self.assertEqual(self.rounds("run")[-1]["digest"], self.rounds("whole")[-1]["digest"])
        self.assertTrue(self.weights("run") == self.weights("whole"), "other weights")
        self.assertEqual(len(self.events("run", "resumed")), 2)
        self.assertEqual(self.summary("run")["status"], "finished")

    def test_full_disk(self):
        """Of the process that averages: rounds wait until it can write again."""
        process = self.begin("out", "--set", "ring.throttle={forward_ms: 2}")
        self.wait_for("a round", lambda: self.rounds("out"), process=process)
        before = resource.prlimit(process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (0, before[1]))
        time.sleep(1.5)
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, before)
        _, err = self.finish(process)
        self.assertIn("the lanes wait and try again for 30 s", err)
        self.assertEqual(self.rounds("out")[-1]["step"], STEPS)
        self.assertEqual(self.summary("out")["status"], "finished")

    def test_lost_for_good(self):
        """A lane that never comes is given up; the others end without it."""
        process = self.begin("run", "--set", "train.epochs=40")
        self.wait_rounds("run", 1, process)
        (self.dir / "run" / "lane-1" / "run.yaml").write_text("no: run\n")
        os.kill(self.controller("run", 1), signal.SIGKILL)
        self.finish(process, seconds=200)
        summary = self.summary("run")
        self.assertEqual((summary["status"], summary["steps"]), ("finished", 600))
        self.assertEqual(self.rounds("run")[-1]["lanes"], [0])
        self.assertLess(summary["lanes"][1]["steps"], 600)

    def test_usage(self):
        run = self.run_file(RUN)
        wrong = [("lanes.count=1", "lanes.count"), ("lanes.alpha=0.6", "alpha"),
                 ("lanes.every=0", "lanes.every"), ("schedule=async", "flushes"),
                 ("checkpoint={best: loss}", "checkpoint.best"), ("lanes.what=1", "what"),
                 ("data.train=1", "too few"), ("lanes.lane=0", "one lane of a run")]
        for change, message in wrong:
            more = ("--set", "train.eval_epochs=1") if "best" in change else ()
            err = self.refused("train", run, "--out", "wrong", "--set", change, *more)
            self.assertIn(message, err, change)
        self.assertIn("a simulation has one ring", self.refused("sim", run))


# By day, one run of lanes; tests/lanes has what becomes of lanes that are late.
load_tests = program.few_when_short("Lanes.test_same_bits",
                                    "Lanes.test_usage")


if __name__ == "__main__":
    unittest.main()
