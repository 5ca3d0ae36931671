import torch.nn.functional as F

from groups import norms

CASES = ((1, (3,), {}, 0), (3, (16,), {}, 0), (5, (65,), {}, 3), (33, (31,), {"eps": 0.1}, 0),
         (530, (5,), {}, 0), (2, (32, 1, 1), {}, 0), (3, (3, 5, 7), {}, 0),
         (2, (7, 33), {}, 100), (2, (4, 31, 33), {"eps": 0.01}, 0))


def cases(f):
    norms(f, "layernorm", CASES, lambda shape: shape,
          lambda x, shape, keys, weight, bias: F.layer_norm(x, shape, weight, bias,
                                                            keys.get("eps", 1e-5)))
