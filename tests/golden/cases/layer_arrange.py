import itertools

import torch

TRANSPOSED = ((1, (1,), (0,)), (3, (31, 33), (1, 0)), (2, (4, 5, 17), (0, 2, 1)),
              (2, (65, 1, 3), (2, 0, 1)), (3, (2, 3, 4, 5), (0, 2, 1, 3)),
              (2, (2, 3, 2, 3, 5), (4, 2, 0, 3, 1)))
RESHAPED = ((1, (1,), (1, 1)), (3, (6, 5), (2, 15)), (33, (65,), (5, 13)), (2, (2, 3, 4), (24,)))
EXPANDED = ((1, (1,), (5,)), (3, (1, 33), (4, 33)), (2, (31, 1), (31, 17)), (2, (5,), (3, 2, 5)),
            (2, (2, 1, 3, 1), (2, 4, 3, 5)), (3, (1,), (33, 65)), (2, (7, 3), (7, 3)))
PADDED = ((1, (1,), (0, 0), 0.0), (3, (31,), (1, 2), 0.5), (2, (4, 33), (0, 1, 2, 0), 0.0),
          (2, (2, 5, 7), (1, 0, 3, 0, 2, 1), -2.0), (33, (65,), (0, 31), 0.0))
GATHERED = ((1, (1,), 0, (0,)), (3, (31,), 0, (30, 0, 15)), (2, (5, 33), 0, (4, 3, 2, 1, 0)),
            (2, (5, 33), 1, tuple(range(0, 33, 2))), (3, (4, 65), 0, (2, 2, 0, 2)),
            (2, (3, 7, 5), 1, (6, 1, 3, 3, 0, 2, 4, 6)), (33, (32,), 0, (31, 31)),
            (2, (1, 9), 0, (0, 0, 0)))


def text(*shapes):
    return "_".join("x".join(map(str, s)) for s in shapes)


def padded(x, pads, value):
    half = len(pads) // 2
    pairs = itertools.chain.from_iterable((pads[i], pads[half + i]) for i in reversed(range(half)))
    return torch.nn.functional.pad(x, tuple(pairs), value=value)


def cases(f):
    for n, shape, perm in TRANSPOSED:
        f.layer(f"transpose_n{n}_{text(shape, perm)}", "transpose", {"perm": list(perm)}, n,
                [shape], lambda xs, ps, p=perm: xs[0].permute(0, *[i + 1 for i in p]))
    for n, shape, to in RESHAPED:
        f.layer(f"reshape_n{n}_{text(shape, to)}", "reshape", {"shape": list(to)}, n, [shape],
                lambda xs, ps, n=n, t=to: xs[0].reshape(n, *t))
    for n, shape, to in EXPANDED:
        f.layer(f"expand_n{n}_{text(shape, to)}", "expand", {"shape": list(to)}, n, [shape],
                lambda xs, ps, n=n, s=shape, t=to: xs[0].reshape(
                    n, *[1] * (len(t) - len(s)), *s).expand(n, *t))
    for n, shape, pads, value in PADDED:
        f.layer(f"pad_n{n}_{text(shape, pads)}", "pad", {"pads": list(pads), "value": value}, n,
                [shape], lambda xs, ps, p=pads, v=value: padded(xs[0], p, v))
    for n, shape, axis, indices in GATHERED:
        f.layer(f"gather_n{n}_{text(shape)}_{axis}_of{len(indices)}", "gather",
                {"axis": axis, "indices": list(indices)}, n, [shape],
                lambda xs, ps, a=axis, i=indices: xs[0].index_select(a + 1, torch.tensor(i)))
