"""The half of test_export.py that needs onnxruntime, onnx and torch; it runs in a Python that has
them. What it is asked comes as JSON on standard input, the answer leaves on standard output."""
import json
import struct
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime


def read_safetensors(path):
    """Names with arrays."""
    raw = Path(path).read_bytes()
    (size,) = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8 : 8 + size])
    header.pop("__metadata__", None)
    out = {}
    for name, entry in header.items():
        first, end = (8 + size + at for at in entry["data_offsets"])
        out[name] = np.frombuffer(raw[first:end], "<f4").reshape(entry["shape"])
    return out


def draw_inputs(session, ask):
    """Values for each input; ids end with padding, of another length in each sample."""
    draw = np.random.default_rng(5)
    inputs = {}
    for value in session.get_inputs():
        shape = [ask["samples"], *value.shape[1:]]
        if value.type == "tensor(int64)":
            inputs[value.name] = draw.integers(1, ask["tokens"], shape)
            for row in range(1, ask["samples"]):
                inputs[value.name][row, shape[1] - row :] = 0
        else:
            inputs[value.name] = draw.standard_normal(shape).astype("f4")
    return inputs


def run(ask):
    """Checks the models, runs some of them on drawn samples, and writes these and the outputs."""
    folder = Path(ask["folder"])
    for name in ask["nets"] + ask["check"]:
        onnx.checker.check_model(folder / f"{name}.onnx", full_check=True)
    for name in ask["nets"]:
        session = onnxruntime.InferenceSession(folder / f"{name}.onnx",
                                               providers=["CPUExecutionProvider"])
        inputs = draw_inputs(session, ask)
        y = session.run(None, inputs)
        (folder / f"{name}.raw").write_bytes(y[0].astype("<f4").tobytes())
    kind = "<i4" if next(iter(inputs.values())).dtype == np.int64 else "<f4"
    (folder / "x.raw").write_bytes(
        np.concatenate(list(inputs.values()), 1).astype(kind).tobytes())
    return {"outputs": len(y), "inputs": list(inputs), "batch": session.get_inputs()[0].shape[0]}


def load(ask):
    """A torchvision net takes the file with strict=True; its outputs."""
    import torch
    import torchvision
    folder = Path(ask["folder"])
    net = getattr(torchvision.models, ask["net"])(num_classes=ask["classes"])
    tensors = read_safetensors(folder / "s.safetensors")
    net.load_state_dict({name: torch.from_numpy(value.copy()) for name, value in tensors.items()},
                        strict=True)
    x = np.frombuffer((folder / "x.raw").read_bytes(), "<f4")
    x = torch.from_numpy(x.reshape(ask["samples"], *ask["shape"]).copy())
    with torch.no_grad():
        y = net.eval()(x)
    (folder / "torch.raw").write_bytes(y.numpy().astype("<f4").tobytes())
    return {"tensors": len(tensors)}


if __name__ == "__main__":
    question = json.load(sys.stdin)
    json.dump({"run": run, "load": load}[question["do"]](question), sys.stdout)
