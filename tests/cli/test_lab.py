#!/usr/bin/env python3
"""Comparisons: made by one command, kept, and counted right; wrong files start nothing."""
import json
import os
import re
import statistics
import xml.etree.ElementTree as xml
from html.parser import HTMLParser

import lab
import program
from lab import LAB, SOME


ONE = LAB.replace("[1, 2]", "[1]")


class Page(HTMLParser):
    """Which tags a page has, where its links lead, and what is left open at its end."""

    EMPTY = ("meta", "input", "br", "img")

    def __init__(self, text):
        super().__init__()
        self.tags, self.addresses, self.open = [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.addresses += [value for name, value in attrs if name in ("href", "src")]
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            raise ValueError(f"</{tag}> closes nothing, at {self.getpos()}")


class Comparison(lab.Case):
    def check_report(self):
        """One page that needs nothing else, with the numbers of the table."""
        text = (self.dir / "out/report.html").read_text(encoding="utf-8")
        page = Page(text)
        self.assertEqual(page.open, [])
        self.assertNotIn("script", page.tags)
        self.assertNotIn("link", page.tags)
        self.assertNotIn("http", "".join(page.addresses))
        self.assertNotRegex(text, r"url\(|@import|\bnan\b")
        for address in page.addresses:
            if address.startswith("#"):
                self.assertIn(f'id="{address[1:]}"', text)
            else:
                self.assertTrue((self.dir / "out" / address).exists(), address)
        rows = [a for a in page.addresses if a.startswith("#r")]
        self.assertEqual(len(rows), len(self.table()["model"][0]["row"]))
        for row in self.table()["model"][0]["row"]:
            self.assertIn(f"{100 * row['accuracy']['mean']:.2f} \u00b1", text)
        drawings = sorted((self.dir / "out/curves").iterdir())
        names = ("accuracy", "difference", "memory", "speed", "test-loss", "time", "train-loss")
        self.assertEqual([path.name for path in drawings], [f"mlp-{name}.svg" for name in names])
        self.assertEqual(page.tags.count("figure"), len(drawings))
        for path in drawings:
            root = xml.fromstring(path.read_text(encoding="utf-8"))
            self.assertTrue(root.tag.endswith("svg"))
            self.assertIn("fast", "".join(root.itertext()))

    def test_numbers(self):
        file = self.lab_file()
        out, err = self.lab(file)
        self.assertIn("4 of 4 runs", out)
        self.assertIn("fast", out)
        self.assertIn("4/4", err)
        table = self.table()
        self.assertEqual(table["status"], "finished")
        rows = {row["method"]: row for row in table["model"][0]["row"]}
        value = {}
        for method in ("slow", "fast"):
            runs = [self.summary(f"mlp/{method}/seed-{seed}") for seed in (1, 2)]
            for key, in_row in (("accuracy", "accuracy"), ("loss", "loss")):
                value[method, key] = [run["eval"][key] for run in runs]
                found = rows[method][in_row]
                self.assertEqual(found["count"], 2)
                self.assertAlmostEqual(found["mean"], statistics.mean(value[method, key]))
                self.assertAlmostEqual(found["deviation"], statistics.stdev(value[method, key]))
            memory = sum(max(r["stage"][k]["device_bytes_max"] for r in runs) for k in (0, 1))
            self.assertEqual(rows[method]["device_bytes"], memory)
        pairs = zip(value["fast", "loss"], value["slow", "loss"])
        differences = [a - b for a, b in pairs]
        found = rows["fast"]["loss_difference"]
        mean, deviation = statistics.mean(differences), statistics.stdev(differences)
        self.assertAlmostEqual(found["mean"], mean)
        self.assertAlmostEqual(found["deviation"], deviation)
        self.assertAlmostEqual(found["low"], mean - 12.7062 * deviation / 2**0.5, places=6)
        self.assertEqual(sorted(table["differs"]), ["optimizer.lr", "schedule"])
        self.assertIn("train.batch", table["equal"])
        text = (self.dir / "out/table.md").read_text(encoding="utf-8")
        self.assertIn("| mlp/slow/seed-2 | finished", text)
        self.check_report()

    def distances(self, run):
        """{stage: (mean error, mean stale error)} of a run's log."""
        log = self.dir / "out/runs" / run / "log.jsonl"
        lines = map(json.loads, log.read_text().splitlines())
        probes = [e for e in lines if e.get("event") == "prediction"]
        self.assertEqual([p["step"] for p in probes if p["stage"] == 0], [1, 4, 7, 10])
        return {k: [statistics.mean(p[name] for p in probes if p["stage"] == k)
                    for name in ("error", "stale_error")] for k in (0, 1, 2)}

    def test_predictions(self):
        """From the boards' probes to the column and the curves."""
        run = program.RUN
        for words in (("epochs: 1", "epochs: 3"), ("boards: 2", "boards: 3"),
                      ("microbatch: 16", "microbatch: 64"), ("auto", "[fc2, fc3]")):
            run = run.replace(*words)
        text = LAB.replace("{optimizer.lr: 0.001}", "{schedule: {kind: async, probe: 3}}")
        text = text.replace("1f1b", "{kind: pipeoptim, probe: 3}")
        self.lab(self.lab_file(text, run))
        for row, versions in zip(self.table()["model"][0]["row"], (1, 2)):
            seeds = [self.distances(f"mlp/{row['method']}/seed-{seed}") for seed in (1, 2)]
            gains = [sum(stale for _, stale in seed.values()) / sum(e for e, _ in seed.values())
                     for seed in seeds]
            self.assertEqual(row["stale_over_predicted"]["count"], 2)
            self.assertAlmostEqual(row["stale_over_predicted"]["mean"], statistics.mean(gains))
            for p in row["prediction"]:
                error, stale = seeds[p["seed_index"]][p["stage"]]
                self.assertAlmostEqual(p["error"], error)
                self.assertAlmostEqual(p["stale_error"], stale)
            self.assertEqual(len(row["prediction"]), 2 * 3)
            self.assertEqual((row["gap_max"], row["weight_versions_max"]), (2, versions))
            gain = statistics.mean(gains)
            gain = "1" if gain == 1 else f"{gain:.{2 if gain > 1 else 4}f}"
            table = (self.dir / "out/table.md").read_text(encoding="utf-8")
            self.assertRegex(table, rf"\| {row['method']} .*\| +{versions} \| +2 \| +{gain} \|")
        for stage in (0, 1):
            path = self.dir / f"out/curves/mlp-prediction-stage-{stage}.svg"
            curves = [e for e in xml.fromstring(path.read_text(encoding="utf-8")).iter()
                      if e.get("class", "").startswith("line") and len(e)]  # the title; no key
            self.assertEqual(["".join(e.itertext()) for e in curves],
                             ["slow, predicted", "slow, stale", "fast, predicted", "fast, stale"])
            for curve in curves:  # while the pipes fill, nothing is to come: not on a log axis
                self.assertEqual(len(re.findall(r"[ML][\d.]+ [\d.]+", curve.get("d"))), 3)
        self.assertFalse((self.dir / "out/curves/mlp-prediction-stage-2.svg").exists())

    def test_finished_is_kept(self):
        file = self.lab_file(ONE)
        self.lab(file)
        before = {p: p.stat().st_mtime_ns for p in (self.dir / "out/runs").rglob("*")}
        table = self.table()
        (self.dir / "out/table.json").unlink()
        out, err = self.lab(file, "--format", "json", seconds=20)
        self.assertEqual(json.loads(out), table)
        self.assertEqual(self.table(), table)
        self.assertNotIn("begins", err)
        after = {p: p.stat().st_mtime_ns for p in (self.dir / "out/runs").rglob("*")}
        self.assertEqual(before, after)
        # More seeds and methods: only those are made.
        file = self.lab_file(ONE.replace("[1]", "[1, 2]") + "  more: {schedule: zb-h1}\n")
        _, err = self.lab(file)
        self.assertEqual(err.count("begins"), 2 + 2)
        # The order in which the base says it does not matter.
        lines = program.RUN.splitlines(keepends=True)
        _, err = self.lab(self.lab_file(ONE, "".join(lines[1:] + lines[:1])))
        self.assertNotIn("begins", err)
        # Other settings under the same names are not mixed in.
        file = self.lab_file(LAB.replace("0.001", "0.002"))
        err = self.refused("lab", file, "--out", "out")
        self.assertIn("mlp/slow/seed-1", err)

    def test_runs_are_those_of_train(self):
        self.lab(self.lab_file(LAB.replace("[1, 2]", "[2]")))
        words = ("--set", "schedule=1f1b", "--set", "train.seed=2")
        self.ringpipe("train", self.run_file(), "--out", "alone", *words)
        alone = self.losses(self.dir / "alone")
        self.assertEqual(alone, self.losses(self.dir / "out/runs/mlp/fast/seed-2"))

    def test_divergence_is_no_mean(self):
        text = LAB.replace("schedule: 1f1b", "optimizer.lr: 100000000")
        out, _ = self.lab(self.lab_file(text, SOME.replace("epochs: 12", "epochs: 2")))
        self.assertIn("diverged (2 of 2)", out)
        row = self.table()["model"][0]["row"][1]
        self.assertEqual(row["diverged"], 2)
        self.assertIsNone(row["loss"])
        self.assertIsNone(row["accuracy"])
        self.assertGreater(row["samples_per_s"]["mean"], 0)

    def test_sweep(self):
        text = """\
base: run.yaml
models: [mlp, lenet]
seeds: [1]
methods:
  a: {optimizer.lr: [0.0001, 0.05]}
  b: {schedule: 1f1b}
tune: {metric: loss, seeds: [9], set: {train.steps: 3}}
"""
        self.lab(self.lab_file(text), "--jobs", 2)
        table = self.table()
        steps = {
            path.parent.name: json.loads(path.read_text())["steps"]
            for path in self.dir.glob("out/runs/*/*/*/summary.json")
        }
        self.assertEqual(steps["seed-9"], 3)
        self.assertGreater(steps["seed-1"], 3)
        self.assertEqual(table["runs_finished"], 2 * (2 + 1 + 1))
        for model in table["model"]:
            points = model["sweep"][0]["point"]
            best = min(points, key=lambda point: point["score"]["mean"])
            self.assertEqual([p["chosen"] for p in points], [p is best for p in points])
            self.assertEqual(model["row"][0]["label"], "a, " + best["label"])
        self.assertIn("sweeps were chosen on the test part, which biases",
                      (self.dir / "out/table.md").read_text())

    def test_sweep_on_the_validation_part(self):
        text = """\
base: run.yaml
seeds: [1]
methods:
  a: {optimizer.lr: [0.0001, 0.05]}
tune: {seeds: [9], set: {train.steps: 3, data.validation: 0.25}}
"""
        _, err = self.lab(self.lab_file(text), "--jobs", 2)
        # What chooses is what is shown of the runs that are to choose.
        self.assertEqual(len(re.findall(r"seed 9: finished .* validation accuracy", err)), 2)
        self.assertEqual(len(re.findall(r"seed 1: finished .* test accuracy", err)), 1)
        for name in ("table.md", "report.html"):
            page = (self.dir / "out" / name).read_text()
            self.assertIn("sweeps were chosen on the validation part;", page)
        sweep = self.table()["model"][0]["sweep"][0]
        self.assertEqual(sweep["split"], "validation")
        tuned = [
            json.loads(path.read_text())
            for path in sorted(self.dir.glob("out/runs/*/*/seed-9/summary.json"))
        ]
        self.assertEqual([s["validation"]["samples"] for s in tuned], [64, 64])
        self.assertEqual(
            sorted(point["score"]["mean"] for point in sweep["point"]),
            sorted(s["validation"]["accuracy"] for s in tuned),
        )
        # The row's own run trains on everything.
        (row,) = self.dir.glob("out/runs/*/*/seed-1/summary.json")
        self.assertNotIn("validation", json.loads(row.read_text()))
        self.assertIn("validation accuracy %", (self.dir / "out/table.md").read_text())
        self.assertIn("validation accuracy %", (self.dir / "out/report.html").read_text())

    def test_dry_run(self):
        out, _ = self.lab(self.lab_file(), "--dry-run")
        self.assertEqual(out.count("to do"), 5)  # four runs, and the sum
        self.assertIn("mlp/fast/seed-2", out)
        self.assertFalse((self.dir / "out").exists())
        out, _ = self.lab(self.lab_file(), "--dry-run", "--format", "json")
        self.assertEqual(json.loads(out)["runs"], 4)

    def test_example(self):
        out, _ = self.lab(program.SOURCE / "host/lab/compare.yaml", "--dry-run")
        self.assertIn("cnn-small/1f1b/seed-3", out)


class Wrong(lab.Case):
    def wrong(self, text, *wanted, line, run=program.RUN):
        err = self.refused("lab", self.lab_file(text, run), "--out", "out")
        self.assertIn(f"compare.yaml:{line}:", err)
        for word in wanted:
            self.assertIn(word, err)
        self.assertFalse((self.dir / "out").exists(), "something was started")

    def test_words(self):
        self.assertIn("COMPARE.yaml", self.refused("lab"))
        self.assertIn("absent.yaml", self.refused("lab", "absent.yaml"))
        self.assertIn("x", self.refused("lab", self.lab_file(), "--jobs", "x"))
        self.assertIn("--jobs", self.refused("lab", self.lab_file(), "--jobs", 0))

    def test_file(self):
        self.wrong(LAB + "surprise: 1\n", "surprise", line=7)
        self.wrong(LAB.replace("[1, 2]", "[1, 1]"), "twice", line=2)
        self.wrong(LAB.replace("baseline: slow", "baseline: slw"), "slw", line=3)
        self.wrong(LAB.replace("fast:", "slow:"), "twice", line=6)

    def test_settings(self):
        """A method's wrong key is seen before anything starts, at its line."""
        self.wrong(LAB.replace("0.001", "fast"), "optimizer.lr", "'fast'", line=5)
        self.wrong(LAB.replace("schedule: 1f1b", "schedule: 1f1c"), "1f1c", line=6)
        self.wrong(LAB.replace("optimizer.lr", "optimizer.rl"), "optimizer.rl", line=5)
        self.wrong(LAB.replace("schedule: 1f1b", "cut: [fc2, fc3]"), "[[...]]", line=6)
        self.wrong(LAB.replace("schedule: 1f1b", "train.batch.x: 1"), "train.batch", line=6)
        text = LAB.replace("base: run.yaml", "base: run.yaml\nmodels: [mlp, mlq]")
        self.assertIn("mlq", self.refused("lab", self.lab_file(text), "--out", "out"))

    def test_base(self):
        run = program.RUN.replace("batch: 64", "batch: many")
        err = self.refused("lab", self.lab_file(LAB, run), "--out", "out")
        self.assertIn("run.yaml:4", err)
        self.assertFalse((self.dir / "out").exists())

    def test_folder(self):
        file = self.lab_file()
        (self.dir / "taken").write_text("")
        self.assertIn("taken", self.refused("lab", file, "--out", "taken"))
        if os.getuid():
            self.assertIn("/proc", self.refused("lab", file, "--out", "/proc/x"))


# Under a sanitizer, which makes a run slow: a comparison, a sweep, what is refused.
load_tests = program.few_when_short("Comparison.test_finished_is_kept",
                                    "Wrong",
                                    sanitized=("Comparison.test_sweep",))


if __name__ == "__main__":
    program.main()
