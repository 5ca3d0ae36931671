import torch.nn.functional as F

from golden import values
from pools import pools, rectangles


def cases(f):
    pools(f, "maxpool", F.max_pool2d)
    # few levels: many windows have several largest elements
    x = (values("ties", (2, 3, 9, 9)) * 2).round()
    f.layer("ties", "maxpool", {"kernel": 3, "stride": 2, "pad": 1}, 2, [(3, 9, 9)],
            lambda xs, ps: F.max_pool2d(xs[0], 3, 2, 1), special={"x0": x})
    f.layer("ties_tiles", "maxpool", {"kernel": 2}, 2, [(3, 9, 9)],
            lambda xs, ps: F.max_pool2d(xs[0], 2), special={"x0": x})
    rectangles(f, "maxpool", F.max_pool2d)
    f.layer("ties_rectangle", "maxpool",
            {"kernel": [2, 3], "stride": 2, "pad": [1, 0], "ceil_mode": True}, 2, [(3, 9, 9)],
            lambda xs, ps: F.max_pool2d(xs[0], (2, 3), 2, (1, 0), ceil_mode=True),
            special={"x0": x})
