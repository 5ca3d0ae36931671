#!/usr/bin/env python3
"""Golden files, from PyTorch: python3 tests/golden/make.py (or: ninja -C build golden)

Each file of cases/ with a function cases(f) adds its cases to <kind>.safetensors: layer_gelu.py to
gelu.safetensors, others to the one that they are called like or that their FILE names. A file is
written when its cases have changed; the results are committed. Without PyTorch nothing is done."""
import importlib
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def main():
    try:
        import torch
    except ImportError:
        print("SKIP: PyTorch is not installed, so the golden files stay as they are")
        return
    sys.path[:0] = [str(HERE), str(HERE / "cases")]
    golden = importlib.import_module("golden")
    torch.manual_seed(0)
    files = {}
    for path in sorted((HERE / "cases").glob("*.py")):
        module = importlib.import_module(path.stem)
        if hasattr(module, "cases"):
            stem = getattr(module, "FILE", path.stem.removeprefix("layer_"))
            module.cases(files.setdefault(stem, golden.File(stem)))
    for stem, file in files.items():
        path = HERE / (stem + ".safetensors")
        same = path.exists() and file.same(path.read_bytes())
        if not same:
            path.write_bytes(file.bytes())
        print(f"{stem}: {len(file.meta) - 1} cases, {'as it was' if same else 'written'}")


if __name__ == "__main__":
    main()
