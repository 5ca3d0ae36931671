"""Golden vectors of flushed schedules: four scalar stages, SGD with momentum, by hand in double.

The sums of the reference program's documentation: y_k = w_k y_{k-1}, loss (y_4 - t)^2 / 2, so half
the learning rate with `loss: mse`; the mean over the 4 microbatches, 3 updates in all.
"""
import math
import unittest

from rings import RingCase, read_safetensors, write_safetensors

START = [1.0, 0.9, 1.1, 1.05]
WANT = [0.941382287340, 0.834743322829, 1.046786569188, 0.994216009059]
INPUTS = [1 + 0.1 * math.sin(n) for n in range(12)]


class Golden(RingCase):
    def setUp(self):
        super().setUp()
        rows = "".join(f"{x:.17g},{0.5 * x:.17g}\n" for x in INPUTS)
        (self.dir / "train.csv").write_text("# x, y\n" + rows)
        layers = "".join(
            f"  - {{name: d{i}, kind: dense, out: 1, bias: false}}\n" for i in range(4))
        (self.dir / "chain.yaml").write_text("input: [1]\nlayers:\n" + layers)
        write_safetensors(self.dir / "start.safetensors",
                          {f"d{i}.weight": ([1, 1], [w]) for i, w in enumerate(START)})
        self.run_yaml = self.run_file(f"""\
model: {self.dir}/chain.yaml
data: {{set: table, path: {self.dir}, shuffle: false}}
ring: {{boards: 4}}
train: {{epochs: 1, batch: 4, microbatch: 1, init: {self.dir}/start.safetensors}}
loss: mse
optimizer: {{kind: sgd, lr: 0.01, momentum: 0.9}}
schedule: gpipe
cut: [d1, d2, d3]
""")

    def check(self, schedule, *sets):
        out = f"{schedule}-{len(sets)}"
        summary = self.train(self.run_yaml, out, f"schedule={schedule}", *sets)
        self.assertEqual(summary["steps"], 3)
        got = read_safetensors(self.dir / out / "weights.safetensors")
        for i, want in enumerate(WANT):
            value = got[f"d{i}.weight"][0]
            self.assertTrue(abs(value - want) <= 1e-6, f"{schedule}: d{i} is {value}, not {want}")

    def test_gpipe(self):
        self.check("gpipe")

    def test_1f1b(self):
        self.check("1f1b")

    def test_zero_bubble(self):
        self.check("zb-h1")

    def test_two_stages_and_one(self):
        self.check("gpipe", "ring.boards=2", "cut=[d2]")
        self.check("1f1b", "ring.boards=1", "cut=[]")


if __name__ == "__main__":
    unittest.main()
