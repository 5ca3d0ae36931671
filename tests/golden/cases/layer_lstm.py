import torch

from recurrent import recurrent


def cases(f):
    recurrent(f, "lstm", 4, 2, torch._VF.lstm)
