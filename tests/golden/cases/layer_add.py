from layer_binary import together


def cases(f):
    for n, shape, count in ((1, (1,), 2), (3, (31, 3, 5), 2), (33, (65,), 3), (2, (4, 4, 4), 8)):
        f.layer(f"n{n}_" + "x".join(map(str, shape)) + f"_of{count}", "add", {}, n, [shape] * count,
                lambda xs, ps: sum(xs[1:], xs[0]))
    for n, a, b in ((2, (5, 33), (33,)), (3, (1, 7), (31, 1)), (2, (1,), (3, 4, 5)),
                    (2, (2, 3, 1, 5), (1, 3, 4, 1))):
        f.layer(f"n{n}_" + "x".join(map(str, a)) + "_and_" + "x".join(map(str, b)), "add", {}, n,
                [a, b], lambda xs, ps: together(xs)[0] + together(xs)[1])
