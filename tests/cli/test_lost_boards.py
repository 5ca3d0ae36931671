#!/usr/bin/env python3
"""Boards that somebody else starts: a run waits for one that is lost, takes a spare, or goes on
without it."""
import contextlib
import json
import socket
import time

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


class Ports(Roster):
    def test_a_port_that_is_taken(self):
        """Another process has the ports of the board's data links for a while."""
        words = ("--set", "train.epochs=30")
        self.ringpipe("train", self.run_yaml, "--out", "whole", *words)
        process = self.kill("killed", *words)
        port = int(self.boards["two"][1].rpartition(":")[2])
        with self.board_without_ports():
            log = self.dir / "killed" / "log.jsonl"

            def tries():
                return sum("cannot bind" in line for line in log.read_text().splitlines())

            self.wait_for("two tries", lambda: tries() >= 2, process=process)
            time.sleep(6)
            self.assertIsNone(process.poll())
            self.assertLess(tries(), 6)
        _, err = self.finish(process)
        self.assertRegex(err, f"board two: link .*: cannot bind to tcp://127.0.0.1:({port + 1}|"
                              f"{port + 2}): Address already in use")
        whole, killed = ((self.dir / out / "weights.safetensors").read_bytes()
                         for out in ("whole", "killed"))
        self.assertTrue(whole == killed, "other weights")


class Three(Roster):
    """No spare: the ring goes on without a board that is lost."""

    MORE = ("three",)

    def test_another_key_while_it_runs(self):
        """The controller has met the board, so that handshakes that fail might be a bad line."""
        words = ("--set", "cut=auto", "--set", "train.epochs=30")
        self.ringpipe("train", self.run_yaml, "--out", "whole", *words)
        process = self.kill("killed", *words, "--set", "ring.wait=6")
        self.new("new")
        self.ringpipe("keys", "trust", "--dir", "new", "controller", self.controller)
        self.agent("new", "--name", "two", listen=self.boards["two"][1])
        _, err = self.finish(process)
        self.assertRegex(err, "board two at .*: every handshake is broken off: another machine, "
                              "whose key does not have the fingerprint .* "
                              "it counts as a board that is away")
        self.assertIn("the model is cut again; boards in the ring: 2", err)
        log = (self.dir / "killed" / "log.jsonl").read_text().splitlines()
        refused = [line for line in map(json.loads, log) if line.get("event") == "refused"]
        self.assertEqual(len(refused), 1, refused)
        whole, killed = ((self.dir / out / "weights.safetensors").read_bytes()
                         for out in ("whole", "killed"))
        self.assertTrue(whole == killed, "other weights")

    def test_a_port_that_stays_taken(self):
        """A board that never gets its port counts as one that has not come."""
        words = ("--set", "cut=auto", "--set", "ring.wait=10", "--set", "train.epochs=30")
        self.ringpipe("train", self.run_yaml, "--out", "whole", *words)
        process = self.kill("killed", *words)
        with self.board_without_ports():
            _, err = self.finish(process)
        self.assertIn("Address already in use", err)
        self.assertIn("two lacks a port that another process keeps: the model is cut again; boards "
                      "in the ring: 2", err)
        self.assertEqual(self.nodes("killed"), ["one", "three"])
        summary = json.loads((self.dir / "killed" / "summary.json").read_text())
        self.assertEqual((summary["ledger"]["lost"], summary["ledger"]["repeated"]), (0, 0))
        whole, killed = ((self.dir / out / "weights.safetensors").read_bytes()
                         for out in ("whole", "killed"))
        self.assertTrue(whole == killed, "other weights")


class Spare(Roster):
    """A third board waits until another one is lost for good."""

    MORE = ("three",)
    SETS = ("--set", "train.epochs=30", "--set", "ring.spare=[three]", "--set", "ring.wait=2")

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


# What the controller decides is in tests/scenarios. A port that is taken is tried by night.
load_tests = program.few_when_short("Spare.test_a_board_that_stays_away",
                                    sanitized=("Three.test_another_key_while_it_runs",))


if __name__ == "__main__":
    program.main()
