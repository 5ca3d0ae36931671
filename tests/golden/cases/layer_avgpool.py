import torch.nn.functional as F

from pools import pools


def cases(f):
    pools(f, "avgpool", F.avg_pool2d)
