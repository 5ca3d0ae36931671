import torch.nn.functional as F

# n, C, H, W, K, kernel, stride, pad, output_pad, groups, bias
CASES = ((1, 1, 1, 1, 1, 1, 1, 0, 0, 1, True), (2, 3, 5, 6, 4, 3, 1, 1, 0, 1, True),
         (3, 31, 4, 3, 5, 2, 2, 0, 0, 1, True), (2, 5, 3, 4, 33, 3, 2, 1, 1, 1, True),
         (2, 32, 3, 3, 31, 4, 2, 1, 0, 1, False), (1, 65, 2, 2, 32, 1, 1, 0, 0, 1, True),
         (2, 4, 3, 3, 6, 2, 3, 0, 2, 1, True), (2, 6, 5, 4, 9, 3, 1, 0, 0, 3, True),
         (2, 8, 4, 5, 8, 3, 2, 1, 1, 8, True), (1, 16, 3, 3, 32, 3, 2, 1, 0, 2, False),
         (2, 4, 3, 17, 6, 5, 2, 2, 1, 2, True), (1, 2, 2, 33, 3, 3, 1, 1, 0, 1, True),
         (33, 1, 3, 3, 2, 2, 2, 0, 0, 1, True), (2, 3, 4, 4, 2, 1, 2, 0, 1, 1, True),
         (1, 8, 1, 1, 4, 4, 1, 0, 0, 4, True))

# n, C, H, W, K, kernel, stride, pad, output_pad, groups, bias; pairs are height, width
RECTANGLES = ((3, 5, 1, 17, 7, (1, 4), (1, 2), (0, 1), (0, 0), 1, True),
              (1, 31, 1, 9, 33, (1, 3), (1, 1), (0, 1), (0, 0), 1, False),
              (2, 4, 1, 6, 6, (1, 5), (1, 3), (0, 2), (0, 2), 2, True),
              (2, 8, 1, 5, 8, (1, 4), (1, 4), (0, 0), (0, 0), 8, True),
              (2, 3, 4, 5, 4, (2, 3), (3, 2), (0, 1), (1, 0), 1, True),
              (33, 1, 3, 2, 2, (3, 1), (1, 1), (1, 0), (0, 0), 1, True))


def rectangles(f):
    for n, c, h, w, k, (r, s), stride, pad, output_pad, groups, bias in RECTANGLES:
        def conv(xs, ps):
            return F.conv_transpose2d(xs[0], ps["weight"], ps.get("bias"), stride, pad, output_pad,
                                      groups)

        words = ("{}x{}".format(*pair) for pair in ((h, w), (r, s), stride, pad, output_pad))
        case = "n{}_c{}_{}_k{}_r{}_s{}_p{}_o{}_g{}".format(n, c, next(words), k, *words, groups)
        params = {"weight": (c, k // groups, r, s)}
        if bias:
            params["bias"] = (k,)
        keys = {"out": k, "kernel": [r, s], "stride": list(stride), "pad": list(pad),
                "output_pad": list(output_pad), "groups": groups, "bias": bias}
        f.layer(case, "convtranspose2d", keys, n, [(c, h, w)], conv, params)


def cases(f):
    for n, c, h, w, k, r, stride, pad, output_pad, groups, bias in CASES:
        params = {"weight": (c, k // groups, r, r)}
        if bias:
            params["bias"] = (k,)
        keys = {"out": k, "kernel": r, "stride": stride, "pad": pad, "output_pad": output_pad,
                "groups": groups, "bias": bias}
        f.layer(f"n{n}_c{c}_{h}x{w}_k{k}_r{r}_s{stride}_p{pad}_o{output_pad}_g{groups}",
                "convtranspose2d", keys, n, [(c, h, w)],
                lambda xs, ps: F.conv_transpose2d(xs[0], ps["weight"], ps.get("bias"), stride, pad,
                                                  output_pad, groups), params)
    rectangles(f)
