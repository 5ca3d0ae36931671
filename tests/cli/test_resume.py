#!/usr/bin/env python3
"""Schedules that do not flush, stopped and resumed: the bytes of a run that was never stopped."""
import json
import math
import shutil
import signal
import time

import program
import test_repeat

# What is in flight at a checkpoint is part of it, so a run without a flush is resumed exactly, too.
METHODS = {
    "async": ("schedule=async",),
    "pipedream": ("schedule=pipedream", "train.microbatch=64"),
    "vertical": ("schedule={kind: pipedream, vertical_sync: true}",),
    "2bw": ("schedule=pipedream-2bw", "train.microbatch=32"),
    "predicted": ("schedule={kind: pipedream-2bw, weights: pipeoptim}", "train.microbatch=32"),
    "spectrain": ("schedule=spectrain", "train.microbatch=64"),
    "released": ("schedule={kind: pipeoptim, horizon: released}", "train.microbatch=64"),
    "exact": ("schedule={kind: pipeoptim, horizon: exact}", "optimizer={kind: adamw, lr: 0.001}"),
    "measured": ("schedule={kind: pipeoptim, horizon: measured, probe: 4}", "train.microbatch=64"),
    "xpipe": ("schedule=xpipe", "optimizer={kind: adam, lr: 0.001}"),
    "ea-pipe": ("schedule={kind: ea-pipe, replicas: 2, weights: pipeoptim}", "train.microbatch=64"),
    "plain": ("schedule=ea-pipe",),
    "period": ("schedule={kind: ea-pipe, replicas: 2, period: 3}", "train.microbatch=64"),
    "lean": ("schedule={kind: ea-pipe, lean: true, order: before}", "train.microbatch=64"),
    "mean": ("schedule={kind: ea-pipe, lean: true, evaluate: mean}", "train.microbatch=64"),
    "latest": ("schedule={kind: ea-pipe, replicas: 2, evaluate: latest}", "train.microbatch=64"),
    "pipefb": ("schedule={kind: pipefb, publish: 2}", "train.microbatch=64", "ring.boards=4",
               "cut=[fc2]"),
    "some": ("schedule={kind: pipefb, publish: 2, split: [false, true]}", "train.microbatch=64",
             "ring.boards=3", "cut=[fc2]"),
    "avgpipe": ("schedule={kind: avgpipe, replicas: 3}", "train.microbatch=32"),
}


class Methods(test_repeat.Repeat):
    EPOCHS = 15
    test_twice = test_cuts = test_resume_after_kill = None

    def resumed_method(self, name):
        sets = [word for text in METHODS[name] for word in ("--set", text)]
        self.resumed(signal.SIGINT, "--set", "ring.boards=3",
                     "--set", "cut=[fc2, fc3]", *sets)

    def test_pipedream(self):
        self.resumed_method("pipedream")

    def test_pipeoptim_measured(self):
        self.resumed_method("measured")

    def test_ea_pipe(self):
        self.resumed_method("ea-pipe")

    def test_other_methods(self):
        for name in METHODS.keys() - {"pipedream", "measured", "ea-pipe"}:
            with self.subTest(name):
                self.resumed_method(name)
            for out in ("whole", "cut"):
                shutil.rmtree(self.dir / out, ignore_errors=True)

    def test_pipefb_with_another_split(self):
        """What was in flight is of the former split, so it is forwarded anew; from there on no
        number depends on the split, as long as `ahead` stays the same."""
        words = ("--set", f"train.epochs={self.EPOCHS}", "--set", "train.microbatch=64", "--set",
                 "cut=[fc2]")
        splits = {(True, True): 4, (True, False): 3, (False, True): 3, (False, False): 2}

        def of(split):
            said = ", ".join(str(one).lower() for one in split)
            return ("--set", f"ring.boards={splits[split]}", "--set",
                    "schedule={kind: pipefb, ahead: [3, 2], split: [%s]}" % said)

        whole = self.train("whole", *words, *of((True, True)))
        process = self.start("train", self.run_file(), "--out", "part", *words,
                             *of((True, True)))
        log = self.dir / "part" / "log.jsonl"
        self.wait_for("step 9", lambda: len(program.steps_of(log)) >= 9, process=process)
        process.send_signal(signal.SIGINT)
        self.finish(process, code=None)
        got = {}
        for split, boards in splits.items():
            shutil.copytree(self.dir / "part", self.dir / str(split))
            self.ringpipe("resume", str(split), *of(split))
            got[split] = self.weights(str(split))
            lines = (self.dir / str(split) / "log.jsonl").read_text().splitlines()
            events = [line.get("changes", "") for line in map(json.loads, lines)
                      if line.get("event") == "resumed"]
            anew = any("schedule.split" in text for text in events)
            self.assertEqual(anew, boards < 4, events)
        self.assertTrue(got.pop((True, True)) == whole, "the same split is not the same run")
        self.assertEqual(len(set(got.values())), 1, "other splits are other runs")
        self.assertNotIn(whole, got.values(), "nothing was in flight")

    def predictions(self, out):
        lines = map(json.loads, (self.dir / out / "log.jsonl").read_text().splitlines())
        keys = ("stage", "step", "gap", "ahead", "error", "stale_error")
        return sorted([r[k] for k in keys] for r in lines if r.get("event") == "prediction")

    def killed(self, schedule):
        """What was in flight at the last checkpoint, the end of step 7, is all that is left. There
        a probe waits on the last of five stages for an update, and reports what it would have."""
        self.resumed(signal.SIGKILL, "--set", "ring.boards=5",
                     "--set", "cut=[relu1, fc2, relu2, fc3]", "--set", "train.microbatch=64",
                     "--set", f"schedule={schedule}")
        probes = self.predictions("whole")
        steps = [step for stage, step, *_ in probes if stage == 4]
        self.assertEqual(steps, list(range(2, 4 * self.EPOCHS + 1, 7)))
        self.assertEqual(probes, self.predictions("cut"))

    def test_killed_with_empty_pipes(self):
        self.killed("{kind: spectrain, probe: 7, drain: true}")


# Batch statistics that a centre gets by a pass of its own, on boards so slow that it takes a while.
NORMED = """\
input: data
layers:
  - {name: flat, kind: flatten}
  - {name: fc1, kind: dense, out: 16, bias: false}
  - {name: bn1, kind: batchnorm}
  - {name: relu1, kind: relu}
  - {name: fc2, kind: dense, out: classes}
"""
NORMED_RUN = """\
model: normed.yaml
data: {set: glyphs, train: 128, test: 16}
ring: {boards: 2, throttle: {forward_ms: 120, backward_ms: 1}}
train: {epochs: 2, batch: 16, microbatch: 16, seed: 1, recalibrate: 8}
optimizer: {kind: sgd, lr: 0.05, momentum: 0.9}
schedule: ea-pipe
cut: [bn1]
"""


class Statistics(program.Case):
    STEPS = 8  # an epoch's

    def setUp(self):
        super().setUp()
        self.run_file(NORMED, "normed.yaml")
        self.run_yaml = self.run_file(NORMED_RUN)

    def result(self, out):
        """Weights, losses by step, and what every evaluation gave."""
        folder = self.dir / out
        lines = map(json.loads, (folder / "log.jsonl").read_text().splitlines())
        evals = [[r[k] for k in ("step", "loss", "accuracy")] for r in lines
                 if r.get("event") == "eval"]
        losses = [r["loss"] for r in program.steps_of(folder / "log.jsonl")]
        return (folder / "weights.safetensors").read_bytes(), losses, evals

    def test_interrupt_in_the_batch_statistics(self):
        """In the middle of a run and at its end: they are finished and saved, and the run goes on
        with the evaluation that they are for."""
        self.ringpipe("train", self.run_yaml, "--out", "whole")
        wanted = self.result("whole")
        self.assertEqual([e[0] for e in wanted[2]], [self.STEPS, 2 * self.STEPS])
        for step in (self.STEPS, 2 * self.STEPS):
            out = f"cut-{step}"
            folder = self.dir / out
            log = folder / "log.jsonl"
            process = self.start("train", self.run_yaml, "--out", out)
            self.wait_for(f"step {step}", lambda: len(program.steps_of(log)) >= step,
                          process=process)
            time.sleep(0.1)  # the first stage's last backward
            process.send_signal(signal.SIGINT)
            checkpoint = folder / "checkpoint" / f"step-{step:010}.safetensors"
            self.assertFalse(checkpoint.exists(), "came too late")
            self.finish(process, code=130)
            self.assertTrue(checkpoint.exists())
            self.assertEqual(len(program.steps_of(log)), step)
            self.expect_no_agents()
            self.ringpipe("train", self.run_yaml, "--resume", out)
            got = self.result(out)
            self.assertTrue(got[0] == wanted[0], "other weights")
            self.assertEqual(got[1:], wanted[1:])


# Two layers of batch statistics, one of them behind weights.
CENTRE = """\
input: [3]
layers:
  - {name: bn0, kind: batchnorm, momentum: 0.01}
  - {name: d0, kind: dense, out: 2}
  - {name: bn1, kind: batchnorm}
  - {name: d1, kind: dense, out: 1}
"""
CENTRE_RUN = """\
model: centre.yaml
data: {set: table, path: ., shuffle: false}
ring: {boards: 2}
train: {epochs: 3, batch: 8, microbatch: 3, recalibrate: 2}
loss: mse
optimizer: {kind: sgd, lr: 0.05, momentum: 0.9}
schedule: ea-pipe
cut: [bn1]
"""


def moments(rows):
    """Mean and biased variance of each column."""
    means = [sum(column) / len(rows) for column in zip(*rows)]
    return means, [sum((x - mean) ** 2 for x in column) / len(rows)
                   for column, mean in zip(zip(*rows), means)]


class Recalibration(program.Case):
    """METHODS 9: reset, then the cumulative mean over microbatches with the centre's weights."""

    def renewed(self, micros):
        """The plain means, over microbatches, of their means and of their unbiased variances."""
        means, variances = zip(*map(moments, micros))
        variances = [[v * len(m) / (len(m) - 1) for v in each]
                     for each, m in zip(variances, micros)]
        return [[sum(column) / len(micros) for column in zip(*each)]
                for each in (means, variances)]

    def normed(self, rows, weights):
        """Behind bn0 and d0, in training."""
        mean, variance = moments(rows)
        gain, bias, w, b = (weights[n][1] for n in
                            ("bn0.weight", "bn0.bias", "d0.weight", "d0.bias"))
        x = [[(x - m) / math.sqrt(v + 1e-5) * g + c
              for x, m, v, g, c in zip(row, mean, variance, gain, bias)] for row in rows]
        return [[sum(w[3 * o + i] * row[i] for i in range(3)) + b[o] for o in range(2)]
                for row in x]

    def test_values(self):
        rows = [[math.sin(n), 5 + math.cos(3 * n), 0.1 * n] for n in range(20)]
        text = "".join(",".join(map(repr, row)) + f",{sum(row):.17g}\n" for row in rows)
        (self.dir / "train.csv").write_text("# a, b, c, y\n" + text)
        self.run_file(CENTRE, "centre.yaml")
        self.ringpipe("train", self.run_file(CENTRE_RUN), "--out", "a")
        got = program.read_safetensors(self.dir / "a" / "weights.safetensors")
        micros = [rows[first:end] for first, end in
                  ((0, 3), (3, 6), (6, 8), (8, 11), (11, 14), (14, 16))]  # of 2 batches of 8
        for name, parts in (("bn0", micros), ("bn1", [self.normed(m, got) for m in micros])):
            for statistic, want in zip(("running_mean", "running_var"), self.renewed(parts)):
                for a, b in zip(got[f"{name}.{statistic}"][1], want, strict=True):
                    self.assertTrue(abs(a - b) <= 1e-5 * max(1, abs(b)),
                                    f"{name}.{statistic}: {a}, not {b}")


# What the controller decides is in tests/scenarios. By day, kinds of in-flight state: versions,
# predictions and their gains, replicas.
load_tests = program.few_when_short("Methods.test_pipedream",
                                    "Methods.test_ea_pipe",
                                    "Recalibration.test_values",
                                    sanitized=("Methods.test_pipeoptim_measured",))


if __name__ == "__main__":
    program.main()
