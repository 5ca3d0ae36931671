import torch.nn.functional as F

from activations import activations


def cases(f):
    activations(f, "gelu", {"approximate": "tanh"}, lambda x: F.gelu(x, approximate="tanh"))
