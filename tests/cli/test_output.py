#!/usr/bin/env python3
"""What a run prints and leaves behind."""
import json
import math
import re
import struct

import program

SUMMARY = (
    "version status model schedule stages epochs steps samples seconds train eval samples_per_s "
    "stage link bubble ledger recovery"
).split()
STAGE = (
    "board layers busy_s idle_s weight_bytes device_bytes_max weight_versions_max probe_copies "
    "in_flight_max gap_max"
).split()

FILES = (
    "run.yaml plan.json log.jsonl weights.safetensors checkpoint trace.json summary.json"
).split()


class Output(program.Case):
    def test_a_run_that_diverges_stops(self):
        words = ("--set", "train.epochs=40", "--set", "train.guard=false", "--set",
                 "optimizer={kind: sgd, lr: 1.0e+30}")
        for most, code in ((None, 3), (25, 3), (0, 0)):
            with self.subTest(most):
                out = f"nan{most}"
                limit = () if most is None else ("--set", f"train.stop_after.non_finite={most}")
                _, err = self.ringpipe("train", self.run_file(), "--out", out, *words, *limit,
                                       code=code)
                log = [json.loads(line) for line in
                       (self.dir / out / "log.jsonl").read_text().splitlines()]
                bad = [k for k, line in enumerate(log) if "event" not in line and
                       not (line.get("loss") is not None and math.isfinite(line["loss"]))]
                if code == 0:
                    continue
                self.assertIn("train.stop_after.non_finite", err)
                steps = int(re.search(r"for (\d+) steps", err)[1])  # two may come at once
                self.assertGreaterEqual(steps, most or 10)
                self.assertGreaterEqual(len(bad), most or 10)
                summary = json.loads((self.dir / out / "summary.json").read_text())
                self.assertEqual(summary["status"], "failed")
                self.assertIn("has not been finite since step", summary["reason"]
                              if "reason" in summary else json.dumps(summary))

    def test_text(self):
        out, _ = self.ringpipe("train", self.run_file(), "--out", "out")
        self.assertTrue(out.strip())
        for char in "\r\x1b\b":
            self.assertNotIn(char, out, "drawing on something that is no terminal")

    def test_json(self):
        out, _ = self.ringpipe("train", self.run_file(), "--out", "out", "--format", "json")
        summary = json.loads(out)
        self.assertEqual(summary, json.loads((self.dir / "out" / "summary.json").read_text()))
        for key in SUMMARY:
            self.assertIn(key, summary)
        self.assertEqual(summary["version"], 1)
        self.assertEqual(summary["status"], "finished")
        self.assertEqual(summary["stages"], 2)
        self.assertEqual(summary["steps"], 4)
        self.assertEqual(summary["samples"], 256)
        self.assertEqual(summary["eval"]["samples"], 64)
        self.assertTrue(math.isfinite(summary["eval"]["loss"]))
        ledger = summary["ledger"]
        self.assertRegex(ledger.pop("digest"), "^[0-9a-f]{16}$")
        self.assertEqual(ledger, {"microbatches": 16, "lost": 0, "repeated": 0, "samples": 256})
        self.assertEqual(len(summary["stage"]), 2)
        for stage in summary["stage"]:
            for key in STAGE:
                self.assertIn(key, stage)
        self.assertTrue(0 <= summary["bubble"] < 1)

    def test_run_folder(self):
        self.ringpipe("train", self.run_file(), "--out", "out", "--set", "train.epochs=2")
        out = self.dir / "out"
        names = {path.name for path in out.iterdir()}
        self.assertLessEqual(set(FILES), names)
        self.assertTrue([n for n in names if n.startswith("events.out.tfevents")], names)
        self.assertFalse([n for n in names if n.endswith((".tmp", "~"))], names)
        steps = program.steps_of(out / "log.jsonl")
        self.assertEqual([r["step"] for r in steps], list(range(1, 9)))  # as on the terminal
        for record in steps:
            for key in ("step", "epoch", "loss", "lr", "samples_per_s", "time_s"):
                self.assertIn(key, record)
        trace = json.loads((out / "trace.json").read_text())
        events = trace["traceEvents"] if isinstance(trace, dict) else trace
        self.assertTrue([e for e in events if e.get("ph") == "X"])
        json.loads((out / "plan.json").read_text())
        self.ringpipe("train", out / "run.yaml", "--out", "again")
        first, again = ((self.dir / folder / "weights.safetensors") for folder in ("out", "again"))
        self.assertTrue(first.read_bytes() == again.read_bytes(), "other weights")

    def test_trace(self):
        """Every parcel between boards, tied to the ops at its ends; steps and counters."""
        self.ringpipe("train", self.run_file(), "--out", "out", "--set", "schedule=1f1b")
        events = json.loads((self.dir / "out" / "trace.json").read_text())
        kinds = {kind: [e for e in events if e["ph"] == kind] for kind in "Xbesfi"}
        there = [e for e in kinds["s"] if e["name"] == "activation 0 to 1"]
        back = [e for e in kinds["s"] if e["name"] == "gradient 1 to 0"]
        self.assertEqual((len(there), len(back)), (16 + 4, 16))  # 4 microbatches are evaluated
        for kind in "bef":
            self.assertEqual({e["id"] for e in kinds[kind]}, {e["id"] for e in kinds["s"]}, kind)
        start = {e["id"]: e["ts"] for e in kinds["b"]}
        took = {e["id"]: e["ts"] - start[e["id"]] for e in kinds["e"]}
        self.assertGreaterEqual(min(took.values()), 0)
        # One of no time has been moved: the clocks of two boards did not agree.
        left = [e for e in kinds["s"] if took[e["id"]] > 0]
        for arrow in left + kinds["f"]:
            slack = 0.002  # a nanosecond, rounded
            self.assertTrue([e for e in kinds["X"] if e["pid"] == arrow["pid"] and e["ts"] - slack
                             <= arrow["ts"] <= e["ts"] + e["dur"] + slack], arrow)
        self.assertEqual([e["name"] for e in kinds["i"]], [f"step {i}" for i in range(4)])
        self.assertTrue(all(e["args"]["bytes"] > 0 for e in kinds["b"]))
        count = [e["args"]["microbatches"] for e in events if e["name"] == "in flight"]
        self.assertEqual((max(count), count[-1]), (2, 0))

    def test_dry_run(self):
        out, _ = self.ringpipe("train", self.run_file(), "--out", "out", "--dry-run")
        self.assertTrue(out.strip())
        self.assertFalse((self.dir / "out").exists())
        out, _ = self.ringpipe("train", self.run_file(), "--dry-run", "--format", "json")
        self.assertEqual(json.loads(out)["tied"], [])

    def test_dry_run_of_tied_weights(self):
        (self.dir / "tied.yaml").write_text("""\
input: data
layers:
- {name: fc1, kind: dense, out: 20}
- {name: fc2, kind: dense, out: 20}
- {name: fc3, kind: dense, out: 20, names: {weight: fc2.weight, bias: fc1.bias}}
- {name: fc4, kind: dense, out: 20, names: {weight: fc2.weight}}
- {name: fc5, kind: dense, out: classes}
""")
        words = ("train", self.run_file(), "--dry-run", "--set", "model=tied.yaml", "--set",
                 "cut=[fc3]")
        out, _ = self.ringpipe(*words)
        self.assertIn("tied: fc1.bias (fc1, fc3)\ntied: fc2.weight (fc2, fc3, fc4)\n", out)
        out, _ = self.ringpipe(*words, "--format", "json")
        self.assertEqual(json.loads(out)["tied"],
                         [{"tensor": "fc1.bias", "layers": ["fc1", "fc3"]},
                          {"tensor": "fc2.weight", "layers": ["fc2", "fc3", "fc4"]}])

    def test_demo_file(self):
        demo = program.SOURCE / "host" / "cli" / "demo.yaml"
        self.ringpipe("train", demo, "--out", "out", "--dry-run")

    def test_eval(self):
        out, _ = self.ringpipe("train", self.run_file(), "--out", "out", "--format", "json")
        trained = json.loads(out)["eval"]
        words = ("eval", self.run_file(), "--weights", "out/weights.safetensors")
        out, _ = self.ringpipe(*words, "--format", "json")
        said = json.loads(out)
        said = said.get("eval", said)
        self.assertEqual({k: said[k] for k in trained}, trained)
        out, _ = self.ringpipe(*words, "--split", "train", "--format", "json")
        said = json.loads(out)
        self.assertEqual(said.get("eval", said)["samples"], 256)
        self.assertTrue(self.ringpipe(*words)[0].strip())

    def test_eval_measures_nothing(self):
        """`advance: auto` is about training."""
        auto = ("--set", "schedule={kind: async, advance: auto}", "--set", "cut=[fc2]")
        said = "".join(self.ringpipe("train", self.run_file(), "--out", "out", *auto))
        self.assertIn("measuring", said)
        said = "".join(self.ringpipe("eval", self.run_file(), "--weights",
                                     "out/weights.safetensors", *auto))
        self.assertIn("building kernels", said)
        self.assertNotIn("measuring", said)

    def test_plan_and_profile(self):
        """A table for people, JSON for programs and in the file."""
        for verb, key, word in (("plan", "stages", "stage"), ("profile", "layers", "layer")):
            with self.subTest(verb):
                words = (verb, self.run_file(), "--out", f"{verb}.json")
                out, _ = self.ringpipe(*words)
                written = json.loads((self.dir / f"{verb}.json").read_text())
                self.assertTrue([line for line in out.splitlines() if line.startswith(word)], out)
                self.assertNotIn("{", out)
                self.assertGreaterEqual(len(out.splitlines()), 2 + len(written[key]), out)
                out, _ = self.ringpipe(*words, "--format", "json")
                self.assertEqual(json.loads(out).keys(), written.keys())
        out, _ = self.ringpipe("plan", self.run_file())
        self.assertIn("fc1", out)

    def test_inspect(self):
        self.ringpipe("train", self.run_file(), "--out", "out", "--set", "train.steps=1")
        out, _ = self.ringpipe("inspect", "out/weights.safetensors")
        tensors = program.read_safetensors(self.dir / "out" / "weights.safetensors")
        for name, (shape, _) in tensors.items():
            line = [line for line in out.splitlines() if name in line]
            self.assertEqual(len(line), 1, out)
            for size in shape:
                self.assertIn(str(size), line[0])
        self.assertIn("all finite", out.splitlines()[-1])
        out, _ = self.ringpipe("inspect", "out/weights.safetensors", "--format", "json")
        said = json.loads(out)
        self.assertEqual({t["name"] for t in said["tensors"]}, set(tensors))
        for tensor in said["tensors"]:
            shape, values = tensors[tensor["name"]]
            self.assertEqual((tensor["shape"], tensor["values"]), (shape, len(values)))
            self.assertEqual((tensor["min"], tensor["max"]), (min(values), max(values)))
        self.assertEqual(said["values"], sum(len(v) for _, v in tensors.values()))
        self.assertEqual(said["nan"] + said["infinite"], 0)

    def test_inspect_other_types(self):
        """Tensors that are no weights, as other programs save them."""
        data = {"w": ("F32", [2], struct.pack("<2f", 1, 2)), "mask": ("BOOL", [3], b"\1\0\1"),
                "n": ("I64", [], struct.pack("<q", 7))}
        head, at = {}, 0
        for name, (kind, shape, raw) in data.items():
            head[name] = {"dtype": kind, "shape": shape, "data_offsets": [at, at + len(raw)]}
            at += len(raw)
        text = json.dumps(head).encode()
        text += b" " * (-len(text) % 8)
        (self.dir / "other.safetensors").write_bytes(
            struct.pack("<Q", len(text)) + text + b"".join(raw for _, _, raw in data.values()))
        out, _ = self.ringpipe("inspect", "other.safetensors", "--format", "json")
        said = {tensor["name"]: tensor for tensor in json.loads(out)["tensors"]}
        self.assertEqual((said["n"]["min"], said["w"]["max"]), (7, 2))
        self.assertEqual(said["mask"]["shape"], [3])

    def test_inspect_a_model(self):
        """Layers with shapes and costs; the totals are torchvision's own numbers."""
        out, _ = self.ringpipe("inspect", "torchvision-resnet18", "--format", "json")
        said = json.loads(out)
        self.assertEqual((said["parameters"], said["state"]), (11689512, 9600))
        self.assertEqual((said["input"], said["classes"]), ([3, 224, 224], 1000))
        self.assertTrue(said["assumed"])
        self.assertAlmostEqual(said["flops_forward"] / 2 / 1.814e9, 1, delta=0.01)
        self.assertEqual(said["parameters"], sum(layer["parameters"] for layer in said["layers"]))
        self.assertEqual(said["layers"][0], {**said["layers"][0], "name": "conv1", "kind": "conv2d",
                                             "output": [64, 112, 112], "parameters": 9408})
        (self.dir / "net.yaml").write_text(
            "input: [5]\nlayers:\n- {name: a, kind: dense, out: 7}\n- {name: b, kind: relu}\n"
            "- {name: c, kind: dense, out: 2}\n")
        out, _ = self.ringpipe("inspect", "net.yaml")
        rows = [line.split() for line in out.splitlines()]
        self.assertEqual(rows[1], ["a", "dense", "[7]", "42", "70", "140", "28"])
        self.assertEqual(rows[4][:2], ["total", "58"])
        self.assertNotIn("assumed", out)
        out, _ = self.ringpipe("inspect", "lenet", "--input", "1,28,28", "--classes", "10")
        self.assertRegex(out, r"fc1 +dense +\[120\] +48120 ")
        self.assertRegex(out, r"total +61706 ")
        self.assertNotIn("assumed", out)
        err = self.refused("inspect", "mlp", "--input", "3,x")
        self.assertIn("as in 3,32,32, found '3,x'", err)
        self.assertIn("net.yaml:1: ", self.refused("inspect", "net.yaml", "--input", "6"))
        models = json.loads(self.ringpipe("list", "models", "--format", "json")[0])["models"]
        parameters = {model["name"]: model["parameters"] for model in models}
        self.assertEqual(parameters["torchvision-alexnet"], 61100840)
        self.assertIn("mlp", parameters)

    def test_names_can_not_steer_the_terminal(self):
        """Control characters and invalid UTF-8 of names are shown, on both outputs."""
        name = "a\x1b[2J\x9b1m"
        program.write_safetensors(self.dir / "w.safetensors", {name: ([1], [1.0])})
        out, _ = self.ringpipe("inspect", "w.safetensors")
        self.assertIn("a\\u001b[2J\\u009b1m  F32", out)
        out, _ = self.ringpipe("inspect", "w.safetensors", "--format", "json")
        self.assertNotIn("\x9b", out)
        self.assertEqual(json.loads(out)["tensors"][0]["name"], name)
        err = self.refused("inspect", "x\x1b]0;title\x07\udcff\n.safetensors")
        self.assertIn("x\\u001b]0;title\\u0007\\xff\\u000a.safetensors: cannot", err)
        names = [f"{'grün €' * 6}{'x' * (i % 7)}{i}" for i in range(300)]  # cut by writes anywhere
        program.write_safetensors(
            self.dir / "w.safetensors", {name: ([1], [1.0]) for name in names}
        )
        out, _ = self.ringpipe("inspect", "w.safetensors")
        lines = out.splitlines()[:-1]
        self.assertEqual([line.rsplit("  F32", 1)[0].rstrip() for line in lines], names)

    def test_inspect_not_finite(self):
        values = [1.0, math.nan, -2.0, math.inf]
        program.write_safetensors(self.dir / "w.safetensors", {"fc.bias": ([4], values)})
        out, _ = self.ringpipe("inspect", "w.safetensors")
        self.assertIn("1 NaN, 1 infinite", out.splitlines()[0])
        self.assertIn("1 NaN, 1 infinite", out.splitlines()[-1])
        raw = (self.dir / "w.safetensors").read_bytes()
        out, _ = self.ringpipe("inspect", "-", "--format", "json", stdin_bytes=raw)
        tensor = json.loads(out)["tensors"][0]
        self.assertEqual((tensor["min"], tensor["max"], tensor["nan"]), (-2, 1, 1))
        err = self.refused("inspect", "-", stdin_bytes=raw[:-1])
        self.assertIn("ringpipe: standard input: ", err)

    def test_standard_input(self):
        """`-` is the standard input, also where a file is read more than once."""
        run = program.RUN.encode()
        out, _ = self.ringpipe("train", "-", "--dry-run", "--format", "json", stdin_bytes=run)
        self.assertEqual(json.loads(out)["model"], "mlp")
        sim = run.replace(b"cut: auto", b"cut: [fc2]")
        out, _ = self.ringpipe("sim", "-", "--seeds", "1..2", "--format", "json", stdin_bytes=sim)
        self.assertEqual(json.loads(out)["finished"], 2)
        err = self.refused("train", "-", stdin_bytes=run + b"surprise: 1\n")
        self.assertRegex(err, r"^ringpipe: standard input:9: surprise: ")


if __name__ == "__main__":
    program.main()
