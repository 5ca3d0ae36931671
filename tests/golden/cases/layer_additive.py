import numpy as np
import torch

PADDING = 2
# n, T, S, U, M
SIZES = ((1, 1, 1, 1, 1), (3, 1, 31, 5, 33), (2, 31, 3, 33, 5), (4, 5, 7, 16, 16),
         (9, 4, 5, 65, 31))


def attend(xs, v, bias, keep):
    q, k, memory = xs[:3]
    bent = torch.tanh(q.unsqueeze(2) + k.unsqueeze(1) + bias)
    scores = (bent * v).sum(-1)
    seen = keep.unsqueeze(1).expand_as(scores)
    p = torch.where(seen, torch.exp(scores - scores.detach().amax(-1, keepdim=True)),
                    torch.zeros_like(scores))
    p = p / p.sum(-1, keepdim=True).clamp_min(1e-300)
    return p @ memory


def cases(f):
    for n, queries, keys, units, columns in SIZES:
        shapes = [(queries, units), (keys, units), (keys, columns)]
        case = f"n{n}_{queries}to{keys}_{units}_{columns}"
        every = torch.ones(n, keys, dtype=torch.bool)
        f.layer(case, "additive", {}, n, shapes,
                lambda xs, ps: attend(xs, ps["linear_att"], 0, every), {"linear_att": (units,)})
        ids = np.random.default_rng(keys).integers(0, 4, (n, keys))
        ids[n - 1] = PADDING  # the queries of the last sample see no key
        ids[0, 0] = 1
        f.layer(case + "_ids", "additive", {"normalise": True, "padding": PADDING}, n,
                [*shapes, (keys,)],
                lambda xs, ps: attend(
                    xs, ps["normalize_scalar"] * ps["linear_att"] / ps["linear_att"].norm(),
                    ps["normalize_bias"], xs[3] != PADDING),
                {"linear_att": (units,), "normalize_scalar": (1,), "normalize_bias": (units,)},
                ids={3: ids})
