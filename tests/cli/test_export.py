"""export: files, options and refusals; and whether onnxruntime computes what predict computes, for
nets of the zoo and in several opsets. That part needs a Python with onnxruntime, onnx, torch and
torchvision, which Debian 12 has no packages of: RP_PYTHON names one, otherwise this Python is
tried. Without one those tests are skipped, and say so."""
import json
import math
import os
import struct
import subprocess
import sys
import unittest
from pathlib import Path

import npz
from program import BUILD, SLOWER, SOURCE, Case, few_when_short, main

HALF = Path(__file__).resolve().parent / "export_half.py"
OUTPUTS = BUILD / "tests" / "net_outputs"
SAMPLES = 3
CLASSES = 10
TOKENS = 65


def python_with_onnxruntime():
    """The first Python that has them all. They are not loaded, which can take minutes."""
    has = ("import sys; from importlib.util import find_spec; "
           "sys.exit(not all(map(find_spec, ('torch', 'torchvision', 'onnx', 'onnxruntime'))))")
    for python in filter(None, (os.environ.get("RP_PYTHON"), sys.executable, "/usr/bin/python3")):
        try:
            found = subprocess.run([python, "-c", has], capture_output=True, timeout=120 * SLOWER)
        except FileNotFoundError:
            continue
        if found.returncode == 0:
            return python
    return None


PYTHON = python_with_onnxruntime()


class Exports(Case):
    def leave_to_data(self, sample):
        """Words for export, and the environment of net_outputs, for what a zoo file leaves open."""
        ids = "," not in sample
        classes = TOKENS if ids else CLASSES
        words = ["--input", sample, "--classes", classes] + (["--tokens", TOKENS] if ids else [])
        return words, {"SAMPLE": sample, "CLASSES": str(classes),
                       "TOKENS": str(TOKENS if ids else 0)}

    def net_outputs(self, *words, **data):
        done = subprocess.run([str(OUTPUTS), *map(str, words)], env=self.environment(**data),
                              capture_output=True, text=True, timeout=200 * SLOWER)
        self.assertEqual(done.returncode, 0, done.stderr)

    def write_weights(self, model, sample):
        self.net_outputs("weights", model, self.dir / "w.safetensors",
                         **self.leave_to_data(sample)[1])

    def zoo(self, name):
        return SOURCE / "host/models" / f"{name}.yaml"


class Files(Exports):
    """Without any package."""

    def setUp(self):
        super().setUp()
        (self.dir / "net.yaml").write_text(
            "input: [3]\nonnx: {inputs: [\"x y\"], outputs: [z]}\nlayers:\n"
            "  - {name: a, kind: linear, out: 4, lora: {rank: 2, alpha: 8}}\n"
            "  - {name: b, kind: relu}\n  - {name: c, kind: dense, out: 2}\n")
        self.net_outputs("weights", self.dir / "net.yaml", self.dir / "w.safetensors")

    def export(self, out, *words, code=0):
        return self.ringpipe("export", "net.yaml", "--weights", "w.safetensors", "-o", out, *words,
                             code=code)

    def files(self):
        return {path.name for path in self.dir.iterdir()}

    def test_onnx_is_imported_again(self):
        out, _ = self.export("net.onnx", "--merge")
        self.assertIn("net.onnx: opset 17, ", out)
        self.ringpipe("import", "net.onnx", "-o", "back.yaml", "--weights", "back.safetensors")
        text = (self.dir / "back.yaml").read_text()
        self.assertIn('onnx: {inputs: ["x y"], outputs: [z]}\n', text)
        self.assertIn("{name: b, kind: relu}", text)
        told = json.loads(self.export("o.onnx", "--opset", 13, "--format", "json")[0])
        self.assertEqual((told["opset"], told["inputs"], told["outputs"], told["tensors"]),
                         (13, ["x y"], ["z"], 6))

    def test_corrections_are_merged(self):
        self.export("plain.safetensors")
        told = json.loads(self.export("merged.safetensors", "--merge", "--format", "json")[0])
        self.assertEqual((told["tensors"], told["parameters"]), (4, 26))
        plain = npz.read_safetensors(self.dir / "plain.safetensors")
        merged = npz.read_safetensors(self.dir / "merged.safetensors")
        self.assertEqual(plain, npz.read_safetensors(self.dir / "w.safetensors"))
        self.assertEqual(set(merged), {"a.weight", "a.bias", "c.weight", "c.bias"})
        (_, a), (_, b) = plain["a.lora_A.weight"], plain["a.lora_B.weight"]
        for k in range(4):
            for i in range(3):
                add = 4 * (b[2 * k] * a[i] + b[2 * k + 1] * a[3 + i])
                self.assertAlmostEqual(merged["a.weight"][1][3 * k + i],
                                       plain["a.weight"][1][3 * k + i] + add, delta=1e-6)

    def test_files_are_not_replaced_unasked(self):
        (self.dir / "net.onnx").write_text("mine")
        _, err = self.export("net.onnx", code=2)
        self.assertIn("net.onnx exists already; replace it with --yes", err)
        self.assertEqual((self.dir / "net.onnx").read_text(), "mine")
        self.export("net.onnx", "--yes")
        self.assertNotEqual((self.dir / "net.onnx").read_bytes(), b"mine")
        _, err = self.export("w.safetensors", "--yes", code=2)
        self.assertIn("one of the files that are read", err)

    def test_refusals(self):
        before = self.files()
        for words, say in (
            (["o.pt"], "expected a name that ends with .onnx or .safetensors, found 'o.pt'"),
            (["o.onnx", "--opset", 12], "--opset: expected 13 to 23, found 12"),
            (["o.onnx", "--opset", 24], "--opset"),
            (["o.safetensors", "--train"], "--train applies only to an ONNX model"),
            (["o.safetensors", "--opset", 18], "--opset applies only to an ONNX model"),
            (["none/o.onnx"], "none/o.onnx"),
        ):
            _, err = self.export(*words, code=2)
            self.assertIn(say, err)
        err = self.refused("export", "net.yaml", "-o", "o.onnx")
        self.assertIn("is a model file: expected --weights", err)
        err = self.refused("export", self.dir, "-o", "o.onnx")
        self.assertIn("data.json is missing", err)
        (self.dir / "other.yaml").write_text(
            "input: [2, 6, 6]\nlayers:\n  - {name: p, kind: avgpool, kernel: 3, stride: 2, pad: 1, "
            "ceil_mode: true}\n")
        (self.dir / "empty.safetensors").write_bytes(b"\x08\0\0\0\0\0\0\0{}      ")
        err = self.refused("export", "other.yaml", "--weights", "empty.safetensors", "-o", "o.onnx")
        self.assertIn("other.yaml cannot be exported:\n", err)
        self.assertIn("layer 'p' (avgpool): ceil_mode with count_include_pad", err)
        self.assertIn("nothing was written, for 1 reason", err)
        self.assertEqual(self.files() - before, {"other.yaml", "empty.safetensors"})

    def test_a_run_folder(self):
        run = self.run_file()
        self.ringpipe("train", run, "--out", "run", seconds=120)
        self.ringpipe("export", "run", "-o", "mlp.safetensors")
        trained = npz.read_safetensors(self.dir / "run/weights.safetensors")
        self.assertEqual(npz.read_safetensors(self.dir / "mlp.safetensors"), trained)
        self.ringpipe("export", "run", "-o", "mlp.onnx")
        self.ringpipe("import", "mlp.onnx", "-o", "mlp.yaml", "--weights", "back.safetensors")
        self.assertEqual(npz.read_safetensors(self.dir / "back.safetensors"), trained)
        err = self.refused("export", "run", "-o", "x.onnx", "--classes", 3)
        self.assertIn("are for a model file", err)

    def test_a_run_keeps_the_names(self):
        text = self.zoo("mlp").read_text()
        (self.dir / "mine.yaml").write_text("onnx: {inputs: [x], outputs: [y]}\n" + text)
        run = self.run_file(self.run_file().read_text().replace("model: mlp", "model: mine.yaml"))
        self.ringpipe("train", run, "--out", "run", seconds=120)
        self.assertIn("onnx:", (self.dir / "run/model.yaml").read_text())
        self.ringpipe("export", "run", "-o", "back.onnx")
        out, _ = self.ringpipe("inspect", "back.onnx")
        self.assertIn("input x: FLOAT [batch, 1, ", out)
        self.assertIn("output y: FLOAT [batch, 10]", out)


@unittest.skipUnless(PYTHON, "no Python here has torch, torchvision, onnx and onnxruntime: "
                             "install them with pip in a venv DIR, then RP_PYTHON=DIR/bin/python")
class Onnxruntime(Exports):
    def ask(self, do, **more):
        question = {"do": do, "samples": SAMPLES, "tokens": TOKENS, "classes": CLASSES,
                    "folder": str(self.dir), **more}
        done = subprocess.run([PYTHON, "-W", "ignore", str(HALF)], input=json.dumps(question),
                              capture_output=True, text=True, timeout=600 * SLOWER)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def numbers(self, name):
        raw = (self.dir / name).read_bytes()
        return struct.unpack(f"<{len(raw) // 4}f", raw)

    def close(self, a, b, what, limit=1e-5):
        """Two files of outputs differ by less than that part of the largest."""
        a, b = self.numbers(a), self.numbers(b)
        self.assertEqual(len(a), len(b), what)
        self.assertTrue(all(map(math.isfinite, a + b)), what)
        self.assertGreater(max(a) - min(a), 0, what)
        error = max(abs(x - y) for x, y in zip(a, b))
        self.assertLessEqual(error, limit * max(map(abs, a)), what)

    def same(self, model, sample, opsets=(17,), words=()):
        """Onnxruntime's outputs are those of predict. Models that train are only checked. Returns
        what is known of the last model."""
        more, data = self.leave_to_data(sample)
        self.write_weights(model, sample)
        for opset in opsets:
            for train in ((), ("--train",)):
                self.ringpipe("export", model, "--weights", "w.safetensors", "--opset", opset, "-o",
                              f"{'train' if train else 'net'}{opset}.onnx", "--yes", *more, *words,
                              *train)
        about = self.ask("run", nets=[f"net{opset}" for opset in opsets],
                         check=[f"train{opset}" for opset in opsets])
        self.assertEqual((about["outputs"], about["batch"]), (1, "batch"))
        self.net_outputs("run", model, self.dir / "w.safetensors", self.dir / "x.raw",
                         self.dir / "ours.raw", **data)
        for opset in opsets:
            self.close("ours.raw", f"net{opset}.raw", f"{model} opset {opset}")
        return about

    def zoo_net(self, name, sample, opsets=(17,)):
        return self.same(self.zoo(name), sample, opsets)

    def test_lenet(self):
        self.zoo_net("lenet", "3,32,32", (13, 17, 23))

    def test_cnn_small(self):
        self.zoo_net("cnn-small", "3,32,32")

    def test_resnet(self):
        self.zoo_net("resnet-narrow", "3,32,32", (13, 17))

    def test_mobilenet(self):
        self.zoo_net("mobilenet-v3-narrow", "3,32,32", (13, 14, 23))

    def test_efficientnet(self):
        self.zoo_net("efficientnet-b0-narrow", "3,32,32")

    def test_googlenet(self):
        self.zoo_net("googlenet-narrow", "3,32,32", (13, 19))

    def test_densenet(self):
        self.zoo_net("densenet121-narrow", "3,32,32")

    def test_unet(self):
        self.zoo_net("unet-narrow", "3,32,32")

    def test_vit(self):
        self.zoo_net("vit-tiny-narrow", "3,32,32", (13, 17, 20, 23))

    def test_gpt(self):
        self.zoo_net("gpt-micro-tied", "24", (13, 17, 18, 20, 23))

    def test_char_rnn(self):
        self.zoo_net("char-rnn", "24", (13, 17))

    def test_residual_lstm(self):
        self.zoo_net("residual-lstm", "24")

    def test_gnmt(self):
        self.assertEqual(self.zoo_net("gnmt-narrow", "80")["inputs"], ["source", "target"])

    def test_layers_of_images(self):
        for i, text in enumerate(NETS["images"]):
            self.text_net(text, "4,12,12", i)

    def test_layers_of_tokens(self):
        for i, text in enumerate(NETS["tokens"]):
            self.text_net(text, "7", i)

    def test_activations(self):
        for i, text in enumerate(NETS["activations"]):
            self.text_net(text, "6,8", i)

    def test_elementary(self):
        for i, text in enumerate(NETS["elementary"]):
            self.text_net(text, "3,4", i)

    def text_net(self, text, sample, number):
        path = self.dir / f"net{number}.yaml"
        path.write_text(text)
        self.same(path, sample, (13, 17, 18, 21, 23))

    def test_corrections(self):
        """Merged and not, the outputs are one; the merged file has none of the corrections."""
        path = self.dir / "net.yaml"
        path.write_text("input: [5, 8]\nlayers:\n"
                        "  - {name: a, kind: linear, out: 12, lora: {rank: 3, alpha: 9}}\n"
                        "  - {name: g, kind: gelu}\n"
                        "  - {name: b, kind: linear, out: 6, layout: in-out, lora: {rank: 2}}\n")
        self.same(path, "5,8")
        (self.dir / "net17.raw").rename(self.dir / "plain.raw")
        self.same(path, "5,8", words=["--merge"])
        self.close("plain.raw", "net17.raw", "merged")

    def test_into_pytorch(self):
        """load_state_dict(strict=True) in torchvision's net, which then gives the same outputs."""
        net, sample = "mobilenet_v3_small", "3,64,64"
        more, _ = self.leave_to_data(sample)
        model = self.zoo(f"torchvision-{net}")
        self.same(model, sample)
        self.ringpipe("export", model, "--weights", "w.safetensors", "-o", "s.safetensors", *more)
        self.ask("load", net=net, shape=[3, 64, 64])
        self.close("torch.raw", "ours.raw", net)


NETS = {
    "images": ["""\
input: [4, 12, 12]
layers:
  - {name: conv, kind: conv2d, out: 8, kernel: [3, 1], stride: [1, 2], pad: [1, 0],
      dilation: [2, 1], groups: 2}
  - {name: norm, kind: batchnorm, eps: 1e-3, momentum: 0.2}
  - {name: up, kind: upsample, scale: 3, mode: bilinear, align_corners: true}
  - {name: six, kind: relu6}
  - {name: near, kind: upsample}
  - {name: back, kind: convtranspose2d, out: 6, kernel: 3, stride: 2, pad: 1, output_pad: 1,
      groups: 2}
  - {name: max, kind: maxpool, kernel: 3, stride: 2, ceil_mode: true}
  - {name: mean, kind: avgpool, kernel: [2, 3], stride: 2, pad: 1, count_include_pad: false}
  - {name: over, kind: avgpool, kernel: 3, stride: 2, ceil_mode: true}
  - {name: slopes, kind: prelu}
  - {name: groups, kind: groupnorm, groups: 3, eps: 1e-4}
  - {name: scale, kind: scale, init: 0.5}
  - {name: bins, kind: adaptiveavgpool, out: [5, 4]}
  - {name: path, kind: droppath, p: 0.2}
  - {name: all, kind: globalavgpool}
  - {name: gate, kind: mul, from: [path, all]}
  - {name: norms, kind: layernorm}
  - {name: fc, kind: dense, out: 9, bias: false}
""", """\
input: [4, 12, 12]
layers:
  - {name: up, kind: upsample, scale: 2, mode: bilinear}
  - {name: pad, kind: avgpool, kernel: 3, stride: 1, pad: 1}
  - {name: ends, kind: avgpool, kernel: 4, stride: 3, pad: 1, ceil_mode: true,
      count_include_pad: false}
  - {name: odd, kind: maxpool, kernel: [3, 2], stride: [2, 3], pad: 1, ceil_mode: true}
  - {name: bins, kind: adaptiveavgpool, out: 2}
  - {name: rows, kind: sequence}
  - {name: first, kind: prepend}
  - {name: place, kind: position, length: 9}
  - {name: slopes, kind: prelu}
  - {name: end, kind: seqpool, mode: last}
  - {name: gate, kind: linear, out: 4}
  - {name: norm, kind: groupnorm, groups: 2}
"""],
    "activations": ["""\
input: [6, 8]
layers:
  - {name: a, kind: gelu}
  - {name: b, kind: gelu, approximate: tanh}
  - {name: c, kind: linear, out: 8}
  - {name: d, kind: mish}
  - {name: e, kind: linear, out: 8}
  - {name: f, kind: elu, alpha: 0.7}
  - {name: g, kind: linear, out: 8, layout: in-out}
  - {name: h, kind: hardswish}
  - {name: i, kind: softplus}
  - {name: j, kind: leaky_relu, from: g, slope: 0.2}
  - {name: k, kind: swiglu, from: [i, j]}
  - {name: l, kind: linear, out: 8}
  - {name: m, kind: prelu, shared: true}
  - {name: n, kind: silu}
  - {name: o, kind: glu, from: l}
  - {name: p, kind: tanh}
  - {name: q, kind: concat, from: [n, p, n], axis: 1}
  - {name: r, kind: slice, axis: 1, start: 3, end: 11}
  - {name: s, kind: add, from: [r, l, n]}
  - {name: t, kind: hardsigmoid}
  - {name: u, kind: sigmoid, from: s}
  - {name: v, kind: mul, from: [t, u]}
  - {name: w, kind: relu}
  - {name: x, kind: dropout}
"""],
    "elementary": ["""\
input: [3, 4]
layers:
  - {name: mixed, kind: linear, out: 4}
  - {name: a, kind: abs}
  - {name: w, kind: parameter, shape: [4]}
  - {name: two, kind: constant, shape: [1], value: 2}
  - {name: b, kind: add, from: [a, two]}
  - {name: c, kind: sqrt}
  - {name: d, kind: log, from: b}
  - {name: e, kind: exp, from: mixed}
  - {name: f, kind: erf, from: mixed}
  - {name: g, kind: neg}
  - {name: h, kind: reciprocal, from: b}
  - {name: i, kind: pow, from: b, exponent: 1.5}
  - {name: j, kind: clip, from: mixed, min: -0.2, max: 0.3}
  - {name: k, kind: sub, from: [i, w]}
  - {name: l, kind: div, from: [k, b]}
  - {name: m, kind: min, from: [l, j]}
  - {name: n, kind: max, from: [m, w]}
  - {name: o, kind: less, from: [n, mixed]}
  - {name: p, kind: greater, from: [f, g]}
  - {name: q, kind: equal, from: [n, w]}
  - {name: r, kind: and, from: [o, p]}
  - {name: s, kind: or, from: [r, q]}
  - {name: t, kind: not}
  - {name: u, kind: isnan, from: n}
  - {name: v, kind: or, from: [t, u]}
  - {name: x, kind: where, from: [v, e, w]}
  - {name: ss, kind: softmax, axis: 0}
  - {name: ls, kind: logsoftmax, from: x}
  - {name: sum, kind: add, from: [ss, ls, c, d, h, n, s]}
  - {name: turn, kind: transpose, perm: [1, 0]}
  - {name: table, kind: parameter, shape: [5, 3]}
  - {name: prod, kind: matmul, from: [turn, table], transpose: true}
  - {name: row, kind: reshape, shape: [20, 1]}
  - {name: wide, kind: expand, shape: [20, 2]}
  - {name: edge, kind: pad, pads: [1, 0, 0, 2], value: 0.5}
  - {name: part, kind: gather, axis: 1, indices: [3, 0, 1]}
  - {name: mean, kind: mean, axes: [0], keep: true}
  - {name: moved, kind: sub, from: [part, mean]}
  - {name: most, kind: max-over, axes: [1]}
""", """\
input: [3, 4]
layers:
  - {name: mixed, kind: linear, out: 4}
  - {name: both, kind: matmul, from: [mixed, mixed], transpose: true}
  - {name: again, kind: matmul, from: [both, mixed]}
  - {name: row, kind: parameter, shape: [2, 4]}
  - {name: half, kind: abs}
  - {name: more, kind: concat, from: [half, again]}
  - {name: all, kind: sum, axes: [1]}
"""],
    "tokens": ["""\
input: {shape: [7], type: i32}
layers:
  - {name: embed, kind: embedding, count: 65, out: 8, padding: 0}
  - {name: waves, kind: sinusoid}
  - {name: both, kind: lstm, from: [waves, data], hidden: 4, bidirectional: true, lengths: true}
  - {name: back, kind: gru, hidden: 8, reverse: true}
  - {name: norm, kind: rmsnorm, eps: 1e-5}
  - {name: qkv, kind: linear, out: 16, layout: in-out}
  - {name: heads, kind: attention, from: [qkv, data], heads: 4, kv_heads: 2, causal: true,
      scale: 0.3, padding: 0, rotary: {base: 100, interleaved: true}}
  - {name: turned, kind: attention, from: [heads, heads, heads], heads: 2, rotary: {}}
  - {name: fc, kind: linear, out: 8}
""", """\
input: {shape: [7], type: i32}
layers:
  - {name: embed, kind: embedding, count: 65, out: 8}
  - {name: add, kind: additive, from: [embed, embed, embed, data], normalise: true, padding: 0}
  - {name: plain, kind: additive, from: [add, add, embed]}
  - {name: last, kind: gru, hidden: 5, bidirectional: true, output: last}
  - {name: ends, kind: lstm, from: [plain, data], hidden: 5, output: last, lengths: true}
  - {name: mean, kind: seqpool, from: [plain, data], padding: 0}
  - {name: max, kind: seqpool, from: [plain, data], mode: max, padding: 0}
  - {name: end, kind: seqpool, from: [plain, data], mode: last, padding: 0}
  - {name: one, kind: seqpool, from: [plain, data], mode: first, padding: 0}
  - {name: tip, kind: seqpool, from: plain, mode: first}
  - {name: top, kind: seqpool, from: plain, mode: max}
  - {name: cat, kind: concat, from: [mean, max, end, one, tip, top, last, ends]}
""", """\
input: {shape: [7], type: i32}
layers:
  - {name: few, kind: slice, end: 3}
  - {name: q, kind: embedding, from: few, count: 65, out: 8}
  - {name: kv, kind: embedding, from: data, count: 65, out: 8}
  - {name: group, kind: linear, out: 4}
  - {name: a, kind: attention, from: [q, group, group], heads: 4, kv_heads: 2, causal: true}
  - {name: b, kind: attention, from: [kv, a, a], heads: 2, causal: true}
"""],
}

load_tests = few_when_short(
    "Files.test_onnx_is_imported_again", "Files.test_refusals", "Onnxruntime.test_lenet",
    "Onnxruntime.test_gpt", sanitized=("Files.test_corrections_are_merged",))

if __name__ == "__main__":
    main()
