"""What the makers of golden files share: drawn values, cases, the safetensors writer.

A golden file holds cases. A case is one layer with its inputs, what PyTorch computed in float64,
rounded to float32, and a line of JSON in the file's metadata:
    <case>: {"n": 3, "in": [[31, 9, 9]], "training": true, "relu": false,
             "layer": {"name": ..., "kind": ...}}
Tensors are called <case>/<what>: y, dx0, dx1, d<suffix> (of a parameter) are results. The inputs
x0, x1, dy, <suffix> stand in the file only when they are special; else both sides draw them with
values(), so that they cost no bytes. dy is the gradient of y in a loss of sum(y * dy).
tests/nn/golden.c is the reader."""
import json
import struct

import numpy as np
import torch


def values(stream, shape):
    """float32 in [-1, 1), element i a hash of (stream, i); golden_values() in C gives the same."""
    seed = 0x811C9DC5
    for byte in stream.encode():
        seed = ((seed ^ byte) * 0x01000193) & 0xFFFFFFFF
    count = int(np.prod(shape, dtype=np.int64))
    h = (np.arange(count, dtype=np.uint64) * 0x9E3779B9 + seed) & 0xFFFFFFFF
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        h = ((h ^ (h >> np.uint64(shift))) * np.uint64(factor)) & np.uint64(0xFFFFFFFF)
    h ^= h >> np.uint64(16)
    return ((h >> np.uint64(8)).astype(np.float32) * np.float32(2**-23) - np.float32(1)).reshape(
        shape)


def double(array):
    return torch.tensor(np.asarray(array), dtype=torch.float64)


class File:
    """Collects the cases of tests/golden/<stem>.safetensors."""

    def __init__(self, stem):
        self.stem = stem
        self.tensors = {}
        self.meta = {"cases": ""}

    def tensor(self, name, array):
        assert name not in self.tensors
        self.tensors[name] = np.ascontiguousarray(array, dtype=np.float32)

    def describe(self, case, facts):
        assert case not in self.meta
        self.meta["cases"] = (self.meta["cases"] + " " + case).strip()
        self.meta[case] = json.dumps(facts)

    def layer(self, case, kind, keys, n, inputs, run, params=None, training=True, special=None,
              relu=False, ids=None, rel=None):
        """run(xs, params) -> y, in float64. inputs: sample shapes. params: suffix -> shape.
        special: what -> array for inputs that are not drawn. relu: the layer is asked to do the
        work of a relu behind it; run() then includes it. ids: input -> array of token ids, which
        has no gradient. rel: allowed relative error, if it is not GOLDEN_REL of golden.h. Returns
        the drawn float64 tensors."""
        special = special or {}
        ids = ids or {}
        facts = {"n": n, "in": [list(s) for s in inputs], "training": training,
                 "relu": relu, "layer": {"name": "l", "kind": kind, **keys}}
        if rel:
            facts["rel"] = rel
        self.describe(case, facts)

        def get(what, shape):
            if what in special:
                array = np.asarray(special[what], dtype=np.float32).reshape(shape)
                self.tensor(f"{case}/{what}", array)
            else:
                array = values(f"{case}/{what}", shape)
            return double(array)

        def get_ids(i, shape):
            array = np.asarray(ids[i]).reshape(shape)
            self.tensor(f"{case}/x{i}", array.astype(np.float32))
            return torch.tensor(array, dtype=torch.int64)

        xs = [get_ids(i, (n, *s)) if i in ids else get(f"x{i}", (n, *s)).requires_grad_()
              for i, s in enumerate(inputs)]
        ps = {k: get(k, s).requires_grad_() for k, s in (params or {}).items()}
        y = run(xs, ps)
        dy = get("dy", tuple(y.shape))
        y.backward(dy)
        self.tensor(f"{case}/y", y.detach().numpy())
        for i, x in enumerate(xs):
            if i not in ids:
                self.tensor(f"{case}/dx{i}", x.grad.numpy())
        for k, p in ps.items():
            if p.grad is not None:
                self.tensor(f"{case}/d{k}", p.grad.numpy())
        return xs, ps, y, dy

    def loss(self, case, n, k, y, target, loss, **more):
        """<case>/y, target, loss (one a sample), dy; the gradient is of the mean."""
        self.describe(case, {"n": n, "outputs": k, "loss": case.split("_")[0], **more})
        for what, tensor in (("y", y), ("target", target), ("loss", loss), ("dy", y.grad)):
            self.tensor(f"{case}/{what}", tensor.detach().numpy())

    def bytes(self):
        header = {"__metadata__": self.meta}
        offset = 0
        for name, array in self.tensors.items():
            header[name] = {"dtype": "F32", "shape": list(array.shape),
                            "data_offsets": [offset, offset + array.nbytes]}
            offset += array.nbytes
        text = json.dumps(header, separators=(",", ":")).encode()
        text += b" " * (-len(text) % 8)
        data = b"".join(array.tobytes() for array in self.tensors.values())
        return struct.pack("<Q", len(text)) + text + data

    def same(self, old):
        """Is `old`, the bytes of a golden file, the same but for roundings of the last digit? So a
        new PyTorch does not rewrite what is there."""
        count = struct.unpack("<Q", old[:8])[0]
        header, data = json.loads(old[8:8 + count]), old[8 + count:]
        if facts_of(header.pop("__metadata__")) != facts_of(self.meta) or \
                list(header) != list(self.tensors):
            return False
        for name, array in self.tensors.items():
            first, end = header[name]["data_offsets"]
            was = np.frombuffer(data[first:end], dtype=np.float32)
            if header[name]["shape"] != list(array.shape) or not np.allclose(
                    was, array.reshape(-1), rtol=1e-6, atol=1e-7, equal_nan=True):
                return False
        return True


def facts_of(meta):
    """Cases and their facts; `relu` is false where it is not said."""
    return {name: text if name == "cases" else {"relu": False, **json.loads(text)}
            for name, text in meta.items()}
