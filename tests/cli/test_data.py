#!/usr/bin/env python3
"""Data sets as a user has them: parts, files, what a run says of them."""
import json

import program
from program import RUN


class Validation(program.Case):
    """data.validation scores a run on its way; the test part is read once, at the end."""

    TEXT = RUN.replace("test: 64", "test: 64, validation: 32").replace("epochs: 1", "epochs: 3")

    def evaluations(self, folder):
        lines = (self.dir / folder / "log.jsonl").read_text().splitlines()
        records = [json.loads(line) for line in lines]
        return [
            (r["split"], r["step"], r["samples"]) for r in records if r.get("event") == "eval"
        ]

    def test_a_run(self):
        out, err = self.ringpipe("train", self.run_file(self.TEXT), "--out", "out")
        steps = 4  # 224 samples of 64
        self.assertEqual(
            self.evaluations("out"),
            [("validation", steps * e - 1, 32) for e in (1, 2, 3)] + [("test", 3 * steps - 1, 64)],
        )
        summary = json.loads((self.dir / "out/summary.json").read_text())
        self.assertEqual(summary["samples"], 3 * 224)
        self.assertEqual(summary["validation"]["samples"], 32)
        self.assertEqual(summary["eval"]["samples"], 64)
        self.assertNotIn("split", summary["eval"])
        self.assertIn("validation loss", out)
        self.assertIn("test loss", out)
        self.assertIn("step 4: validation loss", err)
        # The same samples afterwards, and nothing else in the run's weights but them left out.
        out, _ = self.ringpipe(
            "eval", "out/run.yaml", "--weights", "out/weights.safetensors", "--split",
            "validation", "--format", "json",
        )
        again = json.loads(out)["eval"]
        self.assertEqual(again["split"], "validation")
        self.assertEqual(again["samples"], 32)
        self.assertAlmostEqual(again["loss"], summary["validation"]["loss"], places=9)

    def test_without_one(self):
        text = RUN.replace("epochs: 1", "epochs: 2")
        self.ringpipe("train", self.run_file(text), "--out", "out")
        self.assertEqual(self.evaluations("out"), [("test", 3, 64), ("test", 7, 64)])
        summary = json.loads((self.dir / "out/summary.json").read_text())
        self.assertNotIn("validation", summary)
        err = self.refused(
            "eval", "out/run.yaml", "--weights", "out/weights.safetensors", "--split", "validation"
        )
        self.assertIn("--split", err)

    def test_whatever_the_ring(self):
        losses = []
        for boards in (1, 2):
            text = self.TEXT.replace("boards: 2", f"boards: {boards}")
            self.ringpipe("train", self.run_file(text), "--out", f"out{boards}")
            summary = json.loads((self.dir / f"out{boards}/summary.json").read_text())
            losses.append((summary["validation"], summary["eval"]))
        self.assertEqual(losses[0], losses[1])

    def test_resumed_between_the_evaluations(self):
        """The end's validation is done and its test is not: only that is made up."""
        self.ringpipe("train", self.run_file(self.TEXT), "--out", "out")
        whole = json.loads((self.dir / "out/summary.json").read_text())
        (self.dir / "out/checkpoint/evaluated").unlink()
        log = self.dir / "out/log.jsonl"
        lines = log.read_text().splitlines(keepends=True)
        log.write_text("".join(line for line in lines if '"split":"test"' not in line))
        self.ringpipe("train", self.run_file(self.TEXT), "--resume", "out")
        self.assertEqual(self.evaluations("out")[-2:], [("validation", 11, 32), ("test", 11, 64)])
        again = json.loads((self.dir / "out/summary.json").read_text())
        self.assertEqual(again["validation"], whole["validation"])
        self.assertEqual(again["eval"], whole["eval"])


FLOWERS = """\
sepal;petal;species;note
5.1;1.4;setosa;"short; and wide"
4.9;1.3;setosa;x
6.3;4.9;versicolor;y
6.6;4.6;versicolor;z
5.0;1.5;setosa;x
6.1;4.7;versicolor;y
"""

TABLE = """\
model: net.yaml
data: {set: table, path: flowers.csv, delimiter: semicolon, target: species, drop: note,
       normalise: measured, validation: 2}
ring: {boards: 1}
train: {epochs: 30, batch: 4, seed: 3}
loss: cross-entropy
optimizer: {kind: sgd, lr: 0.5}
schedule: gpipe
"""

NET = "input: data\nlayers:\n  - {name: fc, kind: dense, out: classes}\n"


class Table(program.Case):
    """A CSV file as somebody has it: a header, quotes, classes with names."""

    def setUp(self):
        super().setUp()
        (self.dir / "net.yaml").write_text(NET)
        (self.dir / "flowers.csv").write_text(FLOWERS)

    def test_own_csv(self):
        self.ringpipe("train", self.run_file(TABLE), "--out", "out")
        summary = json.loads((self.dir / "out/summary.json").read_text())
        self.assertNotIn("eval", summary)  # no test file
        self.assertEqual(summary["validation"], {**summary["validation"], "samples": 2})
        self.assertEqual(summary["validation"]["accuracy"], 1)
        data = json.loads((self.dir / "out/data.json").read_text())
        self.assertEqual(data["class_names"], ["setosa", "versicolor"])
        self.assertEqual(data["x_names"], ["sepal", "petal"])
        self.assertEqual(data["samples"], {"train": 4, "validation": 2, "test": 0})
        self.assertEqual(len(data["mean"]), 2)

    def test_errors_name_the_place(self):
        (self.dir / "flowers.csv").write_text(FLOWERS.replace("4.7", "four"))
        err = self.refused("train", self.run_file(TABLE), "--out", "out")
        self.assertIn("flowers.csv:7:2: column 'petal'", err)
        self.assertIn("'four'", err)
        err = self.refused("train", self.run_file(TABLE), "--set", "data.target=kind")
        self.assertIn("no column 'kind'", err)


if __name__ == "__main__":
    program.main()
