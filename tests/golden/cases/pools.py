"""What maxpool and avgpool share."""

# n, C, H, W, kernel, stride, pad
POOLS = ((1, 1, 4, 4, 2, 2, 0), (3, 5, 9, 7, 2, 2, 0), (2, 31, 8, 8, 2, 2, 0),
         (2, 3, 9, 9, 3, 2, 1), (1, 4, 7, 7, 3, 1, 1), (2, 2, 33, 33, 2, 2, 0),
         (1, 3, 11, 10, 3, 3, 0),
         (1, 2, 9, 11, 5, 2, 2), (33, 1, 2, 2, 2, 2, 0), (1, 2, 10, 10, 2, 3, 1),
         (1, 3, 20, 70, 2, 2, 0), (1, 2, 9, 70, 3, 2, 1))

# n, C, H, W, kernel, stride, pad, ceil; pairs are height, width
RECTANGLES = ((3, 5, 9, 7, (1, 3), (1, 3), (0, 0), False),
              (2, 31, 8, 5, (3, 1), (2, 1), (1, 0), False),
              (1, 3, 7, 33, (2, 3), (2, 1), (1, 0), False),
              (33, 1, 4, 3, (2, 1), (1, 2), (0, 0), False),
              (2, 2, 9, 70, (3, 2), (2, 2), (1, 1), False),
              (1, 2, 20, 32, (2, 2), (1, 2), (0, 0), False),
              (2, 2, 5, 31, (1, 2), (3, 2), (0, 1), False),
              (1, 2, 3, 40, (1, 20), (1, 1), (0, 10), False),
              # overlapping windows
              (2, 3, 9, 8, (3, 3), (1, 1), (1, 1), False),
              (2, 2, 7, 33, (5, 3), (2, 1), (2, 1), False),
              # ceil mode: a last window that reaches over the end, or would begin behind it
              (3, 5, 8, 6, (3, 3), (2, 2), (0, 0), True),
              (2, 3, 9, 7, (2, 2), (2, 2), (0, 0), True),
              (2, 3, 7, 33, (2, 2), (2, 2), (0, 0), True),
              (1, 2, 3, 69, (2, 2), (2, 2), (0, 0), True),
              (2, 31, 6, 5, (3, 3), (2, 2), (1, 1), True),
              (2, 2, 6, 7, (2, 2), (3, 3), (1, 1), True),
              (2, 3, 8, 9, (3, 2), (2, 3), (1, 0), True),
              (1, 3, 5, 4, (2, 3), (5, 2), (0, 1), True),
              (1, 2, 1, 2, (2, 3), (2, 2), (0, 0), True),
              (33, 1, 3, 32, (3, 3), (2, 2), (0, 1), True))


def rectangles(f, kind, run, more=None, word=""):
    """`more`: further arguments of both, `word` says it in the name."""
    more = more or {}
    for n, c, h, w, kernel, stride, pad, ceil in RECTANGLES:
        words = ("{}x{}".format(*pair) for pair in ((h, w), kernel, stride, pad))
        case = "n{}_c{}_{}_r{}_s{}_p{}".format(n, c, *words) + ("_ceil" if ceil else "") + word
        keys = {"kernel": list(kernel), "stride": list(stride), "pad": list(pad), **more}
        if ceil:
            keys["ceil_mode"] = True
        f.layer(case, kind, keys, n, [(c, h, w)],
                lambda xs, ps: run(xs[0], kernel, stride, pad, ceil_mode=ceil, **more))


def pools(f, kind, run):
    for n, c, h, w, kernel, stride, pad in POOLS:
        case = f"n{n}_c{c}_{h}x{w}_r{kernel}_s{stride}_p{pad}"
        keys = {"kernel": kernel, "stride": stride, "pad": pad}
        f.layer(case, kind, keys, n, [(c, h, w)], lambda xs, ps: run(xs[0], kernel, stride, pad))
