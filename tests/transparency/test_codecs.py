"""Real agents whose boundaries have codecs (links.codec) end with the bytes of a replay in one
process that has its own codecs in plain C: replay_codec.c."""
import unittest

from test_methods import ADAM, DAMPENED, FOUR, Method, NESTEROV
from rings import few_when_short


class Codecs(Method):
    def test_one_named_for_each_hop(self):
        codecs = ("{activations: int8, gradients: int4}", "{activations: f16, gradients: int8}",
                  "int4", "{activations: int4, gradients: bf16}")
        got, sets = self.same(5, "1f1b", f"links.codec=[{', '.join(codecs)}]", DAMPENED, *FOUR)
        for i in range(4):
            less = [*codecs[:i], "f32", *codecs[i + 1:]]
            other = self.replay((*sets, f"links.codec=[{', '.join(less)}]"))
            self.assertFalse(got == other, f"{codecs[i]} of boundary {i} changes nothing")

    def test_schedules_without_flush(self):
        self.same(4, "pipedream", "links.codec=int8", NESTEROV)
        self.same(3, "pipeoptim", "links.codec={activations: int4, gradients: int8}", ADAM)


# Under a sanitizer, which makes a run slow.
load_tests = few_when_short("Codecs.test_one_named_for_each_hop")


if __name__ == "__main__":
    unittest.main()
