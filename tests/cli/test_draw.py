#!/usr/bin/env python3
"""Schedules as pictures, for any number of stages and microbatches."""
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

    def test_svg(self):
        for schedule in SCHEDULES:
            with self.subTest(schedule):
                root = xml.fromstring(self.draw(schedule, 4, 8, "--format", "svg"))
                self.assertTrue(root.tag.endswith("svg"))
                self.assertGreaterEqual(sum(1 for e in root.iter() if e.tag.endswith("rect")), 64)

    def test_wrong(self):
        self.assertIn("1f1b", self.refused("draw", "1f1c", "--stages", 4, "--micro", 8))
        for stages in ("0", "-1", "x", "4x", "99999999999999999999"):
            with self.subTest(stages):
                err = self.refused("draw", "1f1b", "--stages", stages, "--micro", 8)
                self.assertIn(stages, err)


if __name__ == "__main__":
    program.main()
