"""What maxpool and avgpool share."""

# n, C, H, W, kernel, stride, pad
POOLS = ((1, 1, 4, 4, 2, 2, 0), (3, 5, 9, 7, 2, 2, 0), (2, 31, 8, 8, 2, 2, 0),
         (2, 3, 9, 9, 3, 2, 1), (1, 4, 7, 7, 3, 1, 1), (2, 2, 33, 33, 2, 2, 0),
         (1, 3, 11, 10, 3, 3, 0),
         (1, 2, 9, 11, 5, 2, 2), (33, 1, 2, 2, 2, 2, 0), (1, 2, 10, 10, 2, 3, 1),
         (1, 3, 20, 70, 2, 2, 0), (1, 2, 9, 70, 3, 2, 1))


def pools(f, kind, run):
    for n, c, h, w, kernel, stride, pad in POOLS:
        case = f"n{n}_c{c}_{h}x{w}_r{kernel}_s{stride}_p{pad}"
        keys = {"kernel": kernel, "stride": stride, "pad": pad}
        f.layer(case, kind, keys, n, [(c, h, w)], lambda xs, ps: run(xs[0], kernel, stride, pad))
