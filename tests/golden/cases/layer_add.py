def cases(f):
    for n, shape, count in ((1, (1,), 2), (3, (31, 3, 5), 2), (33, (65,), 3), (2, (4, 4, 4), 8)):
        f.layer(f"n{n}_" + "x".join(map(str, shape)) + f"_of{count}", "add", {}, n, [shape] * count,
                lambda xs, ps: sum(xs[1:], xs[0]))
