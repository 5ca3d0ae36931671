"""umpipe: microbatches of a size by stage and direction. Real agents over ZeroMQ, whatever the
links do, end with the bytes of a loop in one process (replay.c), and with gpipe's weights within
the order of the sums."""
import unittest

from rings import read_safetensors
from test_methods import (ADAM, ADAMW, CHAIN, CHAIN_CUTS, FOUR, NESTEROV, OTHER_DELAYS, RMSPROP,
                          Method)

# A sum across a cut, dropout, norms of each sample; no batch statistics.
MODEL = """\
input: data
layers:
  - {name: conv1, kind: conv2d, out: 6, kernel: 5, stride: 2, bias: false}
  - {name: norm1, kind: groupnorm, groups: 2}
  - {name: relu1, kind: relu}
  - {name: conv2, kind: conv2d, out: 6, kernel: 3, pad: 1}
  - {name: drop, kind: dropout, p: 0.2}
  - {name: add, kind: add, from: [relu1, drop]}
  - {name: pool, kind: maxpool, kernel: 4}
  - {name: flat, kind: flatten}
  - {name: fc, kind: dense, out: classes}
"""
CUTS = {1: "[]", 2: "[drop]", 3: "[conv2, pool]", 5: "[norm1, conv2, pool, fc]"}
SGD = "optimizer={kind: sgd, lr: 0.05}"
STEP = ("train.batch=32", "train.microbatch=8")
# Steps of 32, 32 and 26 samples. Sizes that divide neither the step nor each other.
UNEVEN = {1: ("[7]", "[5]"), 2: ("[3, 32]", "[31, 4]"), 3: ("[3, 12, 5]", "[9, 2, 32]"),
          5: ("[1, 8, 5, 32, 11]", "[7, 3, 32, 4, 9]")}


def umpipe(forward, backward):
    return "{kind: umpipe, forward: %s, backward: %s}" % (forward, backward)


class Sizes(Method):
    MODEL, CUTS = MODEL, CUTS

    def uneven(self, boards, *sets):
        return self.same(boards, umpipe(*UNEVEN[boards]), *STEP, *sets)

    def test_one_board(self):
        self.uneven(1, NESTEROV)

    def test_two_boards(self):
        got, sets = self.uneven(2, ADAM)
        self.train(self.run_yaml, "later", *sets, OTHER_DELAYS)
        self.assertTrue(got == self.bytes_of("later"), "it depends on the links")

    def test_three_boards(self):
        self.uneven(3, RMSPROP, "optimizer.momentum=0.9")

    def test_five_boards(self):
        self.uneven(5, ADAMW)

    def test_one_size_for_all_stages(self):
        """Then the cut does not matter."""
        want = None
        for boards, cut in self.CUTS.items():
            self.train(self.run_yaml, f"cut-{boards}", f"ring.boards={boards}", f"cut={cut}", *STEP,
                       "schedule={kind: umpipe, forward: 7, backward: 5}")
            want = want or self.bytes_of(f"cut-{boards}")
            self.assertTrue(want == self.bytes_of(f"cut-{boards}"), f"{boards} boards differ")

    def test_equal_sizes_are_gpipe(self):
        """Of steps that they divide, to the bit."""
        even = ("ring.boards=3", f"cut={self.CUTS[3]}", "train.batch=30", "train.microbatch=6")
        for schedule in ("gpipe", "umpipe", "{kind: umpipe, forward: 6, backward: [6, 6, 6]}"):
            self.train(self.run_yaml, schedule, f"schedule={schedule}", *even)
            self.assertTrue(self.bytes_of("gpipe") == self.bytes_of(schedule), schedule)

    def test_the_gradient_is_gpipes(self):
        for boards, optimizer in ((2, NESTEROV), (3, SGD), (5, SGD)):
            sets = (f"ring.boards={boards}", f"cut={self.CUTS[boards]}", optimizer, *STEP)
            self.train(self.run_yaml, f"gpipe-{boards}", "schedule=gpipe", *sets)
            self.train(self.run_yaml, f"sizes-{boards}",
                       "schedule=" + umpipe(*UNEVEN[boards]), *sets)
            want, got = (read_safetensors(self.dir / f"{name}-{boards}" / "weights.safetensors")
                         for name in ("gpipe", "sizes"))
            self.assertNotEqual(want, got)  # sums in another order
            for name, values in want.items():
                for a, b in zip(values, got[name]):
                    self.assertTrue(abs(a - b) < 1e-5, (boards, name, a, b))


class Statistics(Method):
    """Stages with batchnorm keep the microbatch, and the others are free."""

    def test_three_boards(self):
        self.same(3, umpipe("[8, 5, 8]", "[8, 13, 8]"), NESTEROV, *FOUR)

    def test_five_boards(self):
        self.same(5, umpipe("[3, 8, 8, 11, 32]", "[7, 8, 8, 32, 5]"), ADAM, *FOUR)


class Chain(Method):
    MODEL, CUTS = CHAIN, CHAIN_CUTS

    def test_eight_boards(self):
        for number, optimizer in enumerate((NESTEROV, ADAM)):
            with self.subTest(optimizer):
                forward = [(5 * k + 3 * number) % 32 + 1 for k in range(8)]
                backward = [(11 * k + 7 + number) % 32 + 1 for k in range(8)]
                self.same(8, umpipe(forward, backward), optimizer, *STEP)


if __name__ == "__main__":
    unittest.main()
