#!/usr/bin/env python3
"""Which PyTorch nets `ringpipe import` takes, in the two forms of PyTorch's exporters.

    bench_onnx.py RINGPIPE FOLDER [--nets NAME ..] [--forms script dynamo] [--table FILE.md]
    bench_onnx.py RINGPIPE FOLDER --opsets [--nets NAME ..] [--forms ..] [--table FILE.md]

Exports each net of onnx_nets.py with ringpipe_export.py into FOLDER, unless it is there already,
imports it with --names and --check, and prints a table: the kinds of layers, or the first reason to
refuse. Results of checks are kept in FOLDER. Needs torch, torchvision, timm, transformers, onnx and
onnxscript; an hour or more on two cores the first time, then minutes.

--opsets takes few nets there and back with each operator set instead, see onnx_opsets.py.
"""
import argparse
import collections
import hashlib
import json
import subprocess
import sys
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "host/onnx"))
import onnx_opsets  # noqa: E402
from onnx_nets import NETS  # noqa: E402
from ringpipe_export import export  # noqa: E402


def folder_of(base, name, form):
    return base / f"{name.replace(' ', '-')}-{form}"


def make_one(base, name, form):
    """Exports a net; a failure is kept as a text."""
    folder = folder_of(base, name, form)
    if (folder / "done").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    try:
        net, inputs = NETS[name]()
        words, missing = export(net, inputs, folder, form)
        (folder / "done").write_text(f"{words}\n")
    except Exception:  # whatever an exporter raises
        (folder / "done").write_text("failed\n" + traceback.format_exc()[-2000:])


def run_import(ringpipe, folder, *words):
    """What the program prints, or its reasons to refuse."""
    found = subprocess.run(
        [ringpipe, "import", folder / "model.onnx", "-o", folder / "net.yaml", "--weights",
         folder / "net.safetensors", "--names", folder / "state.safetensors", "--yes", "--format",
         "json", *words],
        capture_output=True, text=True, timeout=1800)
    if found.stdout:
        return json.loads(found.stdout), None
    lines = found.stderr.strip().split("\n")
    return None, lines[1:-1] or lines


def error_of(ringpipe, folder, unchecked):
    """The result of --check, kept for these files; "not run", or "not finite"."""
    digest = hashlib.sha256((folder / "net.yaml").read_bytes()
                            + (folder / "net.safetensors").read_bytes()).hexdigest()
    kept = folder / "check.json"
    if kept.exists() and json.loads(kept.read_text())["digest"] == digest:
        return json.loads(kept.read_text())["error"]
    if unchecked:
        return "not run"
    told, _ = run_import(ringpipe, folder, "--check", folder / "check.npz")
    error = told["check"]["error"]
    error = "not finite" if error is None else error
    kept.write_text(json.dumps({"digest": digest, "error": error}))
    return error


def row_of(args, name, form):
    folder = folder_of(args.folder, name, form)
    if not (folder / "done").exists():
        return "not exported", f"| {name} | {form} | not tried | | |"
    head = (folder / "done").read_text().split("\n")
    if head[0] == "failed":
        last = [line for line in head if line.strip()][-1]
        return "not exported", f"| {name} | {form} | not exported | {last[:150]} | |"
    told, reasons = run_import(args.ringpipe, folder)
    if reasons:
        text = f"{len(reasons)}: {reasons[0].strip()[:150]}"
        return "refused", f"| {name} | {form} | refused | {text} | |"
    kinds = collections.Counter(told["fused"]).most_common()
    text = ", ".join(f"{count} {kind}" for kind, count in kinds)
    text += "".join(f", {count} {op}*" for op, count in told["elementary"].items())
    error = error_of(args.ringpipe, folder, args.unchecked)
    is_wrong = error == "not finite" or (error != "not run" and not error <= 1e-4)
    shown = error if isinstance(error, str) else f"{error:.1e}"
    how = "WRONG" if is_wrong else "yes"
    return how, f"| {name} | {form} | {how} | {text} | {shown} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("ringpipe", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--nets", nargs="+", metavar="NAME")
    parser.add_argument("--forms", nargs="+", default=["script", "dynamo"])
    parser.add_argument("--table", type=Path)
    parser.add_argument("--export-only", action="store_true", help="do not import")
    parser.add_argument("--import-only", action="store_true", help="do not export")
    parser.add_argument("--unchecked", action="store_true",
                        help="run no check; results of earlier runs are shown")
    parser.add_argument("--opsets", action="store_true",
                        help="train few nets with each operator set, and export them again")
    args = parser.parse_args()
    if args.opsets:
        lines, bad = onnx_opsets.run_all(args.ringpipe, args.folder,
                                         args.nets or onnx_opsets.NETS, args.forms)
        if args.table:
            args.table.write_text("\n".join(lines) + "\n")
        sys.exit(1 if bad else 0)
    args.nets = args.nets or list(NETS)
    counts = collections.Counter()
    rows = ["| net | form | imports | layers, or the first reason | error |",
            "|---|---|---|---|---|"]
    for name in args.nets:
        for form in args.forms:
            if not args.import_only:
                make_one(args.folder, name, form)
            if args.export_only:
                print(name, form, (folder_of(args.folder, name, form) / "done").read_text()
                      .split("\n")[0], flush=True)
                continue
            how, row = row_of(args, name, form)
            counts[form, how] += 1
            rows.append(row)
            print(row, flush=True)
    if not args.export_only:
        rows += ["", *(f"{form}: {counts[form, 'yes']} of {len(args.nets)} nets are imported, "
                       f"{counts[form, 'refused']} refused, {counts[form, 'WRONG']} wrong."
                       for form in args.forms)]
        print("\n".join(rows[-len(args.forms):]))
        if args.table:
            args.table.write_text("\n".join(rows) + "\n")


if __name__ == "__main__":
    main()
