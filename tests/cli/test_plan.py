#!/usr/bin/env python3
"""`train --plan` and `sim --plan`: a run by a plan that is given; the plan is obeyed or refused."""
import json

import program
from edit_plan import move, recut

RUN = """\
model: mlp
data: {set: glyphs, train: 256, test: 64, size: 12}
ring: {boards: 3, threads: 1}
train: {epochs: 1, batch: 32, microbatch: 4, seed: 1}
loss: cross-entropy
optimizer: {kind: sgd, lr: 0.1, momentum: 0.9}
schedule: %s
cut: [fc2, fc3]
"""


class Plan(program.Case):
    def train(self, out, *words, schedule="1f1b", code=0):
        run = self.run_file(RUN % schedule)
        return self.ringpipe("train", run, "--out", out, *words, code=code)

    def weights(self, out):
        return (self.dir / out / "weights.safetensors").read_bytes()

    def plan(self, out):
        return json.loads((self.dir / out / "plan.json").read_text())

    def write(self, plan, name="mine.json"):
        path = self.dir / name
        path.write_text(json.dumps(plan), encoding="utf-8")
        return path

    def check_losses(self, name):
        """What int8 and f16 lose of these numbers: in the log at each pause, and by wire."""
        lines = map(json.loads, (self.dir / name / "log.jsonl").read_text().splitlines())
        errors = [line for line in lines if line.get("event") == "codec"]
        self.assertEqual({(e["stage"], e["carries"], e["codec"]) for e in errors},
                         {(0, "activations", "int8"), (1, "activations", "int8"),
                          (1, "gradients", "f16"), (2, "gradients", "f16")})
        for line in errors:
            self.assertGreater(line["l2_error"], 1e-5)
            self.assertLess(line["l2_error"], 0.02)
        summary = json.loads((self.dir / name / "summary.json").read_text())
        for wire in summary["wire"]:
            self.assertEqual("l2_error" in wire, wire["kind"] == "hop")

    def test_codecs_make_parcels_smaller_and_runs_repeat(self):
        links = "links={codec: {activations: int8, gradients: f16}, inputs: bf16}"
        self.train("plain")
        self.train("coded", "--set", links)
        self.train("again", "--set", links)
        self.train("given", "--plan", self.dir / "coded" / "plan.json")
        self.assertTrue(self.weights("coded") == self.weights("again"))
        self.assertTrue(self.weights("coded") == self.weights("given"))
        self.assertTrue(self.weights("coded") != self.weights("plain"))
        codecs = {"input": "bf16", "activation": "int8", "gradient": "f16", "label": "f32"}
        for edge in self.plan("coded")["edges"]:
            self.assertEqual(edge["codec"], codecs[edge["carries"]])
        sent = {}
        for name in ("plain", "coded"):
            summary = json.loads((self.dir / name / "summary.json").read_text())
            sent[name] = {(link["from"], link["to"]): link for link in summary["link"]}
        for (a, b), link in sent["coded"].items():
            self.assertEqual(link["codec"], "int8" if a < b else "f16")
            self.assertEqual(sent["plain"][a, b]["codec"], "f32")
            share = link["bytes"] / sent["plain"][a, b]["bytes"]
            self.assertLess(share, 0.45 if a < b else 0.65)
        self.check_losses("coded")
        _, err = self.train("other", "--set", "links={codec: f16}", "--plan",
                            self.dir / "coded" / "plan.json", code=2)
        self.assertIn("codec: is int8, the run file's links.codec f16", err)

    def test_inputs_travel_as_bytes_and_give_the_same_bits(self):
        """The first stage normalises: every augmentation that keeps bytes, and every schedule."""
        data = "data={set: glyphs, train: 90, test: 30, augment: %s%s}"
        for schedule, augment, more in (("1f1b", "crop-flip", ""),
                                        ("pipedream", "none", ", normalise: measured"),
                                        ("gpipe", "none", ", normalise: none")):
            with self.subTest(schedule):
                words = ("--set", data % (augment, more))
                self.train("bytes" + schedule, *words, schedule=schedule)
                self.train("floats" + schedule, *words, "--set", "links={inputs: f32}",
                           schedule=schedule)
                self.assertTrue(self.weights("bytes" + schedule) ==
                                self.weights("floats" + schedule))
                sent, results = {}, []
                for name, codec in (("bytes", "uint8"), ("floats", "f32")):
                    edges = self.plan(name + schedule)["edges"]
                    self.assertEqual({e["codec"] for e in edges if e["carries"] == "input"},
                                     {codec})
                    summary = json.loads((self.dir / (name + schedule) /
                                          "summary.json").read_text())
                    results.append(summary["eval"])
                    feeds = [wire for wire in summary["wire"]
                             if wire["kind"] == "feed" and wire.get("codec") == codec]
                    sent[name] = sum(wire["bytes"] for wire in feeds)
                self.assertEqual(results[0], results[1])
                self.assertLess(sent["bytes"], sent["floats"] / 3)
        self.train("given", "--plan", self.dir / "floats1f1b" / "plan.json",
                   "--set", data % ("crop-flip", ""))
        self.assertTrue(self.weights("given") == self.weights("bytes1f1b"))
        run = self.run_file(RUN % "1f1b")
        out, _ = self.ringpipe("plan", run, "--set", data % ("{rotation: 5}", ""))
        self.assertIn("Inputs travel as f32, not as uint8: data.augment computes", out)
        self.assertRegex(out, r"inputs +\S+ KiB f32")

    # The wire between boards 0 and 1 is too slow for 16 bits, beside boards that take 40 ms.
    AUTO = ("--set", "links={codec: auto, max_error: 0.004}", "--set",
            "ring.throttle={forward_ms: 20, backward_ms: 20}", "--set",
            "ring.link={hops: [{between: [0, 1], rate_mbit: 0.3}]}", "--set", "data.train=32",
            "--set", "data.test=8", "--set", "train.batch=8")

    def codecs(self, name):
        """By boundary, activations and gradients."""
        by = {(e["carries"], e["stage"]): e["codec"] for e in self.plan(name)["edges"]}
        return [(by["activation", k + 1], by["gradient", k]) for k in range(2)]

    def check_back_off(self, name):
        """Both ways between boards 0 and 1 at the first pause, and no other."""
        lines = (self.dir / name / "log.jsonl").read_text().splitlines()
        said = [e for e in map(json.loads, lines) if e.get("event") == "codecs"]
        self.assertEqual(said[0]["codecs"], "int8/int8 f32/f32")
        self.assertEqual([e["step"] for e in said[1:]], [4, 4])
        milder = [(e["carries"], e["stage"], e["codec"], e["next_codec"]) for e in said[1:]]
        self.assertEqual(milder, [("activations", 0, "int8", "f16"),
                                  ("gradients", 1, "int8", "bf16")])
        self.assertEqual([e["max_error"] for e in said[1:]], [0.004, 0.004])
        self.assertTrue(0.004 < said[1]["l2_error"] < 0.01, said[1])
        self.assertEqual(self.codecs(name), [("f16", "bf16"), ("f32", "f32")])
        summary = json.loads((self.dir / name / "summary.json").read_text())
        self.assertEqual((summary["ledger"]["lost"], summary["ledger"]["samples"]), (0, 96))

    def test_codecs_are_chosen_and_back_off(self):
        self.train("async", *self.AUTO, "--set", "train.epochs=3", "--set", "optimizer.momentum=0",
                   schedule="{kind: async, advance: 1}")
        self.check_back_off("async")

    def test_a_resumed_run_keeps_the_chosen_codecs(self):
        self.train("whole", *self.AUTO, "--set", "train.epochs=3", schedule="gpipe")
        self.check_back_off("whole")
        self.train("parts", *self.AUTO, schedule="gpipe")
        self.ringpipe("resume", "parts", "--set", "train.epochs=3")
        self.assertTrue(self.weights("parts") == self.weights("whole"))
        self.train("given", *self.AUTO, "--plan", self.dir / "whole" / "plan.json",
                   schedule="gpipe")
        self.assertEqual(self.codecs("given"), [("f16", "bf16"), ("f32", "f32")])
        self.assertNotIn('"codecs"', (self.dir / "given" / "log.jsonl").read_text())

    def test_a_plan_is_obeyed(self):
        self.train("base")
        plan = self.plan("base")
        recut(plan, ["relu1", "relu2"])
        move(plan, [2, 0, 1])
        for edge in plan["edges"]:
            edge["window"] = 1
        self.train("mine", "--plan", self.write(plan))
        ran = self.plan("mine")
        self.assertEqual(ran["cut"], ["relu1", "relu2"])
        self.assertEqual([n["holds"][0]["stage"] for n in ran["nodes"]], [1, 2, 0])
        self.assertEqual({e["window"] for e in ran["edges"]}, {1})
        summary = json.loads((self.dir / "mine" / "summary.json").read_text())
        self.assertEqual([s["layers"] for s in summary["stage"]],
                         [["relu1", "fc2"], ["relu2", "fc3"], ["fc1"]])
        self.assertEqual({(link["from"], link["to"]) for link in summary["link"]},
                         {(2, 0), (0, 1), (1, 0), (0, 2)})
        self.assertTrue(self.weights("mine") == self.weights("base"), "a flush: the same bits")

    def test_halves_of_some_stages(self):
        """A stage that is not split has one board; no number depends on it."""
        sets = ("--set", "cut=[fc2]")
        some = "{kind: pipefb, ahead: [3, 1], split: [false, true]}"
        self.train("some", *sets, "--set", "ring.boards=3", schedule=some)
        self.train("all", *sets, "--set", "ring.boards=4", schedule="{kind: pipefb, ahead: [3, 1]}")
        self.assertTrue(self.weights("some") == self.weights("all"))
        plan = self.plan("some")
        held = [(node["holds"][0]["stage"], node["holds"][0]["role"]) for node in plan["nodes"]]
        self.assertEqual(held, [(0, "both"), (1, "forward"), (1, "backward")])
        self.assertEqual(plan["method"]["split"], [False, True])
        summary = json.loads((self.dir / "some" / "summary.json").read_text())
        self.assertEqual([s.get("role") for s in summary["stage"]], [None, "forward", "backward"])
        drawn, _ = self.ringpipe("draw", "some/plan.json")
        self.assertRegex(drawn, r"0: stage 0, slots 24\n")  # three steps of eight microbatches
        self.assertRegex(drawn, r"1: stage 1 forward, slots 1\n")
        self.assertRegex(drawn, r"2: stage 1 backward, slots 8\n")
        told, _ = self.ringpipe("plan", "run.yaml", *sets, "--set", "ring.boards=3", "--set",
                                f"schedule={some}")
        self.assertIn("2 stages on 3 boards", told)
        self.assertRegex(told, r"(?s)Stage 1: its forwards need .* board 1, .* board 2, with 1")
        self.assertNotIn("Stage 0: its forwards", told)
        self.ringpipe("eval", "some")
        for less in (("offload=[0]",), ("recompute=[0]",), ("offload={0: flash}", "recompute=[0]")):
            out = less[-1] + str(len(less))
            more = [word for text in less for word in ("--set", text)]
            self.train(out, *sets, "--set", "ring.boards=3", *more, schedule=some)
            self.assertTrue(self.weights(out) == self.weights("all"), less)
            whole, halves = self.plan(out)["stages"]
            self.assertEqual(whole.get("recompute", False), "recompute=[0]" in less)
            self.assertEqual(whole["offload"] != "none", "offload" in less[0])
            self.assertEqual((halves.get("recompute", False), halves["offload"]), (False, "none"))
        move(plan, [2, 0, 1])
        self.train("moved", *sets, "--set", "ring.boards=3", "--plan", self.write(plan),
                   schedule=some)
        self.assertTrue(self.weights("moved") == self.weights("all"), "boards decide on numbers")

    def test_halves_that_can_not_be(self):
        for sets, message in (
            (("ring.boards=3",), "expected an even number of boards, found 3"),
            (("ring.boards=4", "cut=auto", "ring.verify=1/8"), "schedule pipefb splits all stages"),
            (("ring.boards=4", "cut=auto", "offload=host"),
             "stage 0 cannot be offloaded, because schedule pipefb splits it"),
            (("ring.boards=4", "cut=auto", "recompute=all"),
             "stage 0 of schedule pipefb, which is split: its backwards are on another board"),
            (("ring.boards=3", "cut=auto", "schedule.split=[false, true]", "recompute=all"),
             "stage 1 of schedule pipefb, which is split"),
            (("ring.boards=3", "cut=auto", "schedule.split=[false, true]", "offload=[1]"),
             "stage 1 cannot be offloaded, because schedule pipefb splits it"),
            (("ring.boards=4", "cut=auto", "schedule.ahead=[1, 2]"), "numbers that do not grow"),
            (("ring.boards=4", "cut=auto", "schedule.ahead=soon"), "ahead"),
            (("ring.boards=4", "cut=auto", "schedule.split=[true, false]"),
             "1 of them on two boards: expected 3 boards, found 4"),
            (("ring.boards=4", "cut=auto", "schedule.split=some"), "a list of true or false"),
        ):
            with self.subTest(message):
                self.run_file(RUN % "{kind: pipefb}")
                words = [word for text in sets for word in ("--set", text)]
                self.assertIn(message, self.refused("train", "run.yaml", "--out", "no", *words))

    def test_sizes_of_no_planner(self):
        for schedule, message in (("{kind: umpipe, planner: best}", "unknown planner 'best'"),
                                  ("{kind: umpipe, planner: greedy}", "auto, dgap or tidgap"),
                                  ("{kind: umpipe, planner: auto, forward: 4}", "remove one of"),
                                  ("{kind: gpipe, planner: auto}", "planner")):
            err = self.refused("train", self.run_file(RUN % schedule))
            self.assertIn(message, err)

    def test_what_can_not_be_planned(self):
        """Another roster, sizes that do not fit the step or the stages, and too little memory."""
        self.train("base")
        plan = self.plan("base")
        plan["nodes"][2]["name"] = "desk"
        for edge in plan["edges"]:
            edge.update({end: "desk" for end in ("from", "to") if edge[end] == "2"})
        path = self.write(plan)
        train = ("train", "run.yaml", "--out", "no")
        for words, message in (
            ((*train, "--plan", path), "nodes[2].name: is 'desk', board 2 is called '2'"),
            ((*train, "--plan", path, "--set", "ring.boards=2", "--set", "cut=auto"),
             "nodes: is 3, the run has 2"),
            ((*train, "--set", "schedule={kind: umpipe, forward: [4]}"),
             "schedule.forward: has 1 sizes for 3 stages"),
            ((*train, "--set", "schedule={kind: umpipe, forward: [4, 4, 33]}"),
             "stage 2 has microbatches of 33 samples; expected at most those of a step, 32"),
            ((*train, "--set", "schedule={kind: umpipe, forward: [4, 4, 0]}"),
             "schedule.forward[2]: expected a whole number from 1"),
        ):
            with self.subTest(message):
                self.assertIn(message, self.refused(*words))
        (self.dir / "wide.yaml").write_text(
            "input: data\nlayers:\n  - {name: flat, kind: flatten}\n"
            "  - {name: a, kind: dense, out: 1024}\n  - {name: b, kind: dense, out: 1024}\n"
            "  - {name: c, kind: dense, out: classes}\n", encoding="utf-8")
        _, err = self.ringpipe("plan", "run.yaml", "--set", "ring.memory_mib=1", "--set",
                               "model=wide.yaml", "--set", "cut=auto", code=2)
        self.assertRegex(err, "device memory, but the limit is 1.0|ring.memory_mib")

    def test_wrong_plans_are_refused_before_anything_starts(self):
        self.train("base")
        good = self.plan("base")

        def change(text):
            plan = json.loads(json.dumps(good))
            exec(text, {"plan": plan})  # pylint: disable=exec-used
            return plan

        for text, message in (
            ("plan['nodes'].pop()", "mine.json: edges["),
            ("plan['edges'][0]['to'] = 'nobody'", "mine.json: edges[0].to: expected the name"),
            ("plan['edges'].pop()", "mine.json: edges: expected one edge"),
            ("plan['nodes'][1]['holds'][0]['samples'] = [0, 0.5]", "mine.json: holds.samples:"),
            ("plan['nodes'][1]['executor'] = 'abacus'", "mine.json: nodes[1].executor:"),
            ("plan['nodes'][1]['executor'] = 'timed'", "mine.json: nodes[1].executor:"),
            ("plan['nodes'][1]['name'] = 'x'", "mine.json: edges["),
            ("plan['batch'] = 64", "mine.json: batch: is 64, the run file says 32"),
            ("plan['edges'][1]['window'] = 0", "mine.json: edges[1].window: expected"),
            ("plan['stages'][1]['forward'] = 8", "mine.json: stages[1].backward:"),
            ("plan['nodes'][0]['memory_bytes'] = float('nan')", "mine.json:"),
        ):
            with self.subTest(text):
                path = self.write(change(text))
                for words in ((), ("--dry-run",)):
                    err = self.refused("train", "run.yaml", "--out", "no", "--plan", path, *words)
                    self.assertIn(message, err)
                self.assertFalse((self.dir / "no").exists())
                self.assertIn(message, self.refused("sim", "run.yaml", "--plan", path))
        path = self.dir / "half.json"
        path.write_text(json.dumps(good)[:999], encoding="utf-8")
        self.assertIn("half.json:1:", self.refused("train", "run.yaml", "--plan", path))
        self.refused("train", "run.yaml", "--plan", self.dir / "none.json")
        err = self.refused("train", "run.yaml", "--plan", self.write(good), "--set",
                           "schedule=gpipe")
        self.assertIn("mine.json: schedule: is 1f1b, the run file's is gpipe", err)


# What the controller decides is in tests/scenarios. By day, what reads a plan.
load_tests = program.few_when_short("Plan.test_a_plan_is_obeyed",
                                    "Plan.test_codecs_are_chosen_and_back_off",
                                    "Plan.test_halves_that_can_not_be",
                                    "Plan.test_sizes_of_no_planner",
                                    "Plan.test_what_can_not_be_planned",
                                    "Plan.test_wrong_plans_are_refused_before_anything_starts")


if __name__ == "__main__":
    program.main()
