import torch

# n, T, C; a step of the longest turns the first wave 159 times
CASES = ((1, 1, 1), (3, 1, 31), (2, 31, 2), (5, 32, 32), (2, 5, 33), (4, 7, 65), (1, 1001, 16))


def waves(steps, columns):
    out = torch.zeros(steps, columns, dtype=torch.float64)
    t = torch.arange(steps, dtype=torch.float64)[:, None]
    angle = t / 10000 ** (torch.arange(0, columns, 2, dtype=torch.float64) / columns)
    out[:, 0::2] = torch.sin(angle)
    out[:, 1::2] = torch.cos(angle[:, :columns // 2])
    return out


def cases(f):
    for n, steps, columns in CASES:
        f.layer(f"n{n}_{steps}x{columns}", "sinusoid", {}, n, [(steps, columns)],
                lambda xs, ps: xs[0] + waves(steps, columns))
