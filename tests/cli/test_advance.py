#!/usr/bin/env python3
"""`advance: auto` where the links are real: how long they take is measured."""
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


if __name__ == "__main__":
    program.main()
