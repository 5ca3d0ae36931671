import torch.nn.functional as F


def cases(f):
    def linear(x, ps, layout):
        weight = ps["weight"].t() if layout == "in-out" else ps["weight"]
        return F.linear(x, weight, ps.get("bias"))

    for n, inputs, out, bias, layout in (
            (1, (1,), 1, True, "out-in"), (3, (1, 31), 33, True, "out-in"),
            (2, (33, 65), 31, True, "out-in"), (5, (31, 32), 1, True, "out-in"),
            (3, (65, 1), 32, True, "out-in"), (4, (3, 5, 33), 65, True, "out-in"),
            (2, (32, 31), 33, False, "out-in"), (2, (33, 65), 31, True, "in-out"),
            (3, (1, 31), 1, True, "in-out"), (3, (2, 3, 2, 33), 65, False, "in-out")):
        case = f"n{n}_in{'x'.join(map(str, inputs))}_out{out}" + ("" if bias else "_nobias")
        case += "" if layout == "out-in" else "_" + layout
        wide = inputs[-1]
        params = {"weight": (out, wide) if layout == "out-in" else (wide, out)}
        if bias:
            params["bias"] = (out,)
        keys = {"out": out, "bias": bias}
        if layout != "out-in":
            keys["layout"] = layout
        f.layer(case, "linear", keys, n, [inputs],
                lambda xs, ps: linear(xs[0], ps, layout), params)
    for layout, shape in (("out-in", (33, 31)), ("in-out", (31, 33))):
        f.layer("relu_" + layout, "linear", {"out": 33, "layout": layout}, 5, [(7, 31)],
                lambda xs, ps: linear(xs[0], ps, layout).relu(),
                {"weight": shape, "bias": (33,)}, relu=True)
    for n, inputs, out, rank, alpha, layout, bias in (
            (3, (1, 31), 33, 1, 2, "out-in", True), (2, (33, 65), 31, 8, 16, "out-in", True),
            (4, (3, 5, 33), 17, 17, 3, "in-out", False), (5, (7, 32), 65, 4, 1, "in-out", True)):
        wide = inputs[-1]
        params = {"weight": (out, wide) if layout == "out-in" else (wide, out),
                  "lora_A.weight": (rank, wide), "lora_B.weight": (out, rank)}
        if bias:
            params["bias"] = (out,)

        def adapted(xs, ps, layout=layout, scale=alpha / rank):
            low = F.linear(F.linear(xs[0], ps["lora_A.weight"]), ps["lora_B.weight"])
            return linear(xs[0], ps, layout) + scale * low

        case = f"lora_n{n}_in{'x'.join(map(str, inputs))}_out{out}_rank{rank}"
        f.layer(case, "linear", {"out": out, "bias": bias, "layout": layout,
                                 "lora": {"rank": rank, "alpha": alpha}}, n, [inputs], adapted,
                params)
