#!/usr/bin/env python3
"""Schedules that do not flush, stopped and resumed: the bytes of a run that was never stopped."""
import json
import math
import shutil
import signal
import struct
import time
import unittest

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
    "remembered": ("schedule=1f1b", "train.microbatch=32",
                   "links={codec: {activations: aqsgd2, gradients: int8}}"),
}


def split_file(raw):
    """Header and data of a safetensors file."""
    (size,) = struct.unpack("<Q", raw[:8])
    return json.loads(raw[8:8 + size]), raw[8 + size:]


def join_file(header, data):
    """A file that is whole for all that is known: checksums are not of what was changed."""
    for key in ("xxh3", "xxh3_tensors"):
        header.get("__metadata__", {}).pop(key, None)
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


class Methods(test_repeat.Repeat):
    EPOCHS = 15
    test_twice = test_cuts = test_resume_after_interrupt = test_resume_after_kill = None
    test_resume_interleaved = None

    def resumed_method(self, name):
        sets = [word for text in METHODS[name] for word in ("--set", text)]
        self.resumed(signal.SIGINT, "--set", "ring.boards=3",
                     "--set", "cut=[fc2, fc3]", *sets)

    def test_async(self):
        self.resumed_method("async")
        older, _ = sorted((self.dir / "whole" / "checkpoint").glob("*.safetensors"))
        self.assertTrue(older.with_suffix(".flight").exists(), "what was in flight is gone")

    def test_pipedream(self):
        self.resumed_method("pipedream")

    def test_vertical_sync(self):
        self.resumed_method("vertical")

    def test_2bw(self):
        self.resumed_method("2bw")

    def test_2bw_with_prediction(self):
        self.resumed_method("predicted")

    def test_spectrain(self):
        self.resumed_method("spectrain")

    def test_pipeoptim_released(self):
        self.resumed_method("released")

    def test_pipeoptim_exact(self):
        self.resumed_method("exact")

    def test_pipeoptim_measured(self):
        self.resumed_method("measured")

    def test_xpipe(self):
        self.resumed_method("xpipe")

    def test_ea_pipe(self):
        self.resumed_method("ea-pipe")

    def test_ea_pipe_by_default(self):
        self.resumed_method("plain")

    def test_ea_pipe_now_and_then(self):
        self.resumed_method("period")

    def test_ea_pipe_lean(self):
        self.resumed_method("lean")

    def test_mean(self):
        self.resumed_method("mean")

    def test_latest(self):
        self.resumed_method("latest")

    def test_avgpipe(self):
        self.resumed_method("avgpipe")

    def test_pipefb(self):
        self.resumed_method("pipefb")

    def test_pipefb_of_some_stages(self):
        self.resumed_method("some")

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
            events = [line.get("text", "") for line in map(json.loads, lines)
                      if line.get("event") == "resumed"]
            anew = any("schedule.split" in text for text in events)
            self.assertEqual(anew, boards < 4, events)
        self.assertTrue(got.pop((True, True)) == whole, "the same split is not the same run")
        self.assertEqual(len(set(got.values())), 1, "other splits are other runs")
        self.assertNotIn(whole, got.values(), "nothing was in flight")

    def test_remembered_samples(self):
        """What both ends of a hop remember is in the checkpoint, though the schedule flushes."""
        self.resumed_method("remembered")
        newest = max((self.dir / "whole" / "checkpoint").glob("*.safetensors"))
        self.assertTrue(newest.with_suffix(".flight").exists(), "what was remembered is gone")
        trace = json.loads((self.dir / "whole" / "trace.json").read_text())
        trace = trace["traceEvents"] if isinstance(trace, dict) else trace
        size = {event["step"] < 4: event["args"]["bytes"] / event["args"]["count"]
                for event in trace if event.get("cat") == "transfer" and event["ph"] == "b"
                and event["name"] == "activation 1 to 2"}
        self.assertGreater(size[True], 2.5 * size[False], "an epoch of 4 steps, and then changes")

    def test_advance_for_slow_links(self):
        """`advance: auto` is chosen from slow links, kept when the run is gone on with, and gives
        what the same number gives in a run file."""
        self.EPOCHS = 6
        slow = ("--set", "ring.boards=3", "--set", "cut=[fc2, fc3]",
                "--set", "ring.link={delay_ms: 20}", "--set", "train.eval_epochs=0",
                "--set", "ring.throttle={forward_ms: 5, backward_ms: 5}")
        auto = (*slow, "--set", "schedule={kind: ea-pipe, advance: auto}")
        self.resumed(signal.SIGINT, *auto)
        plan = json.loads((self.dir / "cut" / "plan.json").read_text())
        self.assertNotIn("advance", plan)  # nothing was chosen anew
        busy = json.loads((self.dir / "whole" / "plan.json").read_text())["advance"]
        self.assertGreaterEqual(busy["chosen"], 3)  # about 20 / 5
        self.assertGreater(busy["busy"][busy["chosen"]], 2 * busy["busy"][0])
        wanted = self.weights("whole")
        self.assertTrue(wanted == self.train(
            "named", "--set", f"train.epochs={self.EPOCHS}", *slow, "--set",
            f"schedule={{kind: ea-pipe, advance: {busy['chosen']}}}"), "other weights")

    def test_advance_of_a_run_that_named_none(self):
        """What `auto` finds in its checkpoint is the schedule's default: AvgPipe's is 1."""
        one = ("--set", "cut=[fc2]", "--set", "train.microbatch=32", "--set")
        auto = ("train", self.run_file(), "--resume", "a", "--set", "train.epochs=2", *one,
                "schedule={kind: avgpipe, advance: auto}")
        self.ringpipe("train", self.run_file(), "--out", "a", *one, "schedule=avgpipe")
        path = max((self.dir / "a" / "checkpoint").glob("*.safetensors"))
        header, data = split_file(path.read_bytes())
        self.assertEqual(header["__metadata__"]["advance"], "1")
        for advance in ("65", "x", ""):
            header["__metadata__"]["advance"] = advance
            path.write_bytes(join_file(header, data))
            _, said = self.ringpipe(*auto, code=2)
            self.assertIn(f"{path.name}: `advance` is '{advance}', expected", said)
        header["__metadata__"]["advance"] = "1"
        path.write_bytes(join_file(header, data))
        self.ringpipe(*auto)
        self.assertIn("advance: auto", (self.dir / "a" / "run.yaml").read_text())

    def test_a_damaged_checkpoint_is_passed_over(self):
        run = self.run_file()
        sets = ("--set", "train.epochs=4", "--set", "schedule=pipedream", "--set", "cut=[fc2]")
        self.ringpipe("train", run, "--out", "whole", *sets)
        self.ringpipe("train", run, "--out", "parts", *sets[2:], "--set", "train.epochs=3")
        older, newest = sorted((self.dir / "parts" / "checkpoint").glob("*.safetensors"))
        whole = newest.read_bytes()
        half = len(whole) // 2
        for name, damaged in (("cut", whole[:half]),
                              ("flipped", whole[:half] + bytes([whole[half] ^ 4]) +
                               whole[half + 1:])):
            with self.subTest(name):
                shutil.copytree(self.dir / "parts", self.dir / name)
                (self.dir / name / "checkpoint" / newest.name).write_bytes(damaged)
                _, err = self.ringpipe("train", run, "--resume", name, *sets)
                self.assertIn(newest.name, err)
                self.assertEqual(self.weights("whole"), self.weights(name))
                log = [json.loads(line) for line in
                       (self.dir / name / "log.jsonl").read_text().splitlines()]
                said = [line for line in log if line.get("event") == "damaged"]
                self.assertEqual(len(said), 1, log)
                self.assertIn(newest.name, said[0]["text"])
        (self.dir / "parts" / "checkpoint" / newest.name).write_bytes(whole[:half])
        older.write_bytes(older.read_bytes()[:-1])
        error = self.refused("train", run, "--resume", "parts", *sets)
        self.assertIn("no checkpoint before it is whole", error)

    def test_another_method_is_refused(self):
        """Whatever of a method the numbers depend on: its checkpoint is not taken for another's."""
        one = ("--set", "train.epochs=3", "--set", "schedule=pipedream")
        self.ringpipe("train", self.run_file(), "--out", "a", *one)
        for other in ("{kind: pipedream, vertical_sync: true}", "{kind: pipedream, advance: 1}"):
            _, said = self.ringpipe("train", self.run_file(), "--resume", "a", "--set",
                                    "train.epochs=5", "--set", f"schedule={other}", code=2)
            self.assertIn("was made with method pipedream weights stash", said)

    def test_updates_that_no_run_has_done_are_refused(self):
        """Before anything starts: an optimiser that counts from 0 again would go another way."""
        one = ("--set", "train.epochs=2", "--set", "schedule=pipedream")
        self.ringpipe("train", self.run_file(), "--out", "a", *one)
        path = max((self.dir / "a" / "checkpoint").glob("*.safetensors"))
        header, data = split_file(path.read_bytes())
        self.assertEqual(header["__metadata__"]["applied"], "8;8")
        for applied in ("8;9", "8;x", ""):
            header["__metadata__"]["applied"] = applied
            path.write_bytes(join_file(header, data))
            _, said = self.ringpipe("train", self.run_file(), "--resume", "a", "--set",
                                    "train.epochs=3", "--set", "schedule=pipedream", code=2)
            self.assertIn(f"{path.name}: `applied` is '{applied}', expected", said)

    def test_on_another_number_of_stages(self):
        """What was in flight is forwarded anew: every sample is trained once, the loss goes on."""
        more = ("--set", f"train.epochs={self.EPOCHS}", "--set", "schedule=pipeoptim")
        process = self.start("train", self.run_file(), "--out", "a", *more)
        log = self.dir / "a" / "log.jsonl"
        self.wait_for("step 9", lambda: len(program.steps_of(log)) >= 9, process=process)
        process.send_signal(signal.SIGINT)
        self.finish(process, code=None)
        self.ringpipe("train", self.run_file(), "--resume", "a", *more, "--set", "ring.boards=3")
        summary = json.loads((self.dir / "a" / "summary.json").read_text())
        self.assertEqual((summary["status"], summary["steps"]), ("finished", 60))
        self.assertEqual(summary["ledger"]["lost"] + summary["ledger"]["repeated"], 0)

    def test_on_another_cut(self):
        """A layer comes to a stage that had nothing to train, whose updates Adam would count."""
        sets = ("--set", f"train.epochs={self.EPOCHS}", "--set", "schedule=gpipe",
                "--set", "optimizer={kind: adam, lr: 0.01}", "--set", "ring.boards=4", "--set")
        cut = "cut=[relu1, fc2, relu2]"
        self.ringpipe("train", self.run_file(), "--out", "whole", *sets, "train.steps=24",
                      "--set", cut)
        self.ringpipe("train", self.run_file(), "--out", "a", *sets, "train.steps=10",
                      "--set", cut)
        self.ringpipe("train", self.run_file(), "--resume", "a", *sets, "train.steps=24",
                      "--set", "cut=[relu1, relu2, fc3]")
        whole, a = ((self.dir / out / "weights.safetensors").read_bytes() for out in ("whole", "a"))
        self.assertTrue(whole == a, "other weights")

    def test_measured_on_another_number_of_stages(self):
        """Stages that probe more seldom or more often wait for no trust that nobody sends."""
        more = ("--set", f"train.epochs={self.EPOCHS}",
                "--set", "schedule={kind: pipeoptim, horizon: measured, probe: 2}")
        for out, first, then in (("a", 4, 2), ("b", 2, 3)):
            process = self.start("train", self.run_file(), "--out", out, *more,
                                 "--set", f"ring.boards={first}")
            log = self.dir / out / "log.jsonl"
            self.wait_for("step 9", lambda: len(program.steps_of(log)) >= 9, process=process)
            process.send_signal(signal.SIGINT)
            self.finish(process, code=130)
            self.ringpipe("train", self.run_file(), "--resume", out, *more,
                          "--set", f"ring.boards={then}")

    def test_in_flight_state_of_another_size_is_refused(self):
        """By the board whose it is, and at once: nothing is trained on what is not there."""
        more = ("--set", f"train.epochs={self.EPOCHS}", "--set", "schedule=pipedream")
        process = self.start("train", self.run_file(), "--out", "a", *more)
        log = self.dir / "a" / "log.jsonl"
        self.wait_for("step 9", lambda: len(program.steps_of(log)) >= 9, process=process)
        process.send_signal(signal.SIGINT)
        self.finish(process, code=130)
        path = max((self.dir / "a" / "checkpoint").glob("*.flight"))
        header, data = split_file(path.read_bytes())
        end = header["stage.0"]["data_offsets"][1]
        mine, other = data[:end], data[end:]
        self.assertGreater(end, 8)
        for kept in (0, end - 4):
            header["stage.0"].update(shape=[kept], data_offsets=[0, kept])
            header["stage.1"].update(data_offsets=[kept, kept + len(other)])
            path.write_bytes(join_file(header, mine[:kept] + other))
            _, said = self.ringpipe("train", self.run_file(), "--resume", "a", *more, code=3)
            self.assertIn(f"the checkpoint holds {kept} bytes of in-flight state, expected {end}",
                          said)

    def test_another_end(self):
        """A run may be ended where it stands, or just behind: other microbatches are in flight
        there, so they are forwarded anew."""
        more = ("--set", "train.epochs=1000", "--set", "schedule=pipedream",
                "--set", "ring.boards=3", "--set", "train.microbatch=64")
        process = self.start("train", self.run_file(), "--out", "a", *more)
        log = self.dir / "a" / "log.jsonl"
        self.wait_for("step 9", lambda: len(program.steps_of(log)) >= 9, process=process)
        process.send_signal(signal.SIGINT)
        self.finish(process, code=130)
        at = len(program.steps_of(log))
        self.assertTrue((self.dir / "a" / "checkpoint" / f"step-{at:010}.flight").exists())
        for end in (at, at + 1, at + 2, at + 40):
            shutil.copytree(self.dir / "a", self.dir / str(end))
            self.ringpipe("train", self.run_file(), "--resume", str(end), *more,
                          "--set", f"train.steps={end}")
            summary = json.loads((self.dir / str(end) / "summary.json").read_text())
            self.assertEqual((summary["status"], summary["steps"]), ("finished", end))

    def predictions(self, out):
        lines = map(json.loads, (self.dir / out / "log.jsonl").read_text().splitlines())
        keys = ("stage", "step", "gap", "ahead", "error", "stale_error")
        return sorted([r[k] for k in keys] for r in lines if r.get("event") == "prediction")

    def test_prediction_in_flight(self):
        """A probe that is under way at a checkpoint reports what it would have reported."""
        self.resumed(signal.SIGINT, "--set", "ring.boards=3", "--set", "cut=[fc2, fc3]",
                     "--set", "train.microbatch=64",
                     "--set", "schedule={kind: pipeoptim, probe: 3}")
        self.assertTrue(self.predictions("whole"))
        self.assertEqual(self.predictions("whole"), self.predictions("cut"))

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

    def test_killed(self):
        self.killed("{kind: spectrain, probe: 7}")

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


# Under a sanitizer, which makes a run slow: each kind of in-flight state once:
# versions, predictions and their gains, two steps' weights, replicas, replicas with changes.
load_tests = program.few_when_short("Methods.test_pipedream", "Methods.test_pipeoptim_measured",
                                    "Methods.test_2bw", "Methods.test_ea_pipe",
                                    "Methods.test_avgpipe")


if __name__ == "__main__":
    program.main()
