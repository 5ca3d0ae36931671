"""Exports a net of bench/onnx_nets.py with an operator set, and trains it some steps in PyTorch in
float64: the case NAME that an import has to reproduce. It needs only torch (dynamo: onnxscript).

    torch_steps.py FOLDER NAME NET script|dynamo OPSET

    NAME.onnx   the net with its first weights
    NAME.npz    x/INPUT, y  samples in the order of training
                loss        of each step, before its update
                g/PARAM     gradients of the first step
                w/PARAM     parameters and running statistics after the last step
    NAME.json   batch, steps, loss, optimizer, shapes

Dropout is off: what it draws differs between programs.
"""
import copy
import inspect
import json
import shutil
import sys
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F

TESTS = Path(__file__).resolve().parent
sys.path[:0] = [str(TESTS / "bench"), str(TESTS.parent / "host/onnx")]
from onnx_nets import NETS  # noqa: E402
from ringpipe_export import export, output_of, trained, write_npz  # noqa: E402

BATCH, STEPS, SEED = 4, 10, 1
OPTIMIZER = {"kind": "sgd", "lr": 0.05, "momentum": 0.9}


def without_dropout(net):
    for module in net.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
        elif hasattr(module, "dropout") and isinstance(module.dropout, float):
            module.dropout = 0.0
    return net


def shake(net):
    """Norms begin with ones and zeros; here each element has a value of its own, so that no two
    tensors are alike."""
    with torch.no_grad():
        for name, value in trained(net).items():
            noise = torch.randn(value.shape)
            if name.endswith("running_var"):
                value.copy_(1 + 0.2 * noise.abs())
            elif value.ndim <= 1:
                value.add_(0.1 * noise)


def like(example, count):
    """`count` samples of the kind of an example, with ids that it has: a padding_idx of an
    Embedding is not in an ONNX model, so no sample has padding."""
    shape = (count, *example.shape[1:])
    if example.is_floating_point():
        return torch.randn(shape)
    return torch.randint(int(example.min()), int(example.max()) + 1, shape)


def train(net, inputs, classes, names):
    net = copy.deepcopy(net).double().train()
    params = dict(net.named_parameters())
    words = {key: value for key, value in OPTIMIZER.items() if key != "kind"}
    optimizer = torch.optim.SGD(net.parameters(), **words)
    losses, slopes = [], {}
    for first in range(0, STEPS * BATCH, BATCH):
        part = slice(first, first + BATCH)
        y = net(*[x[part].double() if x.is_floating_point() else x[part] for x in inputs])
        y = y.movedim(-1, 1) if y.ndim == 3 else y
        loss = F.cross_entropy(y, classes[part])
        optimizer.zero_grad()
        loss.backward()
        slopes = slopes or {name: p.grad.float() for name, p in params.items()}
        optimizer.step()
        losses.append(loss.item())
    return {"loss": torch.tensor(losses, dtype=torch.float64),
            **{f"x/{name}": x for name, x in zip(names, inputs)},
            "y": classes,
            **{f"g/{name}": slope for name, slope in slopes.items()},
            **{f"w/{name}": value.float() for name, value in trained(net).items()}}


def shape_of(x, counts=1):
    kind = "f32" if x.is_floating_point() else "i32"
    return {"shape": list(x.shape[counts:]), "type": kind}


def make(folder, name, key, form, opset):
    torch.manual_seed(SEED)
    net, examples = NETS[key]()
    without_dropout(net)
    shake(net)
    export(net, examples, folder / name, form, opset)
    shutil.copy(folder / name / "model.onnx", folder / f"{name}.onnx")
    names = list(inspect.signature(net.forward).parameters)[:len(examples)]
    inputs = [like(x, STEPS * BATCH) for x in examples]
    y = output_of(copy.deepcopy(net).eval(), examples)
    classes = torch.randint(0, y.shape[-1], (STEPS * BATCH, *y.shape[1:-1]))
    write_npz(folder / f"{name}.npz", train(net, inputs, classes, names))
    loss = {"kind": "cross-entropy", **({"classes_at": "last"} if y.ndim == 3 else {})}
    about = {"batch": BATCH, "steps": STEPS, "loss": loss, "optimizer": OPTIMIZER,
             "inputs": {key: shape_of(x) for key, x in zip(names, inputs)},
             "target": shape_of(classes), "output": list(y.shape[1:]),
             "batchnorm": any(isinstance(m, nn.modules.batchnorm._BatchNorm)
                              for m in net.modules())}
    (folder / f"{name}.json").write_text(json.dumps(about, indent=1) + "\n")


if __name__ == "__main__":
    make(Path(sys.argv[1]), *sys.argv[2:5], int(sys.argv[5]))
