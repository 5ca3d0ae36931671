# n, sample shape
CASES = ((1, (1,)), (3, (31,)), (33, (65,)), (2, (5, 32)), (9, (65, 5)), (3, (3, 5, 7)),
         (5, (33, 1, 1)), (2, (2, 31, 33)), (560, (2, 3, 5)), (2, (2, 3, 4, 5)))


def cases(f):
    for n, shape in CASES:
        weight = (shape[0], 1, 1) if len(shape) == 3 else (shape[-1],)
        f.layer(f"n{n}_" + "x".join(map(str, shape)), "scale", {}, n, [shape],
                lambda xs, ps: xs[0] * ps["weight"], {"weight": weight})
