#!/usr/bin/env python3
"""Several boards for one stage: a plan that says so is simulated and trained, and the model is that
of one board for each stage."""
import json
import struct

import program
from spread import spread

RUN = """\
model: mlp
data: {set: glyphs, train: 62, test: 18, size: 12}
ring: {boards: 3, threads: 1}
train: {epochs: 2, batch: 16, microbatch: 4, seed: 1}
loss: cross-entropy
optimizer: {kind: sgd, lr: 0.1, momentum: 0.9}
schedule: %s
cut: [fc2, fc3]
"""
HALVES = [[0, 1], [0, 0.5, 1], [0, 1]]
# Layers fc2 and fc3, on different stages, share their weights.
TIED = """\
input: data
layers:
- {name: fc1, kind: dense, out: 20}
- {name: fc2, kind: dense, out: 20}
- {name: fc3, kind: dense, out: 20, names: {weight: fc2.weight}}
- {name: fc4, kind: dense, out: classes}
"""
# Shares that cut microbatches, one that has samples in no step, one that has none in the short one.
UNEVEN = [[0, 0.3, 1], [0, 0.2, 0.25, 0.7, 1], [0, 0.02, 0.95, 1]]


def read_weights(path):
    """Floats of every tensor, by name."""
    data = path.read_bytes()
    size, = struct.unpack_from("<Q", data)
    head = json.loads(data[8:8 + size])
    body = data[8 + size:]
    return {name: struct.unpack(f"<{(at[1] - at[0]) // 4}f", body[at[0]:at[1]])
            for name, at in ((n, t["data_offsets"]) for n, t in head.items()
                             if n != "__metadata__")}


class Shares(program.Case):
    def run_row(self, verb, out, schedule, *words):
        """A run with one board for each stage; its plan."""
        self.row = self.run_file(RUN % schedule)
        self.ringpipe(verb, self.row, "--out", out, *words)
        return json.loads((self.dir / out / "plan.json").read_text())

    def shared_words(self, plan, shares):
        path = self.dir / "shared.json"
        path.write_text(json.dumps(spread(plan, shares)), encoding="utf-8")
        boards = sum(len(bounds) - 1 for bounds in shares)
        return ("--plan", path, "--set", f"ring.boards={boards}", "--set", "cut=auto")

    def weights(self, out):
        return (self.dir / out / "weights.safetensors").read_bytes()

    def expect_close(self, out, other, within=1e-5):
        a, b = (read_weights(self.dir / name / "weights.safetensors") for name in (out, other))
        self.assertEqual(a.keys(), b.keys())
        for name, values in a.items():
            for x, y in zip(values, b[name], strict=True):
                self.assertTrue(abs(x - y) <= within * (1 + 10 * abs(x)), f"{name}: {x}, {y}")

    def test_boards_train_it(self):
        for number, optimizer in enumerate(
                ("{kind: sgd, lr: 0.1, momentum: 0.9}",
                 "{kind: adam, lr: 0.002, eps: 0.001, clip_norm: 0.5}")):
            with self.subTest(optimizer):
                words = ("--set", f"optimizer={optimizer}")
                row, out = f"row{number}", f"shared{number}"
                plan = self.run_row("train", row, "1f1b", *words)
                self.ringpipe("train", self.row, "--out", out, *words,
                              *self.shared_words(plan, UNEVEN))
                self.expect_close(row, out)
                one, other = (json.loads((self.dir / name / "summary.json").read_text())
                              for name in (row, out))
                self.assertEqual((other["boards"], other["stages"]), (9, 3))
                self.assertEqual(other["ledger"], one["ledger"])  # its digest, too
                self.assertEqual((other["ledger"]["lost"], other["ledger"]["repeated"]), (0, 0))
                self.assertEqual(other["ledger"]["samples"], other["samples"])
                held = [s.get("stages", [k]) for k, s in enumerate(other["stage"])]
                self.assertEqual(held, [[0], [0], [1], [1], [1], [1], [2], [2], [2]])
                for part in ("train", "test"):
                    if part in one and "loss" in one[part]:
                        self.assertAlmostEqual(one[part]["loss"], other[part]["loss"], 4)

    def test_tied_weights(self):
        """The last step has one sample, so only one board of the shared stage has a gradient."""
        model = self.dir / "tied.yaml"
        model.write_text(TIED, encoding="utf-8")
        words = ("--set", f"model={model}", "--set", "data.train=65")
        plan = self.run_row("train", "row", "1f1b", *words)
        self.ringpipe("train", self.row, "--out", "shared", *words,
                      *self.shared_words(plan, HALVES))
        self.expect_close("row", "shared")
        self.assertNotIn("fc3.weight", read_weights(self.dir / "shared" / "weights.safetensors"))

    def test_sizes_of_shares(self):
        """Microbatches of a size by direction, of each board's share."""
        plan = self.run_row("train", "row", "{kind: umpipe, forward: 5, backward: 3}")
        words = self.shared_words(plan, UNEVEN)
        for out in ("shared", "again"):
            self.ringpipe("train", self.row, "--out", out, *words)
            self.expect_close("row", out)
        self.assertEqual(self.weights("shared"), self.weights("again"))

    def test_a_stopped_run_goes_on(self):
        plan = self.run_row("train", "row", "1f1b")
        words = self.shared_words(plan, HALVES)
        self.ringpipe("train", self.row, "--out", "whole", *words)
        half = ("--set", "train.epochs=1")
        self.ringpipe("train", self.row, "--out", "parts", *words, *half)
        self.ringpipe("train", self.row, "--resume", "parts", *words)
        self.assertEqual(self.weights("whole"), self.weights("parts"))

    def test_faults_cost_no_bit(self):
        plan = self.run_row("sim", "row", "1f1b")
        out, _ = self.ringpipe("sim", self.row, "--faults", "all", "--seeds", "1..20",
                               "--format", "json", *self.shared_words(plan, HALVES))
        tally = json.loads(out)
        self.assertEqual((tally["runs"], tally["hung"], tally["wrong"]), (20, 0, 0))
        self.assertGreater(tally["finished"], 0)

    def test_the_planner_shares_a_stage(self):
        """One layer takes nearly all, and every board is held back by its operations."""
        sets = ("--set", "cut=auto", "--set", "plan={share: 3}", "--set",
                "ring={boards: 3, threads: 1, throttle: {gflops: 0.02}, link: {rate_mbit: 1000}}")
        self.run_row("train", "row", "gpipe", *sets, "--set", "plan={share: 1}")
        plan = self.run_row("train", "shared", "gpipe", *sets)
        holds = [hold for node in plan["nodes"] for hold in node["holds"]]
        self.assertEqual(len(holds), 3)
        self.assertLess(len(plan["stages"]), 3)
        self.expect_close("shared", "row")
        summary = json.loads((self.dir / "shared" / "summary.json").read_text())
        self.assertGreater(summary["prediction"]["step_s"], 0)
        log = (self.dir / "shared" / "log.jsonl").read_text()
        self.assertRegex(log, r"3 of 3 boards, .* stages, some of them shared")
        self.ringpipe("resume", "shared", "--set", "train.epochs=3")
        self.assertEqual(json.loads((self.dir / "shared" / "plan.json").read_text())["nodes"],
                         plan["nodes"])
        out, _ = self.ringpipe("plan", self.row, *sets)
        self.assertRegex(out, r"in which boards share stages, is faster, .* \([0-9]+ %\) \+ ")
        for words in ("cut=[fc2, fc3]", "schedule=pipedream",
                      "schedule={kind: umpipe, forward: [8, 8, 8]}"):
            self.assertIn("share: ", self.refused("train", self.row, *sets, "--set", words))

    # Three boards that are held back by an op's work, and layers of which one takes nearly all.
    HELD = ("--set", "cut=auto", "--set",
            "ring={boards: 3, threads: 1, throttle: {gflops: 0.02}, link: {rate_mbit: 1000}}",
            "--set", "train.epochs=0", "--set", "train.steps=60", "--set", "train.eval_epochs=0",
            "--set", "train.checkpoint_steps=12")

    def profile_of(self, out, change=None):
        """Of the boards, simulated; changed: seconds of a point by the board's name."""
        self.ringpipe("profile", self.row, "--out", out, *self.HELD)
        path = self.dir / out
        found = json.loads(path.read_text(encoding="utf-8"))
        for board in found["boards"]:
            for layer in board["layers"]:
                for kind in ("forward", "backward", "backward_input", "backward_weight"):
                    for point in layer[kind]:
                        if change:
                            point["seconds"] = change(board["name"], point)
        path.write_text(json.dumps(found), encoding="utf-8")
        return "--profile", path

    def plan_of(self, out):
        return json.loads((self.dir / out / "plan.json").read_text(encoding="utf-8"))

    def test_a_plan_with_shares_trains_the_same(self):
        """Real boards, of which the numbers are those of a run without but for the order of sums;
        also where it is stopped, and goes on by its checkpoint."""
        self.row = self.run_file(RUN % "gpipe")
        words = (*self.profile_of("p.json"), *self.HELD, "--set", "train.steps=30")
        self.ringpipe("train", self.row, "--out", "plain", *words)
        share = ("--set", "plan={share: 3}")
        self.ringpipe("train", self.row, "--out", "shared", *words, *share)
        self.expect_close("plain", "shared", 1e-4)  # the order of sums is another in every part
        self.ringpipe("train", self.row, "--out", "parts", *words, *share, "--set",
                      "train.steps=6")
        self.ringpipe("resume", "parts", "--set", "train.steps=30")
        self.expect_close("shared", "parts", 1e-4)
        about = json.loads((self.dir / "parts" / "about.json").read_text(encoding="utf-8"))
        holds = [h for node in self.plan_of("parts")["nodes"] for h in node["holds"]]
        shared = any(h["samples"] != [0, 1] for h in holds)
        self.assertEqual(about["plan"], "shared" if shared else "made")

    def test_a_dry_run_counts_the_plans_stages(self):
        plan = self.run_row("sim", "row", "1f1b")
        out, _ = self.ringpipe("train", self.row, "--dry-run", *self.shared_words(plan, UNEVEN))
        self.assertIn("on 3 stages", out)

    def test_shares_that_overlap_are_refused(self):
        plan = spread(self.run_row("sim", "row", "1f1b"), HALVES)
        for node, share in ((1, [0, 0.5]), (2, [0.28125 - 1e-11, 0.28125 + 1e-11])):
            with self.subTest(share):
                extra = json.loads(json.dumps(plan))
                extra["nodes"].append({**extra["nodes"][node], "name": "4"})
                extra["nodes"][-1]["holds"] = [{**extra["nodes"][node]["holds"][0],
                                                "samples": share}]
                (self.dir / "extra.json").write_text(json.dumps(extra), encoding="utf-8")
                error = self.refused("train", self.row, "--plan", "extra.json",
                                     "--set", "ring.boards=5", "--set", "cut=auto")
                self.assertIn("extra.json: holds.samples: stage 1: ", error)

    def test_ports_of_a_roster(self):
        self.ringpipe("keys", "new", "--dir", "keys")
        plan = self.run_row("sim", "row", "1f1b", "--set", "ring.boards=1", "--set", "cut=[]")
        shares = spread(plan, [[0, 0.25, 0.5, 0.75, 1]])
        words = ("--keys", "keys", "--plan", "shares.json", "--dry-run", "--set", "cut=auto",
                 "--set", "ring={roster: roster.yaml}")
        (self.dir / "shares.json").write_text(json.dumps(shares), encoding="utf-8")
        for ports, message in (((7000, 7010, 7020, 7030), None),
                               ((7000, 7010, 7020, 65532), "up to 65536"),
                               ((7000, 7003, 7013, 7017), None),
                               ((7000, 7010, 7016, 7013), "board 2 has one of them"),
                               ((7003, 7006, 7010, 7000), "board 0 has one of them")):
            with self.subTest(ports):
                (self.dir / "roster.yaml").write_text("boards:\n" + "".join(
                    f"- {{name: '{k}', address: 'tcp://127.0.0.1:{port}', key: '{k:040}'}}\n"
                    for k, port in enumerate(ports)), encoding="utf-8")
                if message:
                    self.assertIn(message, self.refused("train", self.row, *words))
                else:
                    self.ringpipe("train", self.row, *words)

    def test_what_boards_can_not_share_is_refused(self):
        plan = self.run_row("sim", "row", "pipedream")
        error = self.refused("train", self.row, *self.shared_words(plan, HALVES))
        self.assertIn("shared.json: ", error)
        self.assertIn("does not flush", error)
        model = self.dir / "norm.yaml"
        model.write_text("input: data\nlayers:\n- {name: fc1, kind: dense, out: 8}\n"
                         "- {name: norm, kind: batchnorm}\n"
                         "- {name: fc2, kind: dense, out: classes}\n", encoding="utf-8")
        norm = ("--set", f"model={model}", "--set", "cut=[norm, fc2]")
        plan = self.run_row("sim", "norm", "1f1b", *norm)
        error = self.refused("train", self.row, *norm, *self.shared_words(plan, HALVES))
        self.assertIn("layer 'norm' has batch statistics", error)
        clip = ("--set", "optimizer={kind: sgd, lr: 0.1, clip_norm_stage: 1}")
        plan = self.run_row("sim", "clip", "1f1b", *clip)
        error = self.refused("train", self.row, *clip, *self.shared_words(plan, HALVES))
        self.assertIn("shared.json: stage 1 is shared by several boards", error)
        self.assertIn("expected optimizer.clip_norm", error)


# What the controller decides is in tests/scenarios. By day, one run of real boards.
load_tests = program.few_when_short("Shares.test_sizes_of_shares",
                                    "Shares.test_what_boards_can_not_share_is_refused",
                                    sanitized=("Shares.test_a_dry_run_counts_the_plans_stages",
                                               "Shares.test_shares_that_overlap_are_refused",
                                               "Shares.test_ports_of_a_roster"))


if __name__ == "__main__":
    program.main()
