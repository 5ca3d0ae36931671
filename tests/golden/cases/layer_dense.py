import torch
import torch.nn.functional as F


def cases(f):
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
