#!/usr/bin/env python3
"""What METHODS 13 promises is what the boards of a run hold: copies of the weights in the device's
own bytes, microbatches in flight, and updates between a forward and its backward."""
import json

import program

# Weights are large against all else, on every stage of the four.
MODEL = """\
input: data
layers:
  - {name: flat, kind: flatten}
  - {name: fc1, kind: dense, out: 256}
  - {name: fc2, kind: dense, out: 256}
  - {name: fc3, kind: dense, out: 256}
  - {name: fc4, kind: dense, out: 256}
  - {name: fc5, kind: dense, out: classes}
"""
RUN = """\
model: net.yaml
data: {set: glyphs, train: 48, test: 4}
ring: {boards: 4}
train: {epochs: 1, batch: 4, microbatch: 4, seed: 1}
loss: cross-entropy
optimizer: {kind: sgd, lr: 0.01, momentum: 0.9}
schedule: async
cut: [fc2, fc3, fc4]
"""
BEHIND = [4, 3, 2, 1]  # D - k
GAP = [3, 2, 1, 0]  # D - 1 - k
NONE = [0, 0, 0, 0]

# schedule, microbatch; by stage: copies of the weights, replicas (a momentum each), in flight, gap
METHODS = (
    ("async", 4, [1, 1, 1, 1], [1] * 4, BEHIND, GAP),
    ("gpipe", 1, [1, 1, 1, 1], [1] * 4, [4, 4, 4, 4], NONE),
    ("pipedream", 4, BEHIND, [1] * 4, BEHIND, GAP),
    ("{kind: pipedream, vertical_sync: true}", 4, [4, 4, 4, 4], [1] * 4, BEHIND, GAP),
    ("pipedream-2bw", 1, [2, 2, 2, 2], [1] * 4, BEHIND, [1, 1, 1, 0]),
    ("{kind: pipedream-2bw, weights: pipeoptim}", 1, [2, 2, 2, 1], [1] * 4, BEHIND, [1, 1, 1, 0]),
    ("spectrain", 4, [2, 2, 2, 2], [1] * 4, BEHIND, GAP),
    ("pipeoptim", 4, [2, 2, 2, 1], [1] * 4, BEHIND, GAP),
    ("{kind: pipeoptim, horizon: exact}", 4, [2, 2, 2, 1], [1] * 4, BEHIND, GAP),
    ("{kind: pipeoptim, horizon: measured}", 4, [2, 2, 2, 1], [1] * 4, BEHIND, GAP),
    ("xpipe", 2, [3, 3, 3, 3], [1] * 4, BEHIND, [2, 1, 1, 0]),
    ("ea-pipe", 4, [5, 5, 5, 5], [4] * 4, BEHIND, NONE),
    ("{kind: ea-pipe, lean: true}", 4, [5, 4, 3, 2], BEHIND, BEHIND, NONE),
    ("{kind: ea-pipe, order: before}", 4, [6, 6, 6, 6], [4] * 4, BEHIND, NONE),
    ("{kind: ea-pipe, replicas: 2, weights: pipeoptim}", 4, [4, 4, 3, 3], [2] * 4, BEHIND,
     [1, 1, 0, 0]),
    ("{kind: avgpipe, advance: 1}", 1, [4, 4, 4, 4], [2] * 4, [7, 5, 3, 1], NONE),
)


class Memory(program.Case):
    def train(self, out, schedule, micro):
        sets = ("--set", f"schedule={schedule}", "--set", f"train.microbatch={micro}")
        text, _ = self.ringpipe("train", "run.yaml", "--out", out, "--format", "json", *sets)
        return json.loads(text)["stage"]

    def test_a_limit_by_board(self):
        """What does not fit is refused by the board's own count, before anything is trained."""
        (self.dir / "net.yaml").write_text(MODEL)
        self.run_file(RUN)
        stage = self.train("free", "pipedream", 4)
        need = [each["device_bytes_max"] / 1e6 for each in stage]
        limits = [1.01 * each for each in need]  # the plan rounds up more than the device
        limits[1] = 0.99 * need[1]
        args = ("train", "run.yaml", "--set", "schedule=pipedream", "--out")
        _, said = self.ringpipe(*args, "less", "--set", f"ring.memory_mb={limits}", code=2)
        self.assertRegex(said, r"stage 1 needs [\d.]+ MiB of device memory and may have")
        self.assertIn("ring.memory_mb", said)
        limits[1] = 1.01 * need[1]
        self.ringpipe(*args, "enough", "--set", f"ring.memory_mb={limits}")
        weights = [(self.dir / out / "weights.safetensors").read_bytes()
                   for out in ("free", "enough")]
        self.assertEqual(*weights)

    def test_as_promised(self):
        (self.dir / "net.yaml").write_text(MODEL)
        self.run_file(RUN)
        for number, (schedule, micro, copies, replicas, in_flight, gap) in enumerate(METHODS):
            probe = 2 if "measured" in schedule else 0
            stages = self.train(f"out-{number}", schedule, micro)
            self.assertEqual(len(stages), 4)
            for k, stage in enumerate(stages):
                with self.subTest(schedule, stage=k):
                    self.assertEqual(stage["weight_versions_max"], copies[k])
                    self.assertEqual(stage["probe_copies"], probe)
                    self.assertEqual(stage["in_flight_max"], in_flight[k])
                    self.assertEqual(stage["gap_max"], gap[k])
                    held = stage["device_bytes_max"] / stage["weight_bytes"]
                    want = 1 + copies[k] + replicas[k] + probe  # 1: gradients
                    self.assertTrue(want <= held < want + 0.3, (want, held))


if __name__ == "__main__":
    program.main()
