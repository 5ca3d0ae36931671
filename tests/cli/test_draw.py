#!/usr/bin/env python3
"""Schedules as pictures, for any number of stages and microbatches."""
from pathlib import Path
import re
import xml.etree.ElementTree as xml

import program

SCHEDULES = ("gpipe", "1f1b", "zb-h1", "interleaved-1f1b")


class Draw(program.Case):
    def draw(self, schedule, stages, micro, *words):
        sizes = ("--stages", stages, "--micro", micro)
        return self.ringpipe("draw", schedule, *sizes, *words)[0]

    def test_text(self):
        for schedule in SCHEDULES:
            for stages, micro in ((1, 1), (4, 8), (4, 2), (16, 3)):
                with self.subTest(f"{schedule} {stages} {micro}"):
                    out = self.draw(schedule, stages, micro)
                    self.assertGreaterEqual(len(out.splitlines()), stages)
                    self.assertIn("F0", out)

    def test_steady_state(self):
        """Without a flush: what goes on, not the filling; another picture than 1f1b's."""
        flushed, other = (self.draw(name, 4, 8) for name in ("1f1b", "pipeoptim"))
        self.assertIn("bubble 27.3 %", flushed)
        self.assertIn("of the steady state: 16 columns, bubble 0.0 %", other)
        self.assertNotEqual(flushed.splitlines()[1], other.splitlines()[1])
        whole = self.draw("pipeoptim", 4, 8, "--whole")
        self.assertIn("22 columns, bubble 27.3 %", whole)
        self.assertIn("F0 F1", whole)

    def test_some_stages_are_split(self):
        """A stage that is not split has one board, with the forwards and the backwards."""
        some = "{kind: pipefb, split: [true, false, true]}"
        lines = self.ringpipe("draw", some, "--micro", 6)[0].splitlines()
        self.assertIn("3 stages on 5 boards", lines[0])
        lanes = [re.search(r"stage (\d+) +(F|B|FB)  ", line) for line in lines[1:]]
        self.assertEqual([lane.groups() for lane in lanes],
                         [("0", "F"), ("1", "FB"), ("2", "F"), ("2", "B"), ("0", "B")])
        for line, lane in zip(lines[1:], lanes):
            ops = {word[0] for word in line[:lane.start()].split() if word[0] in "FB"}
            self.assertEqual(ops, set(lane[2]), line)
        picture = self.ringpipe("draw", some, "--format", "svg", "--whole")[0]
        self.assertEqual(re.findall(r">stage (\d+) +(F|B|FB)<", picture),
                         [lane.groups() for lane in lanes])
        self.assertEqual(self.ringpipe("draw", "{kind: pipefb, split: [true, true]}")[0],
                         self.draw("pipefb", 2, 8))
        for word in ("{kind: gpipe}", "{kind: pipefb}", "{kind: pipefb, split: [true], ahead: 3}"):
            self.assertIn("expected the name of a schedule, or a map", self.refused("draw", word))

    def test_svg(self):
        for schedule in SCHEDULES:
            with self.subTest(schedule):
                root = xml.fromstring(self.draw(schedule, 4, 8, "--format", "svg"))
                self.assertTrue(root.tag.endswith("svg"))
                self.assertGreaterEqual(sum(1 for e in root.iter() if e.tag.endswith("rect")), 64)

    def test_plan(self):
        """Stages on several nodes, forward and backward apart: a lane a node."""
        plans = Path(__file__).resolve().parents[1] / "fuzz" / "corpus" / "plan"
        path = self.dir / "plan.json"
        path.write_text((plans / "shares").read_text())
        out = self.ringpipe("draw", path)[0].splitlines()
        self.assertEqual(out[0], "gpipe, 9 nodes, 3 stages, 29 edges: 20 columns, bubble 71.1 %")
        self.assertEqual(out[3], ".  F0 F1 F2" + " . " * 16 +
                         "   s1.0: stage 1 forward of samples 0 to 0.25, slots 1")
        self.assertEqual(out[9], ".  .  .  F0 F1 .  F2 F3 F4 F5 B5 B4 B3 B2 B1 B0 .  .  .  .    "
                         "s2.0: stage 2, slots 6")
        path.write_text((plans / "edges-missing").read_text())
        self.assertIn("expected one edge", self.refused("draw", path))
        path.write_text((plans / "short").read_text())
        self.assertIn("plan.json:", self.refused("draw", path))

    def test_wrong(self):
        self.assertIn("1f1b", self.refused("draw", "1f1c", "--stages", 4, "--micro", 8))
        for stages in ("0", "-1", "x", "4x", "99999999999999999999"):
            with self.subTest(stages):
                err = self.refused("draw", "1f1b", "--stages", stages, "--micro", 8)
                self.assertIn(stages, err)


if __name__ == "__main__":
    program.main()
