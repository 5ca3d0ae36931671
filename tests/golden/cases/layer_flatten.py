def cases(f):
    for n, shape in ((1, (1, 1, 1)), (3, (31, 3, 5)), (65, (7,)), (2, (3, 4))):
        f.layer(f"n{n}_" + "x".join(map(str, shape)), "flatten", {}, n, [shape],
                lambda xs, ps: xs[0].flatten(1))
