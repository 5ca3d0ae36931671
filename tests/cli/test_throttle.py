#!/usr/bin/env python3
"""`ring.throttle`: real agents take at least as long as it says, each board as it is told to."""
import json
import unittest

import program

MS = 1e3  # in microseconds
# Of 8 floats a digit and what the machine adds: no op of this net comes near to the times below.
RUN = program.RUN.replace("cut: auto", "cut: [fc2]").replace("boards: 2", "boards: 2, throttle: %s")


class Throttle(program.Case):
    def ops(self, throttle):
        """{(board, kind of op): the times of its training ops in ms}"""
        run = self.run_file(RUN % throttle)
        self.ringpipe("train", run, "--out", "out", "--set", "train.steps=3")
        events = json.loads((self.dir / "out" / "trace.json").read_text(encoding="utf-8"))
        times = {}
        for e in events:
            if e["ph"] == "X" and e["cat"] == "training":
                times.setdefault((e["pid"], e["name"].split()[0]), []).append(e["dur"] / MS)
        return times

    def test_boards_are_as_slow_as_they_are_told(self):
        times = self.ops("{forward_op_ms: 4, backward_sample_ms: 1, "
                         "boards: {1: {forward_op_ms: 40, update_ms: 60}}}")
        print({key: [round(t, 1) for t in value] for key, value in times.items()})
        least = {(0, "forward"): 4, (0, "backward"): 16,
                 (1, "forward"): 40, (1, "backward"): 16, (1, "update"): 60}
        for key, ms in least.items():
            self.assertGreaterEqual(min(times[key]), ms - 0.01, key)
        self.assertLess(min(times[0, "forward"]), 40)
        self.assertLess(min(times[0, "update"]), 60)

    def test_layers_take_time_by_their_operations(self):
        """fc1 on board 0 has 784 x 256 products a sample; fc2 and fc3, 256 x 128 + 128 x 10."""
        times = self.ops("{gflops: 0.1}")
        print({key: [round(t, 1) for t in value] for key, value in times.items()})
        first, second = (2 * 16 * products / 0.1e9 * 1e3 for products in (784 * 256, 34048))
        self.assertGreaterEqual(min(times[0, "forward"]), first - 0.01)
        self.assertGreaterEqual(min(times[0, "backward"]), 2 * first - 0.01)
        self.assertGreaterEqual(min(times[1, "forward"]), second - 0.01)
        self.assertLess(min(times[1, "forward"]), first)


if __name__ == "__main__":
    unittest.main(verbosity=2)
