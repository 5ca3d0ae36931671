import numpy as np
import torch.nn.functional as F

# n, sample shape, count, out, padding
CASES = ((1, (1,), 1, 1, None), (1, (1,), 5, 16, None), (3, (31,), 7, 31, 0), (2, (32,), 33, 32, 5),
         (5, (33,), 3, 33, None), (33, (5,), 100, 65, 99), (4, (65,), 65, 3, 1),
         (2, (3, 7), 11, 17, 2), (7, (2, 3, 5), 4, 1, None))


def cases(f):
    for n, shape, count, out, padding in CASES:
        case = f"n{n}_" + "x".join(map(str, shape)) + f"_of{count}_{out}"
        ids = np.random.default_rng(count).integers(0, count, (n, *shape))
        keys = {"count": count, "out": out}
        if padding is not None:
            case += f"_pad{padding}"
            keys["padding"] = padding
        f.layer(case, "embedding", keys, n, [shape],
                lambda xs, ps: F.embedding(xs[0], ps["weight"], padding_idx=padding),
                {"weight": (count, out)}, ids={0: ids})
