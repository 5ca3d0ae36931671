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
    """Names with arrays, and the metadata."""
    raw = Path(path).read_bytes()
    (size,) = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8 : 8 + size])
    meta = header.pop("__metadata__", {})
    out = {}
    for name, entry in header.items():
        first, end = (8 + size + at for at in entry["data_offsets"])
        out[name] = np.frombuffer(raw[first:end], "<f4").reshape(entry["shape"])
    return out, meta


def run(ask):
    """Checks the model, runs it on drawn samples, and writes these and its outputs."""
    path = ask["onnx"]
    onnx.checker.check_model(path, full_check=True)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    draw = np.random.default_rng(5)
    inputs = {}
    for value in session.get_inputs():
        shape = [ask["samples"], *value.shape[1:]]
        if value.type == "tensor(int64)":
            ids = draw.integers(1, ask["tokens"], shape)
            for row in range(1, ask["samples"]):  # padding at the end, of another length each
                ids[row, shape[1] - row :] = 0
            inputs[value.name] = ids
        else:
            inputs[value.name] = draw.standard_normal(shape).astype("f4")
    y = session.run(None, inputs)
    kind = "<i4" if next(iter(inputs.values())).dtype == np.int64 else "<f4"
    Path(ask["x"]).write_bytes(np.concatenate(list(inputs.values()), 1).astype(kind).tobytes())
    Path(ask["y"]).write_bytes(y[0].astype("<f4").tobytes())
    return {"outputs": len(y), "inputs": list(inputs), "shape": list(y[0].shape),
            "names": [value.name for value in session.get_outputs()],
            "batch": session.get_inputs()[0].shape[0]}


def compare(ask):
    """The largest difference of two files of numbers, and the largest number."""
    a, b = (np.frombuffer(Path(ask[key]).read_bytes(), "<f4").astype("f8") for key in ("a", "b"))
    if a.shape != b.shape or not np.isfinite(a).all() or not np.isfinite(b).all():
        return {"difference": None, "largest": None, "spread": 0}
    return {"difference": float(np.abs(a - b).max()), "largest": float(np.abs(a).max()),
            "spread": float(a.std())}


def load(ask):
    """A torchvision net takes the file with strict=True but for counters; its outputs."""
    import torch
    import torchvision
    net = getattr(torchvision.models, ask["net"])(num_classes=ask["classes"])
    tensors, meta = read_safetensors(ask["weights"])
    state = {name: torch.from_numpy(value.copy()) for name, value in tensors.items()}
    own = net.state_dict()
    for name in own:
        if name.endswith("num_batches_tracked"):
            state[name] = own[name]
    net.load_state_dict(state, strict=True)
    shape = [ask["samples"], *ask["shape"]]
    x = torch.from_numpy(np.frombuffer(Path(ask["x"]).read_bytes(), "<f4").reshape(shape).copy())
    with torch.no_grad():
        y = net.eval()(x)
    Path(ask["torch"]).write_bytes(y.numpy().astype("<f4").tobytes())
    return {"tensors": len(tensors), "meta": meta}


if __name__ == "__main__":
    question = json.load(sys.stdin)
    json.dump({"run": run, "compare": compare, "load": load}[question["do"]](question), sys.stdout)
