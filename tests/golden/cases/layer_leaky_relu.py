import torch.nn.functional as F

from activations import activations


def cases(f):
    activations(f, "leaky_relu", {"slope": 0.3}, lambda x: F.leaky_relu(x, 0.3))
    f.layer("default", "leaky_relu", {}, 2, [(33,)], lambda xs, ps: F.leaky_relu(xs[0]))
