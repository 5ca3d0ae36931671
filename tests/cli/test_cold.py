#!/usr/bin/env python3
"""The first start on a machine: what is built is counted, and once it is there it is found."""
import json
import os
import re
import unittest

import program

READY = re.compile(r"2 boards are ready: (\d+) kernels built in [\d.]+ s, (\d+) found in the")


class Cold(program.Case):
    def kernels(self, out, *more):
        """Built and found by the boards of a run."""
        words = ["train", self.run_file(), "--out", out, *more]
        _, text = self.ringpipe(*words, env=self.caches, seconds=500)
        said = READY.search(text)
        self.assertTrue(said, text)
        return int(said[1]), int(said[2])

    def test_count(self):
        self.caches = {
            "XDG_CACHE_HOME": str(self.dir / "cache"),
            "POCL_CACHE_DIR": str(self.dir / "pocl"),
            "RINGPIPE_BINARIES": "",
        }
        built, _ = self.kernels("first")
        self.assertGreater(built, 0)
        # Layers are measured anew, and may be cut in another way.
        cut = json.loads((self.dir / "first" / "plan.json").read_text())["cut"]
        if len(os.sched_getaffinity(0)) > 1:  # both have built, one has measured
            for board, measured in (0, 1), (1, 0):
                journal = (self.dir / "first" / f"agent-{board}.log").read_text()
                self.assertEqual(journal.count("the kernels of its layers are ready"), 1, journal)
                self.assertEqual(journal.count("its layers are measured"), measured, journal)
        again, found_again = self.kernels("second", "--set", f"cut={json.dumps(cut)}")
        self.assertEqual(again, 0)
        self.assertGreater(found_again, 0)
        # What no step launches is not compiled: of the optimisers this run's alone.
        compiled = {path.stem for path in (self.dir / "pocl").rglob("*.so")}
        self.assertLessEqual(compiled & {"sgd", "adam", "rmsprop"}, {"sgd"})

    def test_warm(self):
        """What an agent has built ahead a run finds."""
        self.caches = {
            "XDG_CACHE_HOME": str(self.dir / "cache"),
            "POCL_CACHE_DIR": str(self.dir / "pocl"),
            "RINGPIPE_BINARIES": "",
        }
        words = ["--warm", "mlp", "--sample", "1,28,28"]
        out, _ = self.ringpipe(*words, program=program.AGENT, env=self.caches, seconds=500)
        self.assertRegex(out, r"mlp: [1-9]\d* kernels built in [\d.]+ s, 0 found")
        out, _ = self.ringpipe(*words, program=program.AGENT, env=self.caches, seconds=500)
        self.assertRegex(out, r"mlp: 0 kernels built in [\d.]+ s, [1-9]\d* found")
        built, found = self.kernels("first")
        self.assertEqual(built, 0)
        self.assertGreater(found, 0)
        for wrong in (["--warm", "no-such"], ["--warm", "mlp", "--sample", "1,x"]):
            self.refused(*wrong, program=program.AGENT, env=self.caches)


if __name__ == "__main__":
    program.main()
