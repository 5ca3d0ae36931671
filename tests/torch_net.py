"""A model file as a PyTorch module with the same parameter names, for comparisons with PyTorch. It
runs in the Python that has torch and yaml (Debian's python3-torch, python3-yaml)."""
import json
import math
import struct
from pathlib import Path

import torch
import yaml
from torch import nn
from torch.nn import functional as F


def read_safetensors(path):
    """Names with float32 tensors."""
    raw = Path(path).read_bytes()
    (size,) = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8:8 + size])
    header.pop("__metadata__", None)
    out = {}
    for name, entry in header.items():
        first, end = (8 + size + at for at in entry["data_offsets"])
        out[name] = torch.frombuffer(bytearray(raw[first:end]),
                                     dtype=torch.float32).reshape(entry["shape"]).clone()
    return out


def write_safetensors(path, tensors):
    """A file that read_safetensors() reads."""
    header, at = {}, 0
    for name, value in tensors.items():
        header[name] = {"dtype": "F32", "shape": list(value.shape),
                        "data_offsets": [at, at + 4 * value.numel()]}
        at += 4 * value.numel()
    head = json.dumps(header).encode()
    head += b" " * (-len(head) % 8)
    values = b"".join(v.detach().float().cpu().numpy().tobytes() for v in tensors.values())
    Path(path).write_bytes(struct.pack("<Q", len(head)) + head + values)


class Position(nn.Module):
    def __init__(self, length, wide):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(length, wide))

    def forward(self, x):
        return x + self.weight[:x.shape[1]]


class Attention(nn.Module):
    """Dot-product attention on q | k | v side by side. PyTorch's own function is used if this
    version has it."""

    def __init__(self, layer):
        super().__init__()
        self.heads = layer["heads"]
        self.kv = layer.get("kv_heads", self.heads)
        self.causal = layer.get("causal", False)
        self.p = layer.get("dropout", 0.0)

    def forward(self, x):
        n, t, wide = x.shape
        d = wide // (self.heads + 2 * self.kv)
        q, k, v = x.split([self.heads * d, self.kv * d, self.kv * d], 2)
        q, k, v = (a.view(n, t, -1, d).transpose(1, 2) for a in (q, k, v))
        if self.kv < self.heads:
            k, v = (a.repeat_interleave(self.heads // self.kv, 1) for a in (k, v))
        p = self.p if self.training else 0.0
        if hasattr(F, "scaled_dot_product_attention"):
            y = F.scaled_dot_product_attention(q, k, v, dropout_p=p, is_causal=self.causal)
        else:
            s = q @ k.transpose(2, 3) / math.sqrt(d)
            if self.causal:
                s = s.masked_fill(torch.ones(t, t, dtype=torch.bool).triu(1), -math.inf)
            y = F.dropout(s.softmax(3), p) @ v
        return y.transpose(1, 2).reshape(n, t, -1)


class Prepend(nn.Module):
    """A parameter in front of each sequence."""

    def __init__(self, wide):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1, wide))

    def forward(self, x):
        return torch.cat([self.weight.expand(len(x), 1, -1), x], 1)


class DropPath(nn.Module):
    """A branch is left out for a whole sample."""

    def __init__(self, p):
        super().__init__()
        self.p = p

    def forward(self, x):
        if not self.training or not self.p:
            return x
        keep = torch.empty(len(x), *[1] * (x.dim() - 1), device=x.device).bernoulli_(1 - self.p)
        return x * keep / (1 - self.p)


class Recurrent(nn.Module):
    def __init__(self, layer, wide):
        super().__init__()
        kind = nn.LSTM if layer["kind"] == "lstm" else nn.GRU
        self.net = kind(wide, layer["hidden"], batch_first=True,
                        bidirectional=layer.get("bidirectional", False))
        self.padding = layer.get("padding", 0) if layer.get("lengths") else None

    def forward(self, x, ids=None):
        if self.padding is None:
            return self.net(x)[0]
        steps = torch.arange(1, x.shape[1] + 1, device=x.device)
        lengths = ((ids != self.padding) * steps).amax(1).clamp_min(1).cpu()
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True,
                                                   enforce_sorted=False)
        return nn.utils.rnn.pad_packed_sequence(self.net(packed)[0], batch_first=True,
                                                total_length=x.shape[1])[0]


class Additive(nn.Module):
    """Bahdanau's attention of projected queries and keys over a memory."""

    def __init__(self, layer, units):
        super().__init__()
        self.linear_att = nn.Parameter(torch.randn(units))
        self.padding = layer.get("padding")
        if layer.get("normalise"):
            self.normalize_scalar = nn.Parameter(torch.ones(1))
            self.normalize_bias = nn.Parameter(torch.zeros(units))

    def forward(self, q, k, memory, ids=None):
        v, bias = self.linear_att, 0
        if hasattr(self, "normalize_scalar"):
            v, bias = v / v.norm() * self.normalize_scalar, self.normalize_bias
        scores = torch.tanh(q.unsqueeze(2) + k.unsqueeze(1) + bias) @ v
        if ids is not None:
            scores = scores.masked_fill((ids == self.padding).unsqueeze(1), -math.inf)
        return scores.softmax(2) @ memory


def name_of(layer, suffix):
    """Of a parameter in the weights file."""
    given = layer.get("names", {}).get(suffix, f"{layer['name']}.{suffix}")
    return given["name"] if isinstance(given, dict) else given


class Net(nn.Module):
    """x: an example of a batch, images [n, C, H, W] or ids [n, T]. std of the model file is not
    used: load() sets all parameters."""

    def __init__(self, path, x, classes, tokens=0):
        super().__init__()
        model = yaml.safe_load(Path(path).read_text())
        self.layers, self.inputs = model["layers"], {}
        if isinstance(model["input"], dict) and "shape" not in model["input"]:
            self.inputs = {name: one["shape"][0] for name, one in model["input"].items()}
        self.tokens, self.classes = tokens, classes
        self.made = nn.ModuleDict()
        shared = {}  # by name: layers whose parameters have one name share them
        shapes, before = self.values_of(x[:2]), None
        for layer in self.layers:
            sources = layer.get("from", before)
            layer["from"] = sources if isinstance(sources, list) else [sources]
            inputs = [shapes[name] for name in layer["from"]]
            module = self.make(layer, inputs[0])
            if module is not None:
                self.made[layer["name"].replace(".", "_")] = module
                for suffix, value in list(module.named_parameters(recurse=False)):
                    setattr(module, suffix, shared.setdefault(name_of(layer, suffix), value))
            shapes[layer["name"]] = self.apply_layer(layer, inputs)
            before = layer["name"]

    def make(self, layer, x):
        kind, get = layer["kind"], layer.get
        out = self.classes if get("out") == "classes" else get("out")
        if kind == "conv2d":
            return nn.Conv2d(x.shape[1], out, get("kernel"), get("stride", 1), get("pad", 0),
                             get("dilation", 1), get("groups", 1), get("bias", True))
        if kind == "dense":
            return nn.Linear(x.flatten(1).shape[1], out, get("bias", True))
        if kind == "linear":
            return nn.Linear(x.shape[-1], out, get("bias", True))
        if kind == "embedding":
            return nn.Embedding(self.tokens if get("count") == "tokens" else get("count"), out,
                                get("padding"))
        if kind == "position":
            return Position(get("length"), x.shape[-1])
        if kind == "attention":
            return Attention(layer)
        if kind in ("lstm", "gru"):
            return Recurrent(layer, x.shape[-1])
        if kind == "additive":
            return Additive(layer, x.shape[-1])
        if kind == "batchnorm":
            return nn.BatchNorm2d(x.shape[1])
        if kind == "groupnorm":
            return nn.GroupNorm(get("groups"), x.shape[1], float(get("eps", 1e-5)))
        if kind == "layernorm":
            return nn.LayerNorm(x.shape[-get("dims", x.dim() - 1):], float(get("eps", 1e-5)))
        if kind in ("maxpool", "avgpool"):
            pool = nn.MaxPool2d if kind == "maxpool" else nn.AvgPool2d
            more = {"ceil_mode": get("ceil_mode", False)}
            if kind == "avgpool":
                more["count_include_pad"] = get("count_include_pad", True)
            return pool(get("kernel"), get("stride", get("kernel")), get("pad", 0), **more)
        if kind == "adaptiveavgpool":
            return nn.AdaptiveAvgPool2d(out)
        if kind == "convtranspose2d":
            return nn.ConvTranspose2d(x.shape[1], out, get("kernel"), get("stride", 1),
                                      get("pad", 0), bias=get("bias", True))
        if kind == "prepend":
            return Prepend(x.shape[-1])
        if kind == "droppath":
            return DropPath(get("p", 0.0))
        if kind == "dropout":
            return nn.Dropout(get("p", 0.5))
        if kind == "gelu":
            return nn.GELU(approximate=get("approximate", "none"))
        return {"relu": nn.ReLU, "flatten": nn.Flatten, "tanh": nn.Tanh, "silu": nn.SiLU,
                "relu6": nn.ReLU6, "sigmoid": nn.Sigmoid, "hardsigmoid": nn.Hardsigmoid,
                "hardswish": nn.Hardswish,
                "globalavgpool": lambda: nn.AdaptiveAvgPool2d(1)}.get(kind, lambda: None)()

    def apply_layer(self, layer, inputs):
        kind = layer["kind"]
        if kind == "add":
            return sum(inputs[1:], inputs[0])
        if kind == "concat":
            return torch.cat(inputs, 1 + layer.get("axis", 0))
        if kind == "additive" or layer.get("lengths"):
            return self.made[layer["name"].replace(".", "_")](*inputs)
        if kind == "seqpool":
            return inputs[0][:, 0] if layer.get("mode") == "first" else inputs[0].mean(1)
        if kind == "sequence":
            return inputs[0].flatten(2).transpose(1, 2)
        if kind == "mul":
            return inputs[0] * inputs[1]
        x = inputs[0].flatten(1) if kind == "dense" else inputs[0]
        return self.made[layer["name"].replace(".", "_")](x)

    def values_of(self, x):
        """The model's input, or several by their names."""
        if not self.inputs:
            return {None: x, "data": x}
        return {None: x, **dict(zip(self.inputs, x.split(list(self.inputs.values()), 1)))}

    def forward(self, x):
        values, before = self.values_of(x), None
        for layer in self.layers:
            values[layer["name"]] = self.apply_layer(layer, [values[n] for n in layer["from"]])
            before = layer["name"]
        return values[before]

    def named(self):
        """Parameters under the names of the weights file."""
        for layer in self.layers:
            module = self.made[layer["name"].replace(".", "_")] \
                if layer["name"].replace(".", "_") in self.made else None
            for name, value in module.named_parameters() if module else ():
                if layer.get("layout") == "in-out" and name == "weight":
                    value = value.t()
                yield name_of(layer, name.removeprefix("net.")), value

    def load(self, path):
        tensors = read_safetensors(path)
        with torch.no_grad():
            for name, value in self.named():
                tensor = tensors[name]  # `dims` in the model file adds axes of size 1
                value.copy_(tensor if tensor.dim() == value.dim() else tensor.view(value.shape))
