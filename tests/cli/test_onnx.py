"""import and inspect of ONNX models: tiny ones that are written here, and PyTorch's nets with their
weights after ten steps, where a folder shared/reference/models is next to the project."""
import json
import math
import os
import random
import re
import struct
import subprocess
import sys
import unittest
import zipfile

import npz
import onnx_file as onnx
from program import SOURCE, Case, few_when_short, main, patient, steps_of

REFERENCE = SOURCE.parent / "shared" / "reference" / "models"

UNFUSED_STEPS = 3

# A net whose running statistics are those of a batch, and that stay as they are.
EXPORT = """
import sys, torch
from torch import nn
sys.path.insert(0, sys.argv[1])
from ringpipe_export import export
torch.manual_seed(1)
net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Dropout(0.2),
                    nn.Flatten(), nn.Linear(64, 3))
x = torch.randn(5, 1, 6, 6)
net(x)
before = {name: value.clone() for name, value in net.state_dict().items()}
words, missing = export(net, (x,), sys.argv[2], "script")
print(missing, all(torch.equal(value, before[name]) for name, value in net.state_dict().items()))
"""

# Inputs of types that check.npz does not have.
MASKED = """
import sys, torch
from torch import nn
sys.path.insert(0, sys.argv[1])
from ringpipe_export import export

class Net(nn.Module):
    def forward(self, x, mask):
        return x * mask

x, mask = torch.randn(2, 3), torch.ones(2, 3, dtype=torch.bool)
for inputs in ((x, mask), (x.half(), mask.long())):
    try:
        export(Net(), inputs, sys.argv[2])
    except TypeError as error:
        print("TypeError:", error)
"""


def python_with(*modules):
    """The first Python that has them. They are not loaded, which can take minutes."""
    has = ("import sys; from importlib.util import find_spec; "
           "sys.exit(not all(map(find_spec, sys.argv[1:])))")
    for python in filter(None, (os.environ.get("RP_PYTHON"), sys.executable, "/usr/bin/python3")):
        if os.access(python, os.X_OK) and subprocess.run(
                [python, "-c", has, *modules], capture_output=True, check=False).returncode == 0:
            return python
    return None


TORCH = python_with("torch")
DYNAMO = python_with("torch", "onnxscript")

# Reference nets: in the short form only the first ones.
NETS = ("lenet-bn", "resnet-mini", "squeeze-mini", "autoencoder", "char-lstm", "gpt-mini")


def net(batch="batch", extra=(), weights=None):
    """x [batch, 3] -> linear -> relu -> linear [batch, 2]."""
    first = weights or onnx.tensor("a.weight", (4, 3), [0.5] * 12)
    return onnx.model(
        [onnx.node("Gemm", ["x", "a.weight", "a.bias"], ["h"], transB=1),
         onnx.node("Relu", ["h"], ["r"]),
         *extra,
         onnx.node("Gemm", ["r", "b.weight"], ["y"], transB=1)],
        [first, onnx.tensor("a.bias", (4,), [1, 2, 3, 4]),
         onnx.tensor("b.weight", (2, 4), [0.25] * 8)],
        [onnx.value("x", (batch, 3))], [onnx.value("y", (batch, 2))])


class Files(Case):
    def write(self, data, name="net.onnx"):
        path = self.dir / name
        path.write_bytes(data)
        return path

    def convert(self, path, *words, code=0):
        return self.ringpipe("import", path, "-o", self.dir / "net.yaml", "--weights",
                             self.dir / "net.safetensors", *words, code=code)

    def refusal(self, path, *words):
        """The message; nothing is written."""
        _, err = self.convert(path, *words, code=2)
        left = {p.name for p in self.dir.iterdir()}
        self.assertFalse({name for name in left if name.startswith(("net.yaml", "net.safe"))}, left)
        return err


class Small(Files):
    def test_both_files_are_written(self):
        out, _ = self.convert(self.write(net()))
        self.assertIn("3 layers", out)
        text = (self.dir / "net.yaml").read_text()
        self.assertEqual(re.sub(r" *#.*", "", text).split("\n")[2:], [
            "input: [3]",
            "onnx: {inputs: [x], outputs: [y]}",
            "layers:",
            "  - {name: a, kind: dense, out: 4}",
            "  - {name: r, kind: relu}",
            "  - {name: b, kind: dense, out: 2, bias: false}",
            ""])
        tensors = npz.read_safetensors(self.dir / "net.safetensors")
        self.assertEqual(tensors["a.bias"], ([4], (1.0, 2.0, 3.0, 4.0)))
        self.assertEqual(set(tensors), {"a.weight", "a.bias", "b.weight"})
        out, _ = self.ringpipe("inspect", self.dir / "net.yaml")
        self.assertIn("for each sample of [3]", out)

    def test_json(self):
        out, _ = self.convert(self.write(net()), "--format", "json")
        told = json.loads(out)
        self.assertEqual((told["layers"], told["tensors"], told["parameters"]), (3, 3, 24))
        self.assertEqual((told["fused"], told["elementary"]), ({"dense": 2, "relu": 1}, {}))
        out, _ = self.ringpipe("inspect", self.dir / "net.onnx", "--format", "json")
        told = json.loads(out)
        self.assertEqual(told["operators"], {"Gemm": 2, "Relu": 1})
        self.assertEqual(told["inputs"], [{"name": "x", "type": "FLOAT [batch, 3]",
                                           "shape": ["batch", 3]}])
        self.assertEqual((told["imports"], told["findings"]), (True, []))

    def test_files_are_not_replaced_unasked(self):
        path = self.write(net())
        (self.dir / "net.yaml").write_text("mine")
        _, err = self.convert(path, code=2)
        self.assertIn("exists already; replace it with --yes", err)
        self.assertEqual((self.dir / "net.yaml").read_text(), "mine")
        self.convert(path, "--yes")
        self.assertIn("layers:", (self.dir / "net.yaml").read_text())
        err = self.refused("import", path, "-o", path, "--weights", self.dir / "w", "--yes")
        self.assertIn("one of the files that are read", err)
        err = self.refused("import", path, "-o", self.dir / "w", "--weights", self.dir / "w")
        self.assertIn("are one file", err)

    def test_all_reasons_come_at_once(self):
        extra = [onnx.node("GridSample", ["r"], ["g"]), onnx.node("Fused", ["g"], ["f"],
                                                                 domain="com.microsoft")]
        data = net(extra=extra).replace(b"\x0a\x01r\x0a\x08b.weight", b"\x0a\x01f\x0a\x08b.weight")
        path = self.write(data)
        err = self.refusal(path)
        self.assertIn("GridSample: this operator cannot be trained here: node /g/GridSample "
                      "(output g)", err)
        self.assertIn("Fused: domain com.microsoft: only operators of ai.onnx can be read", err)
        self.assertIn("nothing was written, for 2 reasons", err)
        out, _ = self.ringpipe("inspect", path)
        self.assertIn("net.onnx: hand 1.0, IR version 8", out)
        self.assertIn("import would refuse it", out)
        self.assertIn("GridSample", out)
        out, _ = self.ringpipe("inspect", path, "--format", "json")
        self.assertEqual([f["op"] for f in json.loads(out)["findings"]], ["GridSample", "Fused"])

    def test_a_file_without_a_producer(self):
        path = self.write(net().replace(b"\x12\x04hand\x1a\x031.0", b""))
        out, _ = self.ringpipe("inspect", path)
        self.assertIn("net.onnx: unknown producer, IR version 8, opset 17\n", out)

    def test_twenty_reasons_and_a_count(self):
        extra = [onnx.node(f"Strange{i}", ["r" if i == 0 else f"s{i - 1}"], [f"s{i}"])
                 for i in range(25)]
        data = onnx.model(
            [onnx.node("Relu", ["x"], ["r"]), *extra], [], [onnx.value("x", ("batch", 3))],
            [onnx.value("s24", ("batch", 2))])
        err = self.refusal(self.write(data))
        self.assertEqual(err.count("cannot be trained here"), 20)
        self.assertIn("and 5 more reasons", err)

    def test_versions(self):
        data = onnx.model([onnx.node("Relu", ["x"], ["y"])], [], [onnx.value("x", ("n", 3))],
                          [onnx.value("y", ("n", 3))], opset=9)
        self.assertIn("opset 9: 13 to 23 can be read", self.refusal(self.write(data)))

    def test_shapes(self):
        data = onnx.model([onnx.node("Gather", ["e.weight", "tokens"], ["y"])],
                          [onnx.tensor("e.weight", (5, 2), [0.0] * 10)],
                          [onnx.value("tokens", ("batch", "time"), onnx.INT64)],
                          [onnx.value("y", ("batch", "time", 2))])
        path = self.write(data)
        self.assertIn("input tokens has a free dimension `time`: give it, --shape tokens=N,...",
                      self.refusal(path))
        self.assertIn("no input is called 'ids'", self.refusal(path, "--shape", "ids=N,4"))
        self.assertIn("has 2 sizes, found 3", self.refusal(path, "--shape", "tokens=N,4,4"))
        self.convert(path, "--shape", "tokens=N,4")
        self.assertIn("{shape: [4], type: i32}", (self.dir / "net.yaml").read_text())

    def test_elementary(self):
        """Operators that no kind joins: how many, and what is stored of their constants."""
        data = onnx.model(
            [onnx.node("Exp", ["x"], ["e"]), onnx.node("Sub", ["e", "a.shift"], ["s"]),
             onnx.node("Where", ["mask", "s", "val_1"], ["m"]),
             onnx.node("Softmax", ["m"], ["p"]), onnx.node("Exp", ["p"], ["q"]),
             onnx.node("Gemm", ["q", "b.weight"], ["y"], transB=1)],
            [onnx.tensor("a.shift", (3,), [1, 2, 3]),
             onnx.tensor("mask", (3,), [1, 0, 1], onnx.INT64),
             onnx.tensor("val_1", (1,), [float("-inf")]),
             onnx.tensor("b.weight", (2, 3), [0.25] * 6)],
            [onnx.value("x", ("batch", 3))], [onnx.value("y", ("batch", 2))])
        out, _ = self.convert(self.write(data), "--format", "json")
        told = json.loads(out)
        self.assertEqual(told["elementary"], {"Exp": 2, "Sub": 1, "Where": 1, "Softmax": 1})
        self.assertEqual(told["fused"], {"dense": 1, "parameter": 1, "constant": 2})
        self.assertEqual(told["parameters"], 9)
        self.assertTrue(any("largest float32" in text for text in told["assumed"]),
                        told["assumed"])
        tensors = npz.read_safetensors(self.dir / "net.safetensors")
        self.assertEqual(tensors["a.shift"], ([3], (1.0, 2.0, 3.0)))
        self.assertEqual(tensors["mask"], ([3], (1.0, 0.0, 1.0)))
        least = [name for name in tensors if name.endswith("constant.weight")]
        self.assertEqual(len(least), 1, list(tensors))
        self.assertLess(tensors[least[0]][1][0], -3.4e38)

    def test_damaged_files(self):
        data = net()
        self.assertIn("is no valid protobuf", self.refusal(self.write(data[:-30])))
        self.assertIn("is not an ONNX model", self.refusal(self.write(b"")))
        wrong = onnx.tensor("a.weight", (4, 3), [0.5] * 11)
        err = self.refusal(self.write(net(weights=wrong)))
        self.assertIn("a.weight: raw data has 44 bytes, the shape [4, 3] of FLOAT needs 48", err)
        err = self.refused("inspect", self.dir / "none.onnx")
        self.assertIn("none.onnx", err)
        bad = onnx.tensor("a.weight", (4, 3), [float("nan")] * 12)
        self.assertIn("a value that is not finite", self.refusal(self.write(net(weights=bad))))


def safetensors(tensors):
    """A file of F32 tensors: {name: (shape, numbers)}."""
    head, data = {}, b""
    for name, (shape, numbers) in tensors.items():
        head[name] = {"dtype": "F32", "shape": shape,
                      "data_offsets": [len(data), len(data) + 4 * len(numbers)]}
        data += struct.pack(f"<{len(numbers)}f", *numbers)
    text = json.dumps(head).encode()
    return struct.pack("<Q", len(text)) + text + data


class Options(Files):
    """What is a parameter, which layers share one, and which are trained."""

    def lines(self):
        text = (self.dir / "net.yaml").read_text()
        return [re.sub(r" *#.*", "", line) for line in text.split("\n") if "name:" in line]

    def test_freeze(self):
        path = self.write(net())
        out, _ = self.convert(path, "--freeze", "a", "--format", "json")
        self.assertEqual(json.loads(out)["parameters"], 8)
        self.assertEqual(self.lines()[0], "  - {name: a, kind: dense, out: 4, train: false}")
        (self.dir / "net.yaml").unlink()
        (self.dir / "net.safetensors").unlink()
        self.assertIn("--freeze: 'conv*' matches no layer of the model",
                      self.refusal(path, "--freeze", "conv*"))

    def test_names(self):
        path = self.write(net())
        state = self.dir / "state.safetensors"
        state.write_bytes(safetensors({"a.weight": ([4, 3], [0.0] * 12),
                                       "c.weight": ([1], [0.0])}))
        err = self.refusal(path, "--names", state)
        self.assertIn(f"1 parameters of {state} are not in the file (c.weight): the exporter "
                      "folded them, or merged equal values: export again with "
                      "ringpipe_export.py", err)
        self.assertIn("are not in the file", self.convert(path, "--names", state,
                                                          "--accept-folded")[0])
        self.assertIn("is one of the files that are read",
                      self.refused("import", path, "-o", self.dir / "n.yaml", "--weights", state,
                                   "--names", state, "--yes"))
        self.assertIn("none.safetensors",
                      self.refused("import", path, "-o", self.dir / "n.yaml", "--weights",
                                   self.dir / "n.safetensors", "--names",
                                   self.dir / "none.safetensors"))

    def test_weights_that_are_also_computed_with(self):
        """A layer trains them whether it comes before the other node or after it."""
        nodes = [onnx.node("MatMul", ["x", "fc.weight"], ["h"], name="/fc/MatMul"),
                 onnx.node("Mul", ["fc.weight", "two"], ["w2"], name="/Mul"),
                 onnx.node("MatMul", ["h", "w2"], ["y"], name="/out/MatMul")]
        found = []
        for order in ((0, 1, 2), (1, 0, 2)):
            path = self.write(onnx.model(
                [nodes[i] for i in order],
                [onnx.tensor("fc.weight", (4, 4), range(16)), onnx.tensor("two", (), [2.0])],
                [onnx.value("x", ("batch", 4))], [onnx.value("y", ("batch", 4))]))
            out, _ = self.convert(path, "--format", "json")
            found.append(json.loads(out))
            self.assertEqual(found[-1]["parameters"], 16)
            self.assertIn("fc.weight of /Mul is a constant there", json.dumps(found[-1]))
            (self.dir / "net.yaml").unlink()
            (self.dir / "net.safetensors").unlink()
        self.assertEqual(*found)

    def test_one_number(self):
        """A script export does not say whether it is a parameter."""
        path = self.write(onnx.model(
            [onnx.node("MatMul", ["x", "fc.weight"], ["h"], name="/fc/MatMul"),
             onnx.node("Mul", ["h", "scale"], ["y"], name="/Mul")],
            [onnx.tensor("fc.weight", (4, 4), range(16)), onnx.tensor("scale", (), [1.5])],
            [onnx.value("x", ("batch", 4))], [onnx.value("y", ("batch", 4))]))
        self.assertIn("scale is one number and a constant; --names trains it if it is a parameter",
                      self.convert(path)[0])

    def tied(self):
        """Two linear layers that have one weight."""
        return onnx.model(
            [onnx.node("Gemm", ["x", "a.weight"], ["h"], name="/a/Gemm"),
             onnx.node("Gemm", ["h", "a.weight"], ["r"], name="/b/Gemm"),
             onnx.node("Gemm", ["r", "c.weight"], ["y"], name="/c/Gemm")],
            [onnx.tensor("a.weight", (3, 3), range(9)), onnx.tensor("c.weight", (3, 3), range(9))],
            [onnx.value("x", ("batch", 3))], [onnx.value("y", ("batch", 3))])

    def test_tied(self):
        path = self.write(self.tied())
        out, _ = self.convert(path, "--format", "json")
        told = json.loads(out)
        self.assertEqual((told["tied"], told["tensors"]), ([["a.weight", "b.weight"]], 2))
        self.assertIn("names: {weight: a.weight}", self.lines()[1])
        out, _ = self.convert(path, "--untie", "--format", "json", "--yes")
        told = json.loads(out)
        self.assertEqual((told["tied"], told["tensors"]), ([], 3))
        tensors = npz.read_safetensors(self.dir / "net.safetensors")
        self.assertEqual(tensors["a.weight"], tensors["b.weight"])
        self.assertIn("tied", self.refused("import", path, "-o", self.dir / "n.yaml", "--weights",
                                           self.dir / "n.safetensors", "--tied", "all"))


class Check(Files):
    """--check: the outputs of another framework."""

    X = [1.0, 2.0, 3.0, -1.0, 0.5, 0.25]
    Y = [5.5, 5.5, 2.375, 2.375]

    def arrays(self, arrays, compression=zipfile.ZIP_STORED):
        with zipfile.ZipFile(self.dir / "check.npz", "w", compression) as file:
            for name, (kind, shape, numbers) in arrays.items():
                npz.write_npy(self.dir / "one.npy", kind, shape, numbers)
                file.write(self.dir / "one.npy", name + ".npy")
        return self.dir / "check.npz"

    def usual(self, **changes):
        return {"x/x": ("f4", (2, 3), self.X), "eval": ("f4", (2, 2), self.Y), **changes}

    def test_equal_outputs(self):
        path = self.write(net())
        for compression in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            arrays = self.arrays(self.usual(), compression)
            out, _ = self.convert(path, "--check", arrays, "--yes")
            self.assertIn(f"{arrays}: 2 samples, largest relative error", out)
        arrays = self.arrays(self.usual(eval=("f8", (2, 2), self.Y)))
        out, _ = self.convert(path, "--check", arrays, "--yes", "--format", "json")
        told = json.loads(out)["check"]
        self.assertEqual(told["samples"], 2)
        self.assertLessEqual(told["error"], 1e-6)
        self.assertFalse(told["same_outputs"])

    def test_the_same_outputs(self):
        """A check that shows little says so: a head of zeros, for example."""
        arrays = self.arrays({"x/x": ("f4", (2, 3), self.X[:3] * 2),
                              "eval": ("f4", (2, 2), self.Y[:2] * 2)})
        out, _ = self.convert(self.write(net()), "--check", arrays)
        self.assertIn("the same for all samples", out)

    def test_other_outputs(self):
        arrays = self.arrays(self.usual(eval=("f4", (2, 2), [*self.Y[:3], 2.376])))
        out, err = self.convert(self.write(net()), "--check", arrays, code=2)
        self.assertIn("the imported net computes something else: the largest relative error is "
                      "0.00018, expected at most 0.0001", err)
        self.assertIn("net.safetensors were written before this, and stay", err)
        self.assertIn("2 samples", out)
        self.assertTrue((self.dir / "net.yaml").exists())

    def test_a_softmax_at_the_end(self):
        for op, function in (("Softmax", lambda x: x), ("LogSoftmax", math.log)):
            data = onnx.model(
                [onnx.node("Gemm", ["x", "a.weight"], ["h"]), onnx.node(op, ["h"], ["y"])],
                [onnx.tensor("a.weight", (3, 2), [1, 0, 0, 1, 0, 0])],
                [onnx.value("x", ("batch", 3))], [onnx.value("y", ("batch", 2))])
            wanted = []
            for a, b in ((1.0, 2.0), (-1.0, 0.5)):
                total = math.exp(a) + math.exp(b)
                wanted += [function(math.exp(a) / total), function(math.exp(b) / total)]
            arrays = self.arrays(self.usual(eval=("f4", (2, 2), wanted)))
            self.convert(self.write(data), "--check", arrays, "--yes")

    def test_ids(self):
        data = onnx.model([onnx.node("Gather", ["e.weight", "tokens"], ["y"])],
                          [onnx.tensor("e.weight", (5, 2), range(10))],
                          [onnx.value("tokens", ("batch", 3), onnx.INT64)],
                          [onnx.value("y", ("batch", 3, 2))])
        path = self.write(data)
        good = {"x/tokens": ("i8", (1, 3), [4, 0, 2]), "eval": ("f4", (1, 3, 2),
                                                              [8, 9, 0, 1, 4, 5])}
        self.convert(path, "--check", self.arrays(good))
        bad = {**good, "x/tokens": ("f4", (1, 3), [4, 0, 2])}
        _, err = self.convert(path, "--check", self.arrays(bad), "--yes", code=2)
        self.assertIn("x/tokens has floats, expected whole numbers", err)
        bad = {**good, "x/tokens": ("i8", (1, 3), [4, -1, 2])}
        _, err = self.convert(path, "--check", self.arrays(bad), "--yes", code=2)
        self.assertIn("value 1 of sample 0 is -1", err)

    def test_files_that_do_not_fit(self):
        path = self.write(net())
        for arrays, words in (
            ({"eval": ("f4", (2, 2), self.Y)}, "has no array 'x/x'"),
            ({"x/x": ("f4", (2, 3), self.X)}, "has no array 'eval'"),
            (self.usual(eval=("f4", (2, 1), self.Y[:2])), "a sample has 1 values, expected the "
                                                          "net's 2"),
            (self.usual(eval=("f4", (1, 2), self.Y[:2])), "x/x has 2 samples, eval has 1"),
            (self.usual(**{"x/x": ("f4", (2, 2), self.X[:4])}), "another shape than the input"),
            (self.usual(eval=("f4", (2, 2), [*self.Y[:3], float("nan")])), "is not finite"),
        ):
            _, err = self.convert(path, "--check", self.arrays(arrays), "--yes", code=2)
            self.assertIn(words, err)
            self.assertIn("were written before this, and stay", err)

    def test_damaged_files(self):
        path = self.write(net())
        whole = self.arrays(self.usual()).read_bytes()
        packed = self.arrays(self.usual(), zipfile.ZIP_DEFLATED).read_bytes()
        broken = self.dir / "broken.npz"
        flipped = bytearray(whole)
        flipped[whole.index(b"NUMPY") + 130] ^= 1  # a number: the checksum finds it
        for data in (b"", b"no archive", whole[:100], whole[: len(whole) // 2],
                     packed[: len(packed) // 2], bytes(flipped),
                     whole.replace(b"NUMPY", b"NUMPI")):
            broken.write_bytes(data)
            err = self.refusal(path, "--check", broken)
            self.assertIn("broken.npz", err)
        with zipfile.ZipFile(broken, "w") as file:
            file.writestr("eval.txt", "none")
        self.assertIn("expected arrays NAME.npy only", self.refusal(path, "--check", broken))
        self.assertIn("none.npz", self.refusal(path, "--check", self.dir / "none.npz"))


@unittest.skipUnless(TORCH, "no Python here has torch (python3-torch)")
class Exported(Files):
    """ringpipe_export.py, and the files that it writes."""

    def test_a_net_with_norms_and_dropout(self):
        found = subprocess.run(
            [TORCH, "-c", EXPORT, str(SOURCE / "host/onnx"), str(self.dir / "net")],
            capture_output=True, text=True, timeout=patient(120), check=False)
        self.assertEqual(found.returncode, 0, found.stderr)
        self.assertEqual(found.stdout.split(), ["[]", "True"], "missing names; statistics moved")
        out, _ = self.convert(self.dir / "net/model.onnx", "--names",
                              self.dir / "net/state.safetensors", "--check",
                              self.dir / "net/check.npz", "--format", "json")
        told = json.loads(out)
        self.assertEqual(told["fused"], {"conv2d": 1, "batchnorm": 1, "relu": 1, "dropout": 1,
                                         "flatten": 1, "dense": 1})
        self.assertLessEqual(told["check"]["error"], 1e-5)
        state = npz.read_safetensors(self.dir / "net/state.safetensors")
        self.assertEqual(state, npz.read_safetensors(self.dir / "net.safetensors"))


    def test_inputs_that_cannot_be_stored(self):
        found = subprocess.run(
            [TORCH, "-c", MASKED, str(SOURCE / "host/onnx"), str(self.dir / "net")],
            capture_output=True, text=True, timeout=patient(120), check=False)
        self.assertEqual(found.returncode, 0, found.stderr)
        self.assertEqual(found.stdout.splitlines(), [
            f"TypeError: input {name} is torch.{kind}: expected float32, float64, int32 or int64. "
            "Give a mask as int64, or half precision as float32, and convert it in forward()."
            for name, kind in (("mask", "bool"), ("x", "float16"))])
        self.assertFalse((self.dir / "net/model.onnx").exists())


class External(Files):
    """Data in files of their own."""

    def with_data(self, *entries):
        return self.write(net(weights=onnx.external("a.weight", (4, 3), *entries)))

    def test_data_next_to_the_model(self):
        (self.dir / "w.bin").write_bytes(b"\0" * 16 + bytes(range(48)))
        self.convert(self.with_data(("location", "w.bin"), ("offset", 16), ("length", 48)))
        tensors = npz.read_safetensors(self.dir / "net.safetensors")
        self.assertEqual(tensors["a.weight"][1][0], 3.820471434542632e-37)

    def test_refusals(self):
        (self.dir / "w.bin").write_bytes(b"\0" * 64)
        (self.dir / "sub").mkdir()
        os.symlink(self.dir / "w.bin", self.dir / "sub" / "link.bin")
        os.symlink("/", self.dir / "root")
        for entries, words in (
            ([("location", "../w.bin")], "outside of the model's folder"),
            ([("location", str(self.dir / "w.bin"))], "outside of the model's folder"),
            ([("location", "")], "outside of the model's folder"),
            ([("location", "sub/link.bin")], "is a symbolic link"),
            ([("location", "root/etc/passwd")], "is not below folders of the model's folder"),
            ([("location", "none.bin")], "does not exist"),
            ([("location", "sub")], "not a regular file"),
            ([("location", "w.bin"), ("offset", 17)], "are expected in w.bin, which has 64"),
            ([("location", "w.bin"), ("offset", 2**64 - 16)], "offset or length"),
            ([("location", "w.bin"), ("offset", 2**63)], "are expected in w.bin"),
            ([("location", "w.bin"), ("length", 40)], "have 40 bytes, the shape needs 48"),
            ([("location", "w.bin"), ("offset", "x")], "offset or length"),
        ):
            err = self.refusal(self.with_data(*entries))
            self.assertIn(words, err, entries)
            self.assertIn("tensor a.weight", err, entries)


class Unfused(Files):
    """Nets that patterns join compute the same with --no-fuse."""

    def draw(self, *shape):
        return [self.rng.uniform(-1, 1) for _ in range(math.prod(shape))]

    def weight(self, name, *shape):
        return onnx.tensor(name, shape, self.draw(*shape))

    def block(self):
        """x [batch, 6, 4] -> linear, attention of two heads, gelu, mean, linear [batch, 3]."""
        half = [onnx.node("Constant", [], [name], value_float=number) for name, number in
                (("scale", 0.5**0.5), ("root", 2**0.5), ("one", 1.0), ("half", 0.5))]
        heads = []
        for name, perm in (("q", (0, 2, 1, 3)), ("k", (0, 2, 3, 1)), ("v", (0, 2, 1, 3))):
            heads += [onnx.node("MatMul", ["x", f"{name}.weight"], [f"{name}0"]),
                      onnx.node("Add", [f"{name}0", f"{name}.bias"], [f"{name}1"]),
                      onnx.node("Reshape", [f"{name}1", "split"], [f"{name}2"]),
                      onnx.node("Transpose", [f"{name}2"], [f"{name}3"], perm=list(perm))]
        nodes = [
            *half, *heads, onnx.node("MatMul", ["q3", "k3"], ["s0"]),
            onnx.node("Mul", ["s0", "scale"], ["s1"]),
            onnx.node("Softmax", ["s1"], ["s2"], axis=-1),
            onnx.node("MatMul", ["s2", "v3"], ["a0"]),
            onnx.node("Transpose", ["a0"], ["a1"], perm=[0, 2, 1, 3]),
            onnx.node("Reshape", ["a1", "join"], ["a2"]), onnx.node("Add", ["x", "a2"], ["b"]),
            onnx.node("Div", ["b", "root"], ["g0"]), onnx.node("Erf", ["g0"], ["g1"]),
            onnx.node("Add", ["g1", "one"], ["g2"]), onnx.node("Mul", ["b", "g2"], ["g3"]),
            onnx.node("Mul", ["g3", "half"], ["g4"]),
            onnx.node("ReduceMean", ["g4"], ["m"], axes=[1], keepdims=0),
            onnx.node("Gemm", ["m", "head.weight", "head.bias"], ["y"], transB=1)]
        tensors = [onnx.tensor("split", (4,), [0, 6, 2, 2], onnx.INT64),
                   onnx.tensor("join", (3,), [0, 6, 4], onnx.INT64),
                   self.weight("head.weight", 3, 4), self.weight("head.bias", 3)]
        for name in "qkv":
            tensors += [self.weight(f"{name}.weight", 4, 4), self.weight(f"{name}.bias", 4)]
        return onnx.model(nodes, tensors, [onnx.value("x", ("batch", 6, 4))],
                          [onnx.value("y", ("batch", 3))], opset=17)

    def train(self, path, out, *words):
        text, _ = self.convert(path, "--yes", "--format", "json", *words)
        run = self.run_file("""\
model: net.yaml
data: {set: npy, path: ., shuffle: false, normalise: none}
ring: {boards: 1}
train: {steps: 4, batch: 5, microbatch: 3, init: net.safetensors}
loss: mse
optimizer: {kind: sgd, lr: 0.1}
schedule: gpipe
cut: []
""")
        self.ringpipe("train", run, "--out", self.dir / out)
        losses = [step["loss"] for step in steps_of(self.dir / out / "log.jsonl")]
        weights = npz.read_safetensors(self.dir / out / "weights.safetensors")
        return json.loads(text), losses, weights

    def test_block(self):
        self.rng = random.Random(7)
        path = self.write(self.block())
        for part in ("train", "test"):
            npz.write_npy(self.dir / f"x_{part}.npy", "f4", (5, 6, 4), self.draw(5, 6, 4))
            npz.write_npy(self.dir / f"y_{part}.npy", "f4", (5, 3), self.draw(5, 3))
        told, fused, weights = self.train(path, "fused")
        self.assertEqual(told["elementary"], {})
        self.assertEqual(told["fused"]["attention"], 1)
        told, losses, others = self.train(path, "unfused", "--no-fuse")
        self.assertEqual(told["elementary"], {"MatMul": 5, "Add": 5, "Mul": 3, "Softmax": 1,
                                              "Div": 1, "Erf": 1, "ReduceMean": 1})
        self.assertEqual(len(losses), 4)
        for a, b in zip(fused, losses):
            self.assertLessEqual(abs(a - b), 1e-5 * abs(a))
        for name, (_, numbers) in weights.items():
            for a, b in zip(numbers, others[name][1], strict=True):
                self.assertLessEqual(abs(a - b), 1e-5, name)


class Steps(Case):
    """Ten steps over three boards end with PyTorch's weights."""

    def write_data(self, about, arrays):
        for what, key, kinds in (("x", "x/" + next(iter(about["inputs"])), about["inputs"]),
                                 ("y", "y", {"y": about["target"]})):
            shape, numbers = arrays[key]
            kind = "f4" if next(iter(kinds.values()))["type"] == "f32" else "i4"
            for part, count in (("train", shape[0]), ("test", about["batch"])):
                each = len(numbers) // shape[0]
                npz.write_npy(self.dir / f"{what}_{part}.npy", kind, (count, *shape[1:]),
                              numbers[: count * each])

    def run_text(self, about):
        """Batch statistics are those of a microbatch, so it is the batch then."""
        ids = "i32" in [one["type"] for one in about["inputs"].values()]
        usual = "" if ids else ", normalise: none"
        part = about["batch"] if about["batchnorm"] else about["batch"] // 2
        return f"""\
model: net.yaml
data: {{set: npy, path: ., shuffle: false{usual}}}
ring: {{boards: 3}}
train:
  {{steps: {about["steps"]}, batch: {about["batch"]}, microbatch: {part}, init: net.safetensors}}
loss: {json.dumps(about["loss"])}
optimizer: {json.dumps(about["optimizer"])}
schedule: gpipe
cut: auto
"""

    def close_weights(self, about, arrays, start, end):
        """MODELS: within 2e-3 of the way that a tensor went. Adam makes whole steps of gradients
        that are only rounding noise: elements without a gradient do not count then."""
        adam = about["optimizer"]["kind"].startswith("adam")
        ways = {name: max(abs(a - b) for a, b in zip(arrays["w/" + name][1], numbers))
                for name, (_, numbers) in start.items()}
        longest = max(ways.values())
        steepest = max(max(map(abs, numbers)) for key, (_, numbers) in arrays.items()
                       if key.startswith("g/"))
        for name, (_, found) in end.items():
            wanted = arrays["w/" + name][1]
            self.assertEqual(len(found), len(wanted), name)
            slopes = arrays["g/" + name][1] if adam else None
            least = max(1e-5 * max(map(abs, slopes)), 1e-6 * steepest) if adam else 0
            error = max((abs(a - b) for i, (a, b) in enumerate(zip(found, wanted))
                         if not adam or abs(slopes[i]) > least), default=0)
            self.assertLessEqual(error, 2e-3 * max(ways[name], 1e-3 * longest), name)

    def train(self, name, folder):
        about = json.loads((folder / f"{name}.json").read_text())
        arrays = npz.read_npz(folder / f"{name}.npz")
        self.ringpipe("import", folder / f"{name}.onnx", "-o", self.dir / "net.yaml",
                      "--weights", self.dir / "net.safetensors")
        text = (self.dir / "net.yaml").read_text()
        text = re.sub(r"kind: dropout(, p: [\d.]+)?", "kind: dropout, p: 0", text)
        (self.dir / "net.yaml").write_text(text)
        start = npz.read_safetensors(self.dir / "net.safetensors")
        self.assertEqual({"w/" + key for key in start},
                         {key for key in arrays if key.startswith("w/")})
        self.write_data(about, arrays)
        self.ringpipe("train", self.run_file(self.run_text(about)), "--out", self.dir / "run",
                      seconds=200)
        losses = [step["loss"] for step in steps_of(self.dir / "run/log.jsonl")]
        self.assertEqual(len(losses), about["steps"])
        for found, wanted in zip(losses, arrays["loss"][1]):
            self.assertLessEqual(abs(found - wanted), 1e-3 * abs(wanted))
        self.close_weights(about, arrays, start,
                           npz.read_safetensors(self.dir / "run/weights.safetensors"))


NO_TORCH = "no Python here has torch (python3-torch)"
NO_DYNAMO = "no Python here has torch and onnxscript: RP_PYTHON names one"


class Exporters(Steps):
    """Nets that PyTorch exports now, there and back."""

    def run_net(self, python, net, form, opset):
        found = subprocess.run(
            [python, "-W", "ignore", str(SOURCE / "tests/torch_steps.py"), str(self.dir), "case",
             net, form, str(opset)],
            capture_output=True, text=True, timeout=patient(300), check=False)
        self.assertEqual(found.returncode, 0, found.stderr)
        self.train("case", self.dir)
        return self.go_and_return()

    def go_and_return(self):
        """An import of the export is the same model file, with the trained weights."""
        self.ringpipe("export", self.dir / "run", "-o", self.dir / "back.onnx")
        self.ringpipe("import", self.dir / "back.onnx", "-o", self.dir / "back.yaml", "--weights",
                      self.dir / "back.safetensors")
        texts = [re.sub(r" *#.*", "", (self.dir / name).read_text())
                 for name in ("net.yaml", "back.yaml")]
        self.assertEqual(*texts)
        trained = npz.read_safetensors(self.dir / "run/weights.safetensors")
        self.assertEqual(npz.read_safetensors(self.dir / "back.safetensors"), trained)
        return {name: shape for name, (shape, _) in trained.items()}


@unittest.skipUnless(TORCH, NO_TORCH)
class Signals(Exporters):
    """Convolutions and pools over [N, C, L], by both exporters."""

    def run_net(self, *words):
        shapes = super().run_net(*words)
        self.assertTrue(any(len(shape) == 3 for shape in shapes.values()), shapes)

    def test_signal(self):
        self.run_net(TORCH, "signal", "script", 13)

    def test_text(self):
        self.run_net(TORCH, "text-cnn", "script", 17)

    @unittest.skipUnless(DYNAMO, NO_DYNAMO)
    def test_signal_by_dynamo(self):
        self.run_net(DYNAMO, "signal", "dynamo", 20)

    @unittest.skipUnless(DYNAMO, NO_DYNAMO)
    def test_text_by_dynamo(self):
        self.run_net(DYNAMO, "text-cnn", "dynamo", 23)


@unittest.skipUnless(TORCH, NO_TORCH)
class Types(Exporters):
    """One row of a table is added to all tokens: the table is trained, and keeps its shape."""

    def run_net(self, *words):
        self.assertEqual(super().run_net(*words)["types.weight"], [2, 16])

    def test_script(self):
        self.run_net(TORCH, "typed", "script", 17)

    def test_once(self):
        self.run_net(TORCH, "typed-once", "script", 17)

    @unittest.skipUnless(DYNAMO, NO_DYNAMO)
    def test_dynamo(self):
        self.run_net(DYNAMO, "typed", "dynamo", 20)


@unittest.skipUnless(REFERENCE.is_dir(), f"no reference nets next to the project ({REFERENCE})")
class Reference(Steps):
    """The six nets of the reference, also without patterns."""

    def losses_of(self, about, name, out, *words):
        """Of one board, which starts with the weights of the file."""
        self.ringpipe("import", REFERENCE / f"{name}.onnx", "-o", self.dir / "net.yaml",
                      "--weights", self.dir / "net.safetensors", "--yes", *words)
        text = (self.dir / "net.yaml").read_text()
        text = re.sub(r"kind: dropout(, p: [\d.]+)?", "kind: dropout, p: 0", text)
        (self.dir / "net.yaml").write_text(text)
        self.ringpipe("train", self.run_file(self.run_text(about)), "--set", "ring.boards=1",
                      "--set", f"train.steps={UNFUSED_STEPS}", "--out", self.dir / out,
                      seconds=200)
        return [step["loss"] for step in steps_of(self.dir / out / "log.jsonl")]

    def compare(self, name):
        """With and without --no-fuse: the first loss within 1e-5, and those after some updates."""
        about = json.loads((REFERENCE / f"{name}.json").read_text())
        self.write_data(about, npz.read_npz(REFERENCE / f"{name}.npz"))
        fused = self.losses_of(about, name, "fused")
        unfused = self.losses_of(about, name, "unfused", "--no-fuse")
        self.assertEqual(len(unfused), UNFUSED_STEPS)
        for step, (a, b) in enumerate(zip(fused, unfused)):
            self.assertLessEqual(abs(a - b), (1e-5 if step == 0 else 1e-4) * abs(a), step)


for each in NETS:
    def test(self, which=each):
        self.train(which, REFERENCE)
    setattr(Reference, "test_" + each.replace("-", "_"), test)

    def test_unfused(self, which=each):
        self.compare(which)
    setattr(Reference, f"test_{each.replace('-', '_')}_without_fusing", test_unfused)


load_tests = few_when_short(
    "Small.test_both_files_are_written", "Small.test_all_reasons_come_at_once",
    "Small.test_damaged_files", "Small.test_elementary", "External.test_refusals",
    "Unfused.test_block", "Reference.test_gpt_mini", "Options.test_tied",
    "Check.test_equal_outputs", "Check.test_other_outputs", "Check.test_damaged_files",
    "Exported.test_a_net_with_norms_and_dropout", "Signals.test_signal", "Types.test_script",
    sanitized=("Small.test_json", "Small.test_shapes", "Options.test_names"))

if __name__ == "__main__":
    main()
