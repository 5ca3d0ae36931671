"""Means, sums and maxima over axes, alone and with others between them."""
import numpy as np
import torch

from golden import values

CASES = ((1, (1,), (0,)), (3, (31,), (0,)), (33, (65,), (0,)), (2, (5, 33), (0,)),
         (2, (5, 33), (1,)), (3, (4, 5, 33), (1,)), (2, (4, 5, 33), (0, 2)),
         (2, (3, 32, 5), (0, 1)), (2, (3, 4, 5), None), (2, (2, 3, 2, 3, 5), (0, 2, 4)),
         (3, (2, 3, 2, 3, 17), (1, 3)), (2, (7, 1, 5), (1,)), (2, (1, 33), (0, 1)))


def first_largest(x, dims):
    """torch.max over several axes: the first of the largest in the order of the elements."""
    keep = [i for i in range(x.dim()) if i not in dims]
    flat = x.permute(*keep, *dims).reshape(*[x.shape[i] for i in keep], -1)
    # argmax of NumPy is that of the first
    at = torch.tensor(np.argmax(flat.detach().numpy(), -1)).unsqueeze(-1)
    return flat.gather(-1, at).squeeze(-1)


def cases(f):
    for n, shape, axes in CASES:
        dims = tuple(a + 1 for a in (axes if axes is not None else range(len(shape))))
        for keep in (False, True):
            keys = {"keep": keep} if axes is None else {"axes": list(axes), "keep": keep}
            out = [1 if i + 1 in dims else s for i, s in enumerate(shape)
                   if keep or i + 1 not in dims]
            size = f"n{n}_{'x'.join(map(str, shape))}_" + (
                "all" if axes is None else "".join(map(str, axes))) + ("_keep" if keep else "")

            def shaped(y, n=n, out=tuple(out)):
                return y.reshape(n, *(out or (1,)))
            f.layer(f"mean_{size}", "mean", keys, n, [shape],
                    lambda xs, ps, d=dims, s=shaped: s(xs[0].mean(d)))
            f.layer(f"sum_{size}", "sum", keys, n, [shape],
                    lambda xs, ps, d=dims, s=shaped: s(xs[0].sum(d)))
            case = f"max_{size}"
            f.layer(case, "max-over", keys, n, [shape],
                    lambda xs, ps, d=dims, s=shaped: s(first_largest(xs[0], d)),
                    special={"x0": np.round(values(f"{case}/x0", (n, *shape)) * 2) / 2})
