#!/usr/bin/env python3
"""Predicted against measured, in summary.json; and another cut when the two part (`plan.drift`)."""
import json
import unittest

import program

PASSES = ("forward", "backward", "backward_input", "backward_weight")
# Layers that cost about as much as each other.
MODEL = """\
input: data
layers:
  - {name: flatten, kind: flatten}
  - {name: fc1, kind: dense, out: 128}
  - {name: fc2, kind: dense, out: 512}
  - {name: fc3, kind: dense, out: 256}
  - {name: fc4, kind: dense, out: 256}
  - {name: fc5, kind: dense, out: classes}
"""
# Boards that are as slow as told, so that the machine's own speed does not matter.
RUN = (program.RUN.replace("boards: 2", f"boards: 2, throttle: {{gflops: {0.5 / program.SLOWER}}}")
       .replace("train: 256", "train: 4096")
       .replace("model: mlp", "model: net.yaml").replace("lr: 0.05", "lr: 0.01")
       .replace("seed: 1", "seed: 1, checkpoint_steps: 12"))


class Drift(program.Case):
    def setUp(self):
        super().setUp()
        (self.dir / "net.yaml").write_text(MODEL, encoding="utf-8")

    def profile(self, change):
        self.ringpipe("profile", self.run_file(RUN), "--out", "p.json")
        path = self.dir / "p.json"
        found = json.loads(path.read_text(encoding="utf-8"))
        for board in found["boards"]:
            for layer in board["layers"]:
                for kind in PASSES:
                    for point in layer[kind]:
                        point["seconds"] = change(board["name"], point)
        path.write_text(json.dumps(found), encoding="utf-8")

    def train(self, out, *sets):
        words = [word for item in sets for word in ("--set", item)]
        self.ringpipe("train", self.run_file(RUN), "--profile", "p.json", "--out", out,
                      "--set", "train.steps=60", "--set", "train.eval_epochs=0", *words)
        folder = self.dir / out
        log = [json.loads(x) for x in (folder / "log.jsonl").read_text().splitlines()]
        plan = json.loads((folder / "plan.json").read_text(encoding="utf-8"))
        summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
        return ([len(s["layers"]) for s in plan["stages"]],
                [x for x in log if x.get("event") == "plan"], summary, plan)

    def test_a_step_takes_what_was_predicted(self):
        """The throttle is known, and costs far more than all else."""
        self.profile(lambda board, point: point["seconds"])
        _, events, summary, plan = self.train("out", "plan.drift=5")
        self.assertEqual(events, [])
        found = summary["prediction"]
        self.assertEqual(found["cuts"], 0)
        self.assertEqual(plan["predicted"]["limits"], found["limits"])
        self.assertAlmostEqual(plan["predicted"]["step_s"], found["step_s"])
        self.assertRegex(found["limits"], r"^board [01] computes [0-9]+ % of it")
        self.assertGreaterEqual(found["measured_step_s"], 0.98 * found["step_s"])
        ops = {(o["stage"], o["kind"]): o for o in found["op"]}
        slowest = ops[0, "backward"]
        self.assertEqual(slowest["count"], 60 * 4)
        self.assertGreaterEqual(slowest["measured_s"], 0.99 * slowest["predicted_s"])
        print({key: (o["predicted_s"], o["measured_s"]) for key, o in ops.items()})
        print(found["step_s"], found["measured_step_s"])

    def test_a_simulation_takes_what_is_predicted(self):
        """On four uneven boards, by virtual time: the replay is the simulator's timed executor."""
        boards = "{1: {forward_op_ms: 20, backward_op_ms: 20}, 3: {gflops: 0.1}}"
        uneven = ("--set", "ring.boards=4", "--set",
                  f"ring.throttle={{gflops: 0.5, boards: {boards}}}")
        self.ringpipe("profile", self.run_file(RUN), "--out", "p.json", *uneven)
        sizes = "{kind: umpipe, forward: [8, 32, 8, 4], backward: [5, 32, 7, 4]}"
        for schedule in ("gpipe", "1f1b", "zb-h1", "async", "pipeoptim", sizes):
            for micro in (4, 16):
                out, _ = self.ringpipe(
                    "sim", self.run_file(RUN), "--executor", "timed", "--profile", "p.json",
                    "--format", "json", *uneven, "--set", f"schedule={schedule}", "--set",
                    f"train.microbatch={micro}", "--set", "train.steps=40")
                found = json.loads(out)["prediction"]
                print(schedule, micro, found["step_s"], found["measured_step_s"])
                self.assertAlmostEqual(found["measured_step_s"] / found["step_s"], 1, delta=0.05)

    def test_wires_that_take_turns(self):
        """Two directions of a wire, or all boards on one air: parcels leave one after the other."""
        run = self.run_file(RUN)
        boards = ("--set", "ring.boards=4", "--set", "ring.throttle={gflops: 0.5}")
        self.ringpipe("profile", run, "--out", "p.json", *boards)
        for link in ("half_duplex: true", "shared: air"):
            for rate in (40, 10):
                for schedule in ("gpipe", "1f1b", "pipeoptim"):
                    out, _ = self.ringpipe(
                        "sim", run, "--executor", "timed", "--profile", "p.json", "--format",
                        "json", *boards, "--set", f"ring.link={{rate_mbit: {rate}, {link}}}",
                        "--set", f"schedule={schedule}", "--set", "train.microbatch=16", "--set",
                        "train.steps=40")
                    found = json.loads(out)["prediction"]
                    print(link, rate, schedule, found["step_s"], found["measured_step_s"])
                    self.assertAlmostEqual(found["measured_step_s"] / found["step_s"], 1,
                                           delta=0.1 if "shared" in link else 0.05)

    def test_layers_are_shared_out_anew(self):
        """A profile says that board 1 takes seconds, which it does not. With a flush the cut is
        nobody's business: the weights are the same."""
        self.profile(lambda board, point: 0.1 * point["samples"] if board == "1" else 0)
        before, events, _, _ = self.train("stays")
        self.assertEqual((before[1], events), (1, []))
        for schedule in ("gpipe", "async"):
            after, events, summary, _ = self.train(schedule, f"schedule={schedule}",
                                                   "plan.drift=0.5")
            self.assertGreater(after[1], 1, events)
            self.assertIn("the layers are shared out anew", events[0]["text"])
            self.assertIn("ops of board 1 take 0.", events[0]["text"])
            self.assertIn(summary["prediction"]["cuts"], (1, 2, 3))
            self.assertEqual(summary["steps"], 60)
            self.assertEqual((summary["ledger"]["lost"], summary["ledger"]["repeated"]), (0, 0))
        both = [(self.dir / x / "weights.safetensors").read_bytes() for x in ("stays", "gpipe")]
        self.assertEqual(*both)

    def test_sizes_are_chosen_anew(self):
        """With a planner of sizes the same happens at a pause. The checkpoint has the new sizes,
        and a run that is resumed keeps them."""
        self.profile(lambda board, point: 0.1 * point["samples"] if board == "1" else 0)
        schedule = "schedule={kind: umpipe, planner: dp-sizes}"
        # Each op of board 0 has a cost of its own, which matters when board 1 takes no time.
        op = "ring.throttle={boards: {0: {forward_op_ms: %d, backward_op_ms: %d}}}" % (2, 2)
        for name, cut in (("free", "auto"), ("held", "[fc4]")):
            _, events, summary, plan = self.train(name, schedule, "plan.drift=0.5",
                                                  f"cut={cut}", op)
            new = "layers are shared out" if cut == "auto" else "sizes are chosen"
            self.assertIn(f"the {new} anew", events[0]["text"])
            self.assertGreaterEqual(summary["prediction"]["cuts"], 1)
            self.assertEqual((summary["ledger"]["lost"], summary["ledger"]["repeated"]), (0, 0))
            log = (self.dir / name / "log.jsonl").read_text(encoding="utf-8")
            told = [json.loads(x) for x in log.splitlines() if '"event":"sizes"' in
                    x.replace(" ", "")]
            self.assertEqual(len(told), 1 + summary["prediction"]["cuts"])
            sizes = [(s["forward"], s["backward"]) for s in plan["stages"]]
            text = ",".join(f" {f}/{b}" for f, b in sizes).replace(",", "")
            self.assertIn(text + ";", told[-1]["text"])
            self.ringpipe("train", self.run_file(RUN), "--resume", name, "--set",
                          "train.steps=64", "--set", schedule, "--set", f"cut={cut}",
                          "--set", op, "--set", "train.eval_epochs=0")
            after = json.loads((self.dir / name / "plan.json").read_text(encoding="utf-8"))
            self.assertEqual([(s["forward"], s["backward"]) for s in after["stages"]], sizes)

    def test_a_wire_that_becomes_slow(self):
        """Emulated lines, by virtual time: five seconds of 200 Mbit/s, then 1. The cut moves to
        where fewer bytes cross, which is behind a layer of 128 and not one of 512 or 256."""
        self.profile(lambda board, point: point["seconds"])
        (self.dir / "slows.csv").write_text("0,200\n5,1\n65,200\n", encoding="utf-8")
        cuts, seconds = {}, {}
        for share in (0, 0.5):
            self.ringpipe("sim", self.run_file(RUN), "--executor", "timed", "--profile", "p.json",
                          "--out", f"wire{share}", "--set", "train.steps=60", "--set",
                          "train.eval_epochs=0", "--set", f"plan.drift={share}", "--set",
                          "ring.link={trace: slows.csv}")
            folder = self.dir / f"wire{share}"
            plan = json.loads((folder / "plan.json").read_text(encoding="utf-8"))
            cuts[share] = [stage["layers"] for stage in plan["stages"]]
            log = [json.loads(x) for x in (folder / "log.jsonl").read_text().splitlines()]
            told = [x for x in log if x.get("event") == "plan"]
            summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
            found = summary["prediction"]
            print(told, found["step_s"], found["measured_step_s"], summary["seconds"])
            seconds[share] = summary["seconds"]
        told = [x["text"] for x in told if "shared out anew" in x["text"]]
        self.assertRegex(told[-1], "the wire from board . to board . takes [0-9.]+ times as "
                         "long as predicted: the layers are shared out anew")
        self.assertEqual(found["cuts"], len(told))
        self.assertNotEqual(cuts[0.5], cuts[0])
        self.assertEqual(cuts[0.5][0][-1], "fc1")
        self.assertLess(seconds[0.5], 0.8 * seconds[0])
        # The wire became slow within the segment that the new cut was chosen by.
        self.assertLess(found["measured_step_s"] / found["step_s"], 1.5)

    def test_bad_shares(self):
        for share in ("-1", "often"):
            err = self.refused("train", self.run_file(RUN), "--set", f"plan.drift={share}")
            self.assertIn("plan.drift", err)
        self.assertIn("plan", self.refused("train", self.run_file(RUN), "--set", "plan.drifts=1"))


load_tests = program.few_when_short("Drift.test_a_simulation_takes_what_is_predicted",
                                    "Drift.test_sizes_are_chosen_anew",
                                    "Drift.test_a_wire_that_becomes_slow", "Drift.test_bad_shares")


if __name__ == "__main__":
    unittest.main(verbosity=2)
