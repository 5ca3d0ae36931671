"""Real agents over ZeroMQ: a ring of any size trains as one board does, bit for bit, whatever the
links do."""
import json
import unittest

from rings import RingCase, read_safetensors

MODEL = """\
input: data
layers:
  - {name: conv1, kind: conv2d, out: 6, kernel: 5, stride: 2, bias: false}
  - {name: bn1, kind: batchnorm}
  - {name: relu1, kind: relu}
  - {name: conv2, kind: conv2d, out: 6, kernel: 3, pad: 1}
  - {name: drop, kind: dropout, p: 0.2}
  - {name: add, kind: add, from: [relu1, drop]}
  - {name: pool, kind: maxpool, kernel: 4}
  - {name: flat, kind: flatten}
  - {name: fc, kind: dense, out: classes}
"""
CUTS = {1: "[]", 2: "[drop]", 3: "[conv2, pool]", 5: "[bn1, conv2, drop, fc]"}
# Slow and lossy ones between boards, and in the second ring to the host as well.
LINKS = {3: "{delay_ms: 3, jitter_ms: 4, loss: 0.05, rate_mbit: 200}",
         5: "{delay_ms: 1, jitter_ms: 3, loss: 0.01, control: true}"}


class Ring(RingCase):
    def setUp(self):
        super().setUp()
        (self.dir / "net.yaml").write_text(MODEL)
        self.run_yaml = self.run_file(f"""\
model: {self.dir}/net.yaml
data: {{set: glyphs, train: 90, test: 30}}
ring: {{boards: 1}}
train: {{epochs: 2, batch: 32, microbatch: 7, seed: 5}}
loss: cross-entropy
optimizer: {{kind: sgd, lr: 0.1, momentum: 0.9, nesterov: true, clip_norm: 1.0}}
lr_schedule: {{kind: cosine, warmup_steps: 2}}
schedule: 1f1b
cut: []
""")

    def same_for_all_cuts(self, schedule):
        want = None
        for boards, cut in CUTS.items():
            out = f"{schedule}-{boards}"
            link = LINKS.get(boards, "{}")
            summary = self.train(self.run_yaml, out, f"ring.boards={boards}", f"cut={cut}",
                                 f"schedule={schedule}", f"ring.link={link}")
            got = self.bytes_of(out), summary["eval"]
            want = want or got
            self.assertEqual(got, want, f"{boards} boards differ from one")

    def test_gpipe(self):
        self.same_for_all_cuts("gpipe")

    def test_1f1b(self):
        self.same_for_all_cuts("1f1b")

    def test_zero_bubble(self):
        self.same_for_all_cuts("zb-h1")

    def test_interleaved(self):
        """Several stages on a board, the last board sends to the first: the bits of 1f1b."""
        micro = "train.microbatch=8"
        summary = self.train(self.run_yaml, "one", micro)
        want = self.bytes_of("one"), summary["eval"]
        cuts = {1: "[conv2, drop]", 2: "[bn1, conv2, pool]", 4: "[bn1, relu1, conv2, drop, add, "
                "pool, fc]"}
        for boards, cut in cuts.items():
            out = f"interleaved-{boards}"
            chunks = (cut.count(",") + 2) // boards
            schedule = "{kind: interleaved-1f1b, chunks: %d}" % chunks
            link = LINKS[3] if boards == 2 else "{}"
            summary = self.train(self.run_yaml, out, micro, f"ring.boards={boards}", f"cut={cut}",
                                 f"schedule={schedule}", f"ring.link={link}")
            self.assertEqual((self.bytes_of(out), summary["eval"]), want, f"{boards} boards")
            plan = json.loads((self.dir / out / "plan.json").read_text())
            held = [[h["stage"] for h in node["holds"]] for node in plan["nodes"]]
            self.assertEqual(held, [[k + i * boards for i in range(chunks)]
                                    for k in range(boards)])
            self.assertEqual(len(summary["stage"]), boards)
            self.assertEqual(sum(len(s["layers"]) for s in summary["stage"]), 9)


NORMS = """\
input: data
layers:
  - {name: conv1, kind: conv2d, out: 6, kernel: 5, stride: 2, bias: false}
  - {name: norm1, kind: NORM}
  - {name: relu1, kind: relu}
  - {name: conv2, kind: conv2d, out: 6, kernel: 3, pad: 1}
  - {name: add, kind: add, from: [relu1, conv2]}
  - {name: norm2, kind: NORM}
  - {name: pool, kind: maxpool, kernel: 4}
  - {name: flat, kind: flatten}
  - {name: norm3, kind: layernorm}
  - {name: fc, kind: dense, out: classes}
"""


class Norms(RingCase):
    """Without batch statistics neither the cut nor the microbatch matters."""

    def run_of(self, norm):
        (self.dir / "norms.yaml").write_text(NORMS.replace("NORM", norm))
        return self.run_file(f"""\
model: {self.dir}/norms.yaml
data: {{set: glyphs, train: 96, test: 30}}
ring: {{boards: 1}}
train: {{epochs: 1, batch: 32, microbatch: 8, seed: 5}}
loss: cross-entropy
optimizer: {{kind: sgd, lr: 0.05}}
schedule: 1f1b
cut: []
""")

    def farthest(self, run, norm):
        """The largest difference of a weight between microbatches of 8 and of 32."""
        for micro in (8, 32):
            self.train(run, f"{norm}-{micro}", f"train.microbatch={micro}")
        small, large = (read_safetensors(self.dir / f"{norm}-{micro}" / "weights.safetensors")
                        for micro in (8, 32))
        self.assertEqual(set(small), set(large))
        return max(abs(a - b) for name in small if "running" not in name
                   for a, b in zip(small[name], large[name]))

    def test_cuts(self):
        run = self.run_of("groupnorm, groups: 2")
        want = None
        for boards, cut in {1: "[]", 2: "[conv2]", 4: "[norm1, norm2, norm3]"}.items():
            summary = self.train(run, f"cut-{boards}", f"ring.boards={boards}", f"cut={cut}")
            got = self.bytes_of(f"cut-{boards}"), summary["eval"]
            want = want or got
            self.assertEqual(got, want, f"{boards} boards differ from one")

    def test_microbatches(self):
        self.assertLess(self.farthest(self.run_of("groupnorm, groups: 2"), "groupnorm"), 1e-6)
        self.assertLess(self.farthest(self.run_of("layernorm"), "layernorm"), 1e-6)
        # the same net with batch statistics, so that the bound means something
        self.assertGreater(self.farthest(self.run_of("batchnorm"), "batchnorm"), 1e-3)



FROZEN = """\
input: data
layers:
  - {name: conv1, kind: conv2d, out: 6, kernel: 5, stride: 2, bias: false FREEZE}
  - {name: bn1, kind: batchnorm FREEZE}
  - {name: relu1, kind: relu}
  - {name: pool, kind: maxpool, kernel: 4}
  - {name: drop, kind: dropout FREEZE}
  - {name: flat, kind: flatten}
  - {name: fc1, kind: dense, out: 20}
  - {name: relu2, kind: relu}
  - {name: fc2, kind: dense, out: classes}
"""


class Frozen(RingCase):
    """Layers with `train: false`: their bits stay, and no gradient travels to them."""

    def run_of(self, name, freeze, init):
        (self.dir / f"{name}.yaml").write_text(FROZEN.replace(" FREEZE", freeze))
        return self.run_file(f"""\
model: {self.dir}/{name}.yaml
data: {{set: glyphs, train: 90, test: 30}}
ring: {{boards: 1}}
train: {{epochs: 2, batch: 30, microbatch: 10, seed: 5, init: {init}}}
loss: cross-entropy
optimizer: {{kind: sgd, lr: 0.1, momentum: 0.9, weight_decay: 0.01}}
schedule: 1f1b
cut: []
""", f"{name}-run.yaml")

    def other_head(self, start, before):
        """The frozen layers of another net, under other names, below layers of this net's own."""
        run = self.run_of("other", ", train: false", "none")
        net = self.dir / "other.yaml"
        net.write_text(net.read_text().replace("conv1", "stem.conv").replace("fc2", "head"))
        out = "other-2"
        self.train(run, out, "ring.boards=2", "cut=[fc1]", f"train.init={{from: {start}, "
                   "except: 'head.*', rename: {conv1: stem.conv}}", "optimizer={kind: sgd, lr: 0}")
        after = read_safetensors(self.dir / out / "weights.safetensors")
        self.assertEqual(after.pop("stem.conv.weight"), before["conv1.weight"])
        for name in ("head.weight", "head.bias"):
            self.assertNotEqual(after.pop(name), before[name.replace("head", "fc2")])
        self.assertEqual(after, {name: before[name] for name in after})

    def test_a_frozen_first_stage(self):
        self.train(self.run_of("free", "", "none"), "start")
        start = self.dir / "start" / "weights.safetensors"
        run = self.run_of("held", ", train: false", start)
        before, want = read_safetensors(start), None
        for boards, cut in {1: "[]", 2: "[flat]", 3: "[pool, fc2]", 4: "[bn1, drop, fc1]"}.items():
            out = f"held-{boards}"
            summary = self.train(run, out, f"ring.boards={boards}", f"cut={cut}")
            got = self.bytes_of(out), summary["eval"]
            want = want or got
            self.assertEqual(got, want, f"{boards} boards differ from one")
            after = read_safetensors(self.dir / out / "weights.safetensors")
            changed = {name.split(".")[0] for name in before if before[name] != after[name]}
            self.assertEqual(changed, {"fc1", "fc2"})
        free = self.train(self.run_of("free", "", start), "free-4", "ring.boards=4",
                          "cut=[bn1, drop, fc1]")
        self.train(self.run_of("freeze", "", start), "freeze-2", "ring.boards=2",
                   "cut=[pool]", "train.freeze=[conv1, 'bn?', drop]")
        self.assertEqual(self.bytes_of("freeze-2"), want[0])
        self.other_head(start, before)
        for held, link in zip(summary["link"], free["link"], strict=True):
            self.assertEqual((held["from"], held["to"]), (link["from"], link["to"]))
            if link["from"] > link["to"]:  # what is left are heads and acknowledgements
                self.assertLess(held["bytes"], link["bytes"] / 10)
            else:
                self.assertGreater(held["bytes"], link["bytes"] / 2)


class Losses(RingCase):
    """Classes, and the same as rows of probabilities, with smoothed labels: one training."""

    def test_classes_and_rows(self):
        (self.dir / "net.yaml").write_text("input: [2]\nlayers:\n"
                                           "  - {name: a, kind: dense, out: 8}\n"
                                           "  - {name: t, kind: tanh}\n"
                                           "  - {name: b, kind: dense, out: 3}\n")
        rows = [(i % 7 / 7, i % 5 / 5, (i % 7 + i % 5) % 3) for i in range(60)]
        got = {}
        for loss in ("cross-entropy", "soft-cross-entropy"):
            folder = self.dir / loss
            folder.mkdir()
            for split in ("train", "test"):
                with open(folder / f"{split}.csv", "w", encoding="ascii") as file:
                    for a, b, c in rows:
                        y = c if loss == "cross-entropy" else ",".join(
                            "1" if k == c else "0" for k in range(3))
                        file.write(f"{a},{b},{y}\n")
            run = self.run_file(f"""\
model: {self.dir}/net.yaml
data: {{set: table, path: {folder}}}
ring: {{boards: 2}}
train: {{epochs: 2, batch: 20, microbatch: 10, seed: 3}}
loss: {{kind: {loss}, label_smoothing: 0.2}}
optimizer: {{kind: sgd, lr: 0.1}}
schedule: 1f1b
cut: [t]
""", f"{loss}.yaml")
            got[loss] = self.train(run, f"{loss}-out")
        plain = self.train(run, "plain-out", "loss={kind: soft-cross-entropy}")
        hard, soft = (read_safetensors(self.dir / f"{loss}-out" / "weights.safetensors")
                      for loss in got)
        for name, values in hard.items():
            for a, b in zip(values, soft[name], strict=True):
                self.assertLessEqual(abs(a - b), 1e-6)
        hard, soft = got.values()
        self.assertEqual(hard["eval"]["accuracy"], soft["eval"]["accuracy"])
        self.assertLessEqual(abs(hard["eval"]["loss"] - soft["eval"]["loss"]), 1e-5)
        self.assertGreater(abs(plain["eval"]["loss"] - soft["eval"]["loss"]), 1e-4)


class Augmented(RingCase):
    """What is drawn for a sample follows from the run's seed, the epoch and the sample."""

    def test_cuts_and_microbatches(self):
        (self.dir / "net.yaml").write_text(MODEL)
        run = self.run_file(f"""\
model: {self.dir}/net.yaml
data:
  set: glyphs
  train: 60
  test: 30
  augment: {{crop: 2, flip: true, rotation: 20, colour: {{brightness: 0.3, contrast: 0.3}},
            erasing: 0.5, mixup: 0.4}}
ring: {{boards: 1}}
train: {{epochs: 2, batch: 20, microbatch: 10, seed: 5}}
loss: {{kind: cross-entropy, label_smoothing: 0.1}}
optimizer: {{kind: sgd, lr: 0.1}}
schedule: 1f1b
cut: []
""")
        want = None
        for boards, cut in {1: "[]", 2: "[drop]", 3: "[conv2, pool]"}.items():
            summary = self.train(run, f"cut-{boards}", f"ring.boards={boards}", f"cut={cut}")
            got = self.bytes_of(f"cut-{boards}"), summary["eval"]
            want = want or got
            self.assertEqual(got, want, f"{boards} boards differ from one")
        self.assertIn("accuracy", summary["eval"])
        for less in ("mixup=0", "erasing=0", "rotation=0", "colour.contrast=0", "crop=0"):
            self.train(run, less, f"data.augment.{less}")
            self.assertNotEqual(self.bytes_of(less), want[0], less)


if __name__ == "__main__":
    unittest.main()
