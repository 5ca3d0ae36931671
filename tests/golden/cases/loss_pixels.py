"""A class for each pixel: outputs [K, H, W], targets [H, W], of which 255 does not count."""
import torch.nn.functional as F
import torch

from golden import double, values

FILE = "pixels"
IGNORE = 255

CASES = ((1, 1, (1, 1), 0), (1, 2, (1, 1), 0), (2, 3, (4, 4), 0), (3, 5, (5, 7), 0.1),
         (2, 21, (9, 8), 0), (1, 3, (16, 17), 0.3))


def cases(f):
    for n, k, (h, w), smooth in CASES:
        for ignores in (False, True):
            case = f"n{n}_k{k}_{h}x{w}" + "_ignore" * ignores
            y = double(values(case + "/y", (n, k, h, w)) * 8).requires_grad_()
            target = (torch.arange(n * h * w) * 7 + 3).reshape(n, h, w) % k
            if ignores and h * w > 1:
                target[:, 1::2, ::3] = IGNORE
                target[0, 0] = IGNORE
            each = F.cross_entropy(y, target, reduction="none", label_smoothing=smooth,
                                   ignore_index=IGNORE)
            F.cross_entropy(y, target, label_smoothing=smooth, ignore_index=IGNORE).backward()
            f.loss(case, n, k, y, target.float(), each.sum((1, 2)), rows=h * w,
                   label_smoothing=smooth, **({"ignore": IGNORE} if ignores else {}))
