"""A net of PyTorch with each operator set, there and back: export, import, ten steps over three
boards beside PyTorch, export of the trained net, and onnxruntime's outputs beside predict's.

Needs NumPy, onnxruntime and the program tests/net_outputs of the build, besides what
tests/torch_steps.py needs.
"""
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np

STEPS = Path(__file__).resolve().parents[1] / "torch_steps.py"
OPSETS = {"script": (13, 17, 20, 23), "dynamo": (18, 20, 23)}
NETS = ("cnn", "encoder", "lstm")
# MODELS: losses within 1e-3, weights within 2e-3 of their way; an export within 1e-5.
LIMITS = {"outputs": 1e-4, "losses": 1e-3, "weights": 2e-3, "onnxruntime": 1e-5}

RUN = """\
model: net.yaml
data: {{set: npy, path: ., shuffle: false{usual}}}
ring: {{boards: 3}}
train:
  {{steps: {steps}, batch: {batch}, microbatch: {part}, init: net.safetensors}}
loss: {loss}
optimizer: {optimizer}
schedule: gpipe
cut: auto
"""


class NotExported(Exception):
    """PyTorch's exporter has no operators of this set for the net."""


def call(*words, env=None):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True,
                          timeout=1800, check=False, env=env)
    if done.returncode != 0:
        last = [line for line in (done.stderr or done.stdout).split("\n") if line.strip()]
        raise RuntimeError(last[-1][:150] if last else f"exit code {done.returncode}")
    return done.stdout


def read_safetensors(path):
    raw = path.read_bytes()
    size = int.from_bytes(raw[:8], "little")
    head = json.loads(raw[8:8 + size])
    head.pop("__metadata__", None)
    return {name: np.frombuffer(raw[8 + size + entry["data_offsets"][0]:][
        :entry["data_offsets"][1] - entry["data_offsets"][0]], "<f4").reshape(entry["shape"])
        for name, entry in head.items()}


def write_run(folder, about, arrays):
    """The data set and the run file of a case."""
    ids = any(one["type"] == "i32" for one in about["inputs"].values())
    for part, count in (("train", len(arrays["y"])), ("test", about["batch"])):
        x = arrays["x/" + next(iter(about["inputs"]))][:count]
        np.save(folder / f"x_{part}.npy", x.astype("<i4" if ids else "<f4"))
        np.save(folder / f"y_{part}.npy", arrays["y"][:count].astype("<i4"))
    part = about["batch"] if about["batchnorm"] else about["batch"] // 2
    (folder / "run.yaml").write_text(RUN.format(
        usual="" if ids else ", normalise: none", steps=about["steps"], batch=about["batch"],
        part=part, loss=json.dumps(about["loss"]), optimizer=json.dumps(about["optimizer"])))


def loss_error(folder, arrays):
    """The largest difference of a step's loss, as a part of it."""
    lines = map(json.loads, (folder / "run/log.jsonl").read_text().splitlines())
    found = [line["loss"] for line in lines if "loss" in line and "event" not in line]
    wanted = arrays["loss"]
    if len(found) != len(wanted):
        raise RuntimeError(f"{len(found)} steps, expected {len(wanted)}")
    return np.max(np.abs(found - wanted) / np.abs(wanted))


def weight_error(folder, arrays):
    """The largest difference of a tensor, as a part of the way that it went."""
    start = read_safetensors(folder / "net.safetensors")
    end = read_safetensors(folder / "run/weights.safetensors")
    if {f"w/{name}" for name in end} != {name for name in arrays if name.startswith("w/")}:
        raise RuntimeError("other tensors than PyTorch's")
    ways = {name: np.max(np.abs(arrays["w/" + name] - start[name])) for name in end}
    least = 1e-3 * max(ways.values())
    return max(np.max(np.abs(arrays["w/" + name] - end[name])) / max(ways[name], least)
               for name in end)


def outputs_of(ringpipe, folder, x, about):
    """Those that predict computes with the trained weights."""
    (folder / "x.raw").write_bytes(x.tobytes())
    tokens = int(x.max()) + 1 if x.dtype.kind == "i" else 0
    call(ringpipe.parents[1] / "tests/net_outputs", "run", folder / "net.yaml",
         folder / "run/weights.safetensors", folder / "x.raw", folder / "y.raw",
         env={**os.environ, "SAMPLE": ",".join(map(str, x.shape[1:])), "TOKENS": str(tokens),
              "CLASSES": str(about["output"][-1])})
    return np.fromfile(folder / "y.raw", "<f4").reshape(len(x), *about["output"])


def export_error(ringpipe, folder, about, opset):
    """The largest difference between outputs of predict and of onnxruntime, as a part of the
    largest output."""
    import onnxruntime
    call(ringpipe, "export", folder / "run", "-o", folder / "back.onnx", "--opset", opset, "--yes")
    x = np.load(folder / "x_test.npy")
    session = onnxruntime.InferenceSession(folder / "back.onnx",
                                           providers=["CPUExecutionProvider"])
    only, = session.get_inputs()
    y, = session.run(None, {only.name: x.astype("<i8") if "int64" in only.type else x})
    return np.max(np.abs(outputs_of(ringpipe, folder, x, about) - y)) / np.max(np.abs(y))


def try_case(ringpipe, folder, net, form, opset):
    """The errors of one case by name."""
    folder.mkdir(parents=True, exist_ok=True)
    try:
        call(sys.executable, "-W", "ignore", STEPS, folder, "case", net, form, opset)
    except RuntimeError as error:
        raise NotExported(str(error)) from error
    about = json.loads((folder / "case.json").read_text())
    arrays = np.load(folder / "case.npz")
    told = json.loads(call(
        ringpipe, "import", folder / "case.onnx", "-o", folder / "net.yaml", "--weights",
        folder / "net.safetensors", "--names", folder / "case/state.safetensors", "--check",
        folder / "case/check.npz", "--yes", "--format", "json"))
    write_run(folder, about, arrays)
    shutil.rmtree(folder / "run", ignore_errors=True)
    call(ringpipe, "train", folder / "run.yaml", "--out", folder / "run", "--quiet")
    return {"outputs": told["check"]["error"], "losses": loss_error(folder, arrays),
            "weights": weight_error(folder, arrays),
            "onnxruntime": export_error(ringpipe, folder, about, opset)}


def row_of(ringpipe, base, net, form, opset):
    """Whether the case is good, and a row of the table."""
    start = f"| {net} | {form} | {opset} |"
    try:
        errors = try_case(ringpipe, base / f"{net}-{form}-{opset}", net, form, opset)
    except NotExported as error:
        return True, f"{start} not exported: {error} | | | |"
    except RuntimeError as error:
        return False, f"{start} WRONG: {error} | | | |"
    good = all(errors[name] <= limit for name, limit in LIMITS.items())  # false for NaN
    shown = " | ".join(f"{errors[name]:.1e}" for name in LIMITS)
    return good, f"{start} {shown} |{'' if good else ' WRONG'}"


def run_all(ringpipe, base, nets, forms):
    """Prints the table; returns its lines and the number of cases that are not good."""
    lines = [f"| net | form | opset | {' | '.join(LIMITS)} |", "|---|---|---|---|---|---|---|"]
    bad = 0
    for net in nets:
        for form in forms:
            for opset in OPSETS[form]:
                good, row = row_of(ringpipe, base, net, form, opset)
                bad += not good
                lines.append(row)
                print(row, flush=True)
    return lines, bad
