import torch.nn.functional as F

from groups import norms

CASES = ((1, (3,), {}, 0), (3, (16,), {}, 0), (5, (65,), {}, 3), (33, (31,), {"eps": 0.1}, 0),
         (530, (5,), {}, 0), (2, (32, 1, 1), {}, 0), (3, (3, 5, 7), {}, 0),
         (2, (7, 33), {}, 100), (2, (4, 31, 33), {"eps": 0.01}, 0),
         (1, (1, 31), {"dims": 1}, 0), (3, (7, 33), {"dims": 1}, 3), (2, (32, 32), {"dims": 1}, 0),
         (2, (300, 5), {"dims": 1, "eps": 1e-12}, 0), (3, (5, 65), {"dims": 2}, 0),
         (2, (3, 4, 31), {"dims": 2, "eps": 0.1}, 0), (2, (2, 3, 5, 7), {"dims": 1}, 0))


def row(shape, keys):
    return shape[-keys.get("dims", len(shape)):]


def cases(f):
    norms(f, "layernorm", CASES, row,
          lambda x, shape, keys, weight, bias: F.layer_norm(x, row(shape, keys), weight, bias,
                                                            keys.get("eps", 1e-5)))
