#!/usr/bin/env python3
"""Wrong files: exit 2 before anything is started, naming file, line, key and what was expected."""
import gzip
import os
import struct

import program
from program import RUN


class RunFile(program.Case):
    def wrong(self, text, *wanted, line):
        err = self.refused("train", self.run_file(text), "--out", "out")
        self.assertEqual(program.place(err), f"run.yaml:{line}", err)
        for word in wanted:
            self.assertIn(word, err)
        self.assertFalse((self.dir / "out").exists(), "something was started")

    def test_unknown_key(self):
        self.wrong(RUN + "surprise: 1\n", "surprise", line=9)

    def test_unknown_inner_key(self):
        self.wrong(RUN.replace("batch: 64", "bach: 64"), "bach", "batch", line=4)

    def test_repeated_key(self):
        self.wrong(RUN + "model: lenet\n", "model", line=9)

    def test_wrong_type(self):
        self.wrong(RUN.replace("batch: 64", "batch: many"), "train.batch", "many", line=4)

    def test_out_of_range(self):
        self.wrong(RUN.replace("batch: 64", "batch: 0"), "train.batch", line=4)
        self.wrong(RUN.replace("lr: 0.05", "lr: .nan"), "optimizer.lr", line=6)

    def test_unknown_kinds(self):
        self.wrong(RUN.replace("set: glyphs", "set: glifs"), "glifs", "glyphs", line=2)
        self.wrong(RUN.replace("kind: sgd", "kind: sdg"), "sdg", "adam", line=6)
        self.wrong(RUN.replace("gpipe", "gpip"), "gpip", "1f1b", line=7)
        self.wrong(RUN.replace("cross-entropy", "entropy"), "entropy", "mse", line=5)

    def test_unknown_model(self):
        self.wrong(RUN.replace("mlp", "mlq"), "mlq", line=1)

    def test_cut_at_no_layer(self):
        self.wrong(RUN.replace("cut: auto", "cut: [nowhere]"), "nowhere", line=8)

    def test_not_yaml(self):
        self.wrong("model: [mlp\n", line=2)

    def test_nothing_left_to_train(self):
        freeze = RUN.replace("train: {", 'train: {freeze: "*", ')
        for words in ((), ("--dry-run",)):
            err = self.refused("train", self.run_file(freeze), "--out", "out", *words)
            self.assertIn("there is nothing to train", err)
            self.assertIn("run.yaml", err)
            self.assertFalse((self.dir / "out").exists())
        self.wrong(RUN.replace("train: {", "train: {freeze: layer9, "), "layer9", "fc1", line=4)

    def test_start_weights(self):
        wrong = RUN.replace("train: {", "train: {init: {from: none.safetensors}, ")
        for words in ((), ("--dry-run",)):
            err = self.refused("train", self.run_file(wrong), "--out", "out", *words)
            self.assertIn("none.safetensors", err)
            self.assertFalse((self.dir / "out").exists())

    def test_set(self):
        err = self.refused("train", self.run_file(), "--set", "train.bach=64")
        self.assertIn("bach", err)
        self.assertIn("--set", err)
        self.assertIn("=", self.refused("train", self.run_file(), "--set", "train"))

    def test_model_file(self):
        layers = "  - {name: flat, kind: flatten}\n  - {name: fc, kind: dense, aut: 10}\n"
        (self.dir / "own.yaml").write_text("input: data\nlayers:\n" + layers)
        err = self.refused("train", self.run_file(RUN.replace("mlp", "own.yaml")))
        self.assertEqual(program.place(err), "own.yaml:4", err)
        self.assertIn("aut", err)


class Data(program.Case):
    def fashion(self, train_images=20, cut_bytes=0, compress=False):
        """A folder with idx files, the training images short of some bytes."""
        folder = self.dir / "data"
        folder.mkdir(exist_ok=True)
        for name, count in (("train", train_images), ("t10k", 10)):
            images = struct.pack(">IIII", 0x803, count, 28, 28) + bytes(count * 784)
            labels = struct.pack(">II", 0x801, count) + bytes(i % 10 for i in range(count))
            if name == "train" and cut_bytes:
                images = images[:-cut_bytes]
            for kind, raw in (("images-idx3", images), ("labels-idx1", labels)):
                path = folder / f"{name}-{kind}-ubyte"
                if compress:
                    path.with_name(path.name + ".gz").write_bytes(gzip.compress(raw))
                else:
                    path.write_bytes(raw)
        return RUN.replace("glyphs, train: 256, test: 64", "fashion-mnist, path: data")

    def test_whole(self):
        self.ringpipe("train", self.run_file(self.fashion()), "--out", "out")

    def test_missing_folder(self):
        err = self.refused("train", self.run_file(self.fashion().replace("path: data", "path: no")))
        self.assertIn("no/", err)

    def test_truncated(self):
        err = self.refused("train", self.run_file(self.fashion(cut_bytes=1)))
        self.assertIn("train-images-idx3-ubyte", err)

    def test_truncated_gzip(self):
        text = self.fashion(compress=True)
        path = self.dir / "data" / "train-images-idx3-ubyte.gz"
        path.write_bytes(path.read_bytes()[:-9])
        err = self.refused("train", self.run_file(text))
        self.assertIn("train-images-idx3-ubyte.gz", err)

    def test_table(self):
        (self.dir / "own.yaml").write_text(
            "input: [2]\nlayers:\n  - {name: fc, kind: dense, out: 1}\n"
        )
        text = RUN.replace("mlp", "own.yaml").replace("cross-entropy", "mse")
        text = text.replace("glyphs, train: 256, test: 64", "table, path: data")
        text = text.replace("boards: 2", "boards: 1")
        folder = self.dir / "data"
        folder.mkdir()
        rows = "# x x y\n1,2,3\n4,5,6\n"
        (folder / "test.csv").write_text(rows)
        (folder / "train.csv").write_text(rows)
        self.ringpipe("train", self.run_file(text), "--out", "out")
        (folder / "train.csv").write_text(rows + "7,eight,9\n")
        err = self.refused("train", self.run_file(text))
        self.assertEqual(program.place(err), "train.csv:4", err)
        self.assertIn("eight", err)


class Weights(program.Case):
    def setUp(self):
        super().setUp()
        self.ringpipe("train", self.run_file(), "--out", "out", "--set", "train.steps=1")
        self.tensors = program.read_safetensors(self.dir / "out" / "weights.safetensors")
        self.name = sorted(self.tensors)[0]

    def wrong(self, *wanted, code=2):
        path = self.dir / "wrong.safetensors"
        if not path.exists():
            program.write_safetensors(path, self.tensors)
        for words in (
            ("eval", self.run_file(), "--weights", path),
            ("train", self.run_file(), "--set", f"train.init={path}", "--out", "again"),
        ):
            with self.subTest(words[0]):
                err = self.refused(*words, code=code)
                for word in wanted:
                    self.assertIn(word, err)

    def test_nan(self):
        self.tensors[self.name][1][0] = float("nan")
        self.wrong(self.name, "wrong.safetensors")

    def test_shape(self):
        shape, values = self.tensors[self.name]
        self.tensors[self.name] = ([*shape, 2], values + values)
        self.wrong(self.name)

    def test_missing_tensor(self):
        del self.tensors[self.name]
        self.wrong(self.name)

    def test_truncated(self):
        raw = (self.dir / "out" / "weights.safetensors").read_bytes()
        for size in (0, 7, 8, 40, len(raw) - 1):
            (self.dir / "wrong.safetensors").write_bytes(raw[:size])
            self.wrong("wrong.safetensors")
            self.assertIn("wrong.safetensors", self.refused("inspect", "wrong.safetensors"))

    def test_absent(self):
        err = self.refused("eval", self.run_file(), "--weights", "absent.safetensors")
        self.assertIn("absent.safetensors", err)


class NoRegularFile(program.Case):
    """A pipe without a writer, a device without an end: each is refused at once."""

    def test_what_a_user_may_name(self):
        fifo = self.dir / "fifo"
        os.mkfifo(fifo)
        self.ringpipe("keys", "new", "--dir", "keys")
        key = self.ringpipe("keys", "show", "--dir", "keys")[0].split()[0]
        (self.dir / "lab.yaml").write_text(
            f"boards:\n  - {{name: a, address: 'tcp://127.0.0.1:9', key: '{key}'}}\n")
        run = self.run_file()
        roster = ("--roster", "lab.yaml", "--keys", "keys")
        for words in (("push", "FILE", *roster), ("flash", "FILE", "/dev/null"),
                      ("sim", run, "--profile", "FILE"), ("train", run, "--plan", "FILE"),
                      ("inspect", "FILE.safetensors")):
            for path, said in ((fifo, "a pipe"), ("/dev/zero", "a device"), (self.dir, "a dir")):
                link = self.dir / "FILE.safetensors"
                link.unlink(missing_ok=True)
                link.symlink_to(path)
                err = self.refused(*(path if word == "FILE" else word for word in words))
                self.assertRegex(err, f"{said}|is not a file", words)
        secret = self.dir / "keys" / "secret.key"
        secret.unlink()
        os.mkfifo(secret)
        self.assertIn("a pipe", self.refused("push", run, *roster))


if __name__ == "__main__":
    program.main()
