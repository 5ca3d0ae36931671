"""Nets of texts over real agents: token ids cross cuts unchanged, a ring of any size trains as one
board does, and every method, codec and way to save memory takes them."""
import json
import random
import struct
import unittest

from rings import RingCase, few_when_short

GPT = """\
input: data
layers:
  - {name: embed, kind: embedding, count: tokens, out: 12}
  - {name: place, kind: position, length: 16}
  - {name: norm1, kind: layernorm, dims: 1}
  - {name: qkv, kind: linear, out: 36}
  - {name: attention, kind: attention, heads: 3, causal: true, dropout: 0.1}
  - {name: proj, kind: linear, out: 12}
  - {name: add1, kind: add, from: [place, proj]}
  - {name: norm2, kind: rmsnorm}
  - {name: fc1, kind: linear, out: 48}
  - {name: act, kind: gelu, approximate: tanh}
  - {name: fc2, kind: linear, out: 12}
  - {name: drop, kind: dropout, p: 0.1}
  - {name: add2, kind: add, from: [add1, drop]}
  - {name: head, kind: linear, out: classes, bias: false}
"""
CUTS = {1: "[]", 2: "[proj]", 3: "[qkv, act]", 5: "[norm1, attention, norm2, drop]"}
# Ids cross every cut to the pooling layer at the end.
CLASSES = """\
input: data
layers:
  - {name: embed, kind: embedding, count: tokens, out: 10, padding: 0}
  - {name: lstm, kind: lstm, hidden: 8, bidirectional: true}
  - {name: fc1, kind: linear, out: 10}
  - {name: add, kind: add, from: [embed, fc1]}
  - {name: gru, kind: gru, hidden: 9}
  - {name: pool, kind: seqpool, mode: mean, from: [gru, data], padding: 0}
  - {name: fc2, kind: dense, out: classes}
"""
CLASS_CUTS = {1: "[]", 2: "[fc1]", 3: "[lstm, gru]", 4: "[fc1, add, pool]"}
# Each target is the source's token at its position, for which attention has to look there.
TWO_INPUTS = """\
input:
  source: {shape: [6], type: i32}
  target: {shape: [6], type: i32}
layers:
  - {name: words, kind: embedding, from: source, count: tokens, out: 16}
  - {name: places, kind: position, length: 6}
  - {name: key, kind: linear, out: 16}
  - {name: value, kind: linear, from: places, out: 16}
  - {name: start, kind: embedding, from: target, count: tokens, out: 16}
  - {name: steps, kind: position, length: 6}
  - {name: query, kind: linear, out: 16}
  - {name: look, kind: attention, from: [query, key, value], heads: 2}
  - {name: both, kind: add, from: [steps, look]}
  - {name: norm, kind: layernorm, dims: 1}
  - {name: head, kind: linear, out: classes}
"""
TWO_CUTS = {1: "[]", 2: "[value]", 4: "[target, start, look]"}
METHODS = ("pipedream", "pipedream-2bw", "async", "spectrain", "pipeoptim", "xpipe", "umpipe",
           "{kind: ea-pipe, replicas: 2}", "{kind: avgpipe, replicas: 2}", "pipefb")


def write_text(path, words):
    """Sentences that have something to learn: each word follows one of two others."""
    rng = random.Random(7)
    names = ["".join(rng.choices("abcdefgh", k=rng.randint(2, 4))) for _ in range(12)]
    at, said = 0, []
    for _ in range(words):
        said.append(names[at])
        at = (3 * at + rng.randint(1, 2)) % len(names)
    lines = (" ".join(said[i:i + 10]) for i in range(0, words, 10))
    path.write_text("\n".join(lines) + "\n")


def write_classes(path, lines):
    rng = random.Random(8)
    rows = ["text\tlabel"]
    for _ in range(lines):
        good = rng.random() < 0.5
        words = rng.choices(["fine", "grand", "so"] if good else ["dull", "sad", "so"],
                            k=rng.randint(1, 9))
        rows.append(" ".join(words) + f"\t{int(good)}")
    path.write_text("\n".join(rows) + "\n")


def write_ids(path, rows):
    """A file of numpy with int32 numbers."""
    shape = f"({len(rows)}, {len(rows[0])})"
    head = f"{{'descr': '<i4', 'fortran_order': False, 'shape': {shape}, }}".encode()
    head += b" " * (-(len(head) + 11) % 64) + b"\n"
    data = b"".join(struct.pack(f"<{len(row)}i", *row) for row in rows)
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + data)


class Texts(RingCase):
    def setUp(self):
        super().setUp()
        write_text(self.dir / "text.txt", 700)
        (self.dir / "gpt.yaml").write_text(GPT)
        self.run_yaml = self.run_file(f"""\
model: {self.dir}/gpt.yaml
data: {{set: text, path: {self.dir}/text.txt, tokens: chars, time: 16}}
ring: {{boards: 1}}
train: {{epochs: 2, batch: 16, microbatch: 3, seed: 5}}
loss: {{kind: cross-entropy, label_smoothing: 0.1}}
optimizer: {{kind: adamw, lr: 0.01, clip_norm: 1.0}}
schedule: 1f1b
cut: []
""")

    def same_for_all_cuts(self, run, cuts, *sets):
        want = None
        for boards, cut in cuts.items():
            summary = self.train(run, f"{boards}", f"ring.boards={boards}", f"cut={cut}", *sets)
            got = self.bytes_of(f"{boards}"), summary["eval"]
            want = want or got
            self.assertEqual(got, want, f"{boards} boards differ from one")
        return want[1]

    def test_gpipe(self):
        eval_ = self.same_for_all_cuts(self.run_yaml, CUTS, "schedule=gpipe")
        self.assertEqual(set(eval_), {"loss", "accuracy", "perplexity", "bits", "samples",
                                      "tokens"})
        self.assertEqual(eval_["tokens"], 16 * eval_["samples"])
        self.assertLess(eval_["bits"], 3.1)  # 9 characters are 3.17 bits

    def test_1f1b(self):
        self.same_for_all_cuts(self.run_yaml, CUTS)

    def test_zero_bubble(self):
        self.same_for_all_cuts(self.run_yaml, CUTS, "schedule=zb-h1")

    def test_spaces_do_not_count(self):
        """`ignore`: the same bits for all cuts, and fewer tokens are scored."""
        loss = "loss={kind: cross-entropy, ignore: 1}"  # newline is 0, blank is 1
        eval_ = self.same_for_all_cuts(self.run_yaml, CUTS, loss)
        self.assertLess(eval_["tokens"], 16 * eval_["samples"])
        self.assertGreater(eval_["tokens"], 8 * eval_["samples"])

    def test_classes(self):
        write_classes(self.dir / "train.tsv", 64)
        write_classes(self.dir / "test.tsv", 20)
        (self.dir / "classes.yaml").write_text(CLASSES)
        run = self.run_file(f"""\
model: {self.dir}/classes.yaml
data: {{set: tsv, path: {self.dir}, text: text, label: label, tokens: words, vocab: 20, time: 8}}
ring: {{boards: 1}}
train: {{epochs: 3, batch: 16, microbatch: 5, seed: 5}}
loss: cross-entropy
optimizer: {{kind: adam, lr: 0.02}}
schedule: 1f1b
cut: []
""")
        eval_ = self.same_for_all_cuts(run, CLASS_CUTS)
        for label, text in enumerate(("dull sad dull", "so fine, so grand")):
            said, _ = self.ringpipe("predict", self.dir / "3", "--text", text)
            self.assertRegex(said, rf"^{text}: {label} [5-9]\d\.\d\d %\n$")
        self.assertNotIn("perplexity", eval_)
        self.assertGreater(eval_["accuracy"], 0.8)

    def test_arrays(self):
        """Ids of somebody's own tokeniser; the last target of each sample does not count."""
        rng = random.Random(9)
        rows = [[(first + 2 * i) % 11 for i in range(17)] for first in rng.choices(range(11), k=96)]
        for part, some in (("train", rows[:80]), ("test", rows[80:])):
            write_ids(self.dir / f"x_{part}.npy", [row[:16] for row in some])
            write_ids(self.dir / f"y_{part}.npy", [row[1:16] + [-100] for row in some])
        model = GPT.replace("input: data", "input: {shape: [16], type: i32}")
        (self.dir / "ids.yaml").write_text(model)
        sets = (f"model={self.dir}/ids.yaml", f"data={{set: npy, path: {self.dir}}}",
                "loss={kind: cross-entropy, ignore: -100}")
        eval_ = self.same_for_all_cuts(self.run_yaml, CUTS, *sets)
        self.assertEqual(eval_["tokens"], 15 * 16)
        self.assertGreater(eval_["accuracy"], 0.5)
        text, _ = self.ringpipe("eval", self.dir / "3", "--format", "json")
        here = json.loads(text)["eval"]
        self.assertEqual((here["samples"], here["tokens"]), (16, 15 * 16))
        self.assertAlmostEqual(here["perplexity"], eval_["perplexity"], places=4)
        self.ringpipe("resume", self.dir / "3", "--set", "train.epochs=3")
        self.train(self.run_yaml, "longer", *sets, "train.epochs=3")
        self.assertEqual(self.bytes_of("3"), self.bytes_of("longer"))

    def test_two_inputs(self):
        """The second input crosses cuts to the layer that reads it."""
        rng = random.Random(9)
        rows = [rng.choices(range(1, 9), k=6) for _ in range(320)]
        for part, some in (("train", rows[:256]), ("test", rows[256:])):
            write_ids(self.dir / f"x_{part}.npy", [row + [0] + row[:5] for row in some])
            write_ids(self.dir / f"y_{part}.npy", some)
        (self.dir / "two.yaml").write_text(TWO_INPUTS)
        sets = (f"model={self.dir}/two.yaml", f"data={{set: npy, path: {self.dir}}}",
                "train.epochs=14", "optimizer={kind: adam, lr: 0.01}")
        eval_ = self.same_for_all_cuts(self.run_yaml, TWO_CUTS, *sets)
        self.assertGreater(eval_["accuracy"], 0.5)
        four = ("ring.boards=4", f"cut={TWO_CUTS[4]}")
        for name, key in (("again", "recompute=all"), ("blocks", "recompute=blocks"),
                          ("away", "offload=host"), ("judged", "ring.verify=1/2")):
            self.train(self.run_yaml, name, *sets, *four, key)
            self.assertEqual(self.bytes_of(name), self.bytes_of("4"), key)

    def test_translations(self):
        """A net that learns to copy a sentence translates it, with a beam as well."""
        rng = random.Random(3)
        words = "red green blue black white grey".split()
        for part, count in (("train", 320), ("test", 24)):
            lines = [" ".join(rng.choices(words, k=rng.randint(4, 5))) for _ in range(count)]
            (self.dir / f"{part}.a").write_text("\n".join(lines) + "\n")
        (self.dir / "two.yaml").write_text(TWO_INPUTS)
        pairs = ("{set: pairs, path: %s, source: train.a, target: train.a, test_source: test.a, "
                 "test_target: test.a, tokens: words}" % self.dir)
        (self.dir / "uneven.yaml").write_text(TWO_INPUTS.replace("[6]", "[4]", 1).replace(
            "target: {shape: [6]", "target: {shape: [8]"))
        self.assertIn("the model's inputs have 4 and 8 ids", self.refused(
            "train", self.run_yaml, "--dry-run", "--set", f"model={self.dir}/uneven.yaml",
            "--set", f"data={pairs}"))
        summary = self.train(self.run_yaml, "copy", "ring.boards=2", "cut=[value]",
                             f"model={self.dir}/two.yaml", f"data={pairs}", "train.epochs=20",
                             "loss={kind: cross-entropy, ignore: 0}",
                             "optimizer={kind: adam, lr: 0.01}")
        self.assertGreater(summary["eval"]["accuracy"], 0.98)
        for more in ((), ("--beam", "3")):
            said, _ = self.ringpipe("predict", self.dir / "copy", "--text", "blue red grey white",
                                    *more)
            self.assertEqual(said, "blue red grey white\n")
            text, _ = self.ringpipe("eval", self.dir / "copy", "--bleu", "--format", "json", *more)
            self.assertGreater(json.loads(text)["eval"]["bleu"], 90)
        for words in (("eval", "copy"), ("predict", "copy", "two.yaml")):
            self.assertIn("--beam applies only", self.refused(*words, "--beam", "2"))
        for option in ("--tokens", "--temperature"):
            self.assertIn(f"{option} applies only to nets that continue a text", self.refused(
                "predict", "copy", "--text", "red", option, "2"))
            self.assertIn(f"{option} applies only with --text",
                          self.refused("predict", "copy", "two.yaml", option, "2"))
        self.assertIn("reads the first 6 of them", self.ringpipe(
            "predict", "copy", "--text", "red green blue black white grey red")[1])

    def test_memory(self):
        """What is recomputed or offloaded is the same, with its dropout."""
        three = ("ring.boards=3", f"cut={CUTS[3]}")
        self.train(self.run_yaml, "plain", *three)
        for name, key in (("again", "recompute=all"), ("away", "offload=host"),
                          ("blocks", "recompute=blocks")):
            self.train(self.run_yaml, name, *three, key)
            self.assertEqual(self.bytes_of(name), self.bytes_of("plain"), key)

    def test_methods(self):
        for method in METHODS:
            with self.subTest(method):
                name = method.strip("{}").split(",")[0].split()[-1]
                cut = "[proj]" if method == "pipefb" else "[norm1, proj, act]"
                summary = self.train(self.run_yaml, name, "ring.boards=4", f"cut={cut}",
                                     f"schedule={method}", "train.microbatch=4",
                                     "optimizer={kind: adamw, lr: 0.01}")
                self.assertLess(summary["eval"]["loss"], 2.28)

    def test_codecs(self):
        three = ("ring.boards=3", f"cut={CUTS[3]}")
        summary = self.train(self.run_yaml, "f16", *three, "links.codec=f16")
        self.assertLess(summary["eval"]["loss"], 2.3)
        said = self.refused("train", self.run_yaml, "--set", "links.inputs=f16")
        self.assertIn("token ids", said)

    def test_verified(self):
        summary = self.train(self.run_yaml, "verified", "ring.boards=3", f"cut={CUTS[3]}",
                             "ring.verify=1/3")
        self.assertEqual(summary["verify"]["wrong"], 0)
        self.assertGreater(summary["verify"]["microbatches"], 0)

    def test_eval_and_predict(self):
        """On this machine as on the boards; the text goes on with words of the language."""
        summary = self.train(self.run_yaml, "out", "train.epochs=8")
        text, _ = self.ringpipe("eval", self.dir / "out", "--format", "json")
        here = json.loads(text)["eval"]
        self.assertAlmostEqual(here["loss"], summary["eval"]["loss"], places=5)
        self.assertEqual(here["accuracy"], summary["eval"]["accuracy"])
        self.assertAlmostEqual(here["bits"], summary["eval"]["bits"], places=5)
        begin = (self.dir / "text.txt").read_text()[:20]
        words = ("predict", self.dir / "out", "--text", begin, "--tokens", "30")
        said, _ = self.ringpipe(*words)
        self.assertTrue(said.startswith(begin))
        self.assertEqual(len(said), len(begin) + 31)
        self.assertEqual(self.ringpipe(*words)[0], said)
        answer = json.loads(self.ringpipe(*words, "--format", "json")[0])
        self.assertEqual(begin + answer["continuation"] + "\n", said)
        drawn = [self.ringpipe(*words, "--temperature", "2", "--seed", seed)[0] for seed in "112"]
        self.assertEqual(drawn[0], drawn[1])
        self.assertNotEqual(drawn[0], drawn[2])
        self.assertIn("--top applies only to nets that give a class", self.refused(*words, "--top",
                                                                                    "2"))
        said = self.refused("predict", self.dir / "out", "--text", "a?")
        self.assertIn("'?' does not occur", said)
        self.assertIn("or DIR --text", self.refused("predict", self.dir / "out"))
        self.assertIn("--text", self.refused("predict", self.dir / "out", self.dir / "text.txt"))


load_tests = few_when_short("Texts.test_gpipe", "Texts.test_eval_and_predict",
                            "Texts.test_translations")


if __name__ == "__main__":
    unittest.main()
