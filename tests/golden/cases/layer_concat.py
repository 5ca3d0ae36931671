import torch


def cases(f):
    for n, shapes in ((1, ((1,), (1,))), (3, ((31, 3, 5), (2, 3, 5))),
                      (33, ((33,), (1,), (65,))), (2, ((4, 4, 4),) * 8)):
        f.layer(f"n{n}_of{len(shapes)}_" + "x".join(map(str, shapes[0])), "concat", {}, n, shapes,
                lambda xs, ps: torch.cat(xs, 1))
    for n, axis, shapes in ((3, 1, ((5, 31), (5, 2))), (2, 2, ((2, 3, 5), (2, 3, 33), (2, 3, 1)))):
        f.layer(f"n{n}_of{len(shapes)}_axis{axis}", "concat", {"axis": axis}, n, shapes,
                lambda xs, ps: torch.cat(xs, axis + 1))
