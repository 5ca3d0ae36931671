"""The zoo's narrow image nets on pictures of 32 x 32: they learn, and rings of two and three boards,
cut inside of a block, train them to the bits of one board. `inspect`, `list` and `plan` know them."""
import hashlib
import json
import unittest

from rings import RingCase, few_when_short

# Of two boards and of three.
CUTS = {
    "googlenet-narrow": ("inception4a.branch3.0.conv",
                         "inception3b.branch2.1.bn, inception4d.branch4.0"),
    "inception-v3-narrow": ("Mixed_6b.branch7x7dbl_3.conv",
                            "Mixed_5c.pool, Mixed_7b.branch3x3dbl_3b.conv"),
    "densenet121-narrow": ("features.denseblock3.denselayer5.norm1",
                           "features.denseblock2.denselayer3.conv2, "
                           "features.denseblock3.denselayer12.concat"),
    "mobilenet-v3-narrow": ("features.4.block.2.fc1", "features.2.block.1.0, features.9.block.3.1"),
    "efficientnet-b0-narrow": ("features.4.1.stochastic_depth",
                               "features.2.1.block.2, features.6.1.block.2.fc2"),
    "vit-tiny-narrow": ("encoder.layers.encoder_layer_2.ln_1",
                        "tokens, encoder.layers.encoder_layer_2.self_attention"),
}
LARGE = ("torchvision-googlenet", "torchvision-inception_v3", "torchvision-densenet121",
         "torchvision-mobilenet_v3_small", "torchvision-efficientnet_b0", "vit-tiny")


class Nets(RingCase):
    def run_of(self, net):
        return self.run_file(f"""\
model: {net}
data: {{set: glyphs, train: 24, test: 12, size: 32}}
ring: {{boards: 1}}
train: {{epochs: 6, batch: 12, microbatch: 5, seed: 5}}
loss: cross-entropy
optimizer: {{kind: adam, lr: 0.001}}
schedule: gpipe
cut: []
""")

    def losses_of(self, out):
        lines = (self.dir / out / "log.jsonl").read_text().splitlines()
        return [entry["loss"] for entry in map(json.loads, lines) if "event" not in entry]

    def check(self, net):
        run = self.run_of(net)
        for schedule in ("gpipe", "1f1b"):
            want = None
            for boards, cut in enumerate(("", *CUTS[net]), 1):
                out = f"{schedule}-{boards}"
                summary = self.train(run, out, f"ring.boards={boards}", f"cut=[{cut}]",
                                     f"schedule={schedule}")
                got = hashlib.sha256(self.bytes_of(out)).hexdigest(), summary["eval"]
                want = want or got
                self.assertEqual(got, want, f"{net}: {out} differs from one board")
        losses = self.losses_of("1f1b-1")
        self.assertLess(sum(losses[-4:]), 0.9 * sum(losses[:4]), f"{net}: {losses}")

    def test_googlenet(self):
        self.check("googlenet-narrow")

    def test_inception(self):
        self.check("inception-v3-narrow")

    def test_densenet(self):
        self.check("densenet121-narrow")

    def test_mobilenet(self):
        self.check("mobilenet-v3-narrow")

    def test_efficientnet(self):
        self.check("efficientnet-b0-narrow")

    def test_vision_transformer(self):
        self.check("vit-tiny-narrow")

    def test_lists(self):
        """`list` and `inspect` know each net."""
        text, _ = self.ringpipe("list", "models", "--format", "json")
        known = {model["name"]: model["parameters"] for model in json.loads(text)["models"]}
        for net in (*CUTS, *LARGE):
            text, _ = self.ringpipe("inspect", net, "--format", "json")
            self.assertEqual(json.loads(text)["parameters"], known[net], net)

    def test_plans(self):
        """A plan for three boards from measured times."""
        for net in (*CUTS, *LARGE):
            size = 32 if net in CUTS or net == "vit-tiny" else 112
            text, _ = self.ringpipe("plan", self.run_of(net), "--set", "ring.boards=3", "--set",
                                    "cut=auto", "--set", f"data.size={size}", "--set",
                                    "train.microbatch=2", "--format", "json", seconds=200)
            self.assertEqual(len(json.loads(text)["cut"]), 2, net)


load_tests = few_when_short("Nets.test_lists")


if __name__ == "__main__":
    unittest.main()
