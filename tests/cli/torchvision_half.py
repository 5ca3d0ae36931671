"""The half of test_torchvision.py that needs torch and torchvision; it runs in a Python that has
them. What it is asked comes as JSON on standard input, the answer leaves on standard output."""
import json
import struct
import sys
from collections import OrderedDict
from functools import partial

import torch
import torchvision

class UNet(torch.nn.Module):
    """The net of mateuszbuda's brain-segmentation-pytorch, from 16 channels."""

    def __init__(self, num_classes, features=16):
        super().__init__()
        wide = [features << level for level in range(5)]
        for level in range(1, 5):
            setattr(self, f"encoder{level}", self.block(3 if level == 1 else wide[level - 2],
                                                        wide[level - 1], f"enc{level}"))
        self.bottleneck = self.block(wide[3], wide[4], "bottleneck")
        for level in range(4, 0, -1):
            setattr(self, f"upconv{level}", torch.nn.ConvTranspose2d(
                wide[level], wide[level - 1], kernel_size=2, stride=2))
            setattr(self, f"decoder{level}", self.block(wide[level], wide[level - 1],
                                                        f"dec{level}"))
        self.conv = torch.nn.Conv2d(features, num_classes, kernel_size=1)

    @staticmethod
    def block(channels, features, name):
        layers = OrderedDict()
        for i in (1, 2):
            layers[f"{name}conv{i}"] = torch.nn.Conv2d(channels if i == 1 else features, features,
                                                       kernel_size=3, padding=1, bias=False)
            layers[f"{name}norm{i}"] = torch.nn.BatchNorm2d(features)
            layers[f"{name}relu{i}"] = torch.nn.ReLU()
        return torch.nn.Sequential(layers)

    def forward(self, x):
        open_levels = []
        for level in range(1, 5):
            x = getattr(self, f"encoder{level}")(x)
            open_levels.append(x)
            x = torch.nn.functional.max_pool2d(x, 2)
        x = self.bottleneck(x)
        for level in range(4, 0, -1):
            x = torch.cat((getattr(self, f"upconv{level}")(x), open_levels.pop()), dim=1)
            x = getattr(self, f"decoder{level}")(x)
        return self.conv(x)


# Nets that need more words than their name. Auxiliary heads are a second loss, which ours lack.
MAKERS = {
    "googlenet": partial(torchvision.models.googlenet, aux_logits=False, init_weights=False),
    "inception_v3": partial(torchvision.models.inception_v3, aux_logits=False,
                            init_weights=False),
    "unet": UNet,
    "vit-tiny": partial(torchvision.models.VisionTransformer, image_size=32, patch_size=4,
                        num_layers=6, num_heads=3, hidden_dim=192, mlp_dim=768),
    "vit-tiny-narrow": partial(torchvision.models.VisionTransformer, image_size=32, patch_size=4,
                               num_layers=4, num_heads=2, hidden_dim=64, mlp_dim=256),
}


def build(ask):
    torch.manual_seed(ask["seed"])
    net = MAKERS.get(ask["net"], getattr(torchvision.models, ask["net"], None))(
        num_classes=ask["classes"])
    if ask.get("narrow"):  # the same net with smaller dense layers in between
        wide, narrow = 4096, ask["narrow"]
        for at, layer in enumerate(net.classifier):
            if isinstance(layer, torch.nn.Linear):
                net.classifier[at] = torch.nn.Linear(
                    narrow if layer.in_features == wide else layer.in_features,
                    narrow if layer.out_features == wide else layer.out_features)
    return net.eval()


def tensors_of(net):
    """What a file of weights holds: all but the counters, which are no floats."""
    return {name: value for name, value in net.state_dict().items() if value.is_floating_point()}


def write(path, tensors, values):
    """A safetensors file; without `values` its data are a hole, that is zeros."""
    header, offset = {}, 0
    for name, tensor in tensors.items():
        size = 4 * tensor.numel()
        header[name] = {"dtype": "F32", "shape": list(tensor.shape),
                        "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for tensor in tensors.values() if values else ():
            file.write(tensor.detach().contiguous().numpy().tobytes())
        file.truncate(8 + len(text) + offset)


def read(path):
    with open(path, "rb") as file:
        raw = file.read()
    (size,) = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8:8 + size])
    header.pop("__metadata__", None)
    out = {}
    for name, entry in header.items():
        first, end = (8 + size + at for at in entry["data_offsets"])
        out[name] = torch.frombuffer(bytearray(raw[first:end]),
                                     dtype=torch.float32).reshape(entry["shape"])
    return out


def shapes(ask):
    """A file with the names and shapes of the whole net."""
    with torch.no_grad():
        net = build(ask)
    write(ask["weights"], tensors_of(net), values=False)
    return {"parameters": sum(p.numel() for p in net.parameters())}


def make(ask):
    """Weights, with statistics that are not those of the start, and images with their outputs."""
    net = build(ask)
    for module in net.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            torch.nn.init.uniform_(module.running_mean, -0.2, 0.2)
            torch.nn.init.uniform_(module.running_var, 0.5, 1.5)
            torch.nn.init.uniform_(module.weight, 0.5, 1.5)
            torch.nn.init.uniform_(module.bias, -0.2, 0.2)
    for name, value in net.named_parameters():
        if name == "class_token" or name.startswith("heads."):  # zeros, at the start
            torch.nn.init.normal_(value, std=0.1)
    write(ask["weights"], tensors_of(net), values=True)
    images = torch.rand(2, 3, ask["size"], ask["size"]) * 2 - 1
    with torch.no_grad():
        outputs = net(images)
    for split in ("train", "test"):
        with open(f"{ask['folder']}/{split}.csv", "w", encoding="ascii") as file:
            for x, y in zip(images, outputs):
                row = torch.cat((x.flatten(), y.flatten())).tolist()
                file.write(",".join(f"{value:.9g}" for value in row) + "\n")
    return {"square": float((outputs ** 2).mean()), "spread": float(outputs.std())}


def load(ask):
    """The file fits the net strictly, and but for statistics it is the file that was given."""
    net = build(ask)
    given, came = read(ask["given"]), read(ask["came"])
    net.load_state_dict(came, strict=True)
    differ = [name for name in given
              if "running_" not in name and not torch.equal(given[name], came[name])]
    return {"differ": differ, "tensors": len(came)}


if __name__ == "__main__":
    asked = json.load(sys.stdin)
    print(json.dumps({"shapes": shapes, "make": make, "load": load}[asked["do"]](asked)))
