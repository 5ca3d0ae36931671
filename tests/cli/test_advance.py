#!/usr/bin/env python3
"""`advance: auto` where the links are real: how long they take is measured."""
import json
import re

import doors
import program
import test_keys

DELAY_S = 0.03


class Advance(program.Case):
    new, agent = test_keys.Keys.new, test_keys.Keys.agent

    def test_round_trips(self):
        """Of a far board too, which hears nothing while it measures its layers; the answers to
        what came meanwhile are late, and no measure of its link."""
        controller = self.new("controller")
        boards = []
        for name in ("one", "two"):
            public = self.new(name)
            self.ringpipe("keys", "trust", "--dir", name, "controller", controller)
            _, address = self.agent(name)
            address = doors.Door(self, address, DELAY_S).address if name == "one" else address
            boards.append(f"- {{name: {name}, address: '{address}', key: '{public}', "
                          "board: pocl-cpu}\n")
        (self.dir / "lab.yaml").write_text("boards:\n  " + "  ".join(boards))
        run = self.run_file(program.RUN.replace("boards: 2", "roster: lab.yaml"))
        said = "".join(self.ringpipe(
            "train", run, "--out", "out", "--keys", "controller", "--set", "train.steps=2",
            "--set", "cut=[fc2]", "--set", "schedule={kind: async, advance: auto}"))
        found = re.search(r"links take ([\d.]+) ms", said)
        self.assertTrue(found, said)
        self.assertGreaterEqual(float(found[1]), 1e3 * DELAY_S)
        self.assertLess(float(found[1]), 2e3 * DELAY_S)

    def test_no_more_than_fits(self):
        """Links that are four ops long ask for eleven replicas, a board of 12 MiB has room for
        fewer: then it is the most that it has room for, and not an error."""
        far = ("--set", "ring.boards=3", "--set", "cut=[fc2, fc3]", "--set",
               "ring.link={delay_ms: 20}", "--set", "ring.throttle={forward_ms: 5, backward_ms: 5}")
        run = self.run_file()
        auto = (*far, "--set", "schedule={kind: ea-pipe, advance: auto}")
        self.ringpipe("train", run, "--out", "a", *auto, "--set", "ring.memory_mib=12")
        plan = json.loads((self.dir / "a" / "plan.json").read_text())
        chosen = plan["advance"]["chosen"]
        self.assertIn(chosen, (1, 2, 3))
        log = list(map(json.loads, (self.dir / "a" / "log.jsonl").read_text().splitlines()))
        *_, less, taken = [e for e in log if e.get("event") == "advance"]
        self.assertEqual((less["kind"], less["advance"]), ("advance_less", chosen + 1))
        self.assertIn("MiB", less["error"])
        self.assertEqual((taken["kind"], taken["advance"]), ("advance", chosen))
        hint = [e for e in log if e.get("kind") == "hint_replicas"][-1]
        self.assertEqual((hint["advance"], hint["replicas"]), (chosen, 1 + 2 * (1 + chosen)))
        named = ("--set", f"schedule={{kind: ea-pipe, advance: {chosen}}}")
        self.ringpipe("train", run, "--out", "b", *far, *named)
        weights = [(self.dir / out / "weights.safetensors").read_bytes() for out in "ab"]
        self.assertTrue(weights[0] == weights[1], "not the run that names the number")


# What the controller decides is in tests/scenarios. By day, real round trips.
load_tests = program.few_when_short("Advance.test_round_trips")


if __name__ == "__main__":
    program.main()
