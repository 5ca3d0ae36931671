#!/usr/bin/env python3
"""`ringpipe round`: one site's step, from given weights to weights and round.json."""
import json
import os
import random
import signal
import struct
import time

import program

SITE = """\
model: mlp
data: {set: glyphs, train: 1024, test: 64, site: {split: split.json, name: site-1}}
ring: {boards: 2}
train: {epochs: 1, batch: 64, microbatch: 16, seed: 1, checkpoint_steps: 2}
loss: cross-entropy
optimizer: {kind: sgd, lr: 0.05, momentum: 0.9}
schedule: gpipe
cut: [fc2]
"""


def read_tensors(path):
    """name: (type, shape, bytes), in the order of the file."""
    raw = path.read_bytes()
    size = struct.unpack("<Q", raw[:8])[0]
    header = json.loads(raw[8:8 + size])
    header.pop("__metadata__", None)
    return {name: (one["dtype"], one["shape"],
                   raw[8 + size + one["data_offsets"][0]:8 + size + one["data_offsets"][1]])
            for name, one in header.items()}


def write_tensors(path, tensors):
    header, at = {}, 0
    for name, (kind, shape, data) in tensors.items():
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(d for _, _, d in
                                                                    tensors.values()))


def floats(data):
    return struct.unpack(f"<{len(data) // 4}f", data)


class Round(program.Case):
    def setUp(self):
        super().setUp()
        whole = SITE.replace(", site: {split: split.json, name: site-1}", "")
        self.ringpipe("data", "split", self.run_file(whole), "--sites", "2", "--by",
                      "dirichlet:0.5", "--out", "split.json")
        self.ringpipe("train", self.run_file(whole), "--set", "train.steps=1", "--out", "w")
        self.site = self.run_file(SITE, "site.yaml")

    def words(self, out, number=3, given="w/weights.safetensors", *more):
        return ("round", self.site, "--in", given, "--out", out, "--round", number, *more)

    def round(self, out, *more, number=3, given="w/weights.safetensors", **options):
        said, _ = self.ringpipe(*self.words(out, number, given, "--format", "json", *more),
                                **options)
        return json.loads(said)

    def test_an_answer(self):
        answer = self.round("a", "--steps", "6")
        self.assertEqual(json.loads((self.dir / "a/round.json").read_text()), answer)
        self.assertEqual((answer["round"], answer["site"], answer["status"]),
                         (3, "site-1", "finished"))
        self.assertEqual((answer["steps"], answer["asked"], answer["samples"]), (6, 6, 384))
        self.assertEqual(answer["after"]["samples"], 64)
        # 6 steps with momentum 0.9: the sum over k of (1 - 0.9^k) / 0.1
        self.assertAlmostEqual(answer["norm_a"], sum((1 - 0.9 ** k) / 0.1 for k in range(1, 7)))
        before = read_tensors(self.dir / "w/weights.safetensors")
        after = read_tensors(self.dir / "a/weights.safetensors")
        self.assertEqual([(n, t[:2]) for n, t in before.items()],
                         [(n, t[:2]) for n, t in after.items()])
        squares = sum((a - b) ** 2 for name in before
                      for a, b in zip(floats(after[name][2]), floats(before[name][2])))
        self.assertAlmostEqual(answer["delta_norm"], squares ** 0.5, places=6)
        # The same command gives the same answer, without a run.
        start = time.monotonic()
        self.assertEqual(self.round("a", "--steps", "6"), answer)
        self.assertLess(time.monotonic() - start, 60)
        self.assertEqual(len(program.steps_of(self.dir / "a/run/log.jsonl")), 6)
        # A round that was killed before its answer is told again from its run.
        (self.dir / "a/round.json").unlink()
        again = self.round("a", "--steps", "6")
        self.assertEqual({**again, "seconds": 0}, {**answer, "seconds": 0})
        # Weights that were removed are made again.
        (self.dir / "a/weights.safetensors").unlink()
        again = self.round("a", "--steps", "6")
        self.assertEqual(again["out"], answer["out"])
        self.assertTrue((self.dir / "a/weights.safetensors").exists())
        # Elsewhere the round has the same weights; another round, or another site, has not.
        self.assertEqual(self.round("b", "--steps", "6")["out"], answer["out"])
        self.assertNotEqual(self.round("c", "--steps", "6", number=4)["out"], answer["out"])
        self.site.write_text(SITE.replace("site-1", "site-0"))
        self.assertNotEqual(self.round("d", "--steps", "6")["out"], answer["out"])

    def test_kills(self):
        """The same command goes on after kill -9 at any moment, with the same weights."""
        want = self.round("whole", "--epochs", "2")
        draw = random.Random(5)
        for attempt in range(2 if os.environ.get("RP_SHORT") else 4):
            for _ in range(2):
                process = self.start(*self.words(f"k{attempt}", 3, "w/weights.safetensors",
                                                 "--epochs", "2"))
                time.sleep(draw.uniform(0.05, 2.5))
                process.kill()
                process.communicate()
            got = self.round(f"k{attempt}", "--epochs", "2")
            self.assertEqual((got["out"], got["steps"], got["status"]),
                             (want["out"], want["steps"], "finished"))

    def test_an_interruption(self):
        process = self.start(*self.words("i", 3, "w/weights.safetensors", "--epochs", "500"))
        self.wait_for("a step", lambda: program.steps_of(self.dir / "i/run/log.jsonl"),
                      process=process)
        # A second process on the same folder waits for nobody; another site trains meanwhile.
        said = self.refused(*self.words("i", 3, "w/weights.safetensors", "--epochs", "500"), code=3)
        self.assertIn("i: the round is busy with another process", said)
        self.round("j", "--steps", "1", "--set", "data.site.name=site-0")
        process.send_signal(signal.SIGINT)
        self.finish(process, code=130)
        self.assertFalse((self.dir / "i/round.json").exists())

    def test_locked_state(self):
        process = self.start(*self.words("i", 3, "w/weights.safetensors", "--epochs", "500",
                                         "--state", "site"))
        self.wait_for("a step", lambda: program.steps_of(self.dir / "i/run/log.jsonl"),
                      process=process)
        said = self.refused(*self.words("j", 3, "w/weights.safetensors", "--state", "site"), code=3)
        self.assertIn("site: the site is busy with another process", said)
        process.send_signal(signal.SIGINT)
        self.finish(process, code=130)

    def test_within(self):
        answer = self.round("p", "--epochs", "100000", "--within", "3")
        self.assertEqual(answer["status"], "partial")
        self.assertEqual(answer["steps"], len(program.steps_of(self.dir / "p/run/log.jsonl")))
        self.assertGreater(answer["steps"], 0)
        self.assertGreater(answer["delta_norm"], 0)
        newest = sorted((self.dir / "p/run/checkpoint").glob("step-*.safetensors"))[-1]
        self.assertEqual(int(newest.stem[5:]), answer["steps"])
        trained = read_tensors(newest)
        for name, tensor in read_tensors(self.dir / "p/weights.safetensors").items():
            self.assertEqual(tensor, trained[name])
        (self.dir / "p/weights.safetensors").unlink()
        again = self.round("p", "--epochs", "100000", "--within", "3")
        self.assertEqual({**again, "seconds": 0}, {**answer, "seconds": 0})

    def test_no_time(self):
        """The start may take longer than --within; the round ends all the same."""
        answer = self.round("n", "--epochs", "100000", "--within", "1")
        self.assertEqual(answer["status"], "partial")
        self.assertGreaterEqual(answer["steps"], 0)

    def test_given_weights(self):
        given = read_tensors(self.dir / "w/weights.safetensors")
        plain = self.round("plain", "--steps", "2")
        # F64, in another order, with a tensor of integers that is given back.
        other = {}
        for name, (_, shape, data) in reversed(given.items()):
            values = floats(data)
            other[name] = ("F64", shape, struct.pack(f"<{len(values)}d", *values))
        other["steps.num_batches_tracked"] = ("I64", [], struct.pack("<q", 77))
        write_tensors(self.dir / "f64.safetensors", other)
        self.round("f64", "--steps", "2", given="f64.safetensors")
        got = read_tensors(self.dir / "f64/weights.safetensors")
        want = read_tensors(self.dir / "plain/weights.safetensors")
        self.assertEqual(list(got), list(other))
        self.assertEqual(got["steps.num_batches_tracked"], other["steps.num_batches_tracked"])
        for name, tensor in want.items():
            self.assertEqual(got[name], tensor)
        self.assertEqual(plain["steps"], 2)
        # F16 is another starting point, but a valid one.
        half = {name: ("F16", shape, struct.pack(f"<{len(floats(d))}e", *floats(d)))
                for name, (_, shape, d) in given.items()}
        write_tensors(self.dir / "f16.safetensors", half)
        self.assertEqual(self.round("f16", "--steps", "2", given="f16.safetensors")["steps"], 2)

    def test_refusals(self):
        given = read_tensors(self.dir / "w/weights.safetensors")
        name = next(iter(given))
        missing = {n: t for n, t in given.items() if n != name}
        write_tensors(self.dir / "missing.safetensors", missing)
        self.assertIn(name, self.refused(*self.words("a", 3, "missing.safetensors")))
        kind, shape, data = given[name]
        nan = {**given, name: (kind, shape, struct.pack("<f", float("nan")) + data[4:])}
        write_tensors(self.dir / "nan.safetensors", nan)
        self.assertIn(name, self.refused(*self.words("b", 3, "nan.safetensors")))
        self.assertIn("none.safetensors", self.refused(*self.words("c", 3, "none.safetensors")))
        self.round("d", "--steps", "1")
        said = self.refused(*self.words("d", 4, "w/weights.safetensors", "--steps", "1"))
        self.assertIn("'round' is 3 there and 4 now", said)
        said = self.refused(*self.words("d", 3, "w/weights.safetensors", "--steps", "2"))
        self.assertIn("'steps' is 1 there and 2 now", said)
        (self.dir / "split.json").write_text((self.dir / "split.json").read_text() + " ")
        said = self.refused(*self.words("d", 3, "w/weights.safetensors", "--steps", "1"))
        self.assertIn("'split'", said)
        said = self.refused(*self.words("d", 3, "w/weights.safetensors", "--steps", "1", "--set",
                                        "optimizer.lr=0.1"))
        self.assertIn("'run'", said)
        self.site.write_text(SITE.replace("test: 64,", "test: 64, validation: 16,"))
        self.assertIn("split file", self.refused(*self.words("e")))
        self.site.write_text(SITE.replace("epochs: 1", "epochs: 1, init: other.safetensors"))
        self.round("f", "--steps", "1")


load_tests = program.few_when_short("Round.test_an_answer", "Round.test_kills",
                                    "Round.test_refusals")


if __name__ == "__main__":
    program.main()
