import torch.nn.functional as F

from activations import activations


def cases(f):
    activations(f, "elu", {"alpha": 0.7}, lambda x: F.elu(x, 0.7))
    f.layer("default", "elu", {}, 2, [(33,)], lambda xs, ps: F.elu(xs[0]))
