"""Real agents whose boundaries have codecs (links.codec) end with the bytes of a replay in one
process that has its own codecs in plain C: replay_codec.c. So do aqsgd4 and aqsgd2, which send
changes of samples that both ends of a hop remember."""
import unittest

from test_methods import ADAM, DAMPENED, FOUR, Method, NESTEROV
from rings import few_when_short

REMEMBERED = "links.codec={activations: aqsgd%d, gradients: int8}"


class Codecs(Method):
    def remembered(self, boards, schedule, bits, *sets):
        """Three epochs of changes behind the first. With one epoch aqsgd is int8, no longer."""
        epochs = "train.epochs=4"
        got, sets = self.same(boards, schedule, REMEMBERED % bits, epochs, *sets)
        int8 = "links.codec=int8"
        self.assertFalse(got == self.replay((*sets, int8)), "nothing was sent as a change")
        first = "train.epochs=1"
        self.assertTrue(self.replay((*sets, first)) == self.replay((*sets, first, int8)))
        other = REMEMBERED % (6 - bits)
        self.assertFalse(got == self.replay((*sets, other)), "aqsgd4 is the same as aqsgd2")

    def test_aqsgd4(self):
        self.remembered(4, "1f1b", 4, NESTEROV, *FOUR)

    def test_aqsgd2(self):
        self.remembered(3, "gpipe", 2, ADAM, *FOUR)

    def test_one_named_for_each_hop(self):
        codecs = ("{activations: aqsgd2, gradients: int4}", "{activations: f16, gradients: int8}",
                  "int4", "{activations: aqsgd4, gradients: bf16}")
        got, sets = self.same(5, "1f1b", f"links.codec=[{', '.join(codecs)}]", DAMPENED, *FOUR)
        for i in range(4):
            less = [*codecs[:i], "f32", *codecs[i + 1:]]
            other = self.replay((*sets, f"links.codec=[{', '.join(less)}]"))
            self.assertFalse(got == other, f"{codecs[i]} of boundary {i} changes nothing")

    def test_schedules_without_flush(self):
        self.same(4, "pipedream", "links.codec=int8", NESTEROV)
        self.same(3, "pipeoptim", "links.codec={activations: int4, gradients: int8}", ADAM)


# Under a sanitizer, which makes a run slow.
load_tests = few_when_short("Codecs.test_aqsgd2")


if __name__ == "__main__":
    unittest.main()
