#!/usr/bin/env python3
"""A run that loses a board goes on by itself, and ends with the bits of an undisturbed one."""
import json
import os
import random
import re
import signal
import time
import unittest

import program
import test_keys

WHOLE = ("--set", "train.epochs=60", "--set", "ring.boards=3", "--set", "cut=[fc2, fc3]",
         "--set", "train.microbatch=32")
PERIOD_S = 0.7  # from one kill to the next


class Case(program.Case):
    def train(self, out, *words):
        self.ringpipe("train", self.run_file(), "--out", out, *words)
        return (self.dir / out / "weights.safetensors").read_bytes()

    def summary(self, out):
        return json.loads((self.dir / out / "summary.json").read_text())

    def events(self, out, name):
        lines = (self.dir / out / "log.jsonl").read_text().splitlines()
        return [r for r in map(json.loads, lines) if r.get("event") == name]

    def expect_whole(self, out, steps, recoveries=None):
        """Every step once, in order, and nothing lost or repeated."""
        summary = self.summary(out)
        self.assertEqual(summary["status"], "finished")
        self.assertEqual(summary["steps"], steps)
        self.assertEqual((summary["ledger"]["lost"], summary["ledger"]["repeated"]), (0, 0))
        self.assertEqual(summary["ledger"]["samples"], summary["samples"])
        log = self.dir / out / "log.jsonl"
        self.assertEqual([r["step"] for r in program.steps_of(log)], list(range(1, steps + 1)))
        told = len(summary["recovery"])
        self.assertEqual(len(self.events(out, "recovered")), told)
        self.assertGreaterEqual(len(self.events(out, "fault")), told)
        if recoveries is not None:
            self.assertEqual(told, recoveries)


class Recover(Case):
    def killed(self, schedule, *more):
        """Agents are killed one after the other, whatever the run does just then."""
        words = (*WHOLE, "--set", f"schedule={schedule}", *more)
        wanted = self.train("whole", *words)
        draw = random.Random(schedule)
        process = self.start("train", self.run_file(), "--out", "killed", *words)
        kills = 0
        while process.poll() is None and kills < 6:
            time.sleep(PERIOD_S * draw.random() * 2)
            agents = self.agents()
            if agents:
                os.kill(draw.choice(agents), signal.SIGKILL)
                kills += 1
        self.finish(process, seconds=120)
        self.assertTrue(self.events("killed", "recovered"), "every kill came too late")
        self.expect_whole("killed", 240)
        weights = (self.dir / "killed" / "weights.safetensors").read_bytes()
        self.assertTrue(weights == wanted, "other weights")

    def test_flushed(self):
        self.killed("1f1b", "--set", "optimizer={kind: adam, lr: 0.001, clip_norm: 1}")

    def test_in_flight(self):
        """What was in flight at the checkpoint is in flight again."""
        self.killed("{kind: pipeoptim, horizon: measured, probe: 5}")

    def test_average(self):
        self.killed("ea-pipe")

    def test_verified(self):
        """Also while a board computes again what another one has."""
        self.killed("pipedream", "--set", "ring.verify=1/4")

    def test_an_agent_that_hangs(self):
        """It is missed after 10 s, ended, and started again."""
        wanted = self.train("whole", *WHOLE)
        process = self.start("train", self.run_file(), "--out", "hung", *WHOLE)
        log = self.dir / "hung" / "log.jsonl"
        self.wait_for("step 9", lambda: len(program.steps_of(log)) >= 9, process=process)
        agent = self.agents()[1]
        os.kill(agent, signal.SIGSTOP)
        _, err = self.finish(process)
        self.assertRegex(err, r"board 1 has been silent for 1\d s")
        self.assertNotIn(agent, self.agents())
        self.expect_whole("hung", 240, 1)
        weights = (self.dir / "hung" / "weights.safetensors").read_bytes()
        self.assertTrue(weights == wanted, "other weights")
        # Its neighbour may miss it first, over their hop, and the neighbour was never silent.
        if "has been silent" in self.events("hung", "fault")[0]["text"]:
            self.assertGreater(self.summary("hung")["recovery"][0]["detect_s"], 9)

    def test_a_controller_that_is_stopped(self):
        """For longer than a board may be silent: nothing has happened."""
        process = self.start("train", self.run_file(), "--out", "out", *WHOLE)
        log = self.dir / "out" / "log.jsonl"
        self.wait_for("step 9", lambda: len(program.steps_of(log)) >= 9, process=process)
        process.send_signal(signal.SIGSTOP)
        time.sleep(13)
        process.send_signal(signal.SIGCONT)
        self.finish(process)
        self.expect_whole("out", 240, 0)

    def test_before_the_first_checkpoint(self):
        """From the beginning, when nothing was saved."""
        words = (*WHOLE, "--set", "data.train=16384", "--set", "train.epochs=1")
        wanted = self.train("whole", *words)
        process = self.start("train", self.run_file(), "--out", "killed", *words)
        log = self.dir / "killed" / "log.jsonl"
        self.wait_for("step 5", lambda: len(program.steps_of(log)) >= 5, process=process)
        os.kill(self.agents()[1], signal.SIGKILL)
        _, err = self.finish(process)
        self.assertRegex(err, r"was killed by signal 9 \(Killed\); the run goes back from step "
                         r"\d+ to step 0 and waits up to 30 s for its boards \(ring.wait\)")
        self.assertRegex(err, r"at work again from step 0, [\d.]+ s after")
        self.expect_whole("killed", 256, 1)
        weights = (self.dir / "killed" / "weights.safetensors").read_bytes()
        self.assertTrue(weights == wanted, "other weights")
        told = self.summary("killed")["recovery"][0]
        self.assertEqual(told["board"], 1)
        self.assertGreaterEqual(told["replay_microbatches"], 5 * 2)
        self.assertGreater(told["restore_s"], 0)

    def test_resumed_after_a_recovery(self):
        """Stopped behind a recovery, it goes on; the fault stays in its log."""
        words = (*WHOLE, "--set", "train.epochs=1000")
        process = self.start("train", self.run_file(), "--out", "out", *words)
        log = self.dir / "out" / "log.jsonl"
        self.wait_for("step 9", lambda: len(program.steps_of(log)) >= 9, process=process)
        os.kill(self.agents()[0], signal.SIGKILL)
        self.wait_for("recovery", lambda: self.events("out", "recovered"), process=process)
        process.send_signal(signal.SIGINT)
        self.finish(process, code=130)
        steps = len(program.steps_of(log)) + 20
        self.ringpipe("resume", "out", "--set", f"train.steps={steps}")
        self.assertEqual([r["step"] for r in program.steps_of(log)], list(range(1, steps + 1)))
        self.assertEqual(len(self.events("out", "fault")), 1)
        self.assertEqual(len(self.events("out", "recovered")), 1)


class Copies(Case):
    """Boards keep copies for each other: what is done again is behind the last of them."""

    WORDS = (*WHOLE, "--set", "data.train=16384", "--set", "train.epochs=1")  # one checkpoint: 256

    def kill_behind(self, process, steps):
        log = self.dir / "killed" / "log.jsonl"
        self.wait_for(f"step {steps}", lambda: len(program.steps_of(log)) >= steps, process=process)
        os.kill(self.agents()[1], signal.SIGKILL)

    def killed(self, schedule):
        """Nothing was saved, so a checkpoint would cost all steps."""
        words = (*self.WORDS, "--set", f"schedule={schedule}")
        wanted = self.train("whole", *words)
        process = self.start("train", self.run_file(), "--out", "killed", *words,
                             "--set", "ring.copy_steps=5")
        self.kill_behind(process, 40)
        _, err = self.finish(process)
        self.expect_whole("killed", 256, 1)
        came, back = map(int, re.search(r"from step (\d+) to step (\d+) ", err).groups())
        self.assertEqual(back % 5, 0)
        self.assertGreater(back, 0)
        told = self.summary("killed")["recovery"][0]
        self.assertEqual(told["replay_microbatches"], (came - back) * 2)
        self.assertIn(f"what the boards held behind step {back} is whole again, from copies", err)
        weights = (self.dir / "killed" / "weights.safetensors").read_bytes()
        self.assertTrue(weights == wanted, "other weights")

    def test_flushed(self):
        self.killed("1f1b")

    def test_in_flight(self):
        """What was in flight is in the copies, too."""
        self.killed("{kind: pipeoptim, horizon: measured, probe: 5}")

    def test_average(self):
        self.killed("ea-pipe")


class Roster(test_keys.Case):
    """Boards that somebody else starts: the run can only wait for them."""

    MORE = ()

    def setUp(self):
        super().setUp()
        controller = self.new("controller")
        self.boards, lines = {}, ""
        for name in ("one", "two", *self.MORE):
            public = self.new(name)
            self.ringpipe("keys", "trust", "--dir", name, "controller", controller)
            process, address = self.agent(name, "--name", name)
            self.boards[name] = (process, address)
            lines += f"  - {{name: {name}, address: '{address}', key: {public}}}\n"
        (self.dir / "lab.yaml").write_text("boards:\n" + lines)
        self.run_yaml = self.run_file(program.RUN.replace("boards: 2", "roster: lab.yaml")
                                      .replace("cut: auto", "cut: [fc2]") + "keys: controller\n")

    def kill(self, out, *words):
        process = self.start("train", self.run_yaml, "--out", out, *words)
        log = self.dir / out / "log.jsonl"
        self.wait_for("step 9", lambda: len(program.steps_of(log)) >= 9, process=process)
        self.boards["two"][0].kill()
        self.boards["two"][0].communicate()
        return process


class Boards(Roster):
    def test_a_board_that_comes_back(self):
        words = ("--set", "train.epochs=100")
        self.ringpipe("train", self.run_yaml, "--out", "whole", *words)
        process = self.kill("killed", *words)
        time.sleep(1)
        address = self.boards["two"][1]
        self.start("--keys", "two", "--board", "auto", "--name", "two", "--listen", address,
                   program=program.AGENT)
        self.finish(process)
        whole, killed = ((self.dir / out / "weights.safetensors").read_bytes()
                         for out in ("whole", "killed"))
        self.assertTrue(whole == killed, "other weights")
        summary = json.loads((self.dir / "killed" / "summary.json").read_text())
        self.assertEqual([r["board"] for r in summary["recovery"]], [1])

    def test_a_board_that_stays_away(self):
        process = self.kill("out", "--set", "train.epochs=1000", "--set", "ring.wait=2")
        _, err = self.finish(process, code=3)
        self.assertIn("board two at ", err)
        self.assertIn("no hello within 2 s (ring.wait)", err)
        self.assertIn("go on with: ", err)
        note = json.loads((self.dir / "out" / "summary.json").read_text())["note"]
        self.assertIn("after this: ", note)


class Three(Roster):
    """No spare: the ring goes on without a board that is lost."""

    MORE = ("three",)
    SETS = ("--set", "cut=auto", "--set", "ring.wait=2")

    def lose(self, name):
        self.boards[name][0].kill()
        self.boards[name][0].communicate()

    def steps(self, out):
        return program.steps_of(self.dir / out / "log.jsonl")

    def nodes(self, out):
        plan = json.loads((self.dir / out / "plan.json").read_text())
        return [node["name"] for node in plan["nodes"]]


class Fewer(Three):
    def test_a_schedule_that_flushes(self):
        """The numbers do not depend on the cut."""
        words = (*self.SETS, "--set", "train.epochs=100")
        self.ringpipe("train", self.run_yaml, "--out", "whole", *words)
        _, err = self.finish(self.kill("killed", *words))
        self.assertIn("board two has not come: the model is cut anew over the 2 boards left", err)
        self.assertEqual(self.nodes("killed"), ["one", "three"])
        summary = json.loads((self.dir / "killed" / "summary.json").read_text())
        self.assertEqual((summary["status"], summary["stages"]), ("finished", 2))
        self.assertEqual((summary["ledger"]["lost"], summary["ledger"]["repeated"]), (0, 0))
        self.assertEqual([r["step"] for r in self.steps("killed")], list(range(1, 401)))
        whole, killed = ((self.dir / out / "weights.safetensors").read_bytes()
                         for out in ("whole", "killed"))
        self.assertTrue(whole == killed, "other weights")

    def test_until_too_few_are_left(self):
        """In flight, and resumed, so that nothing has been measured yet."""
        words = (*self.SETS, "--set", "schedule={kind: pipeoptim, advance: auto}",
                 "--set", "ring.at_least=2", "--set", "train.eval_epochs=0")
        self.ringpipe("train", self.run_yaml, "--out", "out", *words)
        process = self.start("resume", "out", "--set", "train.epochs=100000")
        self.wait_for("step 19", lambda: len(self.steps("out")) >= 19, process=process)
        self.lose("two")
        log = self.dir / "out" / "log.jsonl"
        self.wait_for("a cut anew", lambda: '"recovered"' in log.read_text(), process=process)
        steps = len(self.steps("out"))
        self.wait_for("more steps", lambda: len(self.steps("out")) >= steps + 9, process=process)
        self.lose("three")
        _, err = self.finish(process, code=3)
        self.assertIn("the model is cut anew over the 2 boards left", err)
        self.assertIn("board three at ", err)
        self.assertIn("no hello within 2 s (ring.wait)", err)
        steps = [r["step"] for r in self.steps("out")]
        self.assertEqual(steps, list(range(1, len(steps) + 1)))


class Again(Three):
    """A board that the ring went on without, and that comes back later."""

    def again(self, name):
        process = self.start("--keys", name, "--board", "auto", "--name", name, "--listen",
                             self.boards[name][1], program=program.AGENT)
        self.boards[name] = (process, self.boards[name][1])

    def until(self, out, event, count, process):
        log = self.dir / out / "log.jsonl"
        self.wait_for(f"{event} {count}",
                      lambda: log.read_text().count(f'"event":"{event}"') >= count,
                      process=process, seconds=90)

    def stop(self, out, process):
        """The run works with the boards that it has now, and is interrupted."""
        steps = len(self.steps(out))
        self.wait_for("more steps", lambda: len(self.steps(out)) >= steps + 9, process=process)
        process.send_signal(signal.SIGINT)
        _, err = self.finish(process, code=130)
        return err, json.loads((self.dir / out / "summary.json").read_text())

    def expect_whole(self, out, words):
        """Every step once; and the same bits as without any of this."""
        steps = len(self.steps(out)) + 4
        self.ringpipe("resume", out, "--set", f"train.steps={steps}")
        self.assertEqual([r["step"] for r in self.steps(out)], list(range(1, steps + 1)))
        self.ringpipe("train", self.run_yaml, "--out", "whole", *words,
                      "--set", f"train.steps={steps}")
        whole, disturbed = ((self.dir / name / "weights.safetensors").read_bytes()
                            for name in ("whole", out))
        self.assertTrue(whole == disturbed, "other weights")

    def test_a_schedule_that_flushes(self):
        words = (*self.SETS, "--set", "train.epochs=100000")
        process = self.kill("out", *words)
        self.until("out", "recovered", 1, process)
        self.assertEqual(self.nodes("out"), ["one", "three"])
        self.again("two")
        self.until("out", "joined", 1, process)
        err, summary = self.stop("out", process)
        self.assertIn("two can be reached again: the model is cut anew over 3 boards", err)
        self.assertEqual(self.nodes("out"), ["one", "two", "three"])
        self.assertEqual((summary["boards_left"], summary["boards_joined"]), (1, 1))
        self.assertEqual((summary["ledger"]["lost"], summary["ledger"]["repeated"]), (0, 0))
        self.assertEqual(summary["ledger"]["samples"], summary["samples"])
        self.assertEqual(len(summary["recovery"]), 1)
        self.expect_whole("out", words)


class Orphans(Roster):
    """The controller is killed; its boards live, and another one takes them over."""

    LONG = ("--set", "data.train=16384", "--set", "train.epochs=1000")

    def steps(self, out):
        return program.steps_of(self.dir / out / "log.jsonl")

    def killed_behind(self, step, *command):
        """At some moment behind this step."""
        process = self.start(*command)
        log = self.dir / "out" / "log.jsonl"
        self.wait_for(f"step {step}",
                      lambda: log.exists() and len(self.steps("out")) >= step, process=process)
        process.kill()
        process.communicate()

    def adopted(self):
        lines = (self.dir / "out" / "log.jsonl").read_text().splitlines()
        return [r["text"] for r in map(json.loads, lines) if r.get("event") == "adopted"]

    def expect_whole(self, words):
        steps = len(self.steps("out")) + 5
        self.ringpipe("resume", "out", "--set", f"train.steps={steps}")
        self.assertEqual([r["step"] for r in self.steps("out")], list(range(1, steps + 1)))
        summary = json.loads((self.dir / "out" / "summary.json").read_text())
        self.assertEqual((summary["ledger"]["lost"], summary["ledger"]["repeated"]), (0, 0))
        self.assertEqual(summary["ledger"]["samples"], summary["samples"])
        self.ringpipe("train", self.run_yaml, "--out", "whole", *words,
                      "--set", f"train.steps={steps}")
        for key in ("weights.safetensors",):
            whole, adopted = ((self.dir / out / key).read_bytes() for out in ("whole", "out"))
            self.assertTrue(whole == adopted, f"other {key}")
        whole, adopted = ([r["loss"] for r in self.steps(out)] for out in ("whole", "out"))
        self.assertEqual(whole, adopted)

    def test_a_schedule_that_flushes(self):
        """In the middle of a long segment, again and again: no step is done twice."""
        self.killed_behind(9, "train", self.run_yaml, "--out", "out", *self.LONG)
        for kill in range(4):
            done = len(self.steps("out"))
            self.killed_behind(done + 7 * (kill + 1), "resume", "out")
            said = self.adopted()
            self.assertEqual(len(said), kill + 1)
            self.assertRegex(said[-1], r"have held step \d+, the newest checkpoint was of step")
            held = int(said[-1].split("have held step ")[1].split(",")[0])
            self.assertGreaterEqual(held, done - 1)  # the last may wait for its decision
        self.expect_whole(self.LONG)

    def at_any_moment(self, schedule, *more):
        """Also while it starts, evaluates, saves, and while it takes over."""
        words = ("--set", "train.epochs=1000", "--set", f"schedule={schedule}", *more)
        draw = random.Random(schedule)
        self.killed_behind(9, "train", self.run_yaml, "--out", "out", *words)
        for _ in range(8):
            process = self.start("resume", "out")
            time.sleep(0.3 + 2 * draw.random() * program.SLOWER)
            self.assertIsNone(process.poll())
            process.kill()
            process.communicate()
        self.killed_behind(len(self.steps("out")) + 9, "resume", "out")
        self.expect_whole(words)

    def test_at_any_moment(self):
        self.at_any_moment("1f1b", "--set", "data.train=512",
                           "--set", "optimizer={kind: adam, lr: 0.001, clip_norm: 1}")

    def test_at_any_moment_in_flight(self):
        self.at_any_moment("pipeoptim", "--set", "data.train=512")

    def test_other_settings(self):
        """What was trained with those of before is no checkpoint of a run with these."""
        self.killed_behind(9, "train", self.run_yaml, "--out", "out", *self.LONG)
        self.ringpipe("resume", "out", "--set", "train.seed=2", "--set", "train.steps=20")
        said = self.adopted()[0]
        self.assertIn("is not used: other settings now: train.seed: 2 (was 1)", said)
        self.assertIn("the run goes on from the checkpoint of step 0", said)

    def test_a_board_that_was_lost_with_it(self):
        """The run goes on from the newest checkpoint, and says why."""
        self.killed_behind(9, "train", self.run_yaml, "--out", "out", *self.LONG)
        self.boards["two"][0].kill()
        self.boards["two"][0].communicate()
        self.start("--keys", "two", "--board", "auto", "--name", "two", "--listen",
                   self.boards["two"][1], program=program.AGENT)
        process = self.start("resume", "out")
        self.wait_for("what becomes of it", self.adopted, process=process)
        process.send_signal(signal.SIGINT)
        self.finish(process, code=130)
        self.assertEqual(self.adopted(), [
            "what the boards hold is not used: not every board holds its part of it any more; "
            "the run goes on from the checkpoint of step 0"])


class Spare(Roster):
    """A third board waits until another one is lost for good."""

    MORE = ("three",)
    SETS = ("--set", "train.epochs=100", "--set", "ring.spare=[three]", "--set", "ring.wait=2")

    def test_a_board_that_comes_back(self):
        """It takes its place itself: the spare stays out."""
        process = self.kill("out", *self.SETS)
        self.start("--keys", "two", "--board", "auto", "--name", "two", "--listen",
                   self.boards["two"][1], program=program.AGENT)
        self.finish(process)
        self.assertEqual(self.nodes("out"), ["one", "two"])

    def test_a_board_that_stays_away(self):
        """Then the spare holds its stage, with the bits that it would have had."""
        self.ringpipe("train", self.run_yaml, "--out", "whole", *self.SETS)
        self.assertEqual(self.nodes("whole"), ["one", "two"])
        process = self.kill("killed", *self.SETS)
        _, err = self.finish(process)
        self.assertIn("board two has not come: the spare board three takes its place", err)
        self.assertEqual(self.nodes("killed"), ["one", "three"])
        whole, killed = ((self.dir / out / "weights.safetensors").read_bytes()
                         for out in ("whole", "killed"))
        self.assertTrue(whole == killed, "other weights")
        summary = json.loads((self.dir / "killed" / "summary.json").read_text())
        self.assertEqual(summary["status"], "finished")
        self.assertEqual((summary["ledger"]["lost"], summary["ledger"]["repeated"]), (0, 0))

    def test_a_board_that_was_never_there(self):
        """At the first start, too."""
        self.boards["two"][0].kill()
        self.boards["two"][0].communicate()
        self.ringpipe("train", self.run_yaml, "--out", "out", "--set", "ring.spare=[three]",
                      seconds=90)
        self.assertEqual(self.nodes("out"), ["one", "three"])

    def test_a_spare_that_is_not_there(self):
        """Every spare is tried once; then the run stops."""
        self.boards["three"][0].kill()
        self.boards["three"][0].communicate()
        _, err = self.finish(self.kill("out", *self.SETS), code=3)
        self.assertEqual(err.count("takes its place"), 1)
        self.assertIn("board three at ", err)
        self.assertIn("no hello within 2 s (ring.wait)", err)

    def nodes(self, out):
        plan = json.loads((self.dir / out / "plan.json").read_text())
        return [node["name"] for node in plan["nodes"]]


# Under a sanitizer each way once; sim's seeds recover under it, too, from whatever happens.
ONLY_HERE = (Recover("test_in_flight"), Recover("test_resumed_after_a_recovery"),
             Boards("test_a_board_that_stays_away"), Spare("test_a_board_that_stays_away"),
             Spare("test_a_spare_that_is_not_there"), Orphans("test_a_schedule_that_flushes"))


def load_tests(_loader, tests, _pattern):
    return tests if program.SLOWER == 1 else unittest.TestSuite(ONLY_HERE)


if __name__ == "__main__":
    program.main()
