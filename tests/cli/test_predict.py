#!/usr/bin/env python3
"""A run's folder and files are all that predictions need; they are what the run's own evaluation
says, and what PyTorch says of the same weights."""
import csv
import io
import json
import math
import random
import shutil
import struct
import subprocess
import sys
import unittest
import zlib

import program

MODEL = """\
input: data
layers:
  - {name: fc1, kind: dense, out: 12}
  - {name: bn1, kind: batchnorm}
  - {name: relu1, kind: relu}
  - {name: fc2, kind: dense, out: classes}
"""
RUN = """\
model: net.yaml
data: {set: table, path: data, target: kind, drop: id, normalise: measured}
ring: {boards: 2}
train: {epochs: 3, batch: 16, microbatch: 4, seed: 1}
loss: cross-entropy
optimizer: {kind: sgd, lr: 0.1, momentum: 0.9}
schedule: 1f1b
"""
PLACES = {"cat": (0, 0), "dog": (3, 0), "eel, big": (0, 3)}
TORCH = r"""
import json, sys, torch
ask = json.load(sys.stdin)
w = {name: torch.tensor(values).reshape(shape) for name, (shape, values) in ask["weights"].items()}
norm = torch.nn.BatchNorm1d(12).eval()
norm.load_state_dict({k[4:]: v for k, v in w.items() if k.startswith("bn1.")}, strict=False)
x = (torch.tensor(ask["x"]) - torch.tensor(ask["mean"])) / torch.tensor(ask["std"])
with torch.no_grad():
    h = torch.relu(norm(torch.nn.functional.linear(x, w["fc1.weight"], w["fc1.bias"])))
    p = torch.softmax(torch.nn.functional.linear(h, w["fc2.weight"], w["fc2.bias"]), 1)
print(json.dumps(p.tolist()))
"""


def python_with_torch():
    for python in (sys.executable, "/usr/bin/python3"):
        try:
            found = subprocess.run([python, "-c", "import torch"], capture_output=True, timeout=120)
        except (OSError, subprocess.TimeoutExpired):
            continue
        if found.returncode == 0:
            return python
    return None


PYTHON = python_with_torch()


def table(count, seed):
    draw = random.Random(seed)
    rows = []
    for i in range(count):
        kind = draw.choice(sorted(PLACES))
        x, y = PLACES[kind]
        rows.append((i, x + round(draw.gauss(0, 0.9), 4), y + round(draw.gauss(0, 0.9), 4), kind))
    return rows


def as_csv(rows, header="id,width,height,kind\n"):
    return header + "".join(f'{i},{x:.4f},{y:.4f},"{kind}"\n' for i, x, y, kind in rows)


def png(width, height, pixel):
    """8-bit RGB, by the standard's own words."""
    def chunk(kind, data):
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    rows = b"".join(b"\0" + bytes(v for x in range(width) for v in pixel(x, y))
                    for y in range(height))
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows))
            + chunk(b"IEND", b""))


class Predict(program.Case):
    def setUp(self):
        super().setUp()
        (self.dir / "data").mkdir()
        (self.dir / "net.yaml").write_text(MODEL)
        self.test = table(70, 2)
        (self.dir / "data" / "train.csv").write_text(as_csv(table(200, 1)))
        (self.dir / "data" / "test.csv").write_text(as_csv(self.test))

    def train(self, *words):
        self.ringpipe("train", self.run_file(RUN), "--out", "run", *words)
        return json.loads((self.dir / "run" / "summary.json").read_text())

    def ask(self, *words, **options):
        out, err = self.ringpipe("predict", "run", *words, "--format", "json", **options)
        self.assertEqual(err, "")
        answer = json.loads(out)
        self.assertEqual(answer["samples"], len(answer["predictions"]))
        return answer

    def probabilities(self, answer):
        return [[t["probability"] for t in sorted(p["top"], key=lambda t: t["index"])]
                for p in answer["predictions"]]

    def test_it_says_what_the_evaluation_says_without_the_data(self):
        summary = self.train()
        shutil.move(self.dir / "data" / "test.csv", self.dir / "mine.csv")
        shutil.rmtree(self.dir / "data")
        (self.dir / "net.yaml").unlink()
        (self.dir / "run.yaml").unlink()
        (self.dir / "elsewhere").mkdir()
        shutil.move(self.dir / "run", self.dir / "elsewhere" / "it's here")
        out, _ = self.ringpipe("predict", "elsewhere/it's here", "mine.csv", "--top", 3, "--format",
                               "json")
        answers = json.loads(out)["predictions"]
        right = sum(a["class"] == kind for a, (_, _, _, kind) in zip(answers, self.test))
        self.assertEqual(len(answers), 70)
        self.assertAlmostEqual(right / 70, summary["eval"]["accuracy"], places=9)
        loss = 0
        for a, (_, _, _, kind) in zip(answers, self.test):
            loss -= math.log({t["class"]: t["probability"] for t in a["top"]}[kind]) / 70
            self.assertAlmostEqual(sum(t["probability"] for t in a["top"]), 1, places=6)
            self.assertEqual(a["top"], sorted(a["top"], key=lambda t: -t["probability"]))
        self.assertAlmostEqual(loss, summary["eval"]["loss"], places=5)
        self.assertEqual([a["line"] for a in answers], list(range(2, 72)))

    def test_a_file_may_be_written_in_any_way(self):
        self.train()
        whole = self.probabilities(self.ask("data/test.csv", "--top", 3))
        turned = "".join(f"{y:.4f},x,{x:.4f}\n" for _, x, y, _ in self.test)
        plain = "".join(f"{x:.4f},{y:.4f}\n" for _, x, y, _ in self.test)
        (self.dir / "turned.csv").write_text("# mine\nheight,note,width\n" + turned)
        (self.dir / "plain.csv").write_text(plain)
        self.assertEqual(self.probabilities(self.ask("turned.csv", "--top", 9)), whole)
        twice = self.ask("plain.csv", "data/test.csv", "--top", 3)  # microbatches over two files
        self.assertEqual(self.probabilities(twice), whole + whole)
        self.assertEqual([p["input"] for p in twice["predictions"]],
                         ["plain.csv"] * 70 + ["data/test.csv"] * 70)
        piped = self.ask("-", "--top", 3, stdin_bytes=as_csv(self.test).encode())
        self.assertEqual(self.probabilities(piped), whole)
        self.assertEqual(piped["predictions"][0]["input"], "standard input")

    def test_three_formats(self):
        self.train()
        (self.dir / "two.csv").write_text("width,height\n3,0\n0,3.5\n")
        answer = self.ask("two.csv", "--top", 2)
        self.assertEqual([p["class"] for p in answer["predictions"]], ["dog", "eel, big"])
        out, _ = self.ringpipe("predict", "run", "two.csv", "--format", "csv", "--top", 2)
        rows = list(csv.DictReader(io.StringIO(out)))
        self.assertEqual(rows[1]["class"], "eel, big")
        self.assertEqual(rows[1]["sample"], "3")
        for row, p in zip(rows, answer["predictions"]):
            self.assertAlmostEqual(float(row["probability"]), p["probability"], places=8)
            second = p["top"][1]["probability"]
            self.assertAlmostEqual(float(row["probability_2"]), second, places=8)
        out, _ = self.ringpipe("predict", "run", "two.csv")
        p = answer["predictions"][0]["probability"]
        self.assertEqual(out.splitlines()[0], f"two.csv:2: dog {100 * p:.2f} %")
        (self.dir / "many.csv").write_text("width,height\n" + 2000 * "3,0\n")
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run([program.RINGPIPE, "predict", "run", "many.csv"], stdout=full,
                                  stderr=subprocess.PIPE, cwd=self.dir, text=True, check=False)
        said = "ringpipe: standard output could not be written: No space left on device\n"
        self.assertEqual((done.returncode, done.stderr), (2, said))

    def test_pictures(self):
        """Light is one class, dark the other; files of any size."""
        draw = random.Random(3)
        for part, count in (("train", 24), ("test", 6)):
            for light, name in ((210, "day"), (40, "night")):
                (self.dir / "pictures" / part / name).mkdir(parents=True)
                for i in range(count):
                    level = light + draw.randint(-30, 30)
                    (self.dir / "pictures" / part / name / f"{i}.png").write_bytes(
                        png(9 + i % 4, 8, lambda x, y: (level, (level + x) % 256, level)))
        text = RUN.replace("{set: table, path: data, target: kind, drop: id, normalise: measured}",
                           "{set: images, path: pictures, size: 6}")
        (self.dir / "net.yaml").write_text(
            "input: data\nlayers:\n  - {name: conv, kind: conv2d, out: 4, kernel: 3}\n"
            "  - {name: relu, kind: relu}\n  - {name: pool, kind: globalavgpool}\n"
            "  - {name: flat, kind: flatten}\n  - {name: fc, kind: dense, out: classes}\n")
        self.ringpipe("train", self.run_file(text), "--out", "run")
        summary = json.loads((self.dir / "run" / "summary.json").read_text())
        files = sorted((self.dir / "pictures" / "test").glob("*/*.png"))
        answers = self.ask(*files)["predictions"]
        self.assertEqual([a["input"] for a in answers], [str(f) for f in files])
        right = sum(a["class"] == f.parent.name for a, f in zip(answers, files))
        self.assertAlmostEqual(right / len(files), summary["eval"]["accuracy"], places=9)
        piped = self.ask("-", stdin_bytes=files[0].read_bytes())["predictions"][0]
        self.assertEqual(piped["probability"], answers[0]["probability"])
        error = self.refused("predict", "run", "net.yaml", "--format", "json")
        self.assertIn("net.yaml: is neither a JPEG nor a PNG file", error)
        self.assertIn("[3, 6, 6]", error)

    def test_values_of_a_regression(self):
        rows = [(i % 7, i % 5) for i in range(60)]
        (self.dir / "data" / "train.csv").write_text(
            "a,b,sum,rest\n" + "".join(f"{a},{b},{a + b},{a - 2 * b}\n" for a, b in rows))
        (self.dir / "data" / "test.csv").unlink()
        (self.dir / "net.yaml").write_text(
            "input: data\nlayers: [{name: fc, kind: dense, out: 2}]\n")
        program.write_safetensors(self.dir / "exact.safetensors",
                                  {"fc.weight": ([2, 2], [1, 1, 1, -2]),
                                   "fc.bias": ([2], [0, 0.5])})
        text = RUN.replace("target: kind, drop: id, normalise: measured", "target: [sum, rest]")
        self.ringpipe("train", self.run_file(text.replace("cross-entropy", "mse")), "--out", "run",
                      "--set", "train.epochs=1", "--set", "ring.boards=1")
        (self.dir / "in.csv").write_text("b,a\n3,4\n")
        answer = self.ask("in.csv", "--weights", "exact.safetensors")
        self.assertEqual(answer["names"], ["sum", "rest"])
        self.assertEqual(answer["predictions"],
                         [{"input": "in.csv", "line": 2, "values": [7, -1.5]}])
        out, _ = self.ringpipe("predict", "run", "in.csv", "--weights", "exact.safetensors")
        self.assertEqual(out, "in.csv:2: sum 7, rest -1.5\n")
        out, _ = self.ringpipe("eval", "run", "--split", "train", "--weights", "exact.safetensors")
        self.assertEqual(out, "train loss 0.125 of 60\n")
        out, _ = self.ringpipe("eval", "run", "--split", "train", "--format", "json", "--weights",
                               "exact.safetensors")
        self.assertEqual(json.loads(out)["eval"], {"loss": 0.125, "samples": 60, "split": "train"})

    def test_errors_name_what_is_wrong(self):
        self.train()
        (self.dir / "bad.csv").write_text("width,height\n1,2\n3,many\n")
        out, err = self.ringpipe("predict", "run", "bad.csv", code=2)
        self.assertIn("bad.csv:3:2: column 'height': expected a finite number, found 'many'", err)
        self.assertEqual(len(out.splitlines()), 1)  # what came before it
        self.refused("predict", "run", "bad.csv", "--format", "json")
        self.assertIn("nowhere.csv", self.refused("predict", "run", "data/test.csv", "nowhere.csv"))
        self.assertIn("data.json is missing", self.refused("predict", "data", "data/test.csv"))
        self.assertIn("DIR FILE", self.refused("predict", "run"))
        self.assertIn("text|csv|json", self.refused("predict", "run", "x", "--format", "xml"))
        weights = self.dir / "run" / "weights.safetensors"
        good = weights.read_bytes()
        weights.write_bytes(good[:-3])
        self.assertIn("weights.safetensors", self.refused("predict", "run", "data/test.csv"))
        weights.unlink()
        error = self.refused("predict", "run", "data/test.csv")
        self.assertIn("use the weights of a checkpoint with --weights FILE", error)
        newest = max((self.dir / "run" / "checkpoint").glob("*.safetensors"))
        weights.write_bytes(good)
        self.assertEqual(self.ask("data/test.csv", "--weights", newest)["predictions"],
                         self.ask("data/test.csv")["predictions"])
        (self.dir / "run" / "data.json").unlink()
        self.assertIn("run: data.json is missing: ",
                      self.refused("predict", "run", "data/test.csv"))

    def test_the_table_of_answers(self):
        summary = self.train("--set", "data.validation=40")
        out, err = self.ringpipe("eval", "run", "--confusion", "--format", "json")
        self.assertEqual(err, "")
        result = json.loads(out)
        self.assertEqual(set(result["eval"]), {"loss", "accuracy", "samples"})
        self.assertEqual(result["eval"]["samples"], 70)
        self.assertAlmostEqual(result["eval"]["accuracy"], summary["eval"]["accuracy"], places=9)
        self.assertAlmostEqual(result["eval"]["loss"], summary["eval"]["loss"], places=5)
        names = sorted(PLACES)
        answers = self.ask("data/test.csv")["predictions"]
        pairs = [(row[3], a["class"]) for row, a in zip(self.test, answers)]
        want = [[pairs.count((i, k)) for k in names] for i in names]
        self.assertEqual(result["confusion"], want)
        for i, one in enumerate(result["classes"]):
            self.assertEqual(one["class"], names[i])
            self.assertEqual(one["samples"], sum(want[i]))
            self.assertAlmostEqual(one["recall"], want[i][i] / sum(want[i]), places=9)
            answered = sum(row[i] for row in want)
            self.assertAlmostEqual(one["precision"], want[i][i] / answered, places=9)
        # Without the table the same; of a folder no ring is needed, the boards may be gone.
        out, err = self.ringpipe("eval", "run", "--format", "json", "--set", "ring.boards=40")
        self.assertEqual((json.loads(out)["eval"], err), (result["eval"], ""))
        self.assertNotIn("confusion", out)
        self.assertTrue(json.loads(out)["device"])
        out, _ = self.ringpipe("eval", "run", "--confusion")
        said = result["eval"]
        accuracy = 100 * said["accuracy"]
        self.assertIn(f"test loss {said['loss']:.4f}, accuracy {accuracy:.2f} % of 70\n", out)
        out, _ = self.ringpipe("eval", "run", "--confusion", "--split", "validation", "--format",
                               "json")
        validation = json.loads(out)["eval"]
        self.assertEqual(validation["split"], "validation")
        self.assertAlmostEqual(validation["accuracy"], summary["validation"]["accuracy"], places=9)

    def test_a_smoothed_loss_and_ten_classes(self):
        """As the ring evaluates, and with the five likeliest."""
        text = program.RUN.replace("loss: cross-entropy",
                                   "loss: {kind: cross-entropy, label_smoothing: 0.2}")
        self.ringpipe("train", self.run_file(text), "--out", "run")
        summary = json.loads((self.dir / "run" / "summary.json").read_text())
        out, _ = self.ringpipe("eval", "run", "--confusion", "--format", "json")
        said = json.loads(out)["eval"]
        self.assertAlmostEqual(said["loss"], summary["eval"]["loss"], places=4)
        self.assertAlmostEqual(said["accuracy"], summary["eval"]["accuracy"], places=9)
        self.assertTrue(said["accuracy"] <= said["top5"] <= 1, said)
        out, _ = self.ringpipe("eval", "run", "--confusion")
        self.assertIn(f", top-5 {100 * said['top5']:.2f} %", out)

    def test_a_table_needs_classes_and_samples(self):
        (self.dir / "data" / "test.csv").unlink()
        self.train("--set", "train.epochs=1")
        self.assertIn("no test part; use --split train",
                      self.refused("eval", "run", "--confusion"))
        (self.dir / "run" / "weights.safetensors").unlink()
        self.assertIn("continue it with `ringpipe resume run`",
                      self.refused("eval", "run", "--confusion", "--split", "train"))
        (self.dir / "data" / "train.csv").write_text("1,2,3\n2,3,4\n")
        (self.dir / "net.yaml").write_text("input: [2]\nlayers: [{name: f, kind: dense, out: 1}]\n")
        text = RUN.replace("cross-entropy", "mse").replace(", target: kind, drop: id", "")
        error = self.refused("eval", self.run_file(text), "--weights", "none", "--confusion")
        self.assertIn("--confusion needs classes", error)

    @unittest.skipUnless(PYTHON, "no Python here has torch (python3-torch)")
    def test_it_says_what_torch_says(self):
        self.train()
        about = json.loads((self.dir / "run" / "data.json").read_text())
        question = {"weights": program.read_safetensors(self.dir / "run" / "weights.safetensors"),
                    "x": [[x, y] for _, x, y, _ in self.test], "mean": about["mean"],
                    "std": about["std"]}
        done = subprocess.run([PYTHON, "-W", "ignore", "-c", TORCH], input=json.dumps(question),
                              capture_output=True, text=True, timeout=200 * program.SLOWER)
        self.assertEqual(done.returncode, 0, done.stderr)
        got = self.probabilities(self.ask("data/test.csv", "--top", 3))
        want = json.loads(done.stdout)
        self.assertEqual(len(got), len(want))
        for a, b in zip(got, want):
            for p, q in zip(a, b):
                self.assertTrue(abs(p - q) <= 2e-6, (p, q))  # a NaN is not close


if __name__ == "__main__":
    program.main()
