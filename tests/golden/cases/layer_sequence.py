CASES = ((1, (1, 1, 1)), (3, (31, 3, 5)), (2, (5, 4, 8)), (2, (33, 4, 4)), (1, (16, 1, 65)),
         (5, (7, 6, 3)))


def cases(f):
    for n, shape in CASES:
        f.layer(f"n{n}_" + "x".join(map(str, shape)), "sequence", {}, n, [shape],
                lambda xs, ps: xs[0].flatten(2).transpose(1, 2))
