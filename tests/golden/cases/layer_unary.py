"""Functions of one element. Arguments of log, sqrt, pow and reciprocal are above 0.25, and the
values drawn for clip have its bounds among them."""
import numpy as np
import torch

from golden import values

SHAPES = ((1, (1,)), (3, (31,)), (2, (5, 33)), (33, (5,)), (2, (65,)))
POSITIVE = {"log": torch.log, "sqrt": torch.sqrt, "reciprocal": torch.reciprocal}
ANY = {"neg": torch.neg, "abs": torch.abs, "exp": torch.exp, "erf": torch.erf}
POWERS = (0.5, -1.5, 2.0, 3.0, 0.0, 1.0)
KINKS = (-0.5, 0.0, 0.25)


def positive(case, n, shape):
    return np.abs(values(f"{case}/x0", (n, *shape))) * 2 + 0.25


def with_kinks(case, n, shape):
    x = values(f"{case}/x0", (n, *shape)).reshape(-1)
    for i, at in enumerate(KINKS):
        x[i::7] = at
    return x


def masked(condition, x):
    """A mask as numbers; its gradient is 0."""
    return condition.double() + 0 * x


def cases(f):
    for n, shape in SHAPES:
        size = f"n{n}_" + "x".join(map(str, shape))
        for kind, run in ANY.items():
            case = f"{kind}_{size}"
            f.layer(case, kind, {}, n, [shape], lambda xs, ps, r=run: r(xs[0]),
                    special={"x0": with_kinks(case, n, shape)})
        for kind, run in POSITIVE.items():
            case = f"{kind}_{size}"
            f.layer(case, kind, {}, n, [shape], lambda xs, ps, r=run: r(xs[0]),
                    special={"x0": positive(case, n, shape)})
        case = f"not_{size}"
        f.layer(case, "not", {}, n, [shape], lambda xs, ps: masked(xs[0] == 0, xs[0]),
                special={"x0": with_kinks(case, n, shape)})
        f.layer(f"isnan_{size}", "isnan", {}, n, [shape],
                lambda xs, ps: masked(torch.isnan(xs[0]), xs[0]))
        # torch.clamp gives a gradient at the bounds, torch.nn.Hardtanh does not
        case = f"clip_{size}"
        f.layer(case, "clip", {"min": -0.5, "max": 0.25}, n, [shape],
                lambda xs, ps: torch.nn.functional.hardtanh(xs[0], -0.5, 0.25),
                special={"x0": with_kinks(case, n, shape)})
    for power in POWERS:
        case = f"pow_{power}"
        f.layer(case, "pow", {"exponent": power}, 3, [(5, 7)],
                lambda xs, ps, p=power: xs[0]**p + 0 * xs[0],
                special={"x0": positive(case, 3, (5, 7))})
    f.layer("pow_of_any", "pow", {"exponent": 3.0}, 2, [(37,)], lambda xs, ps: xs[0]**3)
    f.layer("square_of_any", "pow", {"exponent": 2.0}, 2, [(37,)], lambda xs, ps: xs[0]**2)
    f.layer("clip_below", "clip", {"min": 0.125}, 2, [(37,)], lambda xs, ps: xs[0].clamp(min=0.125))
    f.layer("clip_above", "clip", {"max": 0.125}, 2, [(37,)], lambda xs, ps: xs[0].clamp(max=0.125))
