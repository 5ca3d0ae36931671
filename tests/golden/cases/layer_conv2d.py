import torch.nn.functional as F

# n, C, H, W, K, kernel, stride, pad, dilation, groups, bias
CONVS = ((1, 1, 5, 5, 1, 3, 1, 1, 1, 1, True), (3, 3, 8, 9, 33, 3, 1, 1, 1, 1, True),
         (2, 31, 7, 6, 32, 3, 1, 1, 1, 1, False), (2, 33, 5, 5, 65, 1, 1, 0, 1, 1, True),
         (2, 16, 9, 9, 17, 1, 2, 0, 1, 1, False), (2, 8, 9, 8, 16, 3, 2, 1, 1, 1, True),
         (1, 3, 11, 11, 31, 5, 1, 2, 1, 1, True), (2, 2, 12, 13, 6, 5, 3, 1, 1, 1, True),
         (2, 4, 9, 11, 8, 3, 1, 2, 2, 1, True), (1, 5, 12, 12, 7, 3, 2, 3, 3, 1, True),
         (2, 6, 7, 7, 9, 3, 1, 1, 1, 3, True), (1, 64, 5, 5, 64, 3, 2, 1, 1, 2, False),
         (2, 32, 8, 7, 32, 3, 1, 1, 1, 32, True), (2, 31, 9, 9, 31, 3, 2, 1, 1, 31, False),
         (1, 8, 8, 9, 8, 5, 1, 2, 1, 8, True), (2, 6, 9, 9, 12, 3, 1, 2, 2, 6, True),
         (1, 3, 40, 37, 5, 3, 1, 0, 1, 1, True), (65, 1, 4, 4, 3, 2, 1, 0, 1, 1, True),
         (1, 4, 3, 3, 4, 3, 1, 0, 1, 4, True), (2, 3, 6, 6, 4, 4, 4, 0, 1, 1, True),
         (1, 4, 7, 33, 4, 3, 3, 1, 1, 4, True),
         # the smallest, and wide rows: whole vectors of 16 with a tail
         (1, 1, 1, 1, 1, 1, 1, 0, 1, 1, True), (2, 3, 1, 1, 5, 3, 1, 1, 1, 1, True),
         (1, 1, 3, 5, 2, 3, 2, 1, 1, 1, True), (1, 2, 3, 17, 2, 3, 1, 1, 1, 2, True),
         (1, 3, 3, 33, 3, 3, 2, 1, 1, 3, True), (2, 2, 5, 15, 4, 5, 2, 2, 1, 2, False),
         (1, 4, 1, 1, 4, 1, 1, 0, 1, 4, True))

# n, C, H, W, K, kernel, stride, pad, dilation, groups, bias; pairs are height, width
RECTANGLES = ((3, 5, 4, 17, 7, (1, 7), (1, 1), (0, 3), (1, 1), 1, True),
              (1, 31, 9, 5, 33, (7, 1), (1, 1), (3, 0), (1, 1), 1, False),
              (1, 3, 32, 3, 31, (1, 3), (1, 1), (0, 1), (1, 1), 1, True),
              (2, 32, 5, 6, 1, (3, 1), (1, 1), (1, 0), (1, 1), 1, True),
              (33, 1, 3, 5, 2, (2, 3), (1, 1), (1, 0), (1, 1), 1, True),
              # strides, dilations and pads that differ
              (3, 4, 11, 8, 6, (3, 3), (2, 1), (1, 1), (1, 1), 1, True),
              (2, 4, 8, 13, 6, (3, 3), (1, 3), (1, 1), (1, 1), 1, False),
              (2, 3, 9, 12, 5, (3, 3), (1, 1), (2, 1), (2, 1), 1, True),
              (2, 6, 10, 13, 9, (2, 4), (3, 2), (1, 2), (2, 1), 3, True),
              (2, 3, 7, 7, 4, (3, 3), (1, 1), (0, 2), (1, 1), 1, True),
              (2, 5, 6, 7, 4, (1, 1), (2, 1), (0, 0), (1, 1), 1, True),
              (2, 5, 6, 7, 4, (1, 1), (1, 1), (0, 2), (1, 1), 1, False),
              # few channels in a group
              (1, 31, 2, 33, 31, (1, 7), (1, 1), (0, 3), (1, 1), 31, True),
              (3, 6, 17, 5, 12, (5, 1), (2, 1), (2, 0), (1, 1), 6, False),
              (2, 4, 9, 12, 8, (3, 2), (1, 2), (1, 1), (2, 3), 2, True),
              (1, 4, 7, 20, 4, (3, 3), (3, 1), (1, 1), (1, 1), 4, True),
              (2, 2, 5, 47, 2, (1, 25), (1, 1), (0, 12), (1, 1), 2, True),
              (2, 3, 9, 40, 3, (3, 9), (1, 1), (1, 4), (1, 1), 3, True),
              # a list of two equal numbers
              (2, 3, 6, 6, 4, (3, 3), (1, 1), (1, 1), (1, 1), 1, True))


def rectangles(f):
    for n, c, h, w, k, (r, s), stride, pad, dilation, groups, bias in RECTANGLES:
        def conv(xs, ps):
            return F.conv2d(xs[0], ps["weight"], ps.get("bias"), stride, pad, dilation, groups)

        words = ("{}x{}".format(*pair) for pair in ((h, w), (r, s), stride, pad, dilation))
        case = "n{}_c{}_{}_k{}_r{}_s{}_p{}_d{}_g{}".format(n, c, next(words), k, *words, groups)
        params = {"weight": (k, c // groups, r, s)}
        if bias:
            params["bias"] = (k,)
        keys = {"out": k, "kernel": [r, s], "stride": list(stride), "pad": list(pad),
                "dilation": list(dilation), "groups": groups, "bias": bias}
        f.layer(case, "conv2d", keys, n, [(c, h, w)], conv, params)
    f.layer("relu_rectangle", "conv2d", {"out": 5, "kernel": [1, 3], "pad": [0, 1]}, 3,
            [(5, 7, 6)], lambda xs, ps: F.conv2d(xs[0], ps["weight"], ps["bias"], 1,
                                                (0, 1)).relu(),
            {"weight": (5, 5, 1, 3), "bias": (5,)}, relu=True)


def cases(f):
    for n, c, h, w, k, r, stride, pad, dilation, groups, bias in CONVS:
        def conv(xs, ps):
            return F.conv2d(xs[0], ps["weight"], ps.get("bias"), stride, pad, dilation, groups)

        case = f"n{n}_c{c}_{h}x{w}_k{k}_r{r}_s{stride}_p{pad}_d{dilation}_g{groups}"
        params = {"weight": (k, c // groups, r, r)}
        if bias:
            params["bias"] = (k,)
        keys = {"out": k, "kernel": r, "stride": stride, "pad": pad, "dilation": dilation,
                "groups": groups, "bias": bias}
        f.layer(case, "conv2d", keys, n, [(c, h, w)], conv, params)
    for stride, groups in ((1, 1), (2, 1), (1, 5)):
        f.layer(f"relu_s{stride}_g{groups}", "conv2d",
                {"out": 5, "kernel": 3, "stride": stride, "pad": 1, "groups": groups}, 3,
                [(5, 7, 6)], lambda xs, ps: F.conv2d(xs[0], ps["weight"], ps["bias"], stride, 1, 1,
                                                    groups).relu(),
                {"weight": (5, 5 // groups, 3, 3), "bias": (5,)}, relu=True)
    rectangles(f)
