import torch

CASES = ((1, 1, 1), (3, 1, 31), (2, 31, 5), (5, 32, 32), (33, 5, 33), (4, 7, 65))


def cases(f):
    for n, steps, columns in CASES:
        f.layer(f"n{n}_{steps}x{columns}", "prepend", {}, n, [(steps, columns)],
                lambda xs, ps: torch.cat([ps["weight"].expand(n, 1, columns), xs[0]], 1),
                {"weight": (columns,)})
