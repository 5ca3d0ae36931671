import torch.nn.functional as F

# n, C, H, W, out: bins of one size, of two, that share pixels, larger than the image
BINS = ((1, 1, 1, 1, (1, 1)), (3, 31, 8, 9, (7, 7)), (2, 32, 13, 10, (7, 7)),
        (33, 1, 6, 4, (3, 2)),
        (2, 33, 5, 7, (5, 7)), (1, 3, 32, 33, (1, 1)), (2, 3, 31, 33, (3, 2)),
        (2, 2, 7, 65, (4, 3)),
        (2, 5, 2, 3, (3, 7)), (1, 2, 1, 31, (1, 6)), (2, 3, 32, 1, (5, 1)), (1, 2, 9, 40, (2, 31)),
        (1, 1, 3, 33, (33, 32)))


def cases(f):
    for n, c, h, w, out in BINS:
        f.layer(f"n{n}_c{c}_{h}x{w}_{out[0]}x{out[1]}", "adaptiveavgpool", {"out": list(out)}, n,
                [(c, h, w)], lambda xs, ps: F.adaptive_avg_pool2d(xs[0], out))
    f.layer("square", "adaptiveavgpool", {"out": 3}, 2, [(2, 7, 8)],
            lambda xs, ps: F.adaptive_avg_pool2d(xs[0], 3))
