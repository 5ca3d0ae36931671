"""Rotation by torch's affine_grid and grid_sample; colours by their formulas, hue by colorsys.
Where torchvision is installed its functions have to give the same."""
import colorsys
import math

import numpy as np
import torch
import torch.nn.functional as F

from golden import double, values

try:
    import torchvision.transforms.functional as V
except ImportError:
    V = None


def rotated(x, degrees):
    _, h, w = x.shape
    a = math.radians(degrees)
    theta = torch.tensor([[[math.cos(a), -math.sin(a) * h / w, 0],
                           [math.sin(a) * w / h, math.cos(a), 0]]], dtype=torch.float64)
    grid = F.affine_grid(theta, (1, *x.shape), align_corners=False)
    y = F.grid_sample(x[None], grid, mode="bilinear", padding_mode="zeros",
                      align_corners=False)[0]
    if V:
        same(y, V.rotate(x, degrees, V.InterpolationMode.BILINEAR))
    return y


def same(ours, theirs):
    assert torch.allclose(ours, theirs, atol=1e-6), (ours - theirs).abs().max()


def grey(x):
    return x[0] * 0.2989 + x[1] * 0.587 + x[2] * 0.114 if len(x) == 3 else x[0]


def blended(x, other, factor):
    return (factor * x + (1 - factor) * other).clamp(0, 1)


def turned(x, by):
    if len(x) == 1:
        return x
    y = np.empty(x.shape)
    for at in np.ndindex(*x.shape[1:]):
        h, s, v = colorsys.rgb_to_hsv(*(float(x[(c, *at)]) for c in range(3)))
        for c, value in enumerate(colorsys.hsv_to_rgb((h + by) % 1, s, v)):
            y[(c, *at)] = value
    return double(y)


COLOURS = {
    "brightness": lambda x, by: blended(x, torch.zeros_like(x), by),
    "contrast": lambda x, by: blended(x, grey(x).mean(), by),
    "saturation": lambda x, by: blended(x, grey(x), by) if len(x) == 3 else x,
    "hue": turned,
}


def case(f, op, shape, by, y_of):
    name = f"{op}_{'x'.join(map(str, shape))}_{by}"
    x = double((values(name, shape) + np.float32(1)) / np.float32(2))
    if shape[0] == 3 and op == "hue":  # grey, and two channels alike
        x[:, 0, 0] = 0.25
        x[1, 0, 1] = x[0, 0, 1]
        x[2, 0, 2] = x[1, 0, 2]
    y = y_of(x, by)
    f.describe(name, {"op": op, "shape": list(shape), "by": by})
    f.tensor(name + "/x", x.numpy())
    f.tensor(name + "/y", y.numpy())
    if V and op in COLOURS:
        same(y, getattr(V, f"adjust_{op}")(x, by))


def cases(f):
    for shape in ((1, 8, 8), (3, 5, 9), (2, 12, 7)):
        for degrees in (0, 17.5, -90, 180, 45, -133.25):
            case(f, "rotation", shape, degrees, rotated)
    for op, y_of in COLOURS.items():
        for shape in ((1, 6, 6), (3, 5, 7)):
            for by in (0.3, -0.5, 0.11, 0) if op == "hue" else (0, 0.4, 1, 1.7):
                case(f, op, shape, by, y_of)
