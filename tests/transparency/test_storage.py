"""Activations in 16 bits over real agents: a ring of any size has the bits of one board, and so has
whatever else saves memory, checks, resumes or replays; methods have those of a replay that keeps
every version of the weights."""
import json
import os
import signal
import sys
import unittest
from pathlib import Path

import test_sizes
from rings import RingCase, few_when_short
from test_methods import ADAM, FOUR, NESTEROV, TWO, Method
from test_ring import CUTS as NET_CUTS
from test_ring import MODEL
from test_ties import CUTS, METHODS, TIED
from test_texts import write_text

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cli"))
from spread import spread  # noqa: E402

BF16 = "train.storage={activations: bf16}"
F16 = "train.storage={activations: f16}"


class Nets(RingCase):
    """Convolutions, batch statistics, dropout and a sum across cuts."""

    def setUp(self):
        super().setUp()
        (self.dir / "net.yaml").write_text(MODEL)
        self.run_yaml = self.run_file(f"""\
model: {self.dir}/net.yaml
data: {{set: glyphs, train: 90, test: 30}}
ring: {{boards: 1}}
train: {{epochs: 2, batch: 32, microbatch: 7, seed: 5}}
loss: cross-entropy
optimizer: {{kind: sgd, lr: 0.1, momentum: 0.9, nesterov: true, clip_norm: 1.0}}
schedule: 1f1b
cut: []
""")

    def same_for_all_cuts(self, schedule, storage):
        want = None
        for boards, cut in NET_CUTS.items():
            out = f"{schedule}-{boards}"
            summary = self.train(self.run_yaml, out, f"ring.boards={boards}", f"cut={cut}",
                                 f"schedule={schedule}", storage)
            got = self.bytes_of(out), summary["eval"]
            want = want or got
            self.assertEqual(got, want, f"{boards} boards differ from one")
        return want[0]

    def test_gpipe(self):
        got = self.same_for_all_cuts("gpipe", BF16)
        self.train(self.run_yaml, "f32", "schedule=gpipe")
        self.assertNotEqual(got, self.bytes_of("f32"))

    def test_1f1b(self):
        self.same_for_all_cuts("1f1b", F16)

    def test_zero_bubble(self):
        self.same_for_all_cuts("zb-h1", BF16)

    def test_overflow_names_the_range(self):
        """With inputs in the thousands an f16 is infinite; the steps are skipped, and say why."""
        words = ("train", self.run_yaml, "--out", "wide", "--set", "data.mean=[0]", "--set",
                 "data.std=[0.000002]", "--set", "train.stop_after.non_finite=2", "--set")
        said = self.refused(*words, F16, code=3)
        self.assertIn("activations above 65504 become infinite; bf16 has the range of f32", said)
        log = [json.loads(line) for line in
               (self.dir / "wide" / "log.jsonl").read_text().splitlines()]
        skipped = [line for line in log if line.get("event") == "skipped"]
        self.assertIn("65504", skipped[0]["advice"])


class Texts(RingCase):
    """A GPT whose output layer has the embedding's weights, on stages of its own."""

    def setUp(self):
        super().setUp()
        write_text(self.dir / "text.txt", 700)
        (self.dir / "gpt.yaml").write_text(TIED)
        self.run_yaml = self.run_file(f"""\
model: {self.dir}/gpt.yaml
data: {{set: text, path: {self.dir}/text.txt, tokens: chars, time: 16}}
ring: {{boards: 1}}
train: {{epochs: 2, batch: 16, microbatch: 3, seed: 5, storage: {{activations: bf16}}}}
loss: {{kind: cross-entropy, label_smoothing: 0.1}}
optimizer: {{kind: adamw, lr: 0.01, clip_norm: 1.0}}
schedule: 1f1b
cut: []
""")

    def ring_of(self, boards, out, *sets):
        return self.train(self.run_yaml, out, f"ring.boards={boards}", f"cut={CUTS[boards]}", *sets)

    def test_any_cut(self):
        for schedule in ("gpipe", "1f1b", "zb-h1"):
            want = None
            for boards in (1, 2, 3, 5):
                summary = self.ring_of(boards, f"{schedule}-{boards}", f"schedule={schedule}")
                got = self.bytes_of(f"{schedule}-{boards}"), summary["eval"]
                want = want or got
                self.assertEqual(got, want, f"{schedule}: {boards} boards differ from one")
                self.assertLess(summary["eval"]["bits"], 3.16)  # 9 characters are 3.17

    def test_memory_and_safety(self):
        """What is recomputed, offloaded, verified or copied has the same bits."""
        self.ring_of(3, "plain")
        for key in ("recompute=all", "recompute=blocks", "offload=host", "offload=flash",
                    "ring.verify=1/3", "ring.copy_steps=3"):
            name = key.replace("=", "-").replace("/", "-")
            summary = self.ring_of(3, name, key)
            self.assertEqual(self.bytes_of(name), self.bytes_of("plain"), key)
            if "verify" in key:
                self.assertEqual(summary["verify"]["wrong"], 0)
                self.assertGreater(summary["verify"]["microbatches"], 0)

    def test_codecs(self):
        """What a codec changes is rounded where it arrives, on all boards of a repetition too."""
        summary = self.ring_of(3, "int8", "links.codec=int8", "ring.verify=1/3")
        self.assertEqual(summary["verify"]["wrong"], 0)
        self.ring_of(3, "again", "links.codec=int8", "recompute=all")
        self.assertEqual(self.bytes_of("again"), self.bytes_of("int8"))

    def test_methods(self):
        for schedule in METHODS:
            with self.subTest(schedule):
                name = schedule.strip("{}").split(",")[0].split()[-1]
                cut = "[proj]" if name == "pipefb" else "[norm1, proj, act]"
                summary = self.train(self.run_yaml, name, "ring.boards=4", f"cut={cut}",
                                     f"schedule={schedule}", "train.microbatch=4",
                                     "optimizer={kind: adamw, lr: 0.01}")
                self.assertLess(summary["eval"]["loss"], 2.3)

    def test_a_killed_agent(self):
        self.ring_of(3, "whole", "train.epochs=12")
        words = [w for s in ("train.epochs=12", "ring.boards=3", f"cut={CUTS[3]}",
                             "train.checkpoint_steps=7") for w in ("--set", s)]
        process = self.start("train", self.run_yaml, "--out", self.dir / "killed", *words)
        log = self.dir / "killed" / "log.jsonl"
        self.wait_for("15 steps", lambda: log.exists() and log.read_text().count('"loss"') > 15,
                      process=process)
        os.kill(self.agents()[2], signal.SIGKILL)
        self.assertEqual(process.wait(240), 0)
        self.assertIn('"recovered"', log.read_text())
        self.assertEqual(self.bytes_of("killed"), self.bytes_of("whole"))

    def test_resumed(self):
        """The same bits, also on another number of boards; but not with another storage."""
        self.ring_of(3, "whole")
        self.ring_of(3, "part", "train.epochs=1")
        for other in ("f32", "f16"):
            said = self.refused("resume", "part", "--set", "train.epochs=2", "--set",
                                f"train.storage.activations={other}")
            self.assertIn(f"was made with storage bf16, but the run file has {other}", said)
        self.ringpipe("resume", self.dir / "part", "--set", "train.epochs=2", "--set",
                      "ring.boards=2", "--set", f"cut={CUTS[2]}")
        self.assertEqual(self.bytes_of("part"), self.bytes_of("whole"))

    def test_resumed_in_flight(self):
        """Packed stashes are part of a checkpoint where microbatches are in flight."""
        sets = ("schedule=pipedream-2bw", "train.microbatch=4", "train.epochs=12", "ring.boards=4",
                f"cut={CUTS[4]}", "optimizer={kind: adamw, lr: 0.01, clip_norm_stage: 1}")
        self.train(self.run_yaml, "whole", *sets)
        words = [w for text in sets for w in ("--set", text)]
        process = self.start("train", self.run_yaml, "--out", self.dir / "part", *words)
        log = self.dir / "part" / "log.jsonl"
        self.wait_for("15 steps", lambda: log.exists() and
                      log.read_text().count('"loss"') >= 15, process=process)
        process.send_signal(signal.SIGINT)
        self.finish(process, code=None)
        self.ringpipe("resume", self.dir / "part")
        self.assertIn('"resumed"', (self.dir / "part" / "log.jsonl").read_text())
        self.assertEqual(self.bytes_of("part"), self.bytes_of("whole"))

    def test_shared_stages(self):
        """Boards that share a stage: the same twice, and close to one board a stage."""
        row = self.ring_of(3, "row")
        plan = json.loads((self.dir / "row" / "plan.json").read_text())
        path = self.dir / "shared.json"
        path.write_text(json.dumps(spread(plan, [[0, 1], [0, 0.4, 1], [0, 1]])), encoding="utf-8")
        for out in ("shared", "again"):
            text, _ = self.ringpipe("train", self.run_yaml, "--out", self.dir / out, "--plan", path,
                                    "--set", "ring.boards=4", "--set", "cut=auto", "--format",
                                    "json")
        self.assertEqual(self.bytes_of("shared"), self.bytes_of("again"))
        shared = json.loads(text)
        self.assertAlmostEqual(shared["eval"]["loss"], row["eval"]["loss"], places=2)

    def test_simulated(self):
        words = ("sim", self.run_yaml, "--set", "ring.boards=3", "--set", f"cut={CUTS[3]}",
                 "--set", "optimizer={kind: adamw, lr: 0.01}",
                 "--faults", "all", "--seeds", "1..10", "--format", "json")
        tally = json.loads(self.ringpipe(*words)[0])
        self.assertEqual((tally["runs"], tally["hung"], tally["wrong"]), (10, 0, 0))

    def test_eval(self):
        """Evaluations round nothing, here or on the boards."""
        summary = self.ring_of(2, "out")
        here = json.loads(self.ringpipe("eval", self.dir / "out", "--format", "json")[0])["eval"]
        self.assertAlmostEqual(here["loss"], summary["eval"]["loss"], places=5)

    def test_fewer_bytes_are_planned_and_needed(self):
        need = {}
        for storage in ("f32", "bf16"):
            out = f"need-{storage}"
            sets = ("schedule=gpipe", f"train.storage.activations={storage}", "recompute=none",
                    "offload=none", "train.microbatch=2")
            summary = self.ring_of(1, out, *sets)
            plan = json.loads((self.dir / out / "plan.json").read_text())
            need[storage] = (plan["stages"][0]["device_bytes"],
                             summary["stage"][0]["device_bytes_max"])
        for kind in range(2):
            self.assertLess(need["bf16"][kind], 0.8 * need["f32"][kind], need)


class Replay(Method):
    """Bookkeeping of versions and slots: the bits of a loop that keeps everything."""

    def test_unflushed(self):
        self.same(5, "pipedream", NESTEROV, BF16)
        self.same(4, "pipedream-2bw", ADAM, *FOUR, F16)
        self.same(5, "{kind: pipeoptim, horizon: exact}", ADAM, *TWO, BF16)

    def test_replicas(self):
        self.same(4, "ea-pipe", BF16)
        self.same(3, "avgpipe", ADAM, *FOUR, BF16)

    def test_split(self):
        self.same_on(6, 3, "pipefb", ADAM, BF16)


class Parts(Method):
    """umpipe: a backward unpacks its own part of the samples of a slot."""
    MODEL, CUTS = test_sizes.MODEL, test_sizes.CUTS

    def test_uneven(self):
        for boards in (1, 3):
            self.same(boards, test_sizes.umpipe(*test_sizes.UNEVEN[boards]), *test_sizes.STEP,
                      NESTEROV, BF16)


load_tests = few_when_short("Nets.test_gpipe", "Texts.test_any_cut", "Texts.test_resumed")


if __name__ == "__main__":
    unittest.main()
