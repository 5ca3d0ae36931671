import torch

from groups import norms

CASES = ((1, (2,), {}, 0), (3, (1, 31), {}, 0), (5, (7, 33), {}, 2), (2, (32, 32), {"eps": 0.1}, 0),
         (2, (300, 5), {}, 0), (33, (65,), {}, 0), (3, (2, 5, 31), {"dims": 2}, 0),
         (2, (3, 4, 33), {"dims": 0, "eps": 0.01}, 0), (3, (4, 129), {"dims": 1}, 100))


def row(shape, keys):
    return shape[-(keys.get("dims", 1) or len(shape)):]


def norm(x, axes, weight, eps):
    """PyTorch 1.13 has no rms_norm; this is the formula of the later one."""
    squares = (x * x).mean(dim=tuple(range(-axes, 0)), keepdim=True)
    return x * torch.rsqrt(squares + eps) * weight


def cases(f):
    norms(f, "rmsnorm", CASES, row,
          lambda x, shape, keys, weight, bias: norm(x, len(row(shape, keys)), weight,
                                                    keys.get("eps", 1e-6)), ("weight",))
