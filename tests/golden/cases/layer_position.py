# n, T, C, length
CASES = ((1, 1, 1, 1), (3, 1, 31, 4), (2, 31, 5, 31), (5, 32, 32, 33), (33, 5, 33, 5),
         (4, 7, 65, 9))


def cases(f):
    for n, steps, columns, length in CASES:
        f.layer(f"n{n}_{steps}x{columns}_of{length}", "position", {"length": length}, n,
                [(steps, columns)], lambda xs, ps: xs[0] + ps["weight"][:steps],
                {"weight": (length, columns)})
