import torch.nn.functional as F

from groups import norms

CASES = ((1, (16, 1, 1), {"groups": 2}, 0), (3, (33,), {"groups": 1}, 0),
         (5, (34,), {"groups": 17}, 0), (2, (48,), {"groups": 3}, 2),
         (2, (6, 5, 7), {"groups": 1}, 0), (3, (6, 5, 7), {"groups": 3}, 0),
         (2, (4, 4, 4), {"groups": 4}, 0), (2, (31, 2, 3), {"groups": 1, "eps": 0.1}, 0),
         (3, (32, 7, 7), {"groups": 8}, 0), (2, (4, 31, 33), {"groups": 2}, 100),
         (530, (6,), {"groups": 3}, 0), (3, (2, 65, 65), {"groups": 2, "eps": 0.01}, 0))


def cases(f):
    norms(f, "groupnorm", CASES, lambda shape, keys: shape[:1],
          lambda x, shape, keys, weight, bias: F.group_norm(x, keys["groups"], weight, bias,
                                                            keys.get("eps", 1e-5)))
