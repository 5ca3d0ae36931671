"""torchvision's weights in the zoo's nets of the same name, and back, with the real packages; also
nets that are built of its parts or of torch's, and called as in the file. The packages
are looked for in this Python and in /usr/bin/python3 (packages python3-torch, python3-torchvision);
without them nothing is tested, and the test says so."""
import json
import re
import subprocess
import sys
import unittest
from pathlib import Path

from program import SLOWER, SOURCE, Case, few_when_short, main

HALF = Path(__file__).resolve().parent / "torchvision_half.py"
NETS = ("alexnet", "densenet121", "efficientnet_b0", "googlenet", "inception_v3", "mobilenet_v2",
        "mobilenet_v3_small", "resnet18", "resnet50", "resnet101", "vgg11", "vgg11_bn", "vgg16_bn")
CLASSES = 10


def python_with_torchvision():
    for python in (sys.executable, "/usr/bin/python3"):
        try:
            found = subprocess.run([python, "-c", "import torch, torchvision"],
                                   capture_output=True, timeout=120)
        except (OSError, subprocess.TimeoutExpired):
            continue
        if found.returncode == 0:
            return python
    return None


PYTHON = python_with_torchvision()


@unittest.skipUnless(PYTHON, "no Python here has torch and torchvision (python3-torchvision)")
class Torchvision(Case):
    def ask(self, do, net, **more):
        question = {"do": do, "net": net, "classes": CLASSES, "seed": 7, **more}
        done = subprocess.run([PYTHON, "-W", "ignore", str(HALF)], input=json.dumps(question),
                              capture_output=True, text=True, timeout=200 * SLOWER)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def run_of(self, net, size, narrow=None):
        """The zoo's net on rows of numbers: as many outputs as columns, so mse compares them."""
        zoo = SOURCE / "host/models"
        path = zoo / f"torchvision-{net}.yaml"
        text = (path if path.exists() else zoo / f"{net}.yaml").read_text()
        self.assertIn("input: data\n", text)
        text = text.replace("input: data\n", f"input: [3, {size}, {size}]\n")
        text = text.replace("out: classes", f"out: {CLASSES}")
        text = text.replace("out: 4096", f"out: {narrow or 4096}")
        (self.dir / f"{net}.yaml").write_text(text)
        return self.run_file(f"""\
model: {self.dir}/{net}.yaml
data: {{set: table, path: {self.dir}, shuffle: false}}
ring: {{boards: 1}}
train: {{steps: 1, batch: 2, microbatch: 1, init: {self.dir}/given.safetensors}}
loss: mse
optimizer: {{kind: sgd, lr: 0}}
schedule: gpipe
cut: []
""", f"{net}-run.yaml")

    def same_outputs(self, net, size, narrow=None):
        about = self.ask("make", net, size=size, narrow=narrow, folder=str(self.dir),
                         weights=str(self.dir / "given.safetensors"))
        self.assertGreater(about["spread"], 1e-4)
        run = self.run_of(net, size, narrow)
        text, _ = self.ringpipe("eval", run, "--weights", self.dir / "given.safetensors",
                                "--format", "json", seconds=200)
        error = json.loads(text)["eval"]["loss"]
        self.assertLessEqual(error, 1e-9 * about["square"], f"{net}: {about}")
        return run

    def there_and_back(self, net, size=64):
        run = self.same_outputs(net, size)
        self.ringpipe("train", run, "--out", self.dir / net, seconds=200)
        back = self.ask("load", net, given=str(self.dir / "given.safetensors"),
                        came=str(self.dir / net / "weights.safetensors"))
        self.assertEqual(back["differ"], [])
        self.assertGreater(back["tensors"], 50)

    def test_names_and_shapes(self):
        """Every tensor of the zoo's net is in torchvision's file with its shape, and no more."""
        for net in NETS:
            about = self.ask("shapes", net, weights=str(self.dir / "given.safetensors"))
            row = ",".join(["0"] * (3 * 224 * 224 + CLASSES)) + "\n"
            for split in ("train", "test"):
                (self.dir / f"{split}.csv").write_text(row)
            text, _ = self.ringpipe("train", self.run_of(net, 224), "--dry-run", "--format", "json")
            self.assertEqual(json.loads(text)["parameters"], about["parameters"], net)

    def test_the_small_resnet_takes_the_large_ones_weights(self):
        """By the manual's rename: all but the stem, which is another one, and the head."""
        self.ask("shapes", "resnet18", weights=str(self.dir / "resnet18.safetensors"))
        page = (SOURCE / "host/cli/man/ringpipe-train.5").read_text()
        found = re.search(r"^init:\n  from: resnet18.*?\n(?=\.Ed)", page, re.M | re.S)
        init = "\n".join("  " + line for line in found.group(0).splitlines())
        run = self.run_file(f"""\
model: resnet18
data: {{set: glyphs, train: 32, test: 8, size: 32}}
ring: {{boards: 2}}
train:
  epochs: 1
  batch: 16
{init}
loss: cross-entropy
optimizer: {{kind: sgd, lr: 0.1}}
schedule: gpipe
""")
        self.ringpipe("train", run, "--dry-run")
        text = run.read_text()
        run.write_text(text.replace("except: [conv1.*, fc.*]", "except: fc.*"))
        self.assertIn("conv1.weight", self.refused("train", run, "--dry-run"))  # 7 x 7, not 3 x 3
        run.write_text(text.replace('"layer*.1"', '"layer*.9"'))
        self.assertIn("layer*.9", self.refused("train", run, "--dry-run"))

    def test_a_tensor_too_few_is_seen(self):
        """The file of another net: --dry-run looks into it."""
        self.ask("shapes", "vgg11", weights=str(self.dir / "given.safetensors"))
        row = ",".join(["0"] * (3 * 224 * 224 + CLASSES)) + "\n"
        for split in ("train", "test"):
            (self.dir / f"{split}.csv").write_text(row)
        said = self.refused("train", self.run_of("vgg11_bn", 224), "--dry-run")
        self.assertIn("features.1.weight", said)

    def test_resnet18(self):
        self.there_and_back("resnet18")

    def test_resnet50(self):
        self.there_and_back("resnet50")

    def test_mobilenet(self):
        self.there_and_back("mobilenet_v2")

    def test_googlenet(self):
        self.there_and_back("googlenet")

    def test_inception(self):
        self.there_and_back("inception_v3", 112)

    def test_densenet(self):
        self.there_and_back("densenet121")

    def test_mobilenet_v3(self):
        self.there_and_back("mobilenet_v3_small")

    def test_efficientnet(self):
        self.there_and_back("efficientnet_b0")

    def test_vision_transformer(self):
        self.there_and_back("vit-tiny", 32)
        self.there_and_back("vit-tiny-narrow", 32)

    def test_unet(self):
        self.there_and_back("unet", 32)

    def test_alexnet(self):
        self.same_outputs("alexnet", 224, narrow=64)

    def test_vgg(self):
        self.same_outputs("vgg11", 224, narrow=64)
        self.same_outputs("vgg16_bn", 224, narrow=64)


load_tests = few_when_short("Torchvision.test_resnet18",
                            "Torchvision.test_a_tensor_too_few_is_seen")


if __name__ == "__main__":
    main()
