"""Smoothed labels, and targets that are probabilities. torch 1.13 takes both at once, too."""
import numpy as np
import torch
import torch.nn.functional as F

from golden import double, values


def targets(case, n, k):
    """Rows as mixup makes them, one row of any sort, and one that is all in one place."""
    t = torch.softmax(double(values(case + "/t", (n, k)) * np.float32(4)), 1)
    t[0] = 0
    t[0, (3 * k) // 4] = 1
    if n > 1:
        t[1] = 0
        t[1, k // 3] += 0.3
        t[1, k - 1] += 0.7
    return t.float().double()


def cases(f):
    for n, k, smooth in ((1, 2, 0.1), (3, 10, 0.1), (5, 31, 0.5), (3, 33, 1.0), (2, 1000, 0.05)):
        case = f"cross-entropy_n{n}_k{k}_s{smooth}"
        y = double(values(case + "/y", (n, k)) * np.float32(20)).requires_grad_()
        target = (torch.arange(n) * 7 + 3) % k
        loss = F.cross_entropy(y, target, reduction="none", label_smoothing=smooth)
        loss.mean().backward()
        f.loss(case, n, k, y, target.float(), loss, label_smoothing=smooth)
    for n, k, smooth in ((1, 1, 0), (3, 10, 0), (5, 31, 0), (4, 33, 0.1), (2, 1000, 0.3)):
        case = f"soft-cross-entropy_n{n}_k{k}_s{smooth}"
        y = double(values(case + "/y", (n, k)) * np.float32(20)).requires_grad_()
        target = targets(case, n, k)
        loss = F.cross_entropy(y, target, reduction="none", label_smoothing=smooth)
        loss.mean().backward()
        f.loss(case, n, k, y, target, loss, label_smoothing=smooth)
