#!/usr/bin/env python3
"""A folder is all that its run needs but the data: to go on and to be evaluated, from anywhere."""
import json
import re
import shlex
import shutil
import signal
import subprocess

import program

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
        self.assertIn("'data' is found from the current folder", err)
        shutil.rmtree(self.dir / "data")
        error = self.refused("train", self.run_yaml, "--out", "b")
        self.assertIn("my work/data", error)  # where it was looked for

    def test_a_folder_needs_nothing_else(self):
        self.ringpipe("train", self.run_yaml, "--out", "a")
        summary = json.loads((self.dir / "a" / "summary.json").read_text())
        (self.work / "nets" / "own.yaml").unlink()
        self.run_yaml.unlink()
        shutil.move(self.dir / "a", self.dir / "moved away")
        out, _ = self.ringpipe("eval", "moved away", "--format", "json")
        self.assertEqual(json.loads(out)["eval"], summary["eval"])
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
        for schedule in ("1f1b", "pipedream"):
            with self.subTest(schedule):
                out = f"best-{schedule}"
                words = ("--set", f"schedule={schedule}", "--set", "cut=[fc2]", "--set",
                         "checkpoint={best: accuracy}", "--set", "train.epochs=60", "--set",
                         "data={set: table, path: '%s', validation: 16}" % (self.work / "data"))
                stop = ("--set", "train.stop_after.without_gain=3")
                self.ringpipe("train", self.run_yaml, "--out", out, *words, *stop)
                scores = [e for e in self.events(out, "eval") if e["split"] == "validation"]
                best = max(e["accuracy"] for e in scores)
                first = next(k for k, e in enumerate(scores) if e["accuracy"] == best)
                self.assertEqual(len(self.events(out, "stopped")), 1)
                self.assertLess(scores[-1]["step"], 60 * 3)
                stopped = self.events(out, "stopped")[0]["step"]
                late = [e for e in scores if scores[first]["step"] < e["step"] < stopped]
                self.assertEqual(len(late), 3)
                told, _ = self.ringpipe("eval", out, "--split", "validation", "--weights",
                                        f"{out}/best.safetensors", "--format", "json")
                self.assertEqual(json.loads(told)["eval"]["accuracy"], best)
                self.assertEqual(len([e for e in self.events(out, "eval")
                                      if e["split"] == "test"]), 1)  # once, at the end
                summary = json.loads((self.dir / out / "summary.json").read_text())
                self.assertEqual(summary["status"], "finished")
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
        for name in ("best.safetensors", "checkpoint/best"):
            self.assertEqual((self.dir / "whole" / name).read_bytes(),
                             (self.dir / "half" / name).read_bytes())

    def test_gain_needs_scores(self):
        shutil.rmtree(self.work / "data")
        (self.work / "data").mkdir()
        (self.work / "data" / "train.csv").write_text(ROWS)
        for word in ("train.stop_after.without_gain=2", "checkpoint.best=loss"):
            self.assertIn("a validation or test part",
                          self.refused("train", self.run_yaml, "--set", word))
        self.assertIn("expected one of: accuracy loss",
                      self.refused("train", self.run_yaml, "--set", "checkpoint.best=speed"))

    def test_what_is_no_folder_of_a_run_is_refused(self):
        self.assertIn("there is no run.yaml", self.refused("resume", "my work/nets"))
        self.assertIn("nowhere", self.refused("resume", "nowhere"))
        self.assertIn("--weights", self.refused("eval", self.run_yaml))
        self.ringpipe("train", self.run_yaml, "--out", "a")
        (self.dir / "a" / "about.json").write_text("[")
        self.ringpipe("resume", "a", "--set", "train.epochs=5")
        self.assertEqual(len(self.about("a")["starts"]), 1)


if __name__ == "__main__":
    program.main()
