def cases(f):
    for n, shape in ((1, (1,)), (3, (31,)), (2, (5, 33)), (33, (65,)), (5, (2, 3, 4))):
        size = f"n{n}_" + "x".join(map(str, shape))
        f.layer(f"parameter_{size}", "parameter", {"shape": list(shape)}, n, [],
                lambda xs, ps, n=n: ps["weight"].unsqueeze(0).expand(n, *ps["weight"].shape),
                {"weight": shape})
