"""Steps of several lengths (data.buckets) over real agents: a ring of any size trains as one board
does, methods without a flush equal the replay in one process, a resumed run continues within an
epoch, and the simulator computes the digests of the reference."""
import json
import random
import signal
import subprocess
import unittest

from rings import BUILD, RingCase, few_when_short, read_safetensors
from program import steps_of

# Ids cross every cut to the layers that read them for padding.
CLASSES = """\
input: data
layers:
  - {name: embed, kind: embedding, count: tokens, out: 12, padding: 0}
  - {name: place, kind: position, length: 24}
  - {name: q, kind: linear, out: 12}
  - {name: kv, kind: linear, from: place, out: 12}
  - {name: look, kind: attention, from: [q, kv, kv, data], heads: 2, padding: 0, dropout: 0.1}
  - {name: add, kind: add, from: [place, look]}
  - {name: norm, kind: layernorm, dims: 1}
  - {name: drop, kind: dropout, p: 0.1}
  - {name: lstm, kind: lstm, from: [drop, data], hidden: 8, bidirectional: true, lengths: true}
  - {name: pool, kind: seqpool, mode: mean, from: [lstm, data], padding: 0}
  - {name: fc, kind: dense, out: classes}
"""
CUTS = {1: "[]", 2: "[add]", 3: "[look, lstm]", 5: "[kv, add, drop, pool]"}
TRANSLATE = """\
input:
  source: {shape: [16], type: i32}
  target: {shape: [16], type: i32}
layers:
  - {name: words, kind: embedding, from: source, count: tokens, out: 12, names: {weight: words}}
  - {name: read, kind: gru, from: [words, source], hidden: 12, lengths: true}
  - {name: start, kind: embedding, from: target, count: tokens, out: 12, names: {weight: words}}
  - {name: steps, kind: lstm, hidden: 12}
  - {name: look, kind: attention, from: [steps, read, read, source], heads: 2, padding: 0}
  - {name: both, kind: add, from: [steps, look]}
  - {name: head, kind: linear, out: classes}
"""
TRANSLATE_CUTS = {1: "[]", 2: "[steps]", 3: "[start, look]", 5: "[read, start, steps, both]"}
REFUSED = """\
input: data
layers:
  - {name: embed, kind: embedding, count: tokens, out: 12}
  - {name: fc, kind: dense, out: classes}
"""


def sentence(rng, words, most):
    return rng.choices(words, k=min(most, 1 + int(rng.expovariate(0.25))))


def write_classes(path, lines, seed):
    rng = random.Random(seed)
    rows = []
    for _ in range(lines):
        good = rng.random() < 0.5
        words = ["fine", "grand", "so"] if good else ["dull", "sad", "so"]
        rows.append(" ".join(sentence(rng, words, 23)) + f"\t{int(good)}")
    path.write_text("\n".join(rows) + "\n")


def write_pairs(folder, part, lines, seed):
    rng = random.Random(seed)
    said = [sentence(rng, ["red", "green", "blue", "black"], 15) for _ in range(lines)]
    (folder / f"{part}.a").write_text("\n".join(" ".join(s) for s in said) + "\n")
    (folder / f"{part}.b").write_text(
        "\n".join(" ".join(w[::-1] for w in s) for s in said) + "\n")


class Buckets(RingCase):
    def setUp(self):
        super().setUp()
        write_classes(self.dir / "train.tsv", 150, 8)
        write_classes(self.dir / "test.tsv", 40, 9)
        for part, lines in (("train", 140), ("test", 30)):
            write_pairs(self.dir, part, lines, lines)
        (self.dir / "classes.yaml").write_text(CLASSES)
        (self.dir / "translate.yaml").write_text(TRANSLATE)
        (self.dir / "refused.yaml").write_text(REFUSED)
        self.data = (f"{{set: tsv, path: {self.dir}, text: 0, label: 1, tokens: words, vocab: 20, "
                     "time: 24, buckets: [3, 5, 9]}")
        self.run_yaml = self.run_file(f"""\
model: {self.dir}/classes.yaml
data: {self.data}
ring: {{boards: 1}}
train: {{epochs: 2, batch: 16, microbatch: 3, seed: 5}}
loss: cross-entropy
optimizer: {{kind: adam, lr: 0.01, clip_norm: 1.0}}
schedule: 1f1b
cut: []
""")
        self.pairs = (f"model={self.dir}/translate.yaml",
                      f"data={{set: pairs, path: {self.dir}, source: train.a, target: train.b, "
                      "test_source: test.a, test_target: test.b, tokens: words, "
                      "buckets: [4, 8]}", "loss={kind: cross-entropy, ignore: 0}")

    def same_for_all_cuts(self, cuts, *sets):
        want = None
        for boards, cut in cuts.items():
            summary = self.train(self.run_yaml, f"{boards}", f"ring.boards={boards}", f"cut={cut}",
                                 *sets)
            got = self.bytes_of(f"{boards}"), summary["eval"]
            want = want or got
            self.assertEqual(got, want, f"{boards} boards differ from one")
        return want[1]

    def test_gpipe(self):
        self.same_for_all_cuts(CUTS, "schedule=gpipe")

    def test_1f1b(self):
        eval_ = self.same_for_all_cuts(CUTS, "train.epochs=4")
        self.assertGreater(eval_["accuracy"], 0.8)
        text, _ = self.ringpipe("eval", self.dir / "3", "--format", "json")
        here = json.loads(text)["eval"]
        self.assertAlmostEqual(here["loss"], eval_["loss"], places=5)
        self.assertEqual(here["accuracy"], eval_["accuracy"])
        for label, text in enumerate(("dull sad", "fine so so so so so so so so grand")):
            said, _ = self.ringpipe("predict", self.dir / "3", "--text", text)
            self.assertRegex(said, rf"^{text}: {label} ")

    def test_zero_bubble(self):
        self.same_for_all_cuts(CUTS, "schedule=zb-h1")

    def test_pairs(self):
        eval_ = self.same_for_all_cuts(TRANSLATE_CUTS, *self.pairs)
        self.assertLess(eval_["tokens"], 16 * eval_["samples"])
        text, _ = self.ringpipe("eval", self.dir / "2", "--format", "json")
        here = json.loads(text)["eval"]
        self.assertEqual(here["tokens"], eval_["tokens"])
        self.assertAlmostEqual(here["loss"], eval_["loss"], places=5)
        self.ringpipe("eval", self.dir / "2", "--bleu")

    def test_memory(self):
        """Recomputed, offloaded, verified: the same bits. Two boards that share a stage, other
        sizes of microbatches, codecs: the same but for rounding."""
        three = ("ring.boards=3", f"cut={CUTS[3]}")
        self.train(self.run_yaml, "plain", *three)
        for name, key in (("again", "recompute=all"), ("blocks", "recompute=blocks"),
                          ("away", "offload=host"), ("judged", "ring.verify=1/2")):
            summary = self.train(self.run_yaml, name, *three, key)
            self.assertEqual(self.bytes_of(name), self.bytes_of("plain"), key)
            if name == "judged":
                self.assertEqual(summary["verify"]["wrong"], 0)
                self.assertGreater(summary["verify"]["microbatches"], 0)
        for boards in (1, 3):
            self.train(self.run_yaml, f"bf16-{boards}", f"ring.boards={boards}",
                       f"cut={CUTS[boards]}", "train.storage={activations: bf16}")
        self.assertEqual(self.bytes_of("bf16-1"), self.bytes_of("bf16-3"))
        self.assertNotEqual(self.bytes_of("bf16-1"), self.bytes_of("plain"))
        umpipe = "schedule={kind: umpipe, forward: [4, 3, 5], backward: [5, 8, 4]}"
        for name, *keys in (("umpipe", umpipe), ("f16", "links.codec=f16"),
                            ("int8", "links.codec=int8")):
            summary = self.train(self.run_yaml, name, *three, *keys)
            self.assertLess(summary["eval"]["loss"], 0.75, keys)

    def replay(self, name, *sets):
        out = self.dir / f"{name}.safetensors"
        args = [a for s in sets for a in ("--set", s)]
        subprocess.run([BUILD / "tests" / "replay", self.run_yaml, out, *args], check=True,
                       capture_output=True, timeout=600)
        return read_safetensors(out)

    def test_methods(self):
        """Against a loop in one process that keeps every version of the weights."""
        for method in ("1f1b", "pipedream", "pipedream-2bw", "spectrain", "xpipe"):
            with self.subTest(method):
                sets = ("ring.boards=3", f"cut={CUTS[3]}", f"schedule={method}",
                        "train.microbatch=4", "optimizer={kind: adam, lr: 0.01}")
                self.train(self.run_yaml, method, *sets)
                got = read_safetensors(self.dir / method / "weights.safetensors")
                self.assertEqual(got, self.replay(method, *sets), method)

    def test_split_stages(self):
        summary = self.train(self.run_yaml, "pipefb", "ring.boards=4", "cut=[add]",
                             "schedule=pipefb", "train.microbatch=4",
                             "optimizer={kind: adam, lr: 0.01}")
        self.assertLess(summary["eval"]["loss"], 0.75)

    def test_resume(self):
        """A run that is stopped within an epoch, with microbatches in flight."""
        for name, *sets in (("flushed",), ("unflushed", "schedule=pipedream", "train.microbatch=4",
                                           "optimizer={kind: adam, lr: 0.01}"),
                            ("pairs", *self.pairs)):
            cut = TRANSLATE_CUTS[3] if name == "pairs" else CUTS[3]
            sets = ("ring.boards=3", f"cut={cut}", "train.epochs=8", *sets)
            self.train(self.run_yaml, f"{name}-whole", *sets)
            process = self.start("train", self.run_yaml, "--out", self.dir / name,
                                 *(word for text in sets for word in ("--set", text)))
            log = self.dir / name / "log.jsonl"
            self.wait_for("step 5", lambda: len(steps_of(log)) >= 5, process=process)
            process.send_signal(signal.SIGINT)
            self.finish(process, code=130)
            self.assertLess(len(steps_of(log)), 70)
            self.ringpipe("resume", self.dir / name)
            self.assertEqual(self.bytes_of(name), self.bytes_of(f"{name}-whole"), name)

    def test_simulator(self):
        """Digests equal those of the reference, with faults and without."""
        for name, *sets in (("1f1b",), ("pairs", *self.pairs),
                            ("pipedream", "schedule=pipedream", "train.microbatch=4",
                             "optimizer={kind: adam, lr: 0.01}"),
                            ("umpipe", "schedule={kind: umpipe, forward: [4, 3, 5], "
                                       "backward: [5, 8, 4]}")):
            cut = TRANSLATE_CUTS[3] if name == "pairs" else CUTS[3]
            args = [a for s in ("ring.boards=3", f"cut={cut}", "train.checkpoint_steps=4",
                                "train.epochs=1", "optimizer={kind: adam, lr: 0.01}", *sets)
                    for a in ("--set", s)]
            text, _ = self.ringpipe("sim", self.run_yaml, *args, "--executor", "digest", "--seeds",
                                    "1..12", "--faults", "all", "--format", "json")
            said = json.loads(text)
            self.assertEqual((said["wrong"], said["hung"]), (0, 0), name)

    def test_refusals(self):
        for sets, why in (
                ((f"model={self.dir}/refused.yaml",),
                 "data.buckets: model .*layer 'fc': the weight of dense is"),
                (("data.buckets=[3, 30]",), "data.buckets"),
                ((f"data={{set: text, path: {self.dir}/train.a, tokens: chars, time: 24, "
                  "buckets: auto}",), "data.buckets: .*the samples of text all have one length")):
            args = [a for s in sets for a in ("--set", s)]
            self.assertRegex(self.refused("train", self.run_yaml, "--dry-run", *args), why)
        text, said = self.ringpipe("train", self.run_yaml, "--dry-run", "--set",
                                   "data.buckets=auto")
        self.assertRegex(text + said, "buckets of .* and 24 tokens: an epoch has")


load_tests = few_when_short("Buckets.test_1f1b", "Buckets.test_resume", "Buckets.test_simulator")


if __name__ == "__main__":
    unittest.main()
