import torch.nn.functional as F

# n, sample shape, shared
CASES = ((1, (1,), False), (3, (31,), False), (1, (33,), True), (33, (5, 32), False),
         (2, (65, 3), False), (2, (7, 33), True), (3, (3, 5, 7), False), (5, (33, 1, 1), False),
         (2, (2, 31, 33), True), (560, (2, 3, 5), False), (9, (65, 5), False))


def prelu(x, weight, shape):
    """torch takes axis 1 of [N, C, ..] for channels; here it is the last one but for images."""
    if len(shape) == 2 and len(weight) > 1:
        return F.prelu(x.transpose(1, 2), weight).transpose(1, 2)
    return F.prelu(x, weight)


def cases(f):
    for n, shape, shared in CASES:
        case = f"n{n}_" + "x".join(map(str, shape)) + ("_shared" if shared else "")
        channels = 1 if shared else shape[0] if len(shape) == 3 else shape[-1]
        f.layer(case, "prelu", {"shared": True} if shared else {}, n, [shape],
                lambda xs, ps: prelu(xs[0], ps["weight"], shape), {"weight": (channels,)})
