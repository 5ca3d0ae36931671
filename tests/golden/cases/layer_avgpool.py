import torch.nn.functional as F

from pools import pools, rectangles


def cases(f):
    pools(f, "avgpool", F.avg_pool2d)
    rectangles(f, "avgpool", F.avg_pool2d)
    rectangles(f, "avgpool", F.avg_pool2d, {"count_include_pad": False}, "_inside")
    # stride by default the kernel
    f.layer("stride", "avgpool", {"kernel": [2, 3]}, 2, [(3, 8, 9)],
            lambda xs, ps: F.avg_pool2d(xs[0], (2, 3)))
    f.layer("counted", "avgpool", {"kernel": 3, "pad": 1, "count_include_pad": True}, 2,
            [(3, 8, 9)], lambda xs, ps: F.avg_pool2d(xs[0], 3, 3, 1))
