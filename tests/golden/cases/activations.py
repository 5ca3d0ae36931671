"""What the activations share."""
import numpy as np

from golden import values

SIZES = ((1, (1,)), (3, (31,)), (2, (32,)), (1, (33,)), (5, (65,)), (2, (3, 5, 7)))


def activations(f, kind, keys, run):
    for n, shape in SIZES:
        case = f"n{n}_" + "x".join(map(str, shape))
        f.layer(case, kind, keys, n, [shape], lambda xs, ps: run(xs[0]))
        if shape == (1,):
            continue  # saturated and alone, 1 - y^2 has no digits to compare
        wide = values(case + "_wide", (n, *shape)) * np.float32(12)
        f.layer(case + "_wide", kind, keys, n, [shape], lambda xs, ps: run(xs[0]),
                special={"x0": wide})
