"""softmax and its logarithm along each axis. Some values are far below the others."""
import torch

from golden import values

CASES = ((1, (1,), None), (3, (31,), 0), (33, (65,), None), (2, (5, 33), 1), (2, (5, 33), 0),
         (3, (32, 1), 0), (2, (3, 4, 65), 1), (2, (3, 4, 65), None), (2, (31, 2, 3), 0),
         (2, (2, 3, 2, 5), 2))


def cases(f):
    for n, shape, axis in CASES:
        keys = {} if axis is None else {"axis": axis}
        dim = -1 if axis is None else axis + 1
        size = f"n{n}_{'x'.join(map(str, shape))}_" + ("last" if axis is None else str(axis))
        for kind, run in (("softmax", torch.softmax), ("logsoftmax", torch.log_softmax)):
            case = f"{kind}_{size}"
            x = values(f"{case}/x0", (n, *shape)) * 5
            if kind == "softmax":
                x.reshape(-1)[3::5] = -1e30
            f.layer(case, kind, keys, n, [shape], lambda xs, ps, r=run, d=dim: r(xs[0], d),
                    special={"x0": x})
