"""Tied weights over real agents (METHODS 15): the golden vectors, rings of any size equal to one
board, interruptions and lost boards, and the one tensor in files."""
import json
import os
import signal
import unittest

from rings import RingCase, few_when_short, read_safetensors, write_safetensors
from test_golden import SAMPLE_BY_SAMPLE, Chain
from test_texts import GPT, METHODS, write_text

START = [1.0, 0.9, 1.1]
SEQUENTIAL = [0.630268416936, 0.693647446371, 0.931083025836]
FLUSHED = [0.901613814735, 0.845618117889, 1.055623566049]
ASYNC = [0.387117496939, 0.552827851430, 0.809218405291]
PIPEDREAM = [0.373850370105, 0.548284586044, 0.809653285688]
PIPEOPTIM = [0.511920685476, 0.615394460087, 0.861732944427]
DOUBLE = [0.891460383819, 0.839774567741, 1.050756673990]
TIED = GPT.replace("count: tokens, out: 12", "count: tokens, out: 12, std: 0.1").replace(
    "out: classes, bias: false", "out: classes, bias: false, names: {weight: embed.weight}")
CUTS = {1: "[]", 2: "[proj]", 3: "[qkv, act]", 4: "[qkv, proj, act]",
        5: "[norm1, attention, norm2, drop]"}


class Golden(Chain):
    """METHODS 17's chain whose last stage has the weight of the first one."""

    def setUp(self):
        super().setUp()
        model = self.dir / "chain.yaml"
        model.write_text(model.read_text().replace(
            "d3, kind: dense, out: 1, bias: false",
            "d3, kind: dense, out: 1, bias: false, names: {weight: d0.weight}"))
        write_safetensors(self.dir / "start.safetensors",
                          {f"d{i}.weight": ([1, 1], [w]) for i, w in enumerate(START)})

    def check(self, want, schedule, *sets):
        out, summary = self.run_schedule(schedule, *sets)
        got = read_safetensors(self.dir / out / "weights.safetensors")
        self.assertEqual(sorted(got), ["d0.weight", "d1.weight", "d2.weight"])
        self.compare(got, [f"d{i}.weight" for i in range(3)], want, f"{schedule} {sets}")
        return out, summary

    def test_flushed(self):
        for schedule in ("gpipe", "1f1b", "zb-h1", "umpipe"):
            self.check(FLUSHED, schedule)

    def test_two_stages_and_one(self):
        self.check(FLUSHED, "gpipe", "ring.boards=2", "cut=[d2]")
        self.check(FLUSHED, "1f1b", "ring.boards=1", "cut=[]")
        self.check(FLUSHED, "{kind: interleaved-1f1b, chunks: 2}", "ring.boards=2")

    def test_one_board_is_sequential(self):
        one = (*SAMPLE_BY_SAMPLE, "ring.boards=1", "cut=[]")
        for schedule in ("gpipe", "async", "pipedream", "spectrain", "pipeoptim"):
            self.check(SEQUENTIAL, schedule, *one)

    def test_unflushed(self):
        """The owner's version and prediction at both uses; w1 and w2 keep their own staleness."""
        self.check(DOUBLE, "pipedream-2bw")
        for want, schedule in ((ASYNC, "async"), (PIPEDREAM, "pipedream"),
                               (PIPEOPTIM, "pipeoptim")):
            out, _ = self.check(want, schedule, *SAMPLE_BY_SAMPLE)
            log = [json.loads(line) for line in (self.dir / out / "log.jsonl").open()]
            hint = next(line for line in log if line.get("kind") == "hint_ties")
            self.assertEqual([hint[key] for key in ("layer", "peer_layer", "tensor", "stage")],
                             ["d0", "d3", "d0.weight", 0])

    def test_probes_count_a_tensor_once(self):
        """The last stage only has a use of the first stage's tensor, so its errors are 0."""
        for schedule in ("{kind: spectrain, probe: 4}",
                         "{kind: pipeoptim, horizon: measured, probe: 4}"):
            out, _ = self.run_schedule(schedule, *SAMPLE_BY_SAMPLE, "train.epochs=8")
            text = (self.dir / out / "log.jsonl").read_text()
            log = [json.loads(line) for line in text.splitlines()]
            errors = {k: [e["stale_error"] for e in log
                          if e.get("event") == "prediction" and e["stage"] == k] for k in (2, 3)}
            self.assertGreater(max(errors[2]), 0)
            self.assertEqual(set(errors[3]), {0})
            trusted = {e["stage"]: e["tensors"] for e in log if e.get("event") == "trust"}
            self.assertEqual(trusted, dict.fromkeys((0, 1, 2), 1) if "measured" in schedule else {})

    def test_refused(self):
        """Where the copies would not stay equal, the message says why, and what to do."""
        for key, why in (("clip_norm_stage: 1", "by its own norm"),
                         ("staleness_per_stage: 1, staleness_power: 1", "its own learning rate")):
            for dry in ((), ("--dry-run",)):
                said = self.refused("train", self.run_yaml, *dry, "--set",
                                    f"optimizer={{kind: sgd, lr: 0.1, {key}}}")
                self.assertIn("layers 'd0' (stage 0) and 'd3' (stage 3) share 'd0.weight'", said)
                self.assertIn(why, said)
                self.assertIn("both layers on one board", said)
        for dry in ((), ("--dry-run",)):
            said = self.refused("train", self.run_yaml, *dry, "--set", "schedule=pipedream",
                                "--set", "ring.verify=1/4")
            self.assertIn("ring.verify: with schedule pipedream it cannot recompute", said)


class Texts(RingCase):
    """A GPT whose output layer has the embedding's weights."""

    def setUp(self):
        super().setUp()
        write_text(self.dir / "text.txt", 700)
        (self.dir / "gpt.yaml").write_text(TIED)
        self.run_yaml = self.run_file(f"""\
model: {self.dir}/gpt.yaml
data: {{set: text, path: {self.dir}/text.txt, tokens: chars, time: 16}}
ring: {{boards: 1}}
train: {{epochs: 2, batch: 16, microbatch: 3, seed: 5}}
loss: {{kind: cross-entropy, label_smoothing: 0.1}}
optimizer: {{kind: adamw, lr: 0.01, clip_norm: 1.0}}
schedule: 1f1b
cut: []
""")

    def ring_of(self, boards, out, *sets):
        return self.train(self.run_yaml, out, f"ring.boards={boards}", f"cut={CUTS[boards]}", *sets)

    def same_for_all_cuts(self, cuts, *sets):
        want = None
        for boards in cuts:
            summary = self.ring_of(boards, f"{boards}", *sets)
            got = self.bytes_of(f"{boards}"), summary["eval"]
            want = want or got
            self.assertEqual(got, want, f"{boards} boards differ from one")

    def test_1f1b(self):
        self.same_for_all_cuts((1, 3, 5))
        got = read_safetensors(self.dir / "3" / "weights.safetensors")
        self.assertNotIn("head.weight", got)

    def test_gpipe(self):
        self.same_for_all_cuts((1, 2, 4), "schedule=gpipe")

    def test_zero_bubble(self):
        self.same_for_all_cuts((1, 2, 5), "schedule=zb-h1")

    def test_interleaved(self):
        self.ring_of(1, "1")
        self.train(self.run_yaml, "2", "schedule={kind: interleaved-1f1b, chunks: 2}",
                   "ring.boards=2", f"cut={CUTS[4]}")
        self.assertEqual(self.bytes_of("1"), self.bytes_of("2"))

    def test_tying_matters(self):
        self.ring_of(2, "tied")
        (self.dir / "gpt.yaml").write_text(GPT)
        self.ring_of(2, "apart")
        apart = read_safetensors(self.dir / "apart" / "weights.safetensors")
        tied = read_safetensors(self.dir / "tied" / "weights.safetensors")
        self.assertEqual(sorted(apart), sorted([*tied, "head.weight"]))

    def stopped_after(self, steps, out, *sets):
        """Starts a run and interrupts it like Ctrl-C."""
        words = [w for text in sets for w in ("--set", text)]
        process = self.start("train", self.run_yaml, "--out", self.dir / out, *words)
        log = self.dir / out / "log.jsonl"
        self.wait_for(f"{steps} steps", lambda: log.exists() and
                      log.read_text().count('"loss"') >= steps, process=process)
        process.send_signal(signal.SIGINT)
        self.finish(process, code=None)

    def test_unflushed(self):
        """Stopped with microbatches in flight, a resumed run gives the same bits."""
        for schedule in ("pipedream-2bw", "pipeoptim", "{kind: pipedream, vertical_sync: true}"):
            sets = (f"schedule={schedule}", "train.microbatch=4", "train.epochs=12",
                    "ring.boards=4", f"cut={CUTS[4]}",
                    "optimizer={kind: adamw, lr: 0.01, clip_norm_stage: 1}")
            name = schedule.strip("{}").split()[-1]
            self.train(self.run_yaml, f"{name}-whole", *sets)
            self.stopped_after(15, f"{name}-part", *sets)
            self.ringpipe("resume", self.dir / f"{name}-part")
            self.assertIn('"resumed"', (self.dir / f"{name}-part" / "log.jsonl").read_text())
            self.assertEqual(self.bytes_of(f"{name}-part"), self.bytes_of(f"{name}-whole"))

    def test_resumed(self):
        """The same bits, also on another number of boards."""
        self.ring_of(3, "whole")
        self.ring_of(3, "part", "train.epochs=1")
        self.ringpipe("resume", self.dir / "part", "--set", "train.epochs=2")
        self.assertEqual(self.bytes_of("part"), self.bytes_of("whole"))
        self.ring_of(3, "other", "train.epochs=1")
        self.ringpipe("resume", self.dir / "other", "--set", "train.epochs=2", "--set",
                      "ring.boards=2", "--set", f"cut={CUTS[2]}")
        self.assertEqual(self.bytes_of("other"), self.bytes_of("whole"))

    def test_init(self):
        """A weights file of a run has all that another run starts from."""
        self.ring_of(1, "first", "train.epochs=1")
        start = f"train.init={self.dir}/first/weights.safetensors"
        self.same_for_all_cuts((1, 3), start)

    def test_methods(self):
        """Every method trains, and evaluates with its owner's weights on all boards."""
        for schedule in METHODS:
            with self.subTest(schedule):
                name = schedule.strip("{}").split(",")[0].split()[-1]
                cut = "[proj]" if name == "pipefb" else "[norm1, proj, act]"
                summary = self.train(self.run_yaml, name, "ring.boards=4", f"cut={cut}",
                                     f"schedule={schedule}", "train.microbatch=4",
                                     "optimizer={kind: adamw, lr: 0.01}")
                self.assertLess(summary["eval"]["loss"], 2.3)
                text, _ = self.ringpipe("eval", self.dir / name, "--format", "json")
                here = json.loads(text)["eval"]["loss"]
                self.assertAlmostEqual(here, summary["eval"]["loss"], places=4)

    def test_memory_and_safety(self):
        """What is recomputed, offloaded, verified or copied has the same bits."""
        self.ring_of(3, "plain")
        for key in ("recompute=all", "offload=host", "ring.verify=1/3", "ring.copy_steps=3"):
            name = key.split("=")[0]
            self.ring_of(3, name, key)
            self.assertEqual(self.bytes_of(name), self.bytes_of("plain"), key)
        late = ("schedule=pipedream", "optimizer={kind: adamw, lr: 0.01}")
        self.ring_of(4, "late", *late)
        for key in ("recompute=all", "offload=host"):
            self.ring_of(4, f"late-{key[:4]}", *late, key)
            self.assertEqual(self.bytes_of(f"late-{key[:4]}"), self.bytes_of("late"), key)

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

    def test_counts(self):
        self.ring_of(2, "out")
        text, _ = self.ringpipe("inspect", self.dir / "gpt.yaml", "--input", "16", "--format",
                                "json")
        tensors = read_safetensors(self.dir / "out" / "weights.safetensors")
        layers = {layer["name"]: layer for layer in json.loads(text)["layers"]}
        self.assertEqual(layers["head"]["parameters"], 0)
        self.assertGreater(layers["embed"]["parameters"], 0)
        self.assertIn("embed.weight", tensors)


load_tests = few_when_short("Golden.test_unflushed", "Texts.test_1f1b")


if __name__ == "__main__":
    unittest.main()
