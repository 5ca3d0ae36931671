"""Real agents over ZeroMQ, with random delays at every message, end with the bytes of a loop in one
process that keeps every version of the weights and says which of them an op sees: replay.c."""
import json
import unittest
from pathlib import Path

from rings import BUILD, RingCase, few_when_short

REPLAY = BUILD / "tests" / "replay"

# Batch statistics, dropout, a sum across a cut, and (in the ring of five) a stage without weights.
MODEL = """\
input: data
layers:
  - {name: conv1, kind: conv2d, out: 6, kernel: 5, stride: 2, bias: false}
  - {name: bn1, kind: batchnorm}
  - {name: relu1, kind: relu}
  - {name: conv2, kind: conv2d, out: 6, kernel: 3, pad: 1}
  - {name: drop, kind: dropout, p: 0.2}
  - {name: add, kind: add, from: [relu1, drop]}
  - {name: bn2, kind: batchnorm}
  - {name: pool, kind: maxpool, kernel: 4}
  - {name: flat, kind: flatten}
  - {name: fc, kind: dense, out: classes}
"""

# As many stages as one likes.
CHAIN = "input: data\nlayers:\n  - {name: flat, kind: flatten}\n" + "".join(
    f"  - {{name: fc{i}, kind: dense, out: {12 if i < 8 else 'classes'}}}\n"
    f"  - {{name: tanh{i}, kind: tanh}}\n" for i in range(1, 9))
CHAIN_CUTS = {1: "[]", 8: "[fc2, fc3, fc4, fc5, fc6, fc7, fc8]"}
CUTS = {2: "[drop]", 3: "[conv2, bn2]", 4: "[bn1, conv2, bn2]", 5: "[bn1, conv2, pool, fc]"}

# 90 samples: the last step of an epoch is short, and so is its last microbatch.
RUN = """\
model: net.yaml
data: {set: glyphs, train: 90, test: 20, augment: crop}
ring: {boards: 2, link: {delay_ms: 1, jitter_ms: 2, loss: 0.02, control: true}}
train: {epochs: 3, batch: 16, microbatch: 16, seed: 7, recalibrate: 0}
loss: cross-entropy
optimizer: {kind: sgd, lr: 0.05, momentum: 0.9}
lr_schedule: {kind: cosine, warmup_steps: 3}
schedule: async
cut: auto
"""
FOUR = ("train.batch=32", "train.microbatch=8")  # microbatches a step
TWO = ("train.batch=32", "train.microbatch=16")
DAMPENED = "optimizer={kind: sgd, lr: 0.05, momentum: 0.9, dampening: 0.1, weight_decay: 0.01}"
NESTEROV = "optimizer={kind: sgd, lr: 0.05, momentum: 0.9, nesterov: true}"
ADAM = "optimizer={kind: adam, lr: 0.01}"
ADAMW = "optimizer={kind: adamw, lr: 0.01, weight_decay: 0.1}"
RMSPROP = "optimizer={kind: rmsprop, lr: 0.002, momentum: 0.5}"
OTHER_DELAYS = "ring.link={delay_ms: 3, jitter_ms: 5, loss: 0.05, control: true}"

MEASURED = "horizon: measured, probe: 1"  # as often as the pipes allow

# What one may put together besides what the methods bring: an order, a rule, an average.
COMBINATIONS = (
    (5, "{kind: ea-pipe, replicas: 2, weights: pipeoptim}", NESTEROV),
    (5, "{kind: ea-pipe, replicas: 2, weights: pipeoptim, horizon: released}", DAMPENED),
    (5, "{kind: ea-pipe, replicas: 2, weights: pipeoptim, horizon: exact}", ADAM),
    (4, "{kind: ea-pipe, replicas: 2, weights: stash}", DAMPENED),
    (4, "{kind: avgpipe, weights: pipeoptim}", ADAM, *FOUR),
    (4, "{kind: avgpipe, weights: stash}", NESTEROV),
    (4, "{kind: pipedream-2bw, weights: pipeoptim}", ADAM, *FOUR),
    (5, "{kind: pipedream-2bw, weights: spectrain}", RMSPROP, *TWO),
    (4, "{kind: pipedream-2bw, weights: xpipe}", ADAM, *FOUR),
    (5, "{kind: pipedream-2bw, weights: entry}", NESTEROV, *TWO),
    (4, "{kind: async, weights: double, advance: 1}", ADAM, *TWO),
    (4, "{kind: pipeoptim, advance: 1, horizon: exact, drain: true}", ADAMW),
    (4, "spectrain", ADAM, *FOUR),
    (5, "{kind: spectrain, advance: 1}", DAMPENED, *TWO),
)


class Method(RingCase):
    MODEL, CUTS = MODEL, CUTS

    def setUp(self):
        super().setUp()
        (self.dir / "net.yaml").write_text(self.MODEL)
        self.run_yaml = self.run_file(RUN)

    def replay(self, sets, *more):
        out = self.dir / "replay.safetensors"
        Path(f"{out}.slipped").unlink(missing_ok=True)
        words = [w for s in sets for w in ("--set", s)]
        self.ringpipe(self.run_yaml, out, *words, *more, program=REPLAY)
        return out.read_bytes()

    def same(self, boards, schedule, *sets):
        """The ring's bytes, which are the replay's, and not those of one whose last stage slips."""
        return self.same_on(boards, boards, schedule, *sets)

    def same_on(self, boards, stages, schedule, *sets):
        sets = (f"ring.boards={boards}", f"cut={self.CUTS[stages]}", f"schedule={schedule}", *sets)
        self.rings = getattr(self, "rings", 0) + 1
        self.ring = f"ring-{self.rings}"
        summary = self.train(self.run_yaml, self.ring, *sets)
        self.assertGreater(summary["steps"], 6)
        got = self.bytes_of(self.ring)
        # Once as it should be, and once with a last stage that slips, in one process.
        wanted = self.replay(sets, "--slip", stages - 1)
        self.assertTrue(got == wanted, "the ring is not the replay")
        slipped = (self.dir / "replay.safetensors.slipped").read_bytes()
        self.assertFalse(got == slipped, "a slip is not seen")
        return got, sets


class Methods(Method):
    def test_async(self):
        self.same(2, "async")

    def test_async_with_microbatches(self):
        self.same(3, "async", NESTEROV, *FOUR)

    def test_pipedream(self):
        self.same(5, "pipedream", NESTEROV)

    def test_pipedream_with_advance(self):
        self.same(3, "{kind: pipedream, advance: 1}", RMSPROP)

    def test_vertical_sync(self):
        self.same(4, "{kind: pipedream, vertical_sync: true}", ADAMW)

    def test_2bw(self):
        self.same(4, "pipedream-2bw", ADAM, *FOUR)

    def test_2bw_with_fewer_microbatches_than_stages(self):
        self.same(5, "pipedream-2bw", DAMPENED, *TWO)

    def test_spectrain(self):
        self.same(5, "spectrain", DAMPENED)

    def test_spectrain_drained(self):
        self.same(3, "{kind: spectrain, drain: true}", RMSPROP)

    def test_pipeoptim(self):
        self.same(4, "pipeoptim", ADAMW)

    def test_pipeoptim_with_decay(self):
        self.same(2, "{kind: pipeoptim, decay: true}", ADAMW)

    def test_pipeoptim_released(self):
        self.same(3, "{kind: pipeoptim, horizon: released}", DAMPENED, *FOUR)

    def test_pipeoptim_exact(self):
        self.same(5, "{kind: pipeoptim, horizon: exact}", RMSPROP, *TWO)

    def test_xpipe(self):
        self.same(4, "xpipe", ADAM, *FOUR)

    def test_ea_pipe(self):
        self.same(4, "ea-pipe")

    def test_ea_pipe_with_fewer_replicas(self):
        self.same(5, "{kind: ea-pipe, replicas: 2}", ADAM)

    def test_ea_pipe_lean(self):
        self.same(4, "{kind: ea-pipe, lean: true}", NESTEROV)

    def test_ea_pipe_before_the_step(self):
        self.same(3, "{kind: ea-pipe, order: before}", ADAMW)

    def test_mean_of_the_replicas(self):
        self.same(3, "{kind: ea-pipe, evaluate: mean}", ADAM)

    def test_mean_of_fewer_replicas_on_later_stages(self):
        self.same(4, "{kind: ea-pipe, lean: true, order: before, evaluate: mean}")

    def test_latest_replica(self):
        self.same(4, "{kind: avgpipe, replicas: 3, evaluate: latest}", NESTEROV)

    def test_ea_pipe_every_second_step(self):
        self.same(2, "{kind: ea-pipe, period: 2}", RMSPROP)

    def test_avgpipe(self):
        self.same(3, "avgpipe", ADAM, *FOUR)

    def test_combinations(self):
        for boards, schedule, *sets in COMBINATIONS:
            with self.subTest(schedule=schedule):
                self.same(boards, schedule, *sets)

    def test_a_replay_told_another_horizon_differs(self):
        # drained, so that the pipes fill again when there is something to predict along
        got, sets = self.same(4, "{kind: pipeoptim, drain: true}", ADAM)
        self.replay(sets, "--slip", 4)  # of no stage: the second replay is the first
        self.assertTrue(got == (self.dir / "replay.safetensors.slipped").read_bytes())
        for horizon in ("exact", "released"):
            other = self.replay((*sets, f"schedule.horizon={horizon}"))
            self.assertFalse(got == other, f"{horizon} is the same as paper")


class Split(Method):
    """pipefb: the forward of a stage on one board, its backward on another."""

    def split(self, stages, schedule, *sets):
        return self.same_on(2 * stages, stages, schedule, *sets)

    def test_default(self):
        self.split(3, "pipefb", ADAM)

    def test_ahead(self):
        got, sets = self.split(3, "{kind: pipefb, ahead: [5, 3, 1]}", NESTEROV, *FOUR)
        self.train(self.run_yaml, "later", *sets, OTHER_DELAYS)
        self.assertTrue(got == self.bytes_of("later"), "it depends on the links")

    def test_some_stages(self):
        """Where `ahead` is the same, which stages are split decides on nothing."""
        alike = []
        for boards, split in ((3, [0, 0, 0]), (4, [0, 1, 0]), (5, [1, 0, 1]), (6, [1, 1, 1])):
            words = ", ".join("true" if one else "false" for one in split)
            got, sets = self.same_on(boards, 3, "{kind: pipefb, ahead: [5, 3, 1], split: [%s]}"
                                     % words, NESTEROV, *FOUR)
            alike.append(got)
            if boards == 5:
                self.train(self.run_yaml, "later", *sets, OTHER_DELAYS)
                self.assertTrue(got == self.bytes_of("later"), "it depends on the links")
        self.assertEqual(len(set(alike)), 1, "it depends on which stages are split")

    def test_some_stages_by_default(self):
        self.same_on(4, 3, "{kind: pipefb, split: [false, false, true]}", ADAM)
        self.same_on(4, 3, "{kind: pipefb, split: [true, false, false], weights: pipeoptim}",
                     ADAMW)

    def test_less_memory_on_whole_stages(self):
        """They keep their stashes elsewhere, or compute forwards again: it is the same."""
        schedule = "{kind: pipefb, ahead: [5, 3, 1], split: [false, true, false]}"
        plain, _ = self.same_on(4, 3, schedule, NESTEROV, *FOUR)
        for less in (("recompute=[0, 2]",), ("offload=[0, 2]",),
                     ("recompute=[0]", "offload={0: flash}")):
            got, _ = self.same_on(4, 3, schedule, NESTEROV, *FOUR, *less)
            self.assertTrue(got == plain, less)

    def test_publish(self):
        self.split(2, "{kind: pipefb, ahead: 3, publish: 2}", RMSPROP, *TWO)

    def test_prediction(self):
        self.split(3, "{kind: pipefb, weights: pipeoptim}", ADAM, *TWO)
        self.split(2, "{kind: pipefb, ahead: [5, 1], weights: pipeoptim, horizon: released}",
                   DAMPENED)
        self.split(3, "{kind: pipefb, weights: pipeoptim, decay: true}", ADAMW)

    def test_newest_weights_in_backwards(self):
        self.split(3, "{kind: pipefb, weights: current, publish: 2}", NESTEROV)

    def test_a_stage_without_weights(self):
        self.split(5, "pipefb", DAMPENED)

    def test_one_stage(self):
        self.CUTS = CHAIN_CUTS
        (self.dir / "net.yaml").write_text(CHAIN)
        self.split(1, "pipefb", ADAMW)

    def sets(self, schedule, boards, *more):
        return (f"ring.boards={boards}", f"cut={self.CUTS[3]}", f"schedule={schedule}", *more)

    def test_as_far_ahead_as_pipedream_it_is_pipedream(self):
        for more in ((ADAM,), (NESTEROV, *FOUR)):
            want = self.replay(self.sets("pipedream", 3, *more))
            split = self.replay(self.sets("{kind: pipefb, ahead: [3, 2, 1]}", 6, *more))
            further = self.replay(self.sets("pipefb", 6, *more))
            self.assertFalse(want == further, "2 (D - k) is no further ahead")
            if more == (ADAM,):  # else pipedream counts microbatches, and pipefb steps
                self.assertTrue(want == split, "D - k minibatches in flight are not pipedream")
            late = self.replay(self.sets("{kind: pipefb, publish: 2}", 6, *more), "--slip", 2)
            self.assertFalse(late == further, "weights that come half as often are the same")
            slipped = (self.dir / "replay.safetensors.slipped").read_bytes()
            self.assertFalse(late == slipped, "a slip is not seen")


class MeasuredGains(Method):
    """horizon: measured. The replay computes the prediction gains from its own probes."""

    def measured(self, boards, schedule, *sets):
        """The events of the log that have the mean prediction gain of a stage."""
        got, sets = self.same(boards, schedule, *sets)
        log = (self.dir / self.ring / "log.jsonl").read_text().splitlines()
        self.train(self.run_yaml, "later", *sets, OTHER_DELAYS)
        self.assertTrue(got == self.bytes_of("later"), "it depends on the links")
        whole = self.replay((*sets, "schedule.horizon=exact"))
        self.assertFalse(got == whole, "prediction gains change nothing")
        return [e for e in map(json.loads, log) if e.get("event") == "trust"]

    def test_microbatches_and_advance(self):
        self.measured(3, "{kind: pipeoptim, advance: 1, %s}" % MEASURED, RMSPROP, *FOUR,
                      "train.epochs=6")

    def test_replicas(self):
        self.measured(5, "{kind: ea-pipe, replicas: 2, weights: pipeoptim, %s}" % MEASURED,
                      NESTEROV)

    def test_2bw_with_decay(self):
        self.measured(4, "{kind: pipedream-2bw, weights: pipeoptim, decay: true, %s}" % MEASURED,
                      ADAMW)

    def test_fall_back_and_return(self):
        # few samples, no momentum: a gradient says nothing about the next
        events = self.measured(2, "{kind: pipeoptim, %s}" % MEASURED,
                              "optimizer={kind: sgd, lr: 0.3}", "train.batch=6",
                              "train.microbatch=6")
        own = [event for event in events if event["stage"] == 0]
        gains = [event["gain"] for event in own]
        least = gains.index(min(gains))
        self.assertGreater(own[least]["fallen"], 0)
        self.assertGreater(max(gains[least:]), gains[least], own)


class Ends(Method):
    """Every family on the fewest stages and on more than the other rings have."""
    MODEL, CUTS = CHAIN, CHAIN_CUTS

    def ends(self, schedule, *sets):
        for boards in self.CUTS:
            with self.subTest(boards=boards):
                self.same(boards, schedule, *sets)

    def test_async(self):
        self.ends("async")

    def test_pipedream(self):
        self.ends("pipedream", ADAM)

    def test_2bw(self):
        self.ends("pipedream-2bw", NESTEROV, *FOUR)

    def test_spectrain(self):
        self.ends("spectrain")

    def test_pipeoptim(self):
        self.ends("pipeoptim", ADAMW)

    def test_xpipe(self):
        self.ends("xpipe", ADAM, *TWO)

    def test_ea_pipe(self):
        self.ends("ea-pipe", NESTEROV)

    def test_avgpipe(self):
        self.ends("avgpipe", ADAM, *FOUR)


# Under a sanitizer, which makes a run slow: only what no other
# test runs.
load_tests = few_when_short("Methods.test_xpipe", "Methods.test_avgpipe",
                            "Methods.test_ea_pipe_lean", "Methods.test_ea_pipe_before_the_step")


if __name__ == "__main__":
    unittest.main()
