import numpy as np
import torch.nn.functional as F

from golden import double, values

FILE = "loss"


def cases(f):
    for n, k in ((1, 1), (3, 31), (2, 32), (5, 33), (33, 65), (2, 1000)):
        case = f"mse_n{n}_k{k}"
        y = double(values(case + "/y", (n, k)) * np.float32(3)).requires_grad_()
        target = double(values(case + "/t", (n, k)))
        F.mse_loss(y, target).backward()
        f.loss(case, n, k, y, target, ((y - target) ** 2).mean(1))
