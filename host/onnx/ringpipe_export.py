"""Exports a PyTorch net as ONNX so that `ringpipe import` can train it. Needs only torch.

    from ringpipe_export import export
    export(net, (x,), "folder")

x is an example of the input, with the batch first. The folder gets
    model.onnx         with dropout, and with every parameter under its name of the state_dict
    state.safetensors  parameters and running statistics, for `ringpipe import --names`
    check.npz          x/NAME of each input, and the outputs in evaluation (eval) and in training
                       (train: batch statistics, dropout), for `ringpipe import --check`

The net itself does not change. `form` is "dynamo" or "script" to use one of PyTorch's exporters;
otherwise dynamo comes first, and script if that fails. `opset` is the operator set: by default 20
of dynamo and 17 of script.
"""
import copy
import ctypes
import inspect
import json
import struct
import zipfile
from pathlib import Path

import torch

NORMS = torch.nn.modules.batchnorm._NormBase
NUMPY = {torch.float32: "<f4", torch.float64: "<f8", torch.int32: "<i4", torch.int64: "<i8"}


def training_copy(net):
    """Dropout drops. Batch normalisations evaluate, so that no statistics move during the export;
    an import trains them all the same."""
    net = copy.deepcopy(net).train()
    for module in net.modules():
        if isinstance(module, NORMS) and module.track_running_stats:
            module.eval()
    return net


def check_types(inputs, names):
    """Inputs are stored in check.npz, which has no bools and no 16-bit floats."""
    for name, x in zip(names, inputs):
        if x.dtype not in NUMPY:
            raise TypeError(
                f"input {name} is {x.dtype}: expected float32, float64, int32 or int64. Give a "
                "mask as int64, or half precision as float32, and convert it in forward().")


def attempts(net, inputs, names, path, form, opset):
    """Ways to export, as (words, function)."""
    usual = {"input_names": names, "output_names": ["y"]}
    old = "dynamo" not in inspect.signature(torch.onnx.export).parameters  # before torch 2.5
    if form != "script" and not old:
        batch = tuple({0: torch.export.Dim("batch")} for _ in inputs)
        for words, shapes in (("dynamo", batch), ("dynamo, fixed batch", None)):
            yield words, lambda shapes=shapes: torch.onnx.export(
                net, inputs, path, dynamo=True, optimize=False, opset_version=opset or 20,
                external_data=False, verbose=False, dynamic_shapes=shapes, **usual)
    if form != "dynamo":
        yield "script", lambda: torch.onnx.export(
            net, inputs, str(path), opset_version=opset or 17, do_constant_folding=False,
            training=torch.onnx.TrainingMode.PRESERVE,
            dynamic_axes={name: {0: "batch"} for name in names}, **usual,
            **({} if old else {"dynamo": False}))


def fields(data):
    """(number, bytes) of the fields of a protobuf message that contain bytes."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
    while at < len(data):
        key = varint()
        if key & 7 == 2:
            size = varint()
            yield key >> 3, data[at:at + size]
            at += size
        elif key & 7 == 0:
            varint()
        else:
            at += 8 if key & 7 == 1 else 4


def initialisers(path):
    """Names of the tensors of an ONNX file."""
    for number, graph in fields(memoryview(path.read_bytes())):
        for kind, tensor in fields(graph) if number == 7 else ():
            if kind == 5:
                yield from (bytes(name).decode() for key, name in fields(tensor) if key == 8)


def raw(tensor):
    tensor = tensor.detach().cpu().contiguous()
    return ctypes.string_at(tensor.data_ptr(), tensor.numel() * tensor.element_size())


def write_safetensors(path, tensors):
    head, at = {"__metadata__": {"format": "pt"}}, 0
    for name, tensor in tensors.items():
        size = 4 * tensor.numel()
        head[name] = {"dtype": "F32", "shape": list(tensor.shape), "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for tensor in tensors.values():
            file.write(raw(tensor.float()))


def write_npz(path, arrays):
    with zipfile.ZipFile(path, "w") as file:
        for name, tensor in arrays.items():
            text = str({"descr": NUMPY[tensor.dtype], "fortran_order": False,
                        "shape": tuple(tensor.shape)})
            text = text.ljust(-(len(text) + 11) % 64 + len(text)) + "\n"
            head = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode()
            file.writestr(name + ".npy", head + raw(tensor))


def output_of(net, inputs):
    """The first tensor of what the net returns."""
    with torch.no_grad():
        y = net(*inputs)
    while not isinstance(y, torch.Tensor):
        y = next(iter(y.values() if isinstance(y, dict) else y))
    return y if y.dtype in NUMPY else y.float()


def trained(net):
    """Parameters and running statistics by name; a shared tensor under its first name."""
    found = dict(net.named_parameters())
    for prefix, module in net.named_modules():
        if isinstance(module, NORMS) and module.track_running_stats:
            for name in ("running_mean", "running_var"):
                found[f"{prefix}.{name}" if prefix else name] = getattr(module, name)
    return found


def export(net, inputs, folder, form=None, opset=None):
    """Writes the three files; returns which exporter it was and the names that are missing."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    inputs = tuple(inputs)
    names = list(inspect.signature(net.forward).parameters)[:len(inputs)]
    check_types(inputs, names)
    reasons = []
    for words, write in attempts(training_copy(net), inputs, names, folder / "model.onnx", form,
                                 opset):
        try:
            write()
            break
        except Exception as error:  # PyTorch's exporters raise many types
            reasons.append(f"{words}: {type(error).__name__}: {str(error).strip()[:300]}")
    else:
        raise RuntimeError("no exporter can write this net:\n" + "\n".join(reasons))
    tensors = trained(net)
    missing = sorted(set(tensors) - set(initialisers(folder / "model.onnx")))
    if missing:
        print(f"{folder}: these parameters are not in model.onnx: {', '.join(missing)}")
    write_safetensors(folder / "state.safetensors", tensors)
    write_npz(folder / "check.npz",
              {**{f"x/{name}": x for name, x in zip(names, inputs)},
               "eval": output_of(copy.deepcopy(net).eval(), inputs),
               "train": output_of(copy.deepcopy(net).train(), inputs)})
    return words, missing
