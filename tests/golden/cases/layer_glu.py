import torch.nn.functional as F

from golden import values

import numpy as np

CASES = ((1, (2,)), (3, (62,)), (2, (5, 64)), (5, (3, 66)), (2, (7, 130)), (2, (3, 5, 14)))


def cases(f):
    for n, shape in CASES:
        case = f"n{n}_" + "x".join(map(str, shape))
        for wide in (1, 12):
            name = case + ("_wide" if wide > 1 else "")
            f.layer(name, "glu", {}, n, [shape], lambda xs, ps: F.glu(xs[0]),
                    special={"x0": values(name, (n, *shape)) * np.float32(wide)})
