"""What groupnorm, layernorm and rmsnorm share."""
from golden import values

import numpy as np


def norms(f, kind, cases, affine, run, params=("weight", "bias")):
    """cases: n, sample shape, keys, offset added to x. affine(shape, keys): the shape of every one
    of `params`. run(x, shape, keys, weight, bias) -> y; without a parameter bias, bias is None."""
    for n, shape, keys, offset in cases:
        case = f"n{n}_" + "x".join(map(str, shape))
        case += "".join(f"_{key}{value}" for key, value in keys.items())
        case += f"_from{offset}" if offset else ""
        special = {}
        if offset:
            special["x0"] = values(case + "/x0", (n, *shape)) + np.float32(offset)
        f.layer(case, kind, keys, n, [shape],
                lambda xs, ps: run(xs[0], shape, keys, ps["weight"], ps.get("bias")),
                {k: affine(shape, keys) for k in params}, special=special)
