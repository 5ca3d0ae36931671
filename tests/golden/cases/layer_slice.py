CASES = (
    (1, (1,), 0, 0, 1), (3, (31,), 0, 5, 31), (2, (33, 5), 0, 32, 33), (5, (4, 7), 1, 2, 6),
    (33, (2, 3, 65), 2, 31, 64), (4, (5, 3, 4), 1, 0, 2),
)


def cases(f):
    for n, shape, axis, start, end in CASES:
        name = f"n{n}_{'x'.join(map(str, shape))}_axis{axis}_{start}to{end}"
        f.layer(name, "slice", {"axis": axis, "start": start, "end": end}, n, [shape],
                lambda xs, ps, a=axis, s=start, e=end: xs[0].narrow(a + 1, s, e - s))
