"""Functions of two operands, broadcast in each direction, and where."""
import numpy as np
import torch

from golden import values

# n, shapes of the operands
PAIRS = ((1, (1,), (1,)), (3, (31,), (31,)), (33, (65,), (65,)), (2, (3, 5, 33), (3, 5, 33)),
         (2, (5, 33), (33,)), (3, (33,), (5, 33)), (2, (5, 1), (5, 33)), (2, (4, 33), (1, 1)),
         (3, (1, 7), (31, 1)), (2, (3, 1, 65), (4, 1)), (2, (2, 3, 1, 5), (1, 3, 4, 1)),
         (3, (2, 1, 3, 1, 17), (4, 1, 2, 17)), (2, (1,), (32, 16)))
COMPUTED = {"div": torch.div, "min": torch.minimum, "max": torch.maximum}
MASKS = {"equal": torch.eq, "less": torch.lt, "greater": torch.gt, "and": torch.logical_and,
         "or": torch.logical_or}
TRIPLES = ((3, (33,), (33,), (33,)), (2, (1, 7), (5, 7), (5, 1)), (2, (3, 1, 1), (4, 5), (1,)))


def together(xs):
    """The same shape in all operands: missing axes come after the batch."""
    most = max(x.dim() for x in xs)
    return [x.reshape(x.shape[0], *[1] * (most - x.dim()), *x.shape[1:]) for x in xs]


def coarse(case, i, n, shape):
    """Quarters, so that some values are equal, and 0."""
    return np.round(values(f"{case}/x{i}", (n, *shape)) * 4) / 4


def away(case, i, n, shape):
    x = values(f"{case}/x{i}", (n, *shape))
    return np.sign(x) * (np.abs(x) + 0.25)


def mask(run, xs):
    return run(*xs).double() + 0 * sum(xs)


def cases(f):
    for n, a, b in PAIRS:
        size = f"n{n}_{'x'.join(map(str, a))}_{'x'.join(map(str, b))}"
        f.layer(f"sub_{size}", "sub", {}, n, [a, b],
                lambda xs, ps: torch.sub(*together(xs)))
        for kind, run in COMPUTED.items():
            case = f"{kind}_{size}"
            special = {"x1": away(case, 1, n, b)} if kind == "div" else {
                f"x{i}": coarse(case, i, n, s) for i, s in enumerate((a, b))}
            f.layer(case, kind, {}, n, [a, b], lambda xs, ps, r=run: r(*together(xs)),
                    special=special)
        for kind, run in MASKS.items() if (n, a, b) in PAIRS[1::4] else ():
            case = f"{kind}_{size}"
            f.layer(case, kind, {}, n, [a, b], lambda xs, ps, r=run: mask(r, together(xs)),
                    special={f"x{i}": coarse(case, i, n, s) for i, s in enumerate((a, b))})
    for n, *shapes in TRIPLES:
        case = f"where_n{n}_" + "_".join("x".join(map(str, s)) for s in shapes)

        def pick(xs, ps):
            c, a, b = together(xs)
            return torch.where(c != 0, a, b) + 0 * c
        f.layer(case, "where", {}, n, shapes, pick,
                special={"x0": np.round(values(f"{case}/x0", (n, *shapes[0])))})
