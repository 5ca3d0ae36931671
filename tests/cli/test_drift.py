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
        self.assertRegex(found["limits"], r"^board [01] computes [0-9]+ % of a step")
        self.assertGreaterEqual(found["measured_step_s"], 0.98 * found["step_s"])
        ops = {(o["stage"], o["kind"]): o for o in found["op"]}
        slowest = ops[0, "backward"]
        self.assertEqual(slowest["count"], 60 * 4)
        self.assertGreaterEqual(slowest["measured_s"], 0.99 * slowest["predicted_s"])
        print({key: (o["predicted_s"], o["measured_s"]) for key, o in ops.items()})
        print(found["step_s"], found["measured_step_s"])

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
            self.assertEqual((events[0]["kind"], events[0]["board"]), ("plan_cut", "1"))
            self.assertNotIn("peer", events[0])
            self.assertLess(events[0]["factor"], 1)
            self.assertIn(summary["prediction"]["cuts"], (1, 2, 3))
            self.assertEqual(summary["steps"], 60)
            self.assertEqual((summary["ledger"]["lost"], summary["ledger"]["repeated"]), (0, 0))
        both = [(self.dir / x / "weights.safetensors").read_bytes() for x in ("stays", "gpipe")]
        self.assertEqual(*both)

    def test_bad_shares(self):
        for share in ("-1", "often"):
            err = self.refused("train", self.run_file(RUN), "--set", f"plan.drift={share}")
            self.assertIn("plan.drift", err)
        self.assertIn("plan", self.refused("train", self.run_file(RUN), "--set", "plan.drifts=1"))


# What the controller decides is in tests/scenarios. By day, what is refused.
load_tests = program.few_when_short("Drift.test_bad_shares")


if __name__ == "__main__":
    unittest.main(verbosity=2)
