"""The zoo's narrow image nets on pictures of 32 x 32: they learn, and rings of two and three
boards, cut inside of a block, train them to the bits of one board. `inspect`, `list` and `plan`
know them. unet-narrow finds figures in arrays with a class for each pixel, some of which do not
count."""
import hashlib
import json
import random
import unittest

from rings import RingCase, few_when_short
from spread import spread

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
    "unet-narrow": ("concat3", "encoder3.enc3conv2, upconv2"),
    "vit-tiny-narrow": ("encoder.layers.encoder_layer_2.ln_1",
                        "tokens, encoder.layers.encoder_layer_2.self_attention"),
}
LARGE = ("torchvision-googlenet", "torchvision-inception_v3", "torchvision-densenet121",
         "torchvision-mobilenet_v3_small", "torchvision-efficientnet_b0", "unet", "vit-tiny")

# Attention, normalisation and positions of elementary kinds only.
ELEMENTARY = """\
input: [1, 32, 32]
layers:
  - {name: patch, kind: conv2d, out: 12, kernel: 8, stride: 8}
  - {name: rows, kind: reshape, shape: [12, 16]}
  - {name: tokens, kind: transpose, perm: [1, 0]}
  - {name: positions, kind: parameter, shape: [16, 12], std: 0.1}
  - {name: placed, kind: add, from: [tokens, positions]}
  - {name: mean, kind: mean, axes: [1], keep: true}
  - {name: centred, kind: sub, from: [placed, mean]}
  - {name: squares, kind: pow, exponent: 2}
  - {name: variance, kind: mean, axes: [1], keep: true}
  - {name: eps, kind: constant, shape: [1], value: 1e-5}
  - {name: positive, kind: add, from: [variance, eps]}
  - {name: deviation, kind: sqrt}
  - {name: normal, kind: div, from: [centred, deviation]}
  - {name: query, kind: parameter, shape: [12, 12], std: 0.3}
  - {name: q, kind: matmul, from: [normal, query]}
  - {name: q_rows, kind: reshape, shape: [16, 2, 6]}
  - {name: q_heads, kind: transpose, perm: [1, 0, 2]}
  - {name: k_rows, kind: reshape, from: normal, shape: [16, 2, 6]}
  - {name: k_heads, kind: transpose, perm: [1, 0, 2]}
  - {name: scores, kind: matmul, from: [q_heads, k_heads], transpose: true}
  - {name: limited, kind: clip, min: -4, max: 4}
  - {name: weights, kind: softmax}
  - {name: mixed, kind: matmul, from: [weights, k_heads]}
  - {name: back, kind: transpose, perm: [1, 0, 2]}
  - {name: joined, kind: reshape, shape: [16, 12]}
  - {name: gate, kind: less, from: [joined, placed]}
  - {name: chosen, kind: where, from: [gate, placed, joined]}
  - {name: picked, kind: gather, axis: 0, indices: [0, 3, 3, 15, 8, 7, 1]}
  - {name: padded, kind: pad, pads: [0, 1, 1, 0]}
  - {name: largest, kind: max-over, axes: [0]}
  - {name: fc, kind: dense, out: classes}
"""
# Of two, three, four and five boards, inside of and between its parts.
ELEMENTARY_CUTS = ("centred", "eps, scores", "positions, q_heads, gate",
                   "rows, squares, query, weights")


SIDE, IGNORED = 32, 255


def write_bytes(path, shape, data):
    """A file of numpy with uint8 numbers."""
    head = f"{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}, }}".encode()
    head += b" " * (-(len(head) + 11) % 64) + b"\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head + bytes(data))


def draw_figures(rng):
    """An image of three channels with a disc (class 1) and a square (2), whose edges do not count:
    the values of the image, and of its mask."""
    image = [rng.randrange(100) for _ in range(3 * SIDE * SIDE)]
    mask = [0] * (SIDE * SIDE)
    for kind in (1, 2):
        radius = rng.randint(4, 7)
        row, column = (rng.randint(radius + 1, SIDE - radius - 2) for _ in range(2))
        for i in range(SIDE * SIDE):
            y, x = abs(i // SIDE - row), abs(i % SIDE - column)
            distance = (y * y + x * x) ** 0.5 if kind == 1 else max(x, y)
            if distance < radius:
                mask[i] = kind
                image[(kind - 1) * SIDE * SIDE + i] = 200
            elif distance < radius + 1:
                mask[i] = IGNORED
    return image, mask


class Nets(RingCase):
    def run_of(self, net):
        if str(net).startswith("unet"):
            return self.masked_run(net, 24, 12)
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

    def masked_run(self, net, train, test):
        rng = random.Random(4)
        for part, count in (("train", train), ("test", test)):
            drawn = [draw_figures(rng) for _ in range(count)]
            for name, shape, values in (("x", (count, 3, SIDE, SIDE), [d[0] for d in drawn]),
                                        ("y", (count, SIDE, SIDE), [d[1] for d in drawn])):
                write_bytes(self.dir / f"{name}_{part}.npy", shape, sum(values, []))
        return self.run_file(f"""\
model: {net}
data: {{set: npy, path: {self.dir}}}
ring: {{boards: 1}}
train: {{epochs: 6, batch: 12, microbatch: 5, seed: 5}}
loss: {{kind: cross-entropy, ignore: {IGNORED}, classes_at: first}}
optimizer: {{kind: adam, lr: 0.003}}
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

    def test_elementary(self):
        """Also recomputed, offloaded, verified, with split backwards, and stored in 16 bits."""
        (self.dir / "net.yaml").write_text(ELEMENTARY)
        run, three = self.run_of(self.dir / "net.yaml"), ELEMENTARY_CUTS[1]
        ways = [("one", 1, "", ()), ("again", 3, three, ("recompute=all",)),
                ("away", 3, three, ("offload=host",)), ("judged", 3, three, ("ring.verify=1/2",))]
        groups = [ways + [(f"boards-{i}", i, cut, ()) for i, cut in enumerate(ELEMENTARY_CUTS, 2)]]
        for name, key in (("half", "train.storage={activations: bf16}"),
                          ("split", "schedule=zb-h1")):
            groups.append([(f"{name}-1", 1, "", (key,)), (f"{name}-3", 3, three, (key,))])
        for ways in groups:
            want = None
            for out, boards, cut, sets in ways:
                summary = self.train(run, out, f"ring.boards={boards}", f"cut=[{cut}]", *sets)
                got = hashlib.sha256(self.bytes_of(out)).hexdigest(), summary["eval"]
                want = want or got
                self.assertEqual(got, want, f"{out} differs from one board")
        losses = self.losses_of("one")
        self.assertLess(sum(losses[-4:]), 0.97 * sum(losses[:4]), losses)

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

    def test_unet(self):
        self.check("unet-narrow")

    def scores_of(self, out):
        text, _ = self.ringpipe("eval", self.dir / out, "--format", "json")
        return json.loads(text)["eval"]

    def test_segmentation(self):
        """The mean IoU rises; `eval` agrees with the ring, `predict` gives a mask."""
        run = self.masked_run("unet-narrow", 48, 12)
        sets = ("train.batch=8", "train.microbatch=4", "optimizer.lr=0.02", "ring.boards=2",
                "cut=[concat3]")
        self.train(run, "first", *sets, "train.epochs=1")
        summary = self.train(run, "last", *sets, "train.epochs=24")
        before, after = self.scores_of("first"), self.scores_of("last")
        self.assertLess(before["mean_iou"], 0.65)
        self.assertGreater(after["mean_iou"], 0.85)
        mask = (self.dir / "y_test.npy").read_bytes()[-12 * SIDE * SIDE:]
        self.assertEqual(after["pixels"], len(mask) - mask.count(IGNORED))
        self.assertEqual((after["samples"], after["pixels"], after["accuracy"]),
                         tuple(summary["eval"][key] for key in ("samples", "pixels", "accuracy")))
        self.assertAlmostEqual(after["loss"], summary["eval"]["loss"], places=5)
        self.assertAlmostEqual(after["mean_iou"], summary["eval"]["mean_iou"], places=9)
        self.assertNotIn("perplexity", summary["eval"])
        text, _ = self.ringpipe("predict", self.dir / "last", self.dir / "x_test.npy", "--format",
                                "json")
        got = sum((sum(answer["mask"], []) for answer in json.loads(text)["predictions"]), [])
        right = sum(a == b for a, b in zip(got, mask, strict=True))
        self.assertAlmostEqual(right / after["pixels"], after["accuracy"], places=6)

    def test_overlap_of_a_shared_stage(self):
        """Boards that share the last stage count the classes of their own samples."""
        (self.dir / "net.yaml").write_text("""\
input: [3, 32, 32]
layers:
  - {name: c1, kind: conv2d, out: 8, kernel: 3, pad: 1}
  - {name: r1, kind: relu}
  - {name: c2, kind: conv2d, out: 3, kernel: 3, pad: 1}
""")
        run = self.masked_run(self.dir / "net.yaml", 24, 13)
        sets = ("train.batch=8", "train.microbatch=4", "train.epochs=4")
        row = self.train(run, "row", *sets, "ring.boards=2", "cut=[c2]")
        plan = json.loads((self.dir / "row" / "plan.json").read_text())
        (self.dir / "shared.json").write_text(json.dumps(spread(plan, [[0, 1], [0, 0.3, 1]])))
        words = [w for key in (*sets, "ring.boards=3", "cut=auto") for w in ("--set", key)]
        out, _ = self.ringpipe("train", run, "--out", "shared", "--format", "json",
                               "--plan", self.dir / "shared.json", *words)
        shared = json.loads(out)
        self.assertEqual((shared["stages"], shared["boards"]), (2, 3))
        self.assertGreater(row["eval"]["mean_iou"], 0.2)
        self.assertAlmostEqual(shared["eval"]["mean_iou"], row["eval"]["mean_iou"], delta=0.002)
        self.assertEqual(shared["eval"]["pixels"], row["eval"]["pixels"])

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
            sets = ["ring.boards=3", "cut=auto", "train.microbatch=2"]
            if net.startswith("torchvision"):
                sets.append("data.size=112")
            words = [word for key in sets for word in ("--set", key)]
            text, _ = self.ringpipe("plan", self.run_of(net), *words, "--format", "json",
                                    seconds=200)
            self.assertEqual(len(json.loads(text)["cut"]), 2, net)


load_tests = few_when_short("Nets.test_segmentation", "Nets.test_lists", "Nets.test_elementary")


if __name__ == "__main__":
    unittest.main()
