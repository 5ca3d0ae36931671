from layer_binary import together

# n, shape of a, shape of b
CASES = ((1, (1,), (1,)), (3, (31,), (31,)), (33, (65,), (65,)), (2, (3, 5, 7), (3, 5, 7)),
         (2, (33, 5, 7), (33, 1, 1)), (3, (5, 32, 33), (5,)), (2, (65, 1, 1), (65, 1, 1)),
         (5, (1, 31, 1), (1,)), (2, (31, 65), (31, 1)), (3, (7, 33), (1, 33)),
         (2, (5, 31, 3), (1, 31, 3)), (2, (5, 3, 33), (5, 1, 33)), (3, (4, 31, 5), (1, 31, 1)),
         (2, (3, 5, 7), (1, 1, 1)), (3, (65,), (1,)), (2, (2, 3, 4, 5), (1, 1, 4, 5)))
GENERAL = ((2, (5, 1), (5, 33)), (3, (33,), (5, 33)), (2, (31, 1), (1, 7)), (2, (3, 5, 7), (7,)),
           (2, (2, 3, 4, 5), (2, 1, 4, 1)))


def cases(f):
    for n, a, b in CASES:
        gate = b if len(b) == len(a) else (*b, 1, 1)
        f.layer(f"n{n}_" + "x".join(map(str, a)) + "_by_" + "x".join(map(str, b)), "mul", {}, n,
                [a, b], lambda xs, ps: xs[0] * xs[1].reshape(n, *gate))
    # NumPy's rule in each direction, computed as the other kinds with two operands
    for n, a, b in GENERAL:
        f.layer(f"n{n}_" + "x".join(map(str, a)) + "_and_" + "x".join(map(str, b)), "mul", {}, n,
                [a, b], lambda xs, ps: together(xs)[0] * together(xs)[1])
