import torch.nn.functional as F

# n, sample shape, scale, which may be [height, width]
CASES = ((1, (1, 1, 1), 2), (3, (2, 1, 31), 2), (2, (3, 5, 7), 2), (1, (2, 32, 33), 2),
         (1, (2, 65, 3), 2), (3, (2, 7, 33), 3), (2, (1, 3, 65), 4), (1, (31, 2, 2), 5),
         (2, (2, 3, 17), 1), (1, (1, 2, 9), 16), (3, (2, 1, 33), [1, 3]), (1, (2, 5, 7), [3, 1]),
         (2, (1, 4, 17), [2, 5]))


def cases(f):
    for n, shape, scale in CASES:
        for mode, align in (("nearest", None), ("bilinear", False), ("bilinear", True)):
            keys = {"scale": scale, "mode": mode, **({"align_corners": True} if align else {})}
            word = "x".join(map(str, scale)) if isinstance(scale, list) else scale
            f.layer(f"n{n}_" + "x".join(map(str, shape)) + f"_{mode}{word}" +
                    ("_corners" if align else ""), "upsample", keys, n, [shape],
                    lambda xs, ps: F.interpolate(xs[0], scale_factor=scale, mode=mode,
                                                 align_corners=align))
