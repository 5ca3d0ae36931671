#!/usr/bin/env python3
"""Parts of words: `data bpe` learns them, a run uses them, and predict writes them."""
import json
import math
import os
import re
import signal

import program

TEXT = "so it goes, so it went \N{EM DASH} and na\xefve caf\xe9s 😀 went on.\n" * 60
MODEL = """\
input: data
layers:
  - {name: wte, kind: embedding, count: tokens, out: 8}
  - {name: fc, kind: linear, out: classes}
"""
RUN = """\
model: ../net.yaml
data: {set: text, path: ../text.txt, tokens: bpe.json, time: 8}
ring: {boards: 1}
train: {steps: 4, batch: 8, microbatch: 4, seed: 1}
loss: cross-entropy
optimizer: {kind: adam, lr: 0.05}
schedule: gpipe
cut: auto
"""


def byte_names():
    """The character that stands for each byte, as in GPT-2."""
    own = [*range(33, 127), *range(161, 173), *range(174, 256)]
    moved = [byte for byte in range(256) if byte not in own]
    return {byte: chr(byte if byte in own else 256 + moved.index(byte)) for byte in range(256)}


class Parts(program.Case):
    def setUp(self):
        super().setUp()
        (self.dir / "parts").mkdir()
        (self.dir / "text.txt").write_text(TEXT, encoding="utf-8")
        (self.dir / "net.yaml").write_text(MODEL)
        self.bpe = self.dir / "parts" / "bpe.json"
        out, _ = self.ringpipe("data", "bpe", "text.txt", "--vocab", 290, "-o", self.bpe)
        self.assertIn("290 tokens, 30 merges", out)

    def check_bits(self, summary):
        """The loss of a byte, counted by hand, wherever it is shown."""
        tokens = json.loads(self.bpe.read_text())["model"]["vocab"]
        width = {index: len(name) for name, index in tokens.items()}  # a character for each byte
        ids = self.encode(TEXT)
        first = len(ids) * 9 // 10
        parts = {"train": ids[:first], "eval": ids[first:]}
        per_nat = {}
        for part, own in parts.items():
            targets = own[1:(len(own) - 1) // 8 * 8 + 1]  # windows of 8, each token's next one
            per_nat[part] = len(targets) / sum(width[i] for i in targets) / math.log(2)
            self.assertLess(per_nat[part], 0.8 / math.log(2))
            self.assertAlmostEqual(summary[part]["bits"], summary[part]["loss"] * per_nat[part], 6)
        lines = [json.loads(line) for line in (self.dir / "out/log.jsonl").read_text().splitlines()]
        for line in lines:
            part = "eval" if line.get("event") == "eval" else "train"
            if "loss" in line:
                self.assertAlmostEqual(line["bits"], line["loss"] * per_nat[part], 6)
        self.assertIn(b"train/bits", (self.dir / "out/events.out.tfevents.ringpipe").read_bytes())
        out, _ = self.ringpipe("eval", "out", "--format", "json")
        score = json.loads(out)["eval"]
        self.assertAlmostEqual(score["bits"], score["loss"] * per_nat["eval"], 6)
        out, _ = self.ringpipe("eval", "out")
        self.assertIn(f", {score['bits']:.4f} bits, accuracy", out)

    def encode(self, text):
        """Token ids of a text, merge by merge, as the file says."""
        model = json.loads(self.bpe.read_text())["model"]
        pattern = r"'(?:s|t|re|ve|m|ll|d)| ?[^\W\d_]+| ?\d+| ?(?:[^\s\w]|_)+|\s+(?!\S)|\s+"
        names = byte_names()
        ids = []
        for word in re.findall(pattern, text):
            parts = [names[byte] for byte in word.encode()]
            for merge in model["merges"]:
                left, right = merge.split(" ") if isinstance(merge, str) else merge
                at = 0
                while at + 1 < len(parts):
                    if (parts[at], parts[at + 1]) == (left, right):
                        parts[at:at + 2] = [left + right]
                    at += 1
            ids += [model["vocab"][part] for part in parts]
        return ids

    def test_a_run(self):
        """Trained, continued, scored; a different tokeniser is refused."""
        run = self.run_file(RUN, "parts/run.yaml")
        out, _ = self.ringpipe("train", run, "--dry-run")
        self.assertIn("ids below 290; the training part has", out)
        self.ringpipe("train", run, "--out", "out")
        about = json.loads((self.dir / "out" / "data.json").read_text())
        self.assertEqual((about["tokens"], about["token_count"]), ("bpe", 290))
        self.assertEqual(about["tokenizer"], json.loads(self.bpe.read_text()))
        self.assertIn(str(self.bpe), (self.dir / "out" / "run.yaml").read_text())
        summary = json.loads((self.dir / "out" / "summary.json").read_text())
        self.assertIn("perplexity", summary["eval"])
        self.check_bits(summary)
        out, _ = self.ringpipe("predict", "out", "--text", "so it went", "--tokens", 5,
                               "--format", "json")
        said = json.loads(out)
        self.assertEqual(said["tokens"], 5)
        self.assertTrue(said["continuation"])
        self.bpe.write_text(self.bpe.read_text().replace('"i t"', '"t i"'))
        self.assertIn("`model.merges`: entry", self.refused("eval", "out"))
        self.ringpipe("data", "bpe", "net.yaml", "--vocab", 270, "-o", self.bpe, "--yes")
        self.assertIn("token", self.refused("eval", "out"))
        self.assertIn("expected the vocabulary that the weights were trained with",
                      self.refused("resume", "out", "--set", "train.steps=8"))

    def test_files(self):
        """A file is not replaced unasked; what is interrupted or refused leaves nothing."""
        before = self.bpe.read_bytes()
        words = ("data", "bpe", "text.txt", "--vocab", 280, "-o", "parts/bpe.json")
        self.assertIn("replace it with --yes", self.refused(*words))
        self.assertEqual(self.bpe.read_bytes(), before)
        text = self.dir / "text.txt"
        read = text.read_bytes()
        self.assertIn("is one of the files that are read",
                      self.refused("data", "bpe", "text.txt", "--vocab", 280, "-o", "text.txt",
                                   "--yes"))
        (self.dir / "link.json").symlink_to("text.txt")
        (self.dir / "same.txt").write_bytes(read)
        self.assertIn("link.json: is a symbolic link",
                      self.refused("data", "bpe", "same.txt", "--vocab", 280, "-o", "link.json",
                                   "--yes"))
        (self.dir / "link.json").unlink()
        self.assertEqual(text.read_bytes(), read)
        os.mkfifo(self.dir / "pipe")
        for place, kind in (("pipe", "not a regular file"), ("parts", "a folder")):
            self.assertIn(f"{place}: is {kind}",
                          self.refused("data", "bpe", "text.txt", "--vocab", 280, "-o", place,
                                       "--yes"))
        self.assertTrue((self.dir / "pipe").is_fifo())
        out, _ = self.ringpipe(*words, "--yes", "--format", "json")
        self.assertEqual(json.loads(out)["tokens"], 280)
        self.assertIn("260 to 1048576",
                      self.refused("data", "bpe", "text.txt", "--vocab", 259, "-o", "new.json"))
        (self.dir / "bad.txt").write_bytes(b"good\n\xffbad\n")
        self.assertIn("bad.txt:2: byte 5 of the file is 0xff",
                      self.refused("data", "bpe", "bad.txt", "--vocab", 300, "-o", "new.json"))
        self.assertEqual(sorted(p.name for p in self.dir.glob("*.json*")), [])

    def test_interrupted(self):
        words = [f"{i * i:x}{i * 7919:x}" for i in range(200000)]
        (self.dir / "long.txt").write_text("\n".join(words))
        process = self.start("data", "bpe", "long.txt", "--vocab", 100000, "-o", "long.json")
        self.wait_for("reading", lambda: program.reads_interrupts(process))
        process.send_signal(signal.SIGINT)
        _, err = self.finish(process, code=130)
        self.assertIn("interrupted; nothing is written", err)
        self.assertEqual(list(self.dir.glob("long.json*")), [])


load_tests = program.few_when_short("Parts.test_a_run")


if __name__ == "__main__":
    program.main()
