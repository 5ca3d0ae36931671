import numpy as np
import torch

PADDING = 2
# n, T, C
SIZES = ((1, 1, 1), (3, 1, 33), (2, 31, 5), (5, 32, 32), (9, 5, 65))


def pool(x, keep, mode):
    """Sample by sample over the steps that count."""
    rows = []
    for sample, mask in zip(x, keep):
        left = sample[mask]
        if len(left) == 0:
            rows.append(sample[0] * 0)
        elif mode in ("mean", "max"):
            rows.append(left.mean(0) if mode == "mean" else left.max(0).values)
        else:
            rows.append(left[-1 if mode == "last" else 0])
    return torch.stack(rows)


def cases(f):
    for mode in ("mean", "max", "last", "first"):
        for n, steps, columns in SIZES:
            case = f"{mode}_n{n}_{steps}x{columns}"
            every = torch.ones(n, steps, dtype=torch.bool)
            f.layer(case, "seqpool", {"mode": mode}, n, [(steps, columns)],
                    lambda xs, ps: pool(xs[0], every, mode))
            ids = np.random.default_rng(steps).integers(0, 4, (n, steps))
            ids[n - 1] = PADDING  # the last sample has nothing that counts
            if steps > 1:
                ids[0, 0] = ids[0, steps - 1] = PADDING
            f.layer(case + "_ids", "seqpool", {"mode": mode, "padding": PADDING}, n,
                    [(steps, columns), (steps,)],
                    lambda xs, ps: pool(xs[0], xs[1] != PADDING, mode), ids={1: ids})
