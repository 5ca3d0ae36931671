import torch.nn.functional as F

from activations import SIZES
from golden import values

import numpy as np


def cases(f):
    for n, shape in SIZES:
        case = f"n{n}_" + "x".join(map(str, shape))
        for wide in (1, 12):
            name = case + ("_wide" if wide > 1 else "")
            f.layer(name, "swiglu", {}, n, [shape, shape],
                    lambda xs, ps: F.silu(xs[0]) * xs[1],
                    special={"x0": values(name, (n, *shape)) * np.float32(wide)})
