#!/usr/bin/env python3
"""A folder is all that its run needs but the data: to go on and to be evaluated, from anywhere."""
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import unittest
from pathlib import Path

import program

# What is renamed, and whether it was synced.
SYNCED = program.BUILD / "tests" / "synced.so"

MODEL = """\
input: data
layers:
  - {name: fc1, kind: dense, out: 12}
  - {name: relu1, kind: relu}
  - {name: fc2, kind: dense, out: classes}
"""
RUN = """\
model: nets/own.yaml
data: {set: table, path: data}
ring: {boards: 2}
train: {epochs: 4, batch: 16, microbatch: 4, seed: 1}
loss: cross-entropy
optimizer: {kind: sgd, lr: 0.1, momentum: 0.9}
schedule: 1f1b
"""
ROWS = "".join(f"{i % 7},{i % 5},{i % 2}\n" for i in range(64))


class Folder(program.Case):
    def setUp(self):
        super().setUp()
        self.work = self.dir / "my work"
        (self.work / "nets").mkdir(parents=True)
        (self.work / "data").mkdir()
        (self.work / "nets" / "own.yaml").write_text(MODEL)
        (self.work / "data" / "train.csv").write_text(ROWS)
        (self.work / "data" / "test.csv").write_text(ROWS[:60])
        self.run_yaml = self.work / "run.yaml"
        self.run_yaml.write_text(RUN)

    def weights(self, folder):
        return (self.dir / folder / "weights.safetensors").read_bytes()

    def about(self, folder):
        return json.loads((self.dir / folder / "about.json").read_text())

    def test_paths_are_meant_from_the_run_file(self):
        self.ringpipe("train", "my work/run.yaml", "--out", "a")
        (self.dir / "elsewhere").mkdir()
        self.ringpipe("train", self.run_yaml, "--out", "b")
        self.assertEqual(self.weights("a"), self.weights("b"))
        text = (self.dir / "a" / "run.yaml").read_text()
        self.assertIn(str(self.work / "data"), text)

    def test_what_only_the_current_folder_has_is_found_with_a_note(self):
        shutil.move(self.work / "data", self.dir / "data")
        _, err = self.ringpipe("train", self.run_yaml, "--out", "a")
        self.assertIn("'data' is relative to the current folder", err)
        shutil.rmtree(self.dir / "data")
        error = self.refused("train", self.run_yaml, "--out", "b")
        self.assertIn("my work/data", error)  # where it was looked for

    def whole(self, folder):
        return (self.dir / folder / "run.yaml").read_text()

    def test_run_yaml_has_what_a_default_decided(self):
        self.ringpipe("train", self.run_yaml, "--out", "a", "--set", "cut=[fc2]")
        text = self.whole("a")
        for given in ("{kind: sgd, lr: 0.1, momentum: 0.9, ", "{epochs: 4, batch: 16, "):
            self.assertIn(given, text)  # as it was written, and first
        for decided in ("dampening: 0", "eval_epochs: 1", "lr_schedule: {kind: constant",
                        "shuffle: true", "validation: 0", "non_finite: 10"):
            self.assertIn(decided, text)
        checked, _ = self.ringpipe("train", self.run_yaml, "--dry-run", "--set", "cut=[fc2]")
        told, _ = self.ringpipe("train", "a/run.yaml", "--dry-run")
        self.assertEqual(told, checked)
        self.ringpipe("train", "a/run.yaml", "--out", "b")
        told, _ = self.ringpipe("train", "a/run.yaml", "--dry-run", "--set", "model=mlp")
        self.assertIn("checked: mlp", told)
        self.assertEqual(self.whole("b"), text)
        self.assertEqual(self.weights("b"), self.weights("a"))
        for key in ("model_digest", "method", "batch", "microbatch", "steps", "cut"):
            self.assertEqual(self.plan("a")[key], self.plan("b")[key])
        self.ringpipe("resume", "b", "--set", "train.epochs=5", "--set", "lr_schedule=cosine")
        self.assertEqual(self.whole("b"), text.replace("epochs: 4", "epochs: 5").replace(
            "{kind: constant, warmup_steps: 0}", "{kind: cosine, warmup_steps: 0, min_lr: 0}"))

    def plan(self, folder):
        return json.loads((self.dir / folder / "plan.json").read_text())

    def test_examples_and_the_zoo_read_back(self):
        host = program.SOURCE / "host"
        small = ("--set", "data={set: glyphs, train: 128, test: 32}", "--set", "train.steps=2")
        files = [host / "cli" / "demo.yaml", *sorted((host / "lab").glob("*-base.yaml"))]
        self.assertGreater(len(files), 3)
        for file in files:
            with self.subTest(file.name):
                self.ringpipe("train", file, "--out", file.stem, *small, "--set", "ring.boards=1",
                              "--set", "cut=auto", seconds=120)
                again = file.stem + "-again"
                self.ringpipe("train", f"{file.stem}/run.yaml", "--out", again, seconds=120)
                self.assertEqual(self.whole(file.stem), self.whole(again))
                self.assertEqual(self.weights(file.stem), self.weights(again))
        (self.dir / "text.txt").write_text("so it goes\n" * 100)
        texts = f"data={{set: text, path: {self.dir}/text.txt, tokens: chars, time: 16}}"
        pairs = (f"data={{set: pairs, path: {self.dir}, source: text.txt, target: text.txt, "
                 "tokens: chars}")
        for model in sorted((host / "models").glob("*.yaml")):
            with self.subTest(model.name):
                one = self.dir / "one.yaml"
                words = ["--set", f"model={model.stem}", "--dry-run", "--set"]
                text = model.read_text()
                if "from: target" in text:
                    words += [pairs, "--set", "loss={kind: cross-entropy, ignore: 0}"]
                else:
                    words += [texts if "count: tokens" in text else "data.size=96"]
                if "seqpool" in text:
                    continue  # classes of texts: test_texts.py
                out, _ = self.ringpipe("train", host / "cli" / "demo.yaml", *small, *words,
                                       "--set", "ring.boards=1")
                one.write_text(self.whole("demo"))
                self.assertEqual(self.ringpipe("train", one, *words)[0], out)

    def test_faults_stay_and_a_resumed_run_says_what_is_others(self):
        self.ringpipe("train", self.run_yaml, "--out", "whole", "--set", "train.epochs=30")
        for at in (0, 12):
            out = f"killed-{at}"
            process = self.start("train", self.run_yaml, "--out", out, "--set",
                                 "train.epochs=30", "--set", "ring.throttle={forward_ms: 3}",
                                 "--set", "ring.wait=0", "--set", f"train.eval_epochs={min(at, 1)}")
            log = self.dir / out / "log.jsonl"
            self.wait_for("steps", lambda: len(program.steps_of(log)) >= at + 1, process=process)
            os.kill(self.agents()[0], signal.SIGKILL)
            self.finish(process, 3)
            self.expect_no_agents()
            fault = self.events(out, "fault")
            self.assertEqual(len(fault), 1)
            trained = len(program.steps_of(log))
            self.assertEqual(fault[0]["step"], trained)
            _, err = self.ringpipe("resume", out, "--set", "ring.throttle={forward_ms: 0}",
                                   "--set", "train.eval_epochs=1")
            self.assertEqual(self.weights(out), self.weights("whole"))
            lines = [json.loads(line) for line in log.read_text().splitlines()]
            self.assertEqual([line["step"] for line in program.steps_of(log)],
                             list(range(1, 121)))
            self.assertEqual(self.events(out, "fault"), fault)
            resumed = self.events(out, "resumed")
            self.assertEqual(len(resumed), 1)
            self.assertEqual(lines.index(fault[0]) + 1, lines.index(resumed[0]))
            self.assertIn("ring.throttle.forward_ms: 0 (was 3)", resumed[0]["changes"])
            self.assertIn("ring.throttle.forward_ms: 0 (was 3)", err)
            behind = [n for n, line in enumerate(lines) if "event" not in line
                      and line["step"] > resumed[0]["step"]]
            self.assertGreater(min(behind), lines.index(resumed[0]))
            self.ringpipe("resume", out, "--set", "train.epochs=31")
            self.assertEqual(self.events(out, "fault"), fault)
            self.assertEqual(len(self.events(out, "resumed")), 2)

    def test_other_data_are_said(self):
        self.ringpipe("train", self.run_yaml, "--out", "a", "--set", "train.epochs=1",
                      "--set", "data.normalise=measured")
        path = self.dir / "a/data.json"  # as older versions wrote numbers
        about = json.loads(path.read_text())
        about["mean"] = [float(f"{value:.9g}") for value in about["mean"]]
        self.assertNotEqual(about["mean"], json.loads(path.read_text())["mean"])
        path.write_text(json.dumps(about))
        shutil.copytree(self.dir / "a", self.dir / "b")
        _, err = self.ringpipe("resume", "a", "--set", "train.epochs=2", "--set",
                               "optimizer={kind: sgd, lr: 0.05, momentum: 9.0e-1}")
        self.assertIn("optimizer.lr: 0.05 (was 0.1)", err)
        self.assertIn("step 4: lr goes from 0.1 to 0.05", err)
        self.assertNotIn("momentum", err)
        self.assertNotIn("the data differ", err)
        said = self.events("a", "resumed")
        self.assertEqual(len(said), 1)
        self.assertEqual(said[0]["step"], 4)
        self.assertIn("train.epochs: 2 (was 1); optimizer.lr", said[0]["changes"])
        (self.work / "data" / "test.csv").write_text(ROWS[:120])
        _, err = self.ringpipe("resume", "b", "--set", "train.epochs=2")
        self.assertIn("the data differ from those before: samples", err)

    def test_a_folder_of_before_the_defaults_goes_on(self):
        for schedule in ("1f1b", "{kind: ea-pipe}", "pipeoptim"):
            words = ("--set", f"schedule={schedule}", "--set", "cut=[fc2]")
            before = RUN.replace("path: data", f"path: '{self.work / 'data'}'").replace(
                "1f1b", schedule).replace("epochs: 4", "epochs: 2") + "cut: [fc2]\n"
            for name, text in (("new", None), ("old", before)):
                self.ringpipe("train", self.run_yaml, "--out", name, *words, "--set",
                              "train.epochs=2")
                if text:
                    (self.dir / name / "run.yaml").write_text(text)
                self.ringpipe("resume", name, "--set", "train.epochs=4")
            self.assertEqual(self.weights("old"), self.weights("new"))
            self.assertEqual(self.whole("old").count("dampening: 0"), 1)
            shutil.rmtree(self.dir / "old")
            shutil.rmtree(self.dir / "new")

    def test_a_folder_needs_nothing_else(self):
        self.ringpipe("train", self.run_yaml, "--out", "a")
        summary = json.loads((self.dir / "a" / "summary.json").read_text())
        (self.work / "nets" / "own.yaml").unlink()
        self.run_yaml.unlink()
        shutil.move(self.dir / "a", self.dir / "moved away")
        out, _ = self.ringpipe("eval", "moved away", "--format", "json")
        for key, value in summary["eval"].items():
            self.assertAlmostEqual(json.loads(out)["eval"][key], value, places=5)
        self.ringpipe("resume", "moved away", "--set", "train.epochs=6")
        starts = self.about("moved away")["starts"]
        self.assertEqual(len(starts), 2)
        self.assertIn(f"train {shlex.quote(str(self.run_yaml))} --out a", starts[0]["command"])
        self.assertIn("resume 'moved away' --set 'train.epochs=6'", starts[1]["command"])
        self.assertEqual(starts[0]["folder"], str(self.dir))
        self.assertRegex(starts[0]["date"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
        self.assertEqual([b["name"] for b in self.about("moved away")["boards"]], ["0", "1"])
        self.assertTrue(all(b["device"] for b in self.about("moved away")["boards"]))

    def test_a_resumed_folder_is_the_run_that_was_never_stopped(self):
        self.ringpipe("train", self.run_yaml, "--out", "whole")
        self.ringpipe("train", self.run_yaml, "--out", "half", "--set", "train.epochs=2")
        self.ringpipe("resume", "half", "--set", "train.epochs=4")
        self.assertEqual(self.weights("whole"), self.weights("half"))

    def test_a_given_plan_is_used_again(self):
        self.ringpipe("train", self.run_yaml, "--out", "a", "--set", "cut=[fc2]")
        shutil.copy(self.dir / "a" / "plan.json", self.dir / "mine.json")
        self.ringpipe("train", self.run_yaml, "--out", "b", "--plan", "mine.json",
                      "--set", "train.epochs=2")
        self.assertEqual(self.about("a")["plan"], "made")
        self.assertEqual(self.about("b")["plan"], "given")
        (self.dir / "mine.json").unlink()
        self.ringpipe("resume", "b", "--set", "train.epochs=4")
        self.assertEqual(self.about("b")["plan"], "given")
        self.assertEqual(self.weights("a"), self.weights("b"))

    def test_the_hint_works_when_it_is_pasted(self):
        many = ("--set", "train.epochs=300")
        self.ringpipe("train", self.run_yaml, "--out", "whole", *many)
        process = self.start("train", self.run_yaml, "--out", "it's here", *many)
        log = self.dir / "it's here" / "log.jsonl"
        self.wait_for("a step", lambda: log.exists() and log.stat().st_size > 0, process=process)
        process.send_signal(signal.SIGINT)
        _, err = self.finish(process, 130)
        hint = re.search(r"^go on with: (.*)$", err, re.M)
        self.assertTrue(hint, err)
        self.assertEqual(shlex.split(hint.group(1))[1:], ["resume", "it's here"])
        subprocess.run(hint.group(1), shell=True, cwd=self.dir, env=self.environment(),
                       capture_output=True, timeout=60 * program.SLOWER, check=True)
        self.assertEqual(self.weights("whole"), self.weights("it's here"))

    def test_a_comparison_means_its_bases_folder(self):
        (self.work / "lab.yaml").write_text(
            "base: run.yaml\nseeds: [1]\nbaseline: gpipe\n"
            "methods:\n  gpipe: {schedule: gpipe}\n  async: {schedule: async}\n")
        self.ringpipe("lab", "my work/lab.yaml", "--out", "compared", seconds=120)
        self.ringpipe("lab", "my work/lab.yaml", "--out", "compared")  # all of it is kept
        (self.work / "data" / "test.csv").unlink()
        self.run_yaml.write_text(RUN.replace("path: data", "path: data, validation: 16"))
        _, err = self.ringpipe("lab", "my work/lab.yaml", "--out", "untested", seconds=120)
        self.assertNotIn("nan", err)
        self.assertRegex(err, r"validation accuracy \d")

    def events(self, folder, name):
        lines = (self.dir / folder / "log.jsonl").read_text().splitlines()
        return [e for e in map(json.loads, lines) if e.get("event") == name]

    def test_the_best_model_is_kept_and_no_gain_ends_the_run(self):
        # With seed 6 a gain comes while pipedream's pipes are drained, where sums round as here.
        for schedule, seed in (("1f1b", 1), ("pipedream", 6)):
            with self.subTest(schedule):
                out = f"best-{schedule}"
                words = ("--set", f"schedule={schedule}", "--set", "cut=[fc2]", "--set",
                         "checkpoint={best: accuracy}", "--set", "train.epochs=60", "--set",
                         f"train.seed={seed}", "--set",
                         "data={set: table, path: '%s', validation: 16}" % (self.work / "data"))
                stop = ("--set", "train.stop_after.without_gain=3")
                self.ringpipe("train", self.run_yaml, "--out", out, *words, *stop)
                scores = [e for e in self.events(out, "eval") if e["split"] == "validation"]
                best = max(e["accuracy"] for e in scores)
                first = next(k for k, e in enumerate(scores) if e["accuracy"] == best)
                self.assertEqual(len(self.events(out, "stopped")), 1)
                self.assertLess(scores[-1]["step"], 60 * 3)
                stopped = self.events(out, "stopped")[0]["step"]
                # Three without gain ended it; while the pipes were drained another may have come.
                until = [e["accuracy"] for e in scores if e["step"] <= stopped]
                self.assertEqual(until.index(max(until)), len(until) - 4)
                told, _ = self.ringpipe("eval", out, "--split", "validation", "--weights",
                                        f"{out}/best.safetensors", "--format", "json")
                self.assertAlmostEqual(json.loads(told)["eval"]["accuracy"], best, places=8)
                self.assertEqual(len([e for e in self.events(out, "eval")
                                      if e["split"] == "test"]), 1)  # once, at the end
                summary = json.loads((self.dir / out / "summary.json").read_text())
                self.assertEqual(summary["status"], "finished")
                self.assertEqual(summary["best"],
                                 {"step": scores[first]["step"], "metric": "accuracy",
                                  "split": "validation", "value": best,
                                  "path": "best.safetensors"})
                before = self.weights(out)
                self.ringpipe("resume", out)  # it is over
                self.assertEqual(self.weights(out), before)
                self.ringpipe("resume", out, "--set", "train.stop_after.without_gain=0",
                              "--set", "train.epochs=8", code=None)

    def test_a_stopped_search_for_gain_goes_on_as_it_was(self):
        words = ("--set", "train.epochs=30", "--set", "train.stop_after.without_gain=2",
                 "--set", "checkpoint={best: loss}", "--set", "cut=[fc2]")
        self.ringpipe("train", self.run_yaml, "--out", "whole", *words)
        self.ringpipe("train", self.run_yaml, "--out", "half", *words, "--set", "train.epochs=2")
        self.ringpipe("resume", "half", "--set", "train.epochs=30")
        self.assertEqual(self.weights("whole"), self.weights("half"))
        best = [json.loads((self.dir / out / "summary.json").read_text())["best"]
                for out in ("whole", "half")]
        self.assertEqual(best[0], best[1])
        self.assertEqual(best[0]["metric"], "loss")
        for name in ("best.safetensors", "checkpoint/best"):
            self.assertEqual((self.dir / "whole" / name).read_bytes(),
                             (self.dir / "half" / name).read_bytes())

    def test_what_is_not_kept_is_not_named(self):
        for out, word in (("none", "train.epochs=2"), ("gain", "train.stop_after.without_gain=9")):
            self.ringpipe("train", self.run_yaml, "--out", out, "--set", word)
            summary = json.loads((self.dir / out / "summary.json").read_text())
            self.assertEqual("best" in summary, out == "gain")
        self.assertIsNone(summary["best"]["path"])

    def test_gain_needs_scores(self):
        shutil.rmtree(self.work / "data")
        (self.work / "data").mkdir()
        (self.work / "data" / "train.csv").write_text(ROWS)
        for word in ("train.stop_after.without_gain=2", "checkpoint.best=loss"):
            self.assertIn("a validation or test part",
                          self.refused("train", self.run_yaml, "--set", word))
        self.assertIn("expected one of: accuracy loss",
                      self.refused("train", self.run_yaml, "--set", "checkpoint.best=speed"))

    def test_links_in_the_folder_are_not_followed(self):
        victim = self.dir / "victim"
        victim.write_text("mine")
        for name in ("log.jsonl", "trace.json", "events.out.tfevents.ringpipe", "run.yaml.tmp",
                     "identity.json.tmp", "summary.json.tmp", "plan.json.tmp", "data.json.tmp"):
            folder = self.dir / f"with-{name}"
            folder.mkdir()
            (folder / name).symlink_to(victim)
            self.ringpipe("train", self.run_yaml, "--out", folder, "--set", "train.epochs=1",
                          code=None)
            self.assertEqual(victim.read_text(), "mine", name)
            self.assertEqual((folder / "weights.safetensors").exists(),
                             name == "summary.json.tmp", name)

    def test_nothing_is_removed_through_a_link(self):
        """The place that a link `checkpoint` leads to may have checkpoints of another run."""
        other = self.dir / "other"
        other.mkdir()
        names = [f"step-{step:010}.safetensors" for step in range(1, 5)]
        for name in names:
            (other / name).write_text("mine")
        for command in (("train", self.run_yaml, "--out", "run"), ("resume", "run")):
            (self.dir / "run").mkdir(exist_ok=True)
            (self.dir / "run" / "checkpoint").symlink_to(other)
            self.assertIn("checkpoint", self.refused(*command))
            self.assertEqual(sorted(path.name for path in other.iterdir()), names)
            shutil.rmtree(self.dir / "run")
            self.ringpipe("train", self.run_yaml, "--out", "run", "--set", "train.steps=2")
            shutil.rmtree(self.dir / "run" / "checkpoint")

    @unittest.skipUnless(SYNCED.exists(), "a sanitizer would have to be loaded before it")
    def test_what_is_renamed_is_synced(self):
        env = {"LD_PRELOAD": str(SYNCED), "RP_SYNCED": str(self.dir / "renamed")}
        words = ("--set", "train.epochs=150", "--set", "record={trace_mib: 1}")
        self.ringpipe("train", self.run_yaml, "--out", "a", *words, env=env)
        renamed = (self.dir / "renamed").read_text()
        self.assertIn(" a/trace.json\n", renamed)  # it was too long
        self.ringpipe("resume", "a", "--set", "train.epochs=151", env=env)
        lines = [line.split(" ", 1) for line in (self.dir / "renamed").read_text().splitlines()]
        lines = [(word, name) for word, name in lines if name.startswith(("a/", str(self.dir)))]
        names = {Path(name).name for _, name in lines}
        for name in ("run.yaml", "plan.json", "summary.json", "identity.json", "trace.json",
                     "weights.safetensors", "step-0000000004.safetensors"):
            self.assertIn(name, names)
        # now.json is void after a crash of the machine, and its disk must not slow down the run.
        self.assertEqual([name for word, name in lines if word != "synced"
                          and not name.endswith("now.json")], [])

    def test_killed_at_once_the_same_command_goes_on_or_says_how(self):
        self.ringpipe("train", self.run_yaml, "--out", "whole")
        ways = set()
        for moment in ("", "identity.json", "model.yaml", "about.json", "run.yaml", "log.jsonl",
                       "checkpoint"):
            folder = self.dir / f"killed at {moment}"
            command = ("train", self.run_yaml, "--out", folder.name)
            process = self.start(*command)
            while process.poll() is None and not (folder / moment).exists():
                pass
            process.kill()
            process.communicate(timeout=60)
            self.expect_no_agents()
            out = self.start(*command)
            _, err = out.communicate(timeout=60)
            ways.add(out.returncode)
            if out.returncode != 0:
                self.assertEqual(out.returncode, 2, err)
                words = shlex.split(re.search("`(.*?)`", err).group(1))
                self.assertEqual(words, ["ringpipe", "resume", folder.name])
                self.ringpipe(*words[1:])
            self.assertEqual(self.weights(folder.name), self.weights("whole"), moment)
            lines = program.steps_of(folder / "log.jsonl")
            self.assertEqual([line["step"] for line in lines], list(range(1, 17)), moment)
        self.assertIn(2, ways)  # at the last moments a run is there

    def test_run_yaml_is_there_when_all_is(self):
        """A folder without it is one of a run that has not begun, whatever else is there."""
        self.ringpipe("train", self.run_yaml, "--out", "a")
        self.ringpipe("train", self.run_yaml, "--out", "whole")
        for name in ("run.yaml", "log.jsonl", "weights.safetensors", "summary.json"):
            (self.dir / "a" / name).unlink()
        shutil.rmtree(self.dir / "a" / "checkpoint")
        self.assertIn("the command that made the folder", self.refused("resume", "a"))
        self.ringpipe("train", self.run_yaml, "--out", "a")
        self.assertEqual(self.weights("a"), self.weights("whole"))
        order = [(self.dir / "a" / name).stat().st_mtime_ns
                 for name in ("model.yaml", "data.json", "plan.json", "about.json", "run.yaml")]
        self.assertEqual(order, sorted(order))

    def test_what_is_no_folder_of_a_run_is_refused(self):
        self.assertIn("it has no run.yaml", self.refused("resume", "my work/nets"))
        self.assertIn("nowhere", self.refused("resume", "nowhere"))
        self.assertIn("--weights", self.refused("eval", self.run_yaml))
        self.ringpipe("train", self.run_yaml, "--out", "a")
        (self.dir / "a" / "about.json").write_text("[")
        self.ringpipe("resume", "a", "--set", "train.epochs=5")
        self.assertEqual(len(self.about("a")["starts"]), 1)


# Under a sanitizer, which makes a run slow: what reads a folder that others wrote.
load_tests = program.few_when_short("Folder.test_faults_stay_and_a_resumed_run_says_what_is_others",
                                    "Folder.test_the_hint_works_when_it_is_pasted",
                                    "Folder.test_what_is_no_folder_of_a_run_is_refused",
                                    sanitized=("Folder.test_a_given_plan_is_used_again",
                                               "Folder.test_links_in_the_folder_are_not_followed"))


if __name__ == "__main__":
    program.main()
