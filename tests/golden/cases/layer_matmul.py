import torch

# n, a, b as it is without transpose
CASES = ((1, (1, 1), (1, 1)), (3, (31, 5), (5, 33)), (2, (32, 65), (65, 1)), (2, (1, 33), (33, 32)),
         (2, (3, 5, 7), (3, 7, 4)), (2, (3, 5, 7), (7, 4)), (3, (5, 7), (3, 7, 4)),
         (2, (2, 1, 5, 3), (4, 3, 2)), (2, (1, 5, 3), (2, 3, 33)), (33, (2, 3), (3, 2)),
         (2, (2, 3, 4, 5), (2, 3, 5, 6)))


def batched(a, b):
    most = max(a.dim(), b.dim())
    a, b = (x.reshape(x.shape[0], *[1] * (most - x.dim()), *x.shape[1:]) for x in (a, b))
    return torch.matmul(a, b)


def cases(f):
    for n, a, b in CASES:
        size = f"n{n}_{'x'.join(map(str, a))}_{'x'.join(map(str, b))}"
        f.layer(size, "matmul", {}, n, [a, b], lambda xs, ps: batched(xs[0], xs[1]))
        turned = (*b[:-2], b[-1], b[-2])
        f.layer(f"{size}_transposed", "matmul", {"transpose": True}, n, [a, turned],
                lambda xs, ps: batched(xs[0], xs[1].transpose(-1, -2)))
