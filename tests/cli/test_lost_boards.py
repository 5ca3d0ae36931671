#!/usr/bin/env python3
"""Boards that somebody else starts: a run waits for one that is lost, takes a spare, or goes on
without it."""
import contextlib
import json
import signal
import socket
import time
import unittest

import program
import test_keys


class Roster(test_keys.Case):
    """Boards that somebody else starts: the run can only wait for them."""

    MORE = ()

    def setUp(self):
        super().setUp()
        controller = self.controller = self.new("controller")
        self.boards, lines = {}, ""
        for name in ("one", "two", *self.MORE):
            public = self.new(name)
            self.ringpipe("keys", "trust", "--dir", name, "controller", controller)
            # Started again it wants its ports back, and those of its data links behind that.
            listen = f"tcp://127.0.0.1:{program.ports().find(8)}"
            process, address = self.agent(name, "--name", name, listen=listen)
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

    @contextlib.contextmanager
    def board_without_ports(self):
        """Board two starts again, and another process has the ports of its data links."""
        address = self.boards["two"][1]
        port = int(address.rpartition(":")[2])
        with socket.socket() as first, socket.socket() as second:
            for i, taken in enumerate((first, second)):
                taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                taken.bind(("127.0.0.1", port + 1 + i))
                taken.listen()
            self.agent("two", "--name", "two", listen=address)
            yield

    def nodes(self, out):
        plan = json.loads((self.dir / out / "plan.json").read_text())
        return [node["name"] for node in plan["nodes"]]


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

    def test_a_port_that_is_taken(self):
        """Another process has the ports of the board's data links for a while."""
        words = ("--set", "train.epochs=100")
        self.ringpipe("train", self.run_yaml, "--out", "whole", *words)
        process = self.kill("killed", *words)
        port = int(self.boards["two"][1].rpartition(":")[2])
        with self.board_without_ports():
            log = self.dir / "killed" / "log.jsonl"
            self.wait_for("two tries", lambda: log.read_text().count("can not bind") >= 2,
                          process=process)
            time.sleep(6)
            self.assertIsNone(process.poll())
            self.assertLess(log.read_text().count("can not bind"), 6)
        _, err = self.finish(process)
        self.assertRegex(err, f"board two: link .*: can not bind to tcp://127.0.0.1:({port + 1}|"
                              f"{port + 2}): Address already in use")
        whole, killed = ((self.dir / out / "weights.safetensors").read_bytes()
                         for out in ("whole", "killed"))
        self.assertTrue(whole == killed, "other weights")

    def test_a_board_that_stays_away(self):
        process = self.kill("out", "--set", "train.epochs=1000", "--set", "ring.wait=2")
        _, err = self.finish(process, code=3)
        self.assertIn("board two at ", err)
        self.assertIn("no hello within 2 s (ring.wait)", err)
        self.assertIn("go on with: ", err)
        note = json.loads((self.dir / "out" / "summary.json").read_text())["note"]
        self.assertIn("after this: ", note)
        self.assertIn("; the run does not go on with fewer boards, because the cut is given", note)


class Three(Roster):
    """No spare: the ring goes on without a board that is lost."""

    MORE = ("three",)
    SETS = ("--set", "cut=auto", "--set", "ring.wait=2")

    def lose(self, name):
        self.boards[name][0].kill()
        self.boards[name][0].communicate()

    def steps(self, out):
        return program.steps_of(self.dir / out / "log.jsonl")


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

    def test_stages_of_which_some_are_split(self):
        """As many stages as before as long as there is a board for each, and fewer are split."""
        words = (*self.SETS, "--set", "train.epochs=100", "--set",
                 "schedule={kind: pipefb, ahead: [3, 2], split: [true, false]}")
        _, err = self.finish(self.kill("killed", *words))
        self.assertIn("board two has not come: the model is cut anew over the 2 boards left; no "
                      "stage is split now", err)
        self.assertEqual(self.nodes("killed"), ["one", "three"])
        plan = json.loads((self.dir / "killed" / "plan.json").read_text())
        self.assertEqual(plan["method"]["split"], [False, False])
        self.assertEqual([node["holds"][0]["role"] for node in plan["nodes"]], ["both", "both"])
        summary = json.loads((self.dir / "killed" / "summary.json").read_text())
        self.assertEqual((summary["status"], summary["stages"]), ("finished", 2))
        self.assertEqual((summary["ledger"]["lost"], summary["ledger"]["repeated"]), (0, 0))
        self.assertEqual([r["step"] for r in self.steps("killed")], list(range(1, 401)))
        self.assertLess(self.steps("killed")[-1]["loss"], self.steps("killed")[0]["loss"] / 2)
        self.assertIn("split: [true, false]", (self.dir / "killed" / "run.yaml").read_text())

    def test_replicas_stay(self):
        """As many as before: their states are in the checkpoint."""
        words = (*self.SETS, "--set", "train.epochs=60", "--set", "schedule=ea-pipe")
        _, err = self.finish(self.kill("killed", *words))
        self.assertIn("the model is cut anew over the 2 boards left", err)
        plan = json.loads((self.dir / "killed" / "plan.json").read_text())
        self.assertEqual(plan["method"]["replicas"], 3)
        summary = json.loads((self.dir / "killed" / "summary.json").read_text())
        self.assertEqual((summary["status"], summary["stages"]), ("finished", 2))
        self.assertEqual((summary["ledger"]["lost"], summary["ledger"]["repeated"]), (0, 0))
        self.assertLess(self.steps("killed")[-1]["loss"], self.steps("killed")[0]["loss"] / 2)

    def test_another_key(self):
        """A board that has lost its key, and makes another one, is as good as away in a run that
        has begun; in one that begins the roster is wrong."""
        words = ("--set", "cut=auto", "--set", "ring.wait=12", "--set", "schedule=1f1b")
        more = ("--set", "train.epochs=2")
        self.ringpipe("train", self.run_yaml, "--out", "whole", *words, *more)
        self.ringpipe("train", self.run_yaml, "--out", "out", *words, "--set", "train.epochs=1")
        self.lose("two")
        self.new("new")
        self.ringpipe("keys", "trust", "--dir", "new", "controller", self.controller)
        self.agent("new", "--name", "two", listen=self.boards["two"][1])
        _, err = self.ringpipe("resume", "out", *more)
        self.assertIn("refused the handshake: it does not trust our key, or its own is not the "
                      "one with fingerprint", err)
        self.assertIn("it counts as a board that is away", err)
        self.assertIn("the model is cut anew over the 2 boards left", err)
        self.assertEqual(self.nodes("out"), ["one", "three"])
        whole, fewer = ((self.dir / out / "weights.safetensors").read_bytes()
                        for out in ("whole", "out"))
        self.assertTrue(whole == fewer, "other weights")
        err = self.refused("train", self.run_yaml, "--out", "first", *words, code=5)
        self.assertIn("board two at ", err)

    def test_another_key_while_it_runs(self):
        """The controller has met the board, so that handshakes that fail might be a bad line."""
        words = ("--set", "cut=auto", "--set", "train.epochs=100")
        self.ringpipe("train", self.run_yaml, "--out", "whole", *words)
        process = self.kill("killed", *words, "--set", "ring.wait=20")
        self.new("new")
        self.ringpipe("keys", "trust", "--dir", "new", "controller", self.controller)
        self.agent("new", "--name", "two", listen=self.boards["two"][1])
        _, err = self.finish(process)
        self.assertRegex(err, "board two at .*: somebody with another key than the one with "
                              "fingerprint .* it counts as a board that is away")
        self.assertIn("the model is cut anew over the 2 boards left", err)
        log = (self.dir / "killed" / "log.jsonl").read_text().splitlines()
        refused = [line for line in map(json.loads, log) if line.get("event") == "refused"]
        self.assertEqual(len(refused), 1, refused)
        whole, killed = ((self.dir / out / "weights.safetensors").read_bytes()
                         for out in ("whole", "killed"))
        self.assertTrue(whole == killed, "other weights")

    def test_a_port_that_stays_taken(self):
        """A board that never gets its port counts as one that has not come."""
        words = (*self.SETS, "--set", "ring.wait=10", "--set", "train.epochs=100")
        self.ringpipe("train", self.run_yaml, "--out", "whole", *words)
        process = self.kill("killed", *words)
        with self.board_without_ports():
            _, err = self.finish(process)
        self.assertIn("Address already in use", err)
        self.assertIn("board two lacks a port that another process keeps: the model is cut anew "
                      "over the 2 boards left", err)
        self.assertEqual(self.nodes("killed"), ["one", "three"])
        summary = json.loads((self.dir / "killed" / "summary.json").read_text())
        self.assertEqual((summary["ledger"]["lost"], summary["ledger"]["repeated"]), (0, 0))
        whole, killed = ((self.dir / out / "weights.safetensors").read_bytes()
                         for out in ("whole", "killed"))
        self.assertTrue(whole == killed, "other weights")

    def test_lost_before_it_is_resumed(self):
        """The board was in the ring when the checkpoint was made."""
        words = (*self.SETS, "--set", "train.epochs=2", "--set", "schedule=1f1b")
        self.ringpipe("train", self.run_yaml, "--out", "whole", *words)
        self.ringpipe("train", self.run_yaml, "--out", "out", *words, "--set", "train.epochs=1")
        self.lose("two")
        _, err = self.ringpipe("resume", "out", "--set", "train.epochs=2")
        self.assertIn("no hello within 2 s (ring.wait)", err)
        self.assertIn("board two has not come: the model is cut anew over the 2 boards left", err)
        self.assertEqual(self.nodes("out"), ["one", "three"])
        self.assertEqual([r["step"] for r in self.steps("out")], list(range(1, 9)))
        whole, fewer = ((self.dir / out / "weights.safetensors").read_bytes()
                        for out in ("whole", "out"))
        self.assertTrue(whole == fewer, "other weights")

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
        self.assertIn("does not go on with fewer boards, because ring.at_least is 2", err)
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

    def lose_one_and_get_it_back(self, words):
        """What the run has said, and its summary."""
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
        return err, summary

    def test_a_schedule_that_flushes(self):
        words = (*self.SETS, "--set", "train.epochs=100000")
        _, summary = self.lose_one_and_get_it_back(words)
        self.assertEqual(summary["ledger"]["samples"], summary["samples"])
        self.assertEqual(len(summary["recovery"]), 1)
        self.expect_whole("out", words)

    def test_stages_of_which_some_are_split(self):
        err, _ = self.lose_one_and_get_it_back((
            *self.SETS, "--set", "train.epochs=100000", "--set",
            "schedule={kind: pipefb, ahead: [3, 2], split: [true, false]}"))
        self.assertIn("over 3 boards; split are stages 0", err)
        plan = json.loads((self.dir / "out" / "plan.json").read_text())
        self.assertEqual(plan["method"]["split"], [True, False])


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
        """Then the spare holds its stage, with the bits that it would have had. An agent that has
        ended is not waited for as long as one that is silent."""
        self.ringpipe("train", self.run_yaml, "--out", "whole", *self.SETS)
        self.assertEqual(self.nodes("whole"), ["one", "two"])
        process = self.kill("killed", *self.SETS, "--set", "ring.wait=6000")
        _, err = self.finish(process)
        self.assertIn("board two: its agent has ended: nothing listens at ", err)
        self.assertIn("was not back within 2 s (ring.spare_wait)", err)
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


# Under a sanitizer, which makes a run slow: each way once; sim's seeds recover under it, too.
load_tests = program.few_when_short("Boards.test_a_board_that_stays_away",
                                    "Spare.test_a_board_that_stays_away",
                                    "Spare.test_a_spare_that_is_not_there",
                                    "Fewer.test_another_key_while_it_runs",
                                    "Fewer.test_lost_before_it_is_resumed")


if __name__ == "__main__":
    program.main()
