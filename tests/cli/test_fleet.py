#!/usr/bin/env python3
"""A roster of a thousand boards: what is said of it, which boards are chosen, and who of them is
there, for which nobody waits a thousand times."""
import itertools
import json
import re
import socket

import enrolment
import program

GROUPS = """\
groups:
  rack-a: {board: rk3588, labels: {site: north, rack: a}}
  rack-b: {board: jetson-nano, labels: {site: north, rack: b}}
  there: {board: pocl-cpu, labels: {site: here}}
boards:
"""
HANG, REFUSE, MUTE = 600, 396, 2  # boards; two agents besides


class Fleet(enrolment.Case):
    """Agents `left` and `right` in the group `there`; the others are addresses of this machine."""

    def setUp(self):
        super().setUp()
        self.keys = itertools.count(1)

    def hole(self, answers):
        """A port at all addresses of this machine that takes connections and says nothing, or whose
        queue is full, so that a connection to it never comes about."""
        door = socket.socket()
        self.addCleanup(door.close)
        door.bind(("0.0.0.0", 0))
        door.listen(64 if answers else 0)
        port = door.getsockname()[1]
        for _ in range(0 if answers else 8):
            filler = socket.socket()
            self.addCleanup(filler.close)
            filler.setblocking(False)
            filler.connect_ex(("127.0.0.1", port))
        return port

    def write_roster(self, lines):
        (self.dir / "lab.yaml").write_text(GROUPS + "".join(lines))

    def entry(self, name, address, group):
        """Each has a key of its own, as Z85."""
        key = f"'{next(self.keys):040}'"
        return f"  - {{name: {name}, group: {group}, address: 'tcp://{address}', key: {key}}}\n"

    def enrol_two(self):
        """With --group; gives their lines."""
        (self.dir / "lab.yaml").write_text(GROUPS.removesuffix("boards:\n"))
        tokens = self.tokens("left", "right", words=("--group", "there"))
        waiting = self.start(*self.words("--open", "left", "right", "--group", "there"))
        boards = [self.board(keys, token) for keys, token in zip(("a", "b"), tokens)]
        for board in boards:
            self.line(board, "listening")
        self.finish(waiting)
        lines = (self.dir / "lab.yaml").read_text().splitlines(keepends=True)
        found = [line for line in lines if 'group: "there"' in line]
        self.assertEqual(len(found), 2)
        return boards, found

    def thousand(self, two):
        """Names n0001 and so on, of which the first are in rack-a."""
        closed = enrolment.free_port()
        hang, mute = self.hole(False), self.hole(True)
        lines = list(two)
        for number in range(HANG + REFUSE + MUTE):
            port = hang if number < HANG else closed if number < HANG + REFUSE else mute
            address = f"127.{1 + number // 250}.1.{1 + number % 250}:{port}"
            lines.append(self.entry(f"n{number:04}", address,
                                   "rack-a" if number < HANG else "rack-b"))
        self.write_roster(lines)

    def list(self, *words, **options):
        out, _ = self.ringpipe("boards", "list", "--roster", "lab.yaml", "--keys", "host", *words,
                               **options)
        return out

    def test_a_thousand_boards(self):
        boards, two = self.enrol_two()
        self.thousand(two)
        found = json.loads(self.list("--ask", "--wait", 5 * program.SLOWER, "--format", "json"))
        self.assertEqual(len(found["boards"]), 1000)
        self.assertEqual(found["states"], {"there": 2, "busy": 0, "old": 0, "refused": 0,
                                           "silent": 998, "not-dialled": 0})
        # Once for those whose machine is silent, once for those that take connections only.
        self.assertEqual(found["waits"], 2)
        self.assertEqual([(g["group"], g["boards"]) for g in found["groups"]],
                         [("there", 2), ("rack-a", HANG), ("rack-b", REFUSE + MUTE)])
        why = {board["name"]: board.get("why") for board in found["boards"]}
        self.assertEqual(why["n0000"], "its machine does not answer")
        self.assertEqual(why[f"n{HANG:04}"], "nothing listens there")
        self.assertEqual(why["n0997"], "something listens there but does not answer")
        left = found["boards"][0]
        self.assertEqual((left["state"], left["board"], left["labels"]),
                         ("there", "pocl-cpu", {"site": "here"}))
        # Those that refuse and those that answer cost no time at all.
        found = json.loads(self.list("--ask", "--where", "group=rack-b,there", "--where",
                                     f"name=left,n{HANG:04}", "--format", "json"))
        self.assertEqual((found["waits"], found["states"]["there"]), (0, 1))
        text = self.list("--ask", "--where", "site=here")
        self.assertRegex(text, r"\Agroup +boards +there +busy ")
        self.assertRegex(text, r"(?m)^there +2 +2 +0 +0 ")
        self.assertRegex(text, r"(?m)^left .*  there, ringpipe \S+  group=there  board=pocl-cpu")
        # A run takes the two, of a roster that is too large for it.
        run = self.run_file(program.RUN.replace("boards: 2",
                                                "roster: lab.yaml, where: {site: here}"))
        self.ringpipe("train", run, "--keys", "host", "--out", "out")
        self.assertIn("site: here", (self.dir / "out/run.yaml").read_text())
        err = self.refused("train", run, "--keys", "host", "--set", "ring={roster: lab.yaml}")
        self.assertIn("1000 boards; over a network at most 64", err)
        doctor, _ = self.ringpipe("doctor", "--roster", "lab.yaml", "--keys", "host", "--where",
                                  "site=here", "--format", "json")
        self.assertTrue(json.loads(doctor)["complete"])
        for board in boards:
            self.end(board)

    def test_without_asking(self):
        """No keys, no network."""
        self.write_roster([self.entry("a", "10.0.0.1:7000", "rack-a"),
                           self.entry("b", "10.0.0.2:7000", "rack-b"),
                           self.entry("c", "10.0.0.3:7000", "rack-b")])
        out, _ = self.ringpipe("boards", "list", "--roster", "lab.yaml")
        self.assertRegex(out, r"(?m)^rack-b +2$")
        self.assertRegex(out, r"(?m)^a +\S+  tcp://10\.0\.0\.1:7000  group=rack-a  board=rk3588"
                              r"  site=north  rack=a$")
        self.assertIn("3 boards", out)
        found = json.loads(self.list("--where", "rack=b", "--format", "json"))
        self.assertEqual([board["name"] for board in found["boards"]], ["b", "c"])
        self.assertNotIn("state", found["boards"][0])

    def test_names(self):
        """One that nobody knows holds up no other."""
        closed = enrolment.free_port()
        self.write_roster([self.entry("ghost", "no-such-board.invalid:7000", "rack-a"),
                           self.entry("here", f"localhost:{closed}", "rack-a")])
        found = json.loads(self.list("--ask", "--wait", "2", "--format", "json"))
        self.assertEqual([(board["state"], board["why"]) for board in found["boards"]],
                         [("silent", "its name has no address"),
                          ("silent", "nothing listens there")])

    def test_forget(self):
        self.write_roster([self.entry(f"n{i}", f"10.0.0.{i}:7000", "rack-b" if i % 3 else "rack-a")
                           for i in range(1, 10)])
        before = (self.dir / "lab.yaml").read_text()
        words = ("boards", "forget", "--roster", "lab.yaml", "--where", "group=rack-b")
        self.assertIn("6 boards would be removed from lab.yaml (n1, ...); confirm with --yes",
                      self.refused(*words))
        self.assertEqual((self.dir / "lab.yaml").read_text(), before)
        _, err = self.ringpipe(*words, "--yes")
        self.assertEqual(err.count("is removed from lab.yaml"), 6)
        left = re.findall(r"name: (n\d)", (self.dir / "lab.yaml").read_text())
        self.assertEqual(left, ["n3", "n6", "n9"])
        self.assertIn("which boards?", self.refused(*words, "n3"))

    def test_what_is_refused(self):
        self.write_roster([self.entry("a", "10.0.0.1:7000", "rack-a"),
                           self.entry("b", "10.0.0.2:7000", "rack-b")])
        bundle = self.dir / "x.rpb"
        bundle.write_bytes(b"x")
        ring = ("--roster", "lab.yaml")
        for words in (("boards", "list", *ring), ("boards", "forget", "--yes", *ring),
                      ("push", bundle, *ring), ("slots", *ring), ("doctor", *ring)):
            err = self.refused(*words, "--where", "rak=a")
            self.assertIn("--where: no board of lab.yaml has a label 'rak'", err)
            err = self.refused(*words, "--where", "rack=a", "--where", "board=jetson-nano")
            self.assertIn("no board of lab.yaml matches: rack=a and board=jetson-nano", err)
        self.assertIn("not both", self.refused("push", bundle, *ring, "a", "--where", "rack=a"))
        self.assertIn("which boards?", self.refused("revert", *ring))
        err = self.refused(*self.words("c", "--group", "rack-c"))
        self.assertIn("unknown group 'rack-c': it is not in `groups`; did you mean 'rack-a'?", err)
        err = self.refused("train", self.run_file(), "--set", "ring={where: {rack: a}}")
        self.assertIn("chooses boards of a roster", err)
        self.write_roster([self.entry("a", "10.0.0.1:7000", "rack-a"),
                           self.entry("b", "10.0.0.2:7000", "rack-b"),
                           self.entry("a", "10.0.0.3:7000", "rack-b")])
        err = self.refused("boards", "list", *ring)
        self.assertIn("lab.yaml:8: boards[2].name: boards 1 and 3 of the list have the "
                      "same name 'a'; the first is in line 6", err)


if __name__ == "__main__":
    program.main()
