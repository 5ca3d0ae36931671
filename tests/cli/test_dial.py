#!/usr/bin/env python3
"""Boards that nobody can dial: they dial the host, and their neighbours."""
import json
import os
import shutil
import signal
import socket
import subprocess
import unittest

import program
import test_keys

CUT = ("--set", "cut=[fc2, fc3]")


def free_port():
    """A port that is free, and the next one too."""
    while True:
        with socket.socket() as first, socket.socket() as second:
            first.bind(("127.0.0.1", 0))
            port = first.getsockname()[1]
            try:
                second.bind(("127.0.0.1", port + 1))
            except (OSError, OverflowError):
                continue
            if port <= 65533:
                return port


class Case(test_keys.Case):
    def setUp(self):
        super().setUp()
        self.public = {name: self.new(name) for name in ("host", "a", "b", "c", "d")}
        for name in ("a", "b", "c", "host"):
            self.ringpipe("keys", "trust", "--dir", name, "host", self.public["host"])
        self.port = free_port()
        self.boards, self.address = {}, {}

    def line(self, name, address):
        out, _ = self.ringpipe("keys", "show", "--dir", name, "--roster", name, address)
        return out

    def listen(self, name):
        """A board that listens, and its line in a roster."""
        self.boards[name], self.address[name] = self.agent(name, "--name", name)
        return self.line_of(name)

    def line_of(self, name):
        return self.line(name, self.address.get(name, "dials"))

    def train_on_one(self):
        """A run on the board of the roster that is there, in work."""
        run = self.run_file(program.RUN.replace("boards: 2", "roster: lab.yaml") + "keys: host\n")
        process = self.start("train", run, "--out", "one", *program.LONG)
        log = self.dir / "one" / "log.jsonl"
        self.wait_for("step 2", lambda: len(program.steps_of(log)) >= 2, process=process)
        return process

    def dial(self, name, keys=None):
        """One that dials; with the keys of another one where that is said."""
        self.boards[name] = self.start("--host", f"host@127.0.0.1:{self.port}", "--name", name,
                                       "--keys", keys or name, program=program.AGENT)
        said = self.boards[name].stdout.readline()
        self.assertEqual(said, f"dialling tcp://127.0.0.1:{self.port}\n")
        return self.line(name, "dials")

    def run_on(self, *lines, host="127.0.0.1"):
        (self.dir / "lab.yaml").write_text("boards:\n" + "".join(lines))
        ring = f"roster: lab.yaml, listen: 'tcp://{host}:{self.port}'"
        return self.run_file(program.RUN.replace("boards: 2", ring) + "keys: host\n")

    def local(self, boards, *words):
        text = program.RUN.replace("boards: 2", f"boards: {boards}")
        self.ringpipe("train", self.run_file(text, "local.yaml"), "--out", "local", *words)
        return self.weights("local")

    def weights(self, out):
        return (self.dir / out / "weights.safetensors").read_bytes()

    def journal(self, name):
        process = self.boards.pop(name)
        process.send_signal(signal.SIGTERM)
        return self.finish(process)[1]


class Dial(Case):
    def test_same_weights(self):
        """Whoever dials whom: the bytes of boards that are started here; and again."""
        expected = self.local(3, *CUT)
        a, b, c = self.listen("a"), self.dial("b"), self.listen("c")
        run = self.run_on(a, b, c)
        for out in ("once", "twice"):
            self.ringpipe("train", run, "--out", out, *CUT)
            self.assertEqual(self.weights(out), expected)
        plan = json.loads((self.dir / "once" / "plan.json").read_text())
        self.assertEqual([node.get("dials") for node in plan["nodes"]], [None, True, None])
        self.journal("c")
        c = self.dial("c")
        run = self.run_on(b, a, c)  # both ends dial: they are fed over links that they have dialled
        self.ringpipe("train", run, "--out", "ends", *CUT)
        self.assertEqual(self.weights("ends"), expected)
        said = self.journal("a")
        for far in ("b", "c"):
            self.assertIn(f"board {far} is connected", said)

    def copy_of(self, name):
        """The folder of keys as another machine has it, whose SD card was copied."""
        shutil.copytree(self.dir / name, self.dir / f"{name}-copy")
        return f"{name}-copy"

    def test_copy_listens(self):
        """A copy that listens at another address is nobody's business."""
        expected = self.local(2)
        a, b = self.listen("a"), self.listen("b")
        self.boards["copy"], _ = self.agent(self.copy_of("b"), "--name", "b")
        self.ringpipe("train", self.run_on(a, b), "--out", "out")
        self.assertEqual(self.weights("out"), expected)
        self.assertNotIn("says hello", self.journal("copy"))

    def test_another_key(self):
        """Who has another key is refused and told why, and the run says so while it waits, with who
        is awaited; the right one gets its place."""
        a, b = self.listen("a"), self.line("b", "dials")
        self.dial("b", keys="c")
        stranger = self.boards.pop("b")
        host = self.start("train", self.run_on(a, b), "--out", "out")
        for line in stranger.stderr:
            if "refuses this end" in line:
                break
        self.assertIn("our key is not on its list", line)
        log = self.dir / "out" / "log.jsonl"
        self.wait_for("its key", lambda: self.public["c"] in log.read_text(), process=host)
        events = list(map(json.loads, log.read_text().splitlines()))
        said, = [event for event in events if event.get("event") == "refused"]
        self.assertEqual((said["kind"], said["key"], said["awaited"]),
                         ("stranger", self.public["c"], "b"))
        self.assertIn("127.0.0.1", said["address"])
        self.assertRegex(said["fingerprint"], r"^[\w-]+$")
        self.assertIsNone(host.poll(), "the host must wait for the right one")
        self.dial("b")
        out, err = self.finish(host)
        self.assertIn(f"dials with the key {self.public['c']}", out + err)
        self.assertIsNone(stranger.poll())
        self.stop(stranger)
        self.assertEqual(self.weights("out"), self.local(2))

    def test_host_is_another(self):
        """A board that is told another host's key does not serve who answers there."""
        a, b = self.listen("a"), self.line("b", "dials")
        self.ringpipe("keys", "trust", "--dir", "b", "host", self.public["c"])
        self.dial("b")
        board = self.boards.pop("b")
        host = self.start("train", self.run_on(a, b), "--out", "out")
        for line in board.stderr:
            if "refuses this end" in line:
                break
        self.assertIn("another key", line)
        host.send_signal(signal.SIGINT)
        self.finish(host, code=130)
        self.stop(board)

    def doctor(self, *words, code=0):
        out, err = self.ringpipe("doctor", "--roster", "lab.yaml", "--keys", "host", "--listen",
                                 f"tcp://127.0.0.1:{self.port}", "--format", "json", *words,
                                 code=code)
        found = json.loads(out)
        return ({board["name"]: board["state"] for board in found["boards"]},
                {(link["from"], link["to"]): (link["way"], link["chosen"])
                 for link in found["links"]}, found, err)

    def test_doctor(self):
        """Who is there, and which directions work; boards then serve a run as before."""
        run = self.run_on(self.listen("a"), self.dial("b"), self.listen("c"))
        states, ways, found, _ = self.doctor()
        self.assertEqual(states, dict.fromkeys("abc", "there"))
        self.assertEqual(ways, {("a", "b"): ("impossible", False), ("b", "a"): ("works", True),
                                ("b", "c"): ("works", True), ("c", "b"): ("impossible", False)})
        self.assertTrue(found["complete"])
        self.assertGreater(found["boards"][1]["round_trip_s"], 0)
        self.run_on(self.line_of("a"), self.line_of("c"), self.line_of("b"))
        _, ways, _, _ = self.doctor()
        self.assertEqual(ways[("a", "c")], ("works", True))
        self.assertEqual(ways[("c", "a")], ("works", False))
        self.ringpipe("train", run, "--out", "out", *CUT)
        out, _ = self.ringpipe("doctor", "--roster", "lab.yaml", "--keys", "host", "--listen",
                               f"tcp://127.0.0.1:{self.port}")
        self.assertRegex(out, r"b +dials +has dialled, [\d.]+ ms; key fits, ringpipe [\d.]+")
        self.assertRegex(out, r"b +-> c +works   \(a run uses this direction\)")

    def test_doctor_finds_faults(self):
        """A board that is not there, one with another key, one that has not dialled, a busy one."""
        (self.dir / "lab.yaml").write_text("boards:\n" + self.listen("a"))
        host = self.train_on_one()
        states, _, _, _ = self.doctor(code=3)
        self.assertEqual(states, {"a": "busy"})
        host.send_signal(signal.SIGINT)
        self.finish(host, code=130)
        a, c = self.line_of("a"), self.listen("c")
        wrong = c.replace(self.public["c"], self.public["host"])
        nobody = self.line("d", f"tcp://127.0.0.1:{free_port()}")
        self.run_on(a, wrong)
        states, ways, _, _ = self.doctor(code=5)
        self.assertEqual(states, {"a": "there", "c": "refused"})
        self.assertEqual(ways[("a", "c")], ("untried", True))
        self.run_on(a, nobody, self.line("b", "dials"))
        self.dial("b", keys="host")
        states, _, found, err = self.doctor(code=3)
        self.assertGreaterEqual(found["strangers"], 1)
        self.assertEqual(states, {"a": "there", "d": "silent", "b": "not-dialled"})
        self.assertIn("board d: nothing answers", err)
        words = ("doctor", "--roster", "lab.yaml", "--keys", "host")
        self.assertIn("the address to listen at with --listen", self.refused(*words))
        self.assertIn("tcp://HOST:PORT", self.refused(*words, "--listen", "here"))
        self.assertIn("--roster", self.refused("doctor", "--listen", "tcp://127.0.0.1:7"))

    def test_refused(self):
        """What can not work is said before anything is started."""
        a, b, c = (self.line(name, "dials") for name in "abc")
        run = self.run_on(a, b)
        err = self.refused("train", run, "--out", "out")
        self.assertIn("boards 'a' and 'b' are neighbours", err)
        self.assertIn("order the boards", err)
        text = run.read_text()
        run.write_text(text.replace(f", listen: 'tcp://127.0.0.1:{self.port}'", ""))
        self.assertIn("listen: is missing", self.refused("train", run, "--out", "out"))
        self.assertFalse((self.dir / "out").exists())
        agent = {"program": program.AGENT}
        self.assertIn("--listen or --host", self.refused("--keys", "a", **agent))
        words = ("--keys", "a", "--host", f"127.0.0.1:{self.port}")
        self.assertIn("exclude", self.refused(*words, "--listen", "tcp://127.0.0.1:0", **agent))
        self.assertIn("ADDRESS:PORT", self.refused("--keys", "a", "--host", "here", **agent))
        self.ringpipe("keys", "trust", "--dir", "a", "other", self.public["c"])
        err = self.refused(*words, **agent)
        self.assertIn(f"host@127.0.0.1:{self.port}", err)


def sh(*words):
    subprocess.run([str(word) for word in words], check=True, capture_output=True)


class Nat(Case):
    """Three networks in a row: a board, a router that translates its address, host and board."""

    def setUp(self):
        missing = [tool for tool in ("ip", "nft") if not shutil.which(tool)]
        if os.geteuid() != 0 or missing:
            raise unittest.SkipTest(f"needs root, ip and nft; missing: {missing or 'root'}")
        super().setUp()
        mark = f"rp{os.getpid()}"
        self.inside, self.router, self.outside = (f"{mark}{end}" for end in ("i", "r", "o"))
        for space in (self.inside, self.router, self.outside):
            try:
                sh("ip", "netns", "add", space)
            except subprocess.CalledProcessError as error:
                raise unittest.SkipTest(f"no network namespaces: {error.stderr}") from error
            self.addCleanup(sh, "ip", "netns", "del", space)
            self.within(space, "ip", "link", "set", "lo", "up")
        self.join(self.inside, "10.77.1.2/24", "10.77.1.1/24", "0")
        self.join(self.outside, "10.77.2.2/24", "10.77.2.1/24", "1")
        self.within(self.inside, "ip", "route", "add", "default", "via", "10.77.1.1")
        self.within(self.router, "sysctl", "-qw", "net.ipv4.ip_forward=1")
        self.within(self.router, "nft", "add table ip nat; add chain ip nat out { type nat hook "
                    "postrouting priority 100; }; add rule ip nat out oifname r1 masquerade")

    def within(self, space, *words):
        sh("ip", "netns", "exec", space, *words)

    def join(self, space, address, gateway, number):
        sh("ip", "link", "add", "e0", "netns", space, "type", "veth", "peer", "name",
           f"r{number}", "netns", self.router)
        for where, device, own in ((space, "e0", address), (self.router, f"r{number}", gateway)):
            self.within(where, "ip", "addr", "add", own, "dev", device)
            self.within(where, "ip", "link", "set", device, "up")

    def board(self, space, name, *words):
        self.boards[name] = self.start("netns", "exec", space, program.AGENT, "--keys", name,
                                       "--name", name, *words, program="ip")
        return self.boards[name].stdout.readline()

    def test_behind_a_router(self):
        expected = self.local(2)
        reached = subprocess.run(
            ["ip", "netns", "exec", self.outside, "ping", "-c1", "-W1", "10.77.1.2"],
            capture_output=True, check=False).returncode if shutil.which("ping") else 1
        self.assertNotEqual(reached, 0, "nobody outside reaches the inside")
        self.board(self.outside, "a", "--listen", "tcp://10.77.2.2:7000")
        said = self.board(self.inside, "b", "--host", f"10.77.2.2:{self.port}")
        self.assertEqual(said, f"dialling tcp://10.77.2.2:{self.port}\n")
        a, b = self.line("a", "tcp://10.77.2.2:7000"), self.line("b", "dials")
        for out, lines in (("ab", (a, b)), ("ba", (b, a))):
            run = self.run_on(*lines, host="10.77.2.2")
            self.ringpipe("netns", "exec", self.outside, program.RINGPIPE, "train", run, "--out",
                          out, program="ip")
            self.assertEqual(self.weights(out), expected)

    def test_one_direction_works(self):
        """The host reaches both boards, one of them the other: doctor says which."""
        self.board(self.outside, "a", "--listen", "tcp://10.77.2.2:7000")
        self.board(self.inside, "b", "--listen", "tcp://10.77.1.2:7000")
        a, b = self.line("a", "tcp://10.77.2.2:7000"), self.line("b", "tcp://10.77.1.2:7000")
        words = ("netns", "exec", self.router, program.RINGPIPE, "doctor", "--roster", "lab.yaml",
                 "--keys", "host", "--format", "json")
        self.run_on(a, b)
        out, err = self.ringpipe(*words, program="ip", code=3)
        found = json.loads(out)
        self.assertEqual([board["state"] for board in found["boards"]], ["there", "there"])
        self.assertEqual([(link["from"], link["way"], link.get("why")) for link in found["links"]],
                         [("a", "fails", "nothing came within 5 s"), ("b", "works", None)])
        self.assertIn("a cannot reach b", err)
        self.assertIn("b reaches a, so list b first", err)
        self.run_on(b, a)
        out, _ = self.ringpipe(*words, program="ip")
        self.assertTrue(json.loads(out)["complete"])

    def test_an_address_that_nobody_has(self):
        """In a network that this host is in: it is said at once that no machine has it."""
        self.run_on(self.line("a", "tcp://10.77.2.99:7000"))
        _, err = self.ringpipe("netns", "exec", self.router, program.RINGPIPE, "boards", "show",
                               "a", "--roster", "lab.yaml", "--keys", "host",
                               program="ip", code=3)
        self.assertIn("10.77.2.99, tried through r1 (10.77.2.1): no machine there has that address",
                      err)


# What the controller decides is in tests/scenarios. By day: each way to come once.
load_tests = program.few_when_short("Dial.test_same_weights",
                                    "Dial.test_another_key",
                                    "Dial.test_refused",
                                    sanitized=("Nat.test_one_direction_works",))


if __name__ == "__main__":
    program.main()
