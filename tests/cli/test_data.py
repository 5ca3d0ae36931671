#!/usr/bin/env python3
"""Data sets as a user has them: parts, files, what a run says of them."""
import csv
import http.server
import json
import os
import re
import struct
import threading
import zlib

import program
from program import RUN


class Sites(program.Case):
    """`data split` divides a set, and a run trains on the samples of one site."""

    def split(self, *words):
        out, _ = self.ringpipe("data", "split", self.run_file(RUN), "--format", "json", "--out",
                               "split.json", "--yes", *words)
        return json.loads(out), json.loads((self.dir / "split.json").read_text())

    def test_a_site(self):
        answer, file = self.split("--sites", "4", "--by", "classes:5", "--seed", "3")
        self.assertEqual([site["name"] for site in file["sites"]],
                         ["site-0", "site-1", "site-2", "site-3"])
        self.assertEqual(sum(site["samples"] for site in answer["sites"]), 256)
        for site in answer["sites"]:
            self.assertEqual(sum(site["classes"]), site["samples"])
            self.assertEqual(sum(count > 0 for count in site["classes"]), 5)
        samples = answer["sites"][2]["samples"]
        text = RUN.replace("test: 64", "test: 64, site: {split: split.json, name: site-2}")
        self.ringpipe("train", self.run_file(text), "--out", "out")
        summary = json.loads((self.dir / "out/summary.json").read_text())
        self.assertEqual(summary["samples"], samples)
        self.assertEqual(summary["eval"]["samples"], 64)
        # The same arguments give the same file; other sites give other samples.
        before = (self.dir / "split.json").read_bytes()
        self.split("--sites", "4", "--by", "classes:5", "--seed", "3")
        self.assertEqual((self.dir / "split.json").read_bytes(), before)

    def test_validation_parts(self):
        whole = self.split("--sites", "3")[1]
        answer, file = self.split("--sites", "3", "--validation", "0.25")
        expand = lambda ranges: [i for r in ranges for i in (
            range(int(r.split("-")[0]), int(r.split("-")[1]) + 1) if isinstance(r, str) else [r])]
        for told, site, before in zip(answer["sites"], file["sites"], whole["sites"]):
            train, held = expand(site["train"]), expand(site["validation"])
            self.assertEqual(sorted(train + held), expand(before["train"]))
            self.assertEqual(len(held), len(train + held) // 4)
            self.assertEqual((told["samples"], told["validation"]), (len(train), len(held)))
            self.assertEqual(sum(told["classes"]), len(train))
            self.assertEqual((train, held), (sorted(train), sorted(held)))

    def test_natural_ids(self):
        names = [f"user-{i * i % 5}" for i in range(256)]
        (self.dir / "ids").write_text("\n".join(names) + "\n")
        answer, file = self.split("--by", "column:ids")
        self.assertEqual((file["rule"], [site["name"] for site in file["sites"]]),
                         ("column", ["user-0", "user-1", "user-4"]))
        self.assertEqual([site["samples"] for site in answer["sites"]],
                         [names.count(f"user-{k}") for k in (0, 1, 4)])
        self.assertEqual(file["sites"][1]["train"][:2], [1, 4])
        words = ("data", "split", self.run_file(RUN), "--by", "column:ids", "--out", "other.json")
        self.assertIn("names 3 sites, found 2", self.refused(*words, "--sites", "2"))
        for lines, part in ((names[1:], "256 training samples, found 255"),
                            (names + ["user-1"], "ids:257: expected the end"),
                            (["a b"] + names[1:], "ids:1: expected the name of a site"),
                            (["x" * 65] + names[1:], "ids:1: expected the name")):
            (self.dir / "ids").write_text("\n".join(lines))
            self.assertIn(part, self.refused(*words))

    def test_refusals(self):
        self.split("--sites", "2")
        self.assertIn("below 1", self.refused("data", "split", self.run_file(RUN), "--sites", "2",
                                              "--validation", "1", "--out", "other.json"))
        run = self.run_file(RUN)
        err = self.refused("data", "split", run, "--sites", "2", "--out", "split.json")
        self.assertIn("split.json", err)
        err = self.refused("data", "split", run, "--sites", "0", "--out", "other.json")
        self.assertIn("--sites", err)
        err = self.refused("data", "split", run, "--sites", "2", "--by", "luck", "--out",
                           "other.json")
        self.assertIn("--by: rule 'luck'", err)
        self.assertIn("dirichlet:ALPHA", err)
        self.assertIn("column:FILE", err)
        words = ("data", "split", run, "--out", "other.json")
        self.assertIn("--sites: missing", self.refused(*words))
        for by in ("column:", "column:none"):
            err = self.refused(*words, "--by", by)
            self.assertIn(f"--by: '{by}'", err)
            self.assertIn("expected column:FILE", err)
        # 128 samples at each of two sites
        err = self.refused(*words, "--sites", "2", "--validation", "0.0001")
        self.assertIn("--validation: 0.0001 holds out no sample", err)
        self.assertIn("at least 1/128", err)
        self.assertFalse((self.dir / "other.json").exists())
        text = RUN.replace("train: 256, test: 64",
                           "train: 255, test: 64, site: {split: split.json, name: site-1}")
        self.assertIn("ringpipe data split", self.refused("train", self.run_file(text)))
        err = self.refused("train", self.run_file(text.replace("split.json", "none.json")))
        self.assertIn("data.site.split: '", err)
        self.assertIn("none.json': No such file", err)

    def test_table(self):
        """The table has the validation samples if there are any."""
        words = ("data", "split", self.run_file(RUN), "--sites", "2", "--out", "split.json",
                 "--yes")
        lines = self.ringpipe(*words)[0].splitlines()
        self.assertEqual(lines[0].split()[:3], ["site", "samples", "evenness"])
        self.assertEqual(lines[1].split()[:2], ["site-0", "128"])
        lines = self.ringpipe(*words, "--validation", "0.25")[0].splitlines()
        self.assertEqual(lines[0].split()[:4], ["site", "samples", "validation", "evenness"])
        self.assertEqual(lines[1].split()[:3], ["site-0", "96", "32"])
        lines = self.ringpipe(*words, "--validation", "0.9999999999999999")[0].splitlines()
        self.assertEqual(lines[1].split()[:3], ["site-0", "1", "127"])
        # A share that only some sites are too small for is taken, and said.
        (self.dir / "ids").write_text("small\n" * 3 + "large\n" * 253)
        _, err = self.ringpipe("data", "split", self.run_file(RUN), "--by", "column:ids", "--out",
                               "split.json", "--yes", "--validation", "0.1")
        self.assertIn("1 of 2 sites are too small for a validation sample", err)


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
            [("validation", steps * e, 32) for e in (1, 2, 3)] + [("test", 3 * steps, 64)],
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
        self.assertEqual(self.evaluations("out"), [("test", 4, 64), ("test", 8, 64)])
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

    def test_another_part_is_another_run(self):
        self.ringpipe("train", self.run_file(self.TEXT), "--out", "out")
        words = ("--resume", "out", "--set", "train.epochs=4", "--set", "data.validation=20")
        err = self.refused("train", self.run_file(self.TEXT), *words)
        self.assertIn("was made with samples 224, but the run file has 236", err)

    def test_resumed_between_the_evaluations(self):
        """The end's validation is done and its test is not: only that is made up."""
        self.ringpipe("train", self.run_file(self.TEXT), "--out", "out")
        whole = json.loads((self.dir / "out/summary.json").read_text())
        (self.dir / "out/checkpoint/evaluated").unlink()
        log = self.dir / "out/log.jsonl"
        lines = log.read_text().splitlines(keepends=True)
        log.write_text("".join(line for line in lines if '"split":"test"' not in line))
        self.ringpipe("train", self.run_file(self.TEXT), "--resume", "out")
        self.assertEqual(self.evaluations("out")[-2:], [("validation", 12, 32), ("test", 12, 64)])
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

    def test_dry_run_reads_the_test_file(self):
        folder = self.dir / "flowers"
        folder.mkdir()
        rows = FLOWERS.replace(";", ",").replace("short, and", "short; and")
        (folder / "train.csv").write_text(rows)
        text = TABLE.replace("flowers.csv, delimiter: semicolon", "flowers")
        out, _ = self.ringpipe("train", self.run_file(text), "--dry-run")
        self.assertIn("4 training, 2 validation, 0 test samples, all of them read", out)
        self.assertRegex(out, r"no test part: .*flowers/test\.csv does not exist")
        (folder / "test.csv").write_text(rows.replace("4.9", "wide"))
        err = self.refused("train", self.run_file(text), "--dry-run")
        self.assertIn("test.csv:3:1: column 'sepal'", err)
        (folder / "test.csv").write_text(rows)
        out, _ = self.ringpipe("train", self.run_file(text), "--dry-run")
        self.assertNotIn("no test part", out)
        out, _ = self.ringpipe("train", self.run_file(text), "--dry-run", "--format", "json")
        checked = json.loads(out)
        self.assertEqual((checked["samples"], checked["validation_samples"]), (4, 2))
        self.assertEqual(checked["test_samples"], 6)

    def test_a_file_without_another_one_to_test(self):
        out, _ = self.ringpipe("train", self.run_file(TABLE), "--dry-run")
        self.assertIn("no test part: data.test is not given", out)

    def test_what_may_not_be_meant_is_said(self):
        text = TABLE.replace(" delimiter: semicolon,", "").replace(", validation: 2", "")
        slow = ("--set", "train.epochs=1", "--set",
                "lr_schedule={kind: cosine, warmup_steps: 100}")
        out, _ = self.ringpipe("train", self.run_file(text), "--dry-run", *slow)
        notes = ("fields are separated as by `delimiter: semicolon`", "and never reaches 0.5")
        self.assertRegex(out, f"note: .*flowers.csv: {notes[0]}")
        self.assertIn(notes[1], out)
        out, _ = self.ringpipe("train", self.run_file(text), "--dry-run", "--format", "json")
        self.assertIn(notes[0], json.loads(out)["notes"][0])
        _, err = self.ringpipe("train", self.run_file(text), *slow, "--out", "out")
        for note in notes:
            self.assertIn(note, err)
            self.assertIn(note, (self.dir / "out/log.jsonl").read_text())

    def test_batchnorm_of_single_values_is_refused(self):
        (self.dir / "net.yaml").write_text(
            NET.replace("layers:\n", "layers:\n  - {name: bn, kind: batchnorm}\n"))
        out = ("--out", "out")
        for verb, *words in (("train", *out), ("train", *out, "--dry-run"), ("plan",),
                             ("train", *out, "--set", "lanes={count: 2}"),
                             ("profile", *out)):
            err = self.refused(verb, self.run_file(TABLE), *words, "--set", "train.microbatch=1")
            self.assertIn("run.yaml:5: train: layer 'bn': batchnorm normalises over a", err)
        self.assertFalse((self.dir / "out").exists())

    def test_paths_are_utf_8(self):
        folder = os.fsencode(self.dir) + b"/d\xe4ta"
        os.mkdir(folder)
        with open(folder + b"/flowers.csv", "w") as file:
            file.write(FLOWERS)
        with open(folder + b"/run.yaml", "w") as file:
            file.write(TABLE.replace("net.yaml", str(self.dir / "net.yaml")))
        for words in (["--dry-run"], ["--out", "out"]):
            err = self.refused("train", os.fsdecode(folder + b"/run.yaml"), *words,
                               errors="replace")
            self.assertIn("run.yaml:2: data.path: the path is not UTF-8", err)
            self.assertIn("d\\xe4ta/flowers.csv", err)
        self.assertFalse((self.dir / "out").exists())

    def test_errors_name_the_place(self):
        for given in ("set: table, path: flowres.csv", "set: images, path: flowres.csv, size: 8",
                      "set: npy, path: flowres.csv"):
            text = re.sub(r"data: \{[^}]*\}", "data: {%s}" % given, TABLE)
            err = self.refused("train", self.run_file(text), "--dry-run")
            self.assertRegex(err, r"run\.yaml:2: data\.path: '\S*flowres\.csv': No such file")
        (self.dir / "flowers.csv").write_text(FLOWERS.replace("4.7", "four"))
        err = self.refused("train", self.run_file(TABLE), "--out", "out")
        self.assertIn("flowers.csv:7:2: column 'petal'", err)
        self.assertIn("'four'", err)
        err = self.refused("train", self.run_file(TABLE), "--set", "data.target=kind")
        self.assertIn("no column 'kind'", err)


def png(height, width, pixel):
    """A PNG file of 8-bit RGB; pixel(y, x) gives three bytes."""
    rows = b"".join(
        b"\0" + b"".join(bytes(pixel(y, x)) for x in range(width)) for y in range(height)
    )

    def chunk(kind, data):
        crc = zlib.crc32(kind + data)
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", crc)

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )


def npy(kind, shape, data):
    """A file as numpy.save() writes it."""
    text = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {tuple(shape)}, }}"
    text = text.ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode() + data


class Arrays(program.Case):
    """What numpy.save() has written."""

    def test_own_arrays(self):
        (self.dir / "net.yaml").write_text(PICTURE_NET)
        labels = [i % 2 for i in range(40)]
        pixels = bytes((250 if label else 5) + j % 5 for label in labels for j in range(4 * 4 * 3))
        for part, count in (("train", 40), ("test", 6)):
            data = npy("|u1", (count, 4, 4, 3), pixels[: count * 48])
            (self.dir / f"x_{part}.npy").write_bytes(data)
            data = npy("<i8", (count,), struct.pack(f"<{count}q", *labels[:count]))
            (self.dir / f"y_{part}.npy").write_bytes(data)
        text = PICTURES.replace(
            "set: images, path: shapes, size: 8",
            "set: npy, path: ., channels: last, classes: [dark, bright], normalise: measured",
        )
        self.ringpipe("train", self.run_file(text), "--out", "out")
        summary = json.loads((self.dir / "out/summary.json").read_text())
        self.assertEqual(summary["eval"], {**summary["eval"], "samples": 6, "accuracy": 1})
        data = json.loads((self.dir / "out/data.json").read_text())
        self.assertEqual(data["sample"], [3, 4, 4])
        self.assertEqual(data["class_names"], ["dark", "bright"])
        path = self.dir / "x_test.npy"
        path.write_bytes(path.read_bytes()[:-1])
        err = self.refused("train", self.run_file(text), "--dry-run")
        self.assertIn("x_test.npy: the header requires 416 bytes, but the file has 415", err)


TWO_INPUTS = """\
model: two.yaml
data:
  set: npy
  path: .
  train_x: {left: a.npy, right: b.npy}
  train_y: y.npy
  test_x: {left: a.npy, right: b.npy}
  test_y: y.npy
ring: {boards: 2}
train: {epochs: 2, batch: 8, microbatch: 4, seed: 3, steps: 7}
loss: mse
optimizer: {kind: sgd, lr: 0.02}
schedule: gpipe
cut: [fc]
"""

TWO_INPUTS_NET = """\
input: {left: {shape: [3]}, right: {shape: [2]}}
layers:
  - {name: swapped, kind: concat, from: [right, left]}
  - {name: fc, kind: dense, out: 1}
"""


class Inputs(program.Case):
    """A file for each input of a model."""

    def setUp(self):
        super().setUp()
        (self.dir / "two.yaml").write_text(TWO_INPUTS_NET)
        self.left = [[i % 3, i % 5 / 2, 1.0] for i in range(40)]
        self.right = [[i % 7 / 4, i % 2] for i in range(40)]
        rows = [a + b for a, b in zip(self.left, self.right)]
        for name, part in (("a", self.left), ("b", self.right), ("both", rows)):
            flat = [number for row in part for number in row]
            data = npy("<f4", (40, len(part[0])), struct.pack(f"<{len(flat)}f", *flat))
            (self.dir / f"{name}.npy").write_bytes(data)
        targets = [sum(row) for row in rows]
        (self.dir / "y.npy").write_bytes(npy("<f4", (40, 1), struct.pack("<40f", *targets)))

    def test_the_same_run_as_with_one_file(self):
        """Trained, evaluated, and asked; the inputs follow one another in the joint file."""
        joint = TWO_INPUTS.replace("{left: a.npy, right: b.npy}", "both.npy")
        for name, text in (("two", TWO_INPUTS), ("one", joint)):
            self.ringpipe("train", self.run_file(text, f"{name}.run.yaml"), "--out", name)
        weights = [(self.dir / name / "weights.safetensors").read_bytes() for name in
                   ("two", "one")]
        self.assertTrue(weights[0] == weights[1])
        data = json.loads((self.dir / "two/data.json").read_text())
        self.assertEqual((data["sample"], data["inputs"]), ([5], {"left": 3, "right": 2}))
        summary = json.loads((self.dir / "two/summary.json").read_text())
        out, _ = self.ringpipe("eval", "two", "--format", "json")
        self.assertAlmostEqual(json.loads(out)["eval"]["loss"], summary["eval"]["loss"], 5)
        out, _ = self.ringpipe("predict", "two", "both.npy", "--format", "csv")
        self.assertEqual(len(out.splitlines()), 41)
        self.assertIn("a.npy: expected samples of shape [5], in which the model's inputs follow "
                      "one another: 'left' (3), 'right' (2), found [3]",
                      self.refused("predict", "two", "a.npy"))

    def test_wrong_files(self):
        for change, said in (
            ("train_x={left: a.npy}", "train_x: the key 'right' is needed here"),
            ("train_x={left: b.npy, right: b.npy}",
             "b.npy: samples have shape [2], expected [3] (the model's input left)"),
            ("train_x=both.npy", "data.test_x: expected one file as in train_x"),
        ):
            self.assertIn(said, self.refused("train", self.run_file(TWO_INPUTS), "--dry-run",
                                             "--set", f"data.{change}"))
        net = TWO_INPUTS_NET.replace("right: {shape: [2]}", "right: {shape: [2], type: i32}")
        (self.dir / "two.yaml").write_text(net)
        self.assertIn("two.yaml:1: input.right: expected the type of the first input, f32: the "
                      "inputs of a model have one type, found i32",
                      self.refused("train", self.run_file(TWO_INPUTS), "--dry-run"))


PICTURES = """\
model: net.yaml
data: {set: images, path: shapes, size: 8, augment: flip, validation: 0.25}
ring: {boards: 2}
train: {epochs: 8, batch: 8, microbatch: 4, seed: 3}
loss: cross-entropy
optimizer: {kind: sgd, lr: 0.02, momentum: 0.9}
schedule: gpipe
cut: [fc]
"""

PICTURE_NET = """\
input: data
layers:
  - {name: flat, kind: flatten}
  - {name: fc, kind: dense, out: classes}
"""


class Images(program.Case):
    """A folder of pictures for each class, of any size."""

    def setUp(self):
        super().setUp()
        (self.dir / "net.yaml").write_text(PICTURE_NET)
        for part, count in (("train", 24), ("test", 4)):
            for kind, colour in (("red", (200, 30, 30)), ("blue", (30, 30, 200))):
                folder = self.dir / "shapes" / part / kind
                folder.mkdir(parents=True)
                for i in range(count):
                    shade = lambda y, x: [(c + 3 * i + y + 2 * x) % 256 for c in colour]
                    data = png(10 + i % 5, 9 + i % 7, shade)
                    (folder / f"{i}.png").write_bytes(data)

    def test_own_pictures(self):
        self.ringpipe("train", self.run_file(PICTURES), "--out", "out")
        summary = json.loads((self.dir / "out/summary.json").read_text())
        self.assertEqual(summary["eval"], {**summary["eval"], "samples": 8, "accuracy": 1})
        self.assertEqual(summary["validation"]["samples"], 12)
        data = json.loads((self.dir / "out/data.json").read_text())
        self.assertEqual(data["class_names"], ["blue", "red"])
        self.assertEqual(data["sample"], [3, 8, 8])
        again = self.dir / "again"
        self.ringpipe(
            "train", self.run_file(PICTURES), "--out", again, "--set", "data.workers=5"
        )
        weights = [(f / "weights.safetensors").read_bytes() for f in (self.dir / "out", again)]
        self.assertTrue(weights[0] == weights[1], "other weights with other workers")

    def test_dry_run_decodes_every_picture(self):
        out, _ = self.ringpipe("train", self.run_file(PICTURES), "--dry-run")
        self.assertIn("36 training, 12 validation, 8 test samples, all of them read", out)
        for part in ("train", "test"):
            path = self.dir / "shapes" / part / "blue/3.png"
            whole = path.read_bytes()
            path.write_bytes(whole[:40] + b"\0" + whole[41:])
            err = self.refused("train", self.run_file(PICTURES), "--dry-run")
            self.assertIn(f"shapes/{part}/blue/3.png: the picture is damaged", err)
            self.assertEqual(err.count("is damaged"), 1)  # a thread found it: said once
            path.write_bytes(whole)

    def test_broken_pictures_are_named(self):
        """All of them, wherever the run ends; they are the user's data, not a fault of the ring."""
        names = ("train/blue/2.png", "train/red/7.png", "test/red/1.png")
        for name in names:
            path = self.dir / "shapes" / name
            path.write_bytes(path.read_bytes()[:-30])
        out, err = self.ringpipe("train", self.run_file(PICTURES), "--out", "out", code=2)
        for name in names:
            self.assertIn(f"shapes/{name}: the picture is damaged", err)
        self.assertIn("3 of the 56 samples cannot be used", err)
        self.assertNotIn("resume", err)
        self.assertNotIn("finished", out)
        _, err = self.ringpipe(
            "train", self.run_file(PICTURES), "--out", "lanes", "--set", "lanes={count: 2}", code=2
        )
        self.assertIn("a lane cannot use its data; see lanes/lane-", err)
        self.assertIn("3 of the 56 samples cannot be used", err)
        few = self.refused(
            "train", self.run_file(PICTURES), "--dry-run", "--set", "data.skip_damaged=2"
        )
        self.assertIn("3 of 56 pictures cannot be read, but data.skip_damaged allows 2", few)
        out, err = self.ringpipe(
            "train", self.run_file(PICTURES), "--dry-run", "--set", "data.skip_damaged=3"
        )
        self.assertIn("7 test samples, all of them read", out)
        self.assertIn("note: 3 damaged pictures are skipped (data.skip_damaged: 3)", out)
        for name in names:
            self.assertIn(f"shapes/{name}: is damaged and skipped", err)


class Documents(program.Case):
    def test_examples_of_the_readme(self):
        (self.dir / "net.yaml").write_text(PICTURE_NET)
        rows = csv.reader(FLOWERS.splitlines(), delimiter=";")
        (self.dir / "flowers.csv").write_text("".join(",".join(r[:3]) + "\n" for r in rows))
        for kind in "ab":
            folder = self.dir / "pictures/train" / kind
            folder.mkdir(parents=True)
            for i in range(6):
                (folder / f"{i}.png").write_bytes(png(5, 5, lambda y, x: (y, x, i)))
        (self.dir / "arrays").mkdir()
        for part in ("train", "test"):
            data = npy("|u1", (3, 4, 4, 3), bytes(144))
            (self.dir / f"arrays/x_{part}.npy").write_bytes(data)
            (self.dir / f"arrays/y_{part}.npy").write_bytes(npy("|u1", (3,), bytes([0, 1, 1])))
        text = (program.SOURCE / "README.md").read_text()
        examples = re.findall(r"^    (data: \{.*?\})", text, re.M)
        self.assertEqual(len(examples), 3)
        for example in examples:
            with self.subTest(example):
                run = re.sub(r"data: \{.*?\}", example, PICTURES, flags=re.S)
                out, _ = self.ringpipe("train", self.run_file(run), "--dry-run")
                self.assertIn("all of them read", out)


class Fetch(program.Case):
    """`data fetch` from a server: this one answers as it is told, and counts."""

    def serve(self, answer):
        """answer(number of the request, path) gives status, headers and body."""
        case = self
        self.asked = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                case.asked.append(self.path)
                status, headers, body = answer(len(case.asked), self.path)
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *words):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return f"http://127.0.0.1:{server.server_port}/sets"

    def fetch(self, address, name="mnist"):
        environment = {"no_proxy": "127.0.0.1"}
        err = self.refused(
            "data", "fetch", name, "--to", "to", "--from", address,
            env=self.environment(**environment),
        )
        self.assertEqual(list((self.dir / "to").iterdir()), [], "something was left there")
        return err

    def test_not_found(self):
        err = self.fetch(self.serve(lambda n, path: (404, {}, b"")), "cifar100")
        self.assertEqual(self.asked, ["/sets/cifar-100-binary.tar.gz"])  # and not again
        self.assertIn("cifar-100-binary.tar.gz cannot be fetched", err)
        self.assertIn("404", err)
        self.assertIn("by hand, download cifar-100-binary.tar.gz from https://", err)

    def test_a_server_that_is_busy_is_asked_again(self):
        def answer(n, path):
            return (503, {}, b"") if n < 3 else (200, {"Content-Length": "5"}, b"wrong")

        err = self.fetch(self.serve(answer))
        self.assertEqual(len(self.asked), 3)
        self.assertIn("train-images-idx3-ubyte.gz is not the official file: 5 bytes", err)

    def test_too_long(self):
        err = self.fetch(self.serve(lambda n, path: (200, {}, bytes(11 * 1000 * 1000))))
        self.assertIn("longer than the official file of 9912422 bytes", err)
        self.assertEqual(len(self.asked), 1)

    def test_no_way_to_files(self):
        secret = self.dir / "secret"
        secret.write_text("x")
        headers = {"Location": secret.as_uri()}
        err = self.fetch(self.serve(lambda n, path: (302, headers, b"")))
        self.assertIn("cannot be fetched", err)
        self.assertNotIn("is not the official file", err)

    def test_what_is_there_is_listed(self):
        """Also when nothing had to be fetched."""
        (self.dir / "to").mkdir()
        names = [f"data_batch_{i}.bin" for i in range(1, 6)] + ["test_batch.bin"]
        for name in names:  # of the right size, with holes: the archive was checked, long ago
            with open(self.dir / "to" / name, "wb") as file:
                file.truncate(30730000)
        words = ("data", "fetch", "cifar10", "--to", "to")
        out, _ = self.ringpipe(*words)
        self.assertEqual([line.split()[:2] for line in out.splitlines()],
                         [[name, "30730000"] for name in names])
        out, _ = self.ringpipe(*words, "--format", "json")
        said = json.loads(out)
        self.assertEqual((said["set"], said["folder"]), ("cifar10", "to"))
        self.assertEqual(said["files"], [{"name": n, "bytes": 30730000} for n in names])

    def test_official_files(self):
        real = program.SOURCE.parent / "shared" / "data" / "fashion-mnist"
        if not real.exists():
            self.skipTest(f"no real data at {real}")

        def answer(n, path):
            return 200, {}, (real / path.rsplit("/", 1)[1]).read_bytes()

        address = self.serve(answer)
        words = ("data", "fetch", "fashion-mnist", "--to", "to", "--from", address)
        env = self.environment(no_proxy="127.0.0.1")
        self.ringpipe(*words, env=env)
        self.assertEqual(len(list((self.dir / "to").iterdir())), 4)
        self.ringpipe(*words, env=env)
        self.assertEqual(len(self.asked), 4)


if __name__ == "__main__":
    program.main()
