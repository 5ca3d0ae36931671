#!/usr/bin/env python3
"""Writes the golden files of the layers that move or multiply: python3 tests/golden/make.py
The results are committed; run it only to add a case."""
import torch
import torch.nn.functional as F

from golden import File, values


def dense():
    f = File("dense")

    def linear(xs, ps):
        return F.linear(xs[0].flatten(1), ps["weight"], ps.get("bias"))

    for n, inputs, out, bias in ((1, (1,), 1, True), (3, (31,), 33, True), (33, (65,), 31, True),
                                 (65, (32,), 10, True), (5, (33,), 64, False),
                                 (2, (3, 5, 7), 65, True), (1, (129,), 1, False)):
        case = f"n{n}_in{'x'.join(map(str, inputs))}_out{out}" + ("" if bias else "_nobias")
        wide = int(torch.tensor(inputs).prod())
        params = {"weight": (out, wide)}
        if bias:
            params["bias"] = (out,)
        f.layer(case, "dense", {"out": out, "bias": bias}, n, [inputs], linear, params)
    f.layer("relu", "dense", {"out": 33}, 5, [(31,)], lambda xs, ps: linear(xs, ps).relu(),
            {"weight": (33, 31), "bias": (33,)}, relu=True)
    f.write()


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


def conv2d():
    f = File("conv2d")
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
    f.write()


# n, C, H, W, kernel, stride, pad
POOLS = ((1, 1, 4, 4, 2, 2, 0), (3, 5, 9, 7, 2, 2, 0), (2, 31, 8, 8, 2, 2, 0),
         (2, 3, 9, 9, 3, 2, 1), (1, 4, 7, 7, 3, 1, 1), (2, 2, 33, 33, 2, 2, 0),
         (1, 3, 11, 10, 3, 3, 0),
         (1, 2, 9, 11, 5, 2, 2), (33, 1, 2, 2, 2, 2, 0), (1, 2, 10, 10, 2, 3, 1),
         (1, 3, 20, 70, 2, 2, 0), (1, 2, 9, 70, 3, 2, 1))


def pools():
    for kind, run in (("maxpool", F.max_pool2d), ("avgpool", F.avg_pool2d)):
        f = File(kind)
        for n, c, h, w, kernel, stride, pad in POOLS:
            case = f"n{n}_c{c}_{h}x{w}_r{kernel}_s{stride}_p{pad}"
            keys = {"kernel": kernel, "stride": stride, "pad": pad}
            f.layer(case, kind, keys, n, [(c, h, w)],
                    lambda xs, ps: run(xs[0], kernel, stride, pad))
        if kind == "maxpool":  # few levels: many windows have several largest elements
            x = (values("ties", (2, 3, 9, 9)) * 2).round()
            f.layer("ties", kind, {"kernel": 3, "stride": 2, "pad": 1}, 2, [(3, 9, 9)],
                    lambda xs, ps: F.max_pool2d(xs[0], 3, 2, 1), special={"x0": x})
            f.layer("ties_tiles", kind, {"kernel": 2}, 2, [(3, 9, 9)],
                    lambda xs, ps: F.max_pool2d(xs[0], 2), special={"x0": x})
        f.write()
    f = File("globalavgpool")
    for n, shape in ((1, (1, 1, 1)), (3, (31, 4, 4)), (33, (5, 7, 9)), (2, (65, 2, 3)),
                     (1, (3, 33, 32))):
        f.layer(f"n{n}_" + "x".join(map(str, shape)), "globalavgpool", {}, n, [shape],
                lambda xs, ps: xs[0].mean((2, 3), keepdim=True))
    f.write()


def copies():
    f = File("flatten")
    for n, shape in ((1, (1, 1, 1)), (3, (31, 3, 5)), (65, (7,)), (2, (3, 4))):
        f.layer(f"n{n}_" + "x".join(map(str, shape)), "flatten", {}, n, [shape],
                lambda xs, ps: xs[0].flatten(1))
    f.write()
    f = File("add")
    for n, shape, count in ((1, (1,), 2), (3, (31, 3, 5), 2), (33, (65,), 3), (2, (4, 4, 4), 8)):
        f.layer(f"n{n}_" + "x".join(map(str, shape)) + f"_of{count}", "add", {}, n, [shape] * count,
                lambda xs, ps: sum(xs[1:], xs[0]))
    f.write()
    f = File("concat")
    for n, shapes in ((1, ((1,), (1,))), (3, ((31, 3, 5), (2, 3, 5))),
                      (33, ((33,), (1,), (65,))), (2, ((4, 4, 4),) * 8)):
        f.layer(f"n{n}_of{len(shapes)}_" + "x".join(map(str, shapes[0])), "concat", {}, n, shapes,
                lambda xs, ps: torch.cat(xs, 1))
    f.write()


if __name__ == "__main__":
    dense()
    conv2d()
    pools()
    copies()
