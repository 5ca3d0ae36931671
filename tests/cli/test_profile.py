#!/usr/bin/env python3
"""`ringpipe profile`: every board that differs, every layer, several sizes; and what it decides."""
import json
import unittest

import program

PASSES = ("forward", "backward", "backward_input", "backward_weight")


class Profile(program.Case):
    def profile(self, *sets):
        words = [word for item in sets for word in ("--set", item)]
        out, err = self.ringpipe("profile", self.run_file(), "--format", "json", *words)
        return json.loads(out), err

    def expect_points(self, layer, sizes):
        for kind in PASSES:
            points = layer[kind]
            self.assertEqual([p["samples"] for p in points], sizes)
            times = [p["seconds"] for p in points]
            self.assertEqual(times, sorted(times), kind)
            self.assertGreater(times[-1], 0)
            self.assertTrue(all(p["spread"] >= 0 for p in points))

    def test_boards_that_are_alike_are_measured_once(self):
        found, err = self.profile()
        self.assertEqual(err.count("profiling: measuring"), 1, err)
        self.assertIn("profiling: measuring board 0, 1 of 1 that differ", err)
        first, second = found["boards"]
        self.assertEqual((first["like"], second["like"]), ("0", "0"))
        self.assertEqual(first["layers"], second["layers"])
        self.assertEqual([x["name"] for x in found["layers"]],
                         ["fc1", "relu1", "fc2", "relu2", "fc3"])
        for layer in first["layers"]:  # microbatches of 16, batches of 64
            self.expect_points(layer, [1, 4, 16, 64])
        self.assertTrue(all(x["forward_s"] > 0 for x in found["layers"] if x["name"] == "fc1"))
        self.assertTrue(all(t > 0 for t in first["to_device_s"] + first["from_device_s"]))
        between = [w for w in found["wires"] if "host" not in (w["from"], w["to"])]
        self.assertEqual(len(between), 2)
        for wire in between:  # this machine's own, by acks
            self.assertFalse(wire["assumed"])
            self.assertGreater(wire["latency_s"], 0)
            self.assertGreater(wire["bytes_per_s"], 1e6)
            self.assertEqual([p["bytes"] for p in wire["sizes"]], [2**14, 2**18, 2**21])
        self.assertEqual({(w["from"], w["to"]) for w in found["wires"]},
                         {("0", "1"), ("1", "0"), ("host", "0"), ("host", "1"),
                          ("0", "host"), ("1", "host")})
        for wire in found["wires"]:  # those of the host, too, both ways
            if wire["assumed"]:  # on a busy machine time may not grow with bytes
                self.assertGreater(max(point["spread"] for point in wire["sizes"]), 0.2, wire)
            else:
                self.assertGreater(wire["bytes_per_s"], 1e6, wire)

    def test_what_ops_cost_besides(self):
        averaged, _ = self.profile("schedule=ea-pipe")
        pair = averaged["boards"][0]["besides"]["average_s"]
        self.assertTrue(0 < pair[0] and 0 < pair[1], pair)
        found, _ = self.profile("schedule=spectrain")
        besides = found["boards"][0]["besides"]
        self.assertEqual(besides, found["boards"][1]["besides"])
        self.assertGreater(besides["handling_s"], 0)
        self.assertLess(besides["handling_s"], 1)
        pair = besides["prediction_s"]
        self.assertTrue(0 < pair[0] and 0 < pair[1], pair)
        self.assertEqual(besides["average_s"], [0, 0])
        codecs = {c["codec"]: c for c in besides["codecs"]}
        self.assertEqual(set(codecs), {"f16", "bf16", "int8", "int4", "topk-0.1", "topk-0.03",
                                       "topk-0.01"})
        for codec in codecs.values():  # 16 times as many values
            for pair in (codec["encode_s"], codec["decode_s"]):
                self.assertTrue(0 < pair[0] < pair[1], codec)
        out, _ = self.ringpipe("plan", self.run_file(), "--set", "links={codec: int8}")
        self.assertIn("A step takes", out)  # a run measures what it has: int8

    def test_boards_that_differ_are_each_measured(self):
        found, err = self.profile("ring.threads=[1, 2]", "ring.link={rate_mbit: 8, delay_ms: 3}")
        self.assertEqual([b["like"] for b in found["boards"]], ["0", "1"])
        self.assertIn("profiling: measuring board 1, 2 of 2", err)
        wire = found["wires"][0]
        self.assertEqual((wire["bytes_per_s"], wire["assumed"]), (1e6, False))
        self.assertAlmostEqual(wire["latency_s"], 3e-3)

    def test_a_slower_board_has_fewer_layers(self):
        """On boards that would have the same layers each otherwise: by operations alone."""
        def cut(slow):
            boards = f"{{{slow}: {{gflops: 0.005}}}}"
            out, _ = self.ringpipe(
                "plan", self.run_file(), "--format", "json", "--set",
                f"ring.throttle={{gflops: 0.05, boards: {boards}}}")
            return [len(stage["layers"]) for stage in json.loads(out)["stages"]]
        self.assertGreater(cut(1)[0], cut(0)[0])

    def test_boards_to_leave_out(self):
        """A board whose every op takes a tenth of a second holds up two that are fast."""
        slow = "{gflops: 0.05, boards: {1: {forward_op_ms: 100, backward_op_ms: 100}}}"
        out, _ = self.ringpipe("plan", self.run_file(), "--set", "ring.boards=3", "--set",
                               f"ring.throttle={slow}")
        self.assertRegex(out, r"A step takes [0-9.]+ s by prediction; board [0-2] computes")
        self.assertRegex(out, r"[12] of 3 boards are faster, [0-9.]+ s a step instead of")
        self.assertRegex(out, r"Left out: .*board 1 \(0\.2[0-9]* s for a microbatch\)")
        order = out.split("In this order: ")[1].split(";")[0]
        self.assertNotIn("1", order)
        self.assertIn("Next best, with other boards: ", out)

    def test_a_table(self):
        out, _ = self.ringpipe("profile", self.run_file())
        for words in ("board 0: ", "also used for 1", "its input", "worst spread", "fc3",
                      "0 to 1", "host to 0", "1 to host", "Handling of an op: ",
                      "A million values, to encode / to decode: f16 "):
            self.assertIn(words, out)

    def plan(self, *sets, **env):
        env = {"RINGPIPE_PROFILES": str(self.dir / "kept"), **env}
        words = [word for item in sets for word in ("--set", item)]
        _, err = self.ringpipe("plan", self.run_file(), "--out", "plan.json", *words, env=env)
        return err

    def test_what_was_measured_is_kept(self):
        self.assertIn("profiling: measuring board 0", self.plan())
        kept = list((self.dir / "kept").iterdir())
        self.assertEqual(len(kept), 1, kept)
        self.assertIn("profiling: probing board 0", self.plan())
        found = json.loads(kept[0].read_text(encoding="utf-8"))
        for layer in found["boards"][0]["layers"]:  # as if the board had been slower
            for kind in PASSES:
                for point in layer[kind]:
                    point["seconds"] *= 20
        slower = json.dumps(found)
        kept[0].write_text(slower, encoding="utf-8")
        err = self.plan()
        self.assertIn("profiling: probing board 0", err)
        self.assertIn("times as long as in a former run: it is measured again", err)
        self.assertIn("profiling: measuring board 0", err)
        self.assertNotEqual(kept[0].read_text(encoding="utf-8"), slower)
        kept[0].write_text("{", encoding="utf-8")  # cut off
        err = self.plan()
        self.assertIn("a cached profile is not used", err)
        self.assertIn("profiling: measuring board 0", err)
        json.loads(kept[0].read_text(encoding="utf-8"))
        self.assertIn("profiling: measuring board 0", self.plan(RINGPIPE_PROFILES=""))
        self.assertEqual(list((self.dir / "kept").iterdir()), kept)

    def scale_kept(self, factor):
        """As if the board had been so much faster or slower in the run before."""
        path = next((self.dir / "kept").iterdir())
        found = json.loads(path.read_text(encoding="utf-8"))
        for layer in found["boards"][0]["layers"]:
            for kind in PASSES:
                for point in layer[kind]:
                    point["seconds"] *= factor
        path.write_text(json.dumps(found), encoding="utf-8")
        return path, path.read_text(encoding="utf-8")

    def test_a_board_that_has_become_slow_is_measured_again(self):
        self.plan()
        path, faster = self.scale_kept(1 / 20)
        err = self.plan()
        self.assertRegex(err, r"board 0 takes [0-9.]+ times as long as in a former run")
        self.assertIn("profiling: measuring board 0", err)
        self.assertNotEqual(path.read_text(encoding="utf-8"), faster)

    def test_a_throttle_needs_no_measuring(self):
        """It is known, so that a kept profile serves however slow a board is made."""
        self.plan()
        def cut(slow):
            err = self.plan(f"ring.throttle={{gflops: 0.05, boards: {{{slow}: "
                            "{gflops: 0.005}}}")
            self.assertIn("profiling: probing board 0", err)
            plan = json.loads((self.dir / "plan.json").read_text(encoding="utf-8"))
            return len(plan["stages"][0]["layers"])
        self.assertGreater(cut(1), cut(0))

    def test_a_profile_that_is_given_is_not_measured_again(self):
        self.ringpipe("profile", self.run_file(), "--out", "p.json")
        path = self.dir / "p.json"
        found = json.loads(path.read_text(encoding="utf-8"))
        for layer in found["boards"][1]["layers"]:  # board 1 is made ten thousand times as slow
            for kind in PASSES:
                for point in layer[kind]:
                    point["seconds"] *= 1e4
        path.write_text(json.dumps(found), encoding="utf-8")
        out, err = self.ringpipe("plan", self.run_file(), "--profile", "p.json", "--format", "json")
        self.assertNotIn("profiling", err)
        stages = json.loads(out)["stages"]
        self.assertEqual(stages[1]["layers"], ["fc3"])
        _, err = self.ringpipe("train", self.run_file(), "--profile", "p.json", "--out", "out",
                               "--set", "train.steps=1")
        self.assertNotIn("profiling", err)
        plan = json.loads((self.dir / "out" / "plan.json").read_text(encoding="utf-8"))
        self.assertEqual(plan["stages"][1]["layers"], ["fc3"])

    def test_a_slow_wire_of_a_profile_decides(self):
        """On layers that cost nothing the cut follows the fewest bytes; codecs, the slow wire."""
        self.ringpipe("profile", self.run_file(), "--out", "p.json")
        path = self.dir / "p.json"
        found = json.loads(path.read_text(encoding="utf-8"))
        for wire in found["wires"]:  # the host's are fast: else codecs of hops win nothing
            slow = "host" not in (wire["from"], wire["to"])
            wire.update(bytes_per_s=1e4 if slow else 1e9, sizes=[], assumed=False)
        path.write_text(json.dumps(found), encoding="utf-8")
        def plan(*words):
            out, _ = self.ringpipe("plan", self.run_file(), "--profile", "p.json", "--format",
                                   "json", *words)
            return json.loads(out)
        stages = plan()["stages"]
        self.assertNotIn("fc2", stages[1]["layers"])  # 128 numbers cross, else 256
        self.assertIn('"codec": "int', json.dumps(plan("--set", "links.codec=auto")))

    def test_a_profile_of_something_else_is_refused(self):
        self.ringpipe("profile", self.run_file(), "--out", "p.json")
        for verb, *words in (("plan",), ("train", "--out", "out"),
                             ("sim", "--executor", "timed")):
            _, err = self.ringpipe(verb, self.run_file(), "--profile", "p.json", *words,
                                   "--set", "model=lenet", code=2)
            self.assertIn("p.json: model_digest: it is a profile of another model", err)
        _, err = self.ringpipe("plan", self.run_file(), "--profile", "p.json",
                               "--set", "ring.boards=3", code=2)
        self.assertIn("p.json: boards: has no board '2' of this run", err)
        self.assertFalse((self.dir / "out").exists())

    def test_a_simulation_takes_it(self):
        self.ringpipe("profile", self.run_file(), "--out", "p.json")
        out, _ = self.ringpipe("sim", self.run_file(), "--executor", "timed", "--profile",
                               "p.json", "--format", "json")
        self.assertGreater(json.loads(out)["seconds"], 0)

    def test_a_simulation_follows_each_board(self):
        """Costs that are not in proportion to samples, on one board of two."""
        self.ringpipe("profile", self.run_file(), "--out", "p.json")
        path = self.dir / "p.json"
        found = json.loads(path.read_text(encoding="utf-8"))
        def seconds(fixed_ms, per_sample_ms, micro):
            for board, slow in zip(found["boards"], (0, 1)):
                board["like"] = board["name"]
                for layer in board["layers"]:
                    layer["update_s"] = 0
                    for kind in PASSES:
                        whole = slow * (layer["name"] == "fc2")
                        layer[kind] = [{"samples": n, "spread": 0, "seconds": whole * 1e-3
                                        * (fixed_ms + per_sample_ms * n)} for n in (1, 64)]
            path.write_text(json.dumps(found), encoding="utf-8")
            out, _ = self.ringpipe(
                "sim", self.run_file(), "--executor", "timed", "--profile", "p.json", "--set",
                f"train.microbatch={micro}", "--set", "cut=[fc2]", "--format", "json")
            return json.loads(out)["seconds"]
        # 4 steps of 64 samples: forward and backward of fc2 on board 1; 64 are evaluated
        base = seconds(0, 0, 16)
        self.assertAlmostEqual(seconds(0, 1, 16) - base, (4 * 2 + 1) * 0.064, delta=0.05)
        self.assertAlmostEqual(seconds(20, 0, 16) - base, (4 * 2 + 1) * 4 * 0.020, delta=0.05)
        self.assertAlmostEqual(seconds(20, 0, 64) - seconds(0, 0, 64), (4 * 2 + 1) * 0.020,
                               delta=0.05)


load_tests = program.few_when_short("Profile.test_boards_that_are_alike_are_measured_once",
                                    "Profile.test_boards_that_differ_are_each_measured",
                                    "Profile.test_what_was_measured_is_kept",
                                    "Profile.test_a_slow_wire_of_a_profile_decides",
                                    "Profile.test_a_profile_of_something_else_is_refused",
                                    "Profile.test_a_simulation_follows_each_board")


if __name__ == "__main__":
    unittest.main(verbosity=2)
