#!/usr/bin/env python3
"""Parts of words: `data bpe` learns them, a run uses them, and predict writes them."""
import json
import os
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


class Parts(program.Case):
    def setUp(self):
        super().setUp()
        (self.dir / "parts").mkdir()
        (self.dir / "text.txt").write_text(TEXT, encoding="utf-8")
        (self.dir / "net.yaml").write_text(MODEL)
        self.bpe = self.dir / "parts" / "bpe.json"
        out, _ = self.ringpipe("data", "bpe", "text.txt", "--vocab", 290, "-o", self.bpe)
        self.assertIn("290 tokens, 30 merges", out)

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
        self.assertNotIn("bits", summary["eval"])
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
        self.wait_for("reading", lambda: process.poll() is None and self.reads(process))
        process.send_signal(signal.SIGINT)
        _, err = self.finish(process, code=130)
        self.assertIn("interrupted; nothing is written", err)
        self.assertEqual(list(self.dir.glob("long.json*")), [])

    def reads(self, process):
        """Does the process catch the signal?"""
        with open(f"/proc/{process.pid}/status", encoding="utf-8") as status:
            blocked = next(line for line in status if line.startswith("SigBlk:")).split()[1]
        return int(blocked, 16) >> (signal.SIGINT - 1) & 1


load_tests = program.few_when_short("Parts.test_a_run")


if __name__ == "__main__":
    program.main()
