#!/usr/bin/env python3
"""What METHODS 13 promises is what the boards of a run hold: copies of the weights in the device's
own bytes, microbatches in flight, and updates between a forward and its backward."""
import json
import os
import re
import unittest
from pathlib import Path

import program

# A driver with limits, between the programs and PoCL.
SMALL_DEVICE = program.BUILD / "tests" / "small_device.so"

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
# Activations are large against all else, and batch statistics and dropout are among the layers.
CONVOLUTIONS = """\
input: data
layers:
  - {name: c1, kind: conv2d, out: 8, kernel: 3, pad: 1}
  - {name: b1, kind: batchnorm}
  - {name: r1, kind: relu}
  - {name: c2, kind: conv2d, out: 8, kernel: 3, pad: 1}
  - {name: d2, kind: dropout, p: 0.2}
  - {name: r2, kind: gelu}
  - {name: c3, kind: conv2d, out: 8, kernel: 3, pad: 1}
  - {name: b3, kind: batchnorm}
  - {name: r3, kind: relu}
  - {name: p3, kind: maxpool, kernel: 2, stride: 2}
  - {name: flat, kind: flatten}
  - {name: fc, kind: dense, out: classes}
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
        less = ("--set", f"ring.memory_mb={limits}")
        _, said = self.ringpipe(*args, "planned", *less, code=2)
        self.assertRegex(said, r"plan: board 1 needs [\d.]+ MB of device memory, and may use")
        _, said = self.ringpipe(*args, "less", *less, "--set", "recompute=none", code=2)
        self.assertRegex(said, r"stage 1 needs [\d.]+ MiB of device memory, but the limit is")
        self.assertIn("ring.memory_mb", said)
        limits[1] = 1.01 * need[1]
        self.ringpipe(*args, "enough", "--set", f"ring.memory_mb={limits}")
        weights = [(self.dir / out / "weights.safetensors").read_bytes()
                   for out in ("free", "enough")]
        self.assertEqual(*weights)

    def test_half_the_memory(self):
        """A net that needs twice what its boards may use trains without a hint: same bits."""
        (self.dir / "net.yaml").write_text(CONVOLUTIONS)
        self.run_file(RUN.replace("schedule: async", "schedule: gpipe")
                      .replace("cut: [fc2, fc3, fc4]", "cut: auto")
                      .replace("boards: 4", "boards: 2")
                      .replace("batch: 4, microbatch: 4", "batch: 48, microbatch: 2"))
        cut = ("--set", "cut=[c3]")
        text, _ = self.ringpipe("train", "run.yaml", "--out", "free", "--format", "json", *cut)
        need = [each["device_bytes_max"] for each in json.loads(text)["stage"]]
        half = max(need) / 2e6
        self.ringpipe("train", "run.yaml", "--out", "none", *cut, "--set", f"ring.memory_mb={half}",
                      "--set", "recompute=none", "--set", "offload=none", code=2)
        text, _ = self.ringpipe("train", "run.yaml", "--out", "half", "--format", "json",
                                "--set", f"ring.memory_mb={half}", *cut)
        for stage in json.loads(text)["stage"]:
            self.assertLessEqual(stage["device_bytes_max"], half * 1e6)
        plan = json.loads((self.dir / "half" / "plan.json").read_text())
        # Which of the two is cheaper is measured, and so not the same each time.
        self.assertTrue(any(stage["recompute"] or stage["offload"] == "flash"
                            for stage in plan["stages"]))
        only = ("--set", f"ring.memory_mb={half}", "--set", "offload=none")
        self.ringpipe("train", "run.yaml", "--out", "again", *only, *cut)
        plan = json.loads((self.dir / "again" / "plan.json").read_text())
        self.assertTrue(any(stage["recompute"] for stage in plan["stages"]))
        flash = ("--set", f"ring.memory_mb={half}", "--set", "recompute=none")
        text, _ = self.ringpipe("train", "run.yaml", "--out", "flash", "--format", "json", *flash,
                                *cut)
        for stage in json.loads(text)["stage"]:
            self.assertLessEqual(stage["device_bytes_max"], half * 1e6)
        plan = json.loads((self.dir / "flash" / "plan.json").read_text())
        self.assertIn("flash", [stage["offload"] for stage in plan["stages"]])
        self.assertFalse(any(stage["recompute"] for stage in plan["stages"]))
        weights = {(self.dir / out / "weights.safetensors").read_bytes()
                   for out in ("free", "half", "again", "flash")}
        self.assertEqual(len(weights), 1)
        given = ("plan", "run.yaml", "--plan", "flash/plan.json")
        said, _ = self.ringpipe(*given)
        self.assertRegex(said, r"Stage 0 offloads (its stashes|\d tensors? of each stash) to "
                               r"flash: [^A]+\. A step writes at most [\d.]+ MiB\.")
        said, _ = self.ringpipe("plan", "run.yaml", *only)
        self.assertRegex(said, r"Stage \d computes its forwards again for its backwards, "
                               r"in \d groups?: [\d.]+ MiB instead of [\d.]+")

    def test_half_the_memory_by_flash(self):
        """The same where forwards may not be computed again: this machine's device shares the
        host's memory, so stashes go to flash; without a hint, with the same bits."""
        (self.dir / "net.yaml").write_text(CONVOLUTIONS)
        self.run_file(RUN.replace("schedule: async", "schedule: pipeoptim")
                      .replace("cut: [fc2, fc3, fc4]", "cut: [r1, c2, d2, c3, b3, p3]")
                      .replace("boards: 4", "boards: 7").replace("train: 48", "train: 128")
                      .replace("batch: 4, microbatch: 4", "batch: 16, microbatch: 16"))
        text, _ = self.ringpipe("train", "run.yaml", "--out", "free", "--format", "json")
        need = [each["device_bytes_max"] for each in json.loads(text)["stage"]]
        limit = 0.72 * max(need) / 1e6
        text, _ = self.ringpipe("train", "run.yaml", "--out", "flash", "--format", "json",
                                "--set", f"ring.memory_mb={limit}")
        result = json.loads(text)["stage"]
        for stage in result:
            self.assertLessEqual(stage["device_bytes_max"], limit * 1e6)
        plan = json.loads((self.dir / "flash" / "plan.json").read_text())
        flash = [stage["offload"] == "flash" for stage in plan["stages"]]
        self.assertTrue(any(flash))
        self.assertFalse(any(stage["recompute"] for stage in plan["stages"]))
        self.assertEqual([stage["flash_bytes"] > 0 for stage in result], flash)
        weights = [(self.dir / out / "weights.safetensors").read_bytes()
                   for out in ("free", "flash")]
        self.assertEqual(*weights)
        self.assertEqual(list(Path("/var/tmp").glob("ringpipe-stashes-*")), [])

    def test_offload(self):
        """Of eight stashes the device holds three, and the weights are the same bits."""
        (self.dir / "net.yaml").write_text(CONVOLUTIONS)
        self.run_file(RUN.replace("schedule: async", "schedule: gpipe")
                      .replace("cut: [fc2, fc3, fc4]", "cut: [c3]")
                      .replace("boards: 4", "boards: 2")
                      .replace("batch: 4, microbatch: 4", "batch: 16, microbatch: 2"))
        used = []
        for out in ("none", "host", "flash"):
            text, _ = self.ringpipe("train", "run.yaml", "--out", out, "--format", "json",
                                    "--set", f"offload={out}")
            used.append([each["device_bytes_max"] for each in json.loads(text)["stage"]])
            plan = json.loads((self.dir / out / "plan.json").read_text())
            self.assertEqual([stage["offload"] for stage in plan["stages"]], [out, out])
        tensor = 8 * 28 * 28 * 2 * 4  # stage 0 keeps three of them, and what enters it
        self.assertGreater(used[0][0] - used[1][0], 5 * 3 * tensor)
        self.assertGreater(used[0][1], used[1][1])
        self.assertEqual(used[1], used[2])
        weights = {(self.dir / out / "weights.safetensors").read_bytes()
                   for out in ("none", "host", "flash")}
        self.assertEqual(len(weights), 1)
        said, _ = self.ringpipe("plan", "run.yaml", "--set", "offload={0: flash}")
        self.assertRegex(said, r"Stage 0 offloads its stashes to flash: its device holds three\. "
                               r"A step writes at most [\d.]+ MiB\.")
        self.assertNotIn("Stage 1 offloads", said)

    def test_a_disk_that_fails(self):
        """Not there: refused when the stage is prepared. Broken on the way: a fault of its board
        with what the system said; the run goes back and on, on another file, with the same bits."""
        (self.dir / "net.yaml").write_text(CONVOLUTIONS)
        self.run_file(RUN.replace("schedule: async", "schedule: gpipe")
                      .replace("cut: [fc2, fc3, fc4]", "cut: [c3]")
                      .replace("boards: 4", "boards: 2").replace("epochs: 1", "epochs: 40")
                      .replace("batch: 4, microbatch: 4", "batch: 16, microbatch: 2")
                      + "offload: {0: flash}\n")
        _, said = self.ringpipe("train", "run.yaml", "--out", "nowhere", code=2,
                                env={"RINGPIPE_FLASH": str(self.dir / "not-there")})
        self.assertIn("not-there: No such file or directory", said)
        self.assertEqual(said.count("flash: a file in"), 1, said)
        self.ringpipe("train", "run.yaml", "--out", "whole")
        run = self.start("train", "run.yaml", "--out", "broken")
        self.wait_for("steps", lambda: self.flash_files() and self.steps("broken") > 2)
        paths = self.flash_files()
        faults = 0
        while faults == 0 and run.poll() is None:  # a write may make the file long again
            for path in paths:
                try:
                    os.truncate(path, 0)
                except OSError:
                    pass  # its agent has given it up
            log = (self.dir / "broken" / "log.jsonl").read_text()
            faults = len(re.findall(r"flash: reading stash \d in /var/tmp: 0 of \d+ bytes", log))
        self.finish(run)
        self.assertGreater(faults, 0)
        weights = [(self.dir / out / "weights.safetensors").read_bytes()
                   for out in ("whole", "broken")]
        self.assertEqual(*weights)

    def train_apart(self, out, processor_bytes, *more, code=0):
        """On devices with memory of their own, in a machine with so much besides; 0: as they are.
        What was said on standard error."""
        apart = {"RP_SMALL_DEVICE_APART": str(processor_bytes)} if processor_bytes else {}
        sets = [word for each in more for word in ("--set", each)]
        return self.ringpipe("train", "run.yaml", "--out", out, *sets, code=code,
                             env={"LD_PRELOAD": str(SMALL_DEVICE), **apart})[1]

    @unittest.skipUnless(SMALL_DEVICE.exists(), "a sanitizer would have to be loaded before it")
    def test_devices_with_memory_of_their_own(self):
        """Parcels, offloaded stashes and copies lie in the processor's memory, not in theirs."""
        (self.dir / "net.yaml").write_text(MODEL)
        self.run_file(RUN.replace("schedule: async", "schedule: gpipe")
                      .replace("cut: [fc2, fc3, fc4]", "cut: [fc2]")
                      .replace("boards: 4", "boards: 2").replace("train: 48", "train: 1024")
                      .replace("batch: 4, microbatch: 4", "batch: 512, microbatch: 64"))
        much, copies = 1 << 30, "ring.copy_steps=1"
        self.train_apart("much", much, copies)
        stages = json.loads((self.dir / "much" / "summary.json").read_text())["stage"]
        limits = f"ring.memory_mb={[1.01 * each['device_bytes_max'] / 1e6 for each in stages]}"
        said = self.train_apart("unified", 0, copies, limits, code=2)
        self.assertRegex(said, "its stages take .* and copies .* KiB, ring.memory_mb allows")
        self.train_apart("apart", much, copies, limits)  # stages fill it, and nothing else is there
        weights = [(self.dir / out / "weights.safetensors").read_bytes()
                   for out in ("much", "apart")]
        self.assertEqual(*weights)
        little = 8 << 20  # and a share of that is ours
        said = self.train_apart("copies", little, copies, code=2)
        self.assertRegex(said, "its offloaded stashes take 0 KiB, .* and copies .* KiB, its "
                               "memory_fraction allows 6144 KiB of its processor's memory")
        self.train_apart("enough", little)
        less = 4 << 20
        said = self.train_apart("parcels", less, code=2)
        self.assertRegex(said, "needs .* MiB of its processor's memory, but the limit is 3.0 .*: "
                               "its offloaded stashes need 0.0, and parcels on its links .*")
        said = self.train_apart("stashes", little, "offload=host", code=2)
        self.assertRegex(said, r"limit is 6.0 .*: its offloaded stashes need [1-9][0-9.]+, and ")
    def flash_files(self):
        """Files without a name that this test's agents have open."""
        found = []
        for agent in self.agents():
            for link in Path(f"/proc/{agent}/fd").glob("*"):
                try:
                    if os.readlink(link).startswith("/var/tmp/#"):
                        found.append(link)
                except OSError:
                    pass
        return found

    def steps(self, out):
        path = self.dir / out / "log.jsonl"
        return path.read_text().count('"step"') if path.exists() else 0

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
