"""Fine-tuning by corrections of low rank: only these are trained, a ring of any size gives the bits
of one board, every method takes them, and merged into the weights they give the same net."""
import json
import struct
import unittest

from rings import RingCase, few_when_short, read_safetensors, write_safetensors
from test_texts import CUTS, GPT, METHODS, write_text

ADAPTED = ("qkv", "proj", "fc1", "head")
RANK, ALPHA = 3, 9
ONLY_LORA = ('train.freeze="*"', "optimizer={kind: adamw, lr: 0.02}", "train.epochs=3")


def adapt(model, more=""):
    """The model with a correction in some of its layers."""
    lines = []
    for line in model.splitlines():
        if any(f"name: {name}," in line for name in ADAPTED):
            line = line.replace("}", f", lora: {{rank: {RANK}, alpha: {ALPHA}{more}}}}}")
        lines.append(line)
    return "\n".join(lines) + "\n"


def merge(tensors):
    """W + alpha / rank B A, in plain Python."""
    out = {}
    for name, values in tensors.items():
        layer = name.removesuffix(".weight")
        a, b = (tensors.get(f"{layer}.lora_{part}.weight") for part in "AB")
        if ".lora_" in name:
            continue
        if a and name.endswith(".weight"):
            wide, tall = len(a) // RANK, len(b) // RANK
            values = [values[o * wide + i] + ALPHA / RANK *
                      sum(b[o * RANK + r] * a[r * wide + i] for r in range(RANK))
                      for o in range(tall) for i in range(wide)]
        out[name] = values
    return out


def read_shapes(path):
    raw = path.read_bytes()
    (size,) = struct.unpack("<Q", raw[:8])
    head = json.loads(raw[8:8 + size])
    return {name: entry["shape"] for name, entry in head.items() if name != "__metadata__"}


class Lora(RingCase):
    def setUp(self):
        super().setUp()
        write_text(self.dir / "text.txt", 700)
        (self.dir / "gpt.yaml").write_text(GPT)
        (self.dir / "lora.yaml").write_text(adapt(GPT))
        (self.dir / "drop.yaml").write_text(adapt(GPT, ", dropout: 0.2"))
        self.run_yaml = self.run_file(f"""\
model: {self.dir}/gpt.yaml
data: {{set: text, path: {self.dir}/text.txt, tokens: chars, time: 16}}
ring: {{boards: 1}}
train: {{epochs: 1, batch: 16, microbatch: 3, seed: 5}}
loss: cross-entropy
optimizer: {{kind: adamw, lr: 0.01, clip_norm: 1.0}}
schedule: 1f1b
cut: []
""")
        self.before = self.train(self.run_yaml, "before")
        self.init = (f'train.init={{from: {self.dir}/before/weights.safetensors, '
                     'except: "*.lora_*"}')

    def tune(self, out, *sets, model="lora.yaml"):
        return self.train(self.run_yaml, out, f"model={self.dir}/{model}", self.init, *ONLY_LORA,
                          *sets)

    def tensors(self, out):
        return read_safetensors(self.dir / out / "weights.safetensors")

    def test_only_corrections_change(self):
        summary = self.tune("tuned", "ring.boards=2", f"cut={CUTS[2]}")
        before, after = self.tensors("before"), self.tensors("tuned")
        corrections = {name for name in after if ".lora_" in name}
        self.assertEqual(len(corrections), 2 * len(ADAPTED))
        self.assertEqual(set(after) - corrections, set(before))
        for name, values in before.items():
            self.assertEqual(after[name], values, f"{name} has changed")
        for name in corrections:
            self.assertTrue(any(after[name]), f"{name} is 0")
        self.assertLess(summary["eval"]["loss"], self.before["eval"]["loss"] - 0.02)
        out, _ = self.ringpipe("train", self.run_yaml, "--dry-run", "--set",
                               f"model={self.dir}/lora.yaml", "--set", self.init, "--set",
                               ONLY_LORA[0])
        count = sum(len(after[name]) for name in corrections)
        self.assertIn(f" {count} parameters,", out)

    def test_it_begins_as_the_net(self):
        """Without a step the net with corrections is the one without."""
        summary = self.tune("still", "optimizer={kind: sgd, lr: 0}")
        self.assertEqual(summary["eval"], self.before["eval"])

    def test_merged(self):
        """W + alpha / rank B A in the net without corrections scores the same."""
        tuned = self.tune("tuned")["eval"]
        merged = merge(self.tensors("tuned"))
        shapes = read_shapes(self.dir / "before" / "weights.safetensors")
        self.assertEqual(merged.keys(), shapes.keys())
        path = self.dir / "merged.safetensors"
        write_safetensors(path, {name: (shapes[name], values) for name, values in merged.items()})
        text, _ = self.ringpipe("eval", self.run_yaml, "--weights", path, "--format", "json")
        scored = json.loads(text)["eval"]
        self.assertEqual(scored["tokens"], tuned["tokens"])
        self.assertAlmostEqual(scored["loss"], tuned["loss"], places=5)

    def test_cuts(self):
        for schedule in ("gpipe", "1f1b", "zb-h1"):
            for model in ("lora.yaml", "drop.yaml"):
                want = None
                for boards, cut in CUTS.items():
                    out = f"{schedule}-{model}-{boards}"
                    self.tune(out, f"ring.boards={boards}", f"cut={cut}",
                              f"schedule={schedule}", "train.epochs=1", model=model)
                    got = self.bytes_of(out)
                    want = want or got
                    self.assertEqual(got, want, f"{schedule}, {model}: {boards} boards differ")

    def test_methods(self):
        """Every method trains the corrections; saving memory does not change the bits."""
        sets = ("ring.boards=3", f"cut={CUTS[3]}")
        self.tune("plain", *sets, model="drop.yaml")
        for number, key in enumerate(("recompute=blocks", "offload=host", "ring.verify=1/2")):
            self.tune(f"saved{number}", *sets, key, model="drop.yaml")
            self.assertEqual(self.bytes_of(f"saved{number}"), self.bytes_of("plain"), key)
        for number, method in enumerate(METHODS):
            ring = ("ring.boards=4", f"cut={CUTS[2]}") if method == "pipefb" else sets
            self.tune(f"method{number}", *ring, f"schedule={method}")
            after, before = self.tensors(f"method{number}"), self.tensors("before")
            self.assertEqual(after["qkv.weight"], before["qkv.weight"], method)
            self.assertTrue(any(after["qkv.lora_B.weight"]), method)


load_tests = few_when_short("Lora.test_only_corrections_change", "Lora.test_merged")


if __name__ == "__main__":
    unittest.main()
