#!/usr/bin/env python3
"""Boards that nobody knows get into a roster by a token."""
import json
import pathlib
import re
import signal
import socket
import time

import enrolment
import program


class Enrol(enrolment.Case):
    def test_from_nothing_to_training(self):
        """Two boards without keys, one host: no key is copied by hand."""
        tokens = self.tokens("left", "right")
        waiting = self.start(*self.words("--open", "left", "right"))
        boards = [self.board(keys, token) for keys, token in zip(("a", "b"), tokens)]
        for board, name in zip(boards, ("left", "right")):
            self.line(board, rf"enrolled as {name} by ")
            self.line(board, "listening")
        out, _ = self.finish(waiting)
        self.assertEqual(sorted(re.findall(r"^(\w+) is enrolled", out, re.M)), ["left", "right"])
        listed, _ = self.ringpipe("boards", "list", "--roster", "lab.yaml")
        own, _ = self.ringpipe("keys", "show", "--dir", "a")
        self.assertIn(own.strip(), (self.dir / "lab.yaml").read_text())
        self.assertEqual(len(re.findall(r"tcp://127\.0\.0\.1:\d+", listed)), 2)
        run = self.run_file(program.RUN.replace("boards: 2", "roster: lab.yaml"))
        self.ringpipe("train", run, "--keys", "host", "--out", "out")
        # A board that starts again asks nobody: the host is on its list.
        self.end(boards[0])
        again = self.board("a", tokens[0])
        self.line(again, "listening")
        for board in (again, boards[1]):
            board.send_signal(signal.SIGTERM)
            self.finish(board)
        self.ringpipe("boards", "forget", "--roster", "lab.yaml", "left")
        self.assertNotIn("left", (self.dir / "lab.yaml").read_text())

    def test_one_token_is_for_one_board(self):
        token, = self.tokens("left")
        waiting = self.start(*self.words("--open", "left"))
        board = self.board("a", token)
        self.line(board, "listening")
        self.finish(waiting)
        # Its answer may have been lost: the same board may ask again, another one not.
        (self.dir / "a" / "trusted").unlink()
        self.end(board)
        waiting = self.start(*self.words("--open", "left", "--wait", "20"))
        other = self.board("b", token)
        _, err = self.finish(other, code=5)
        self.assertIn("a different board has used this token", err)
        board = self.board("a", token)
        self.line(board, "enrolled as left")
        out, _ = self.finish(waiting)
        self.assertIn("(enrolled again)", out)
        self.end(board)

    def test_a_token_that_the_host_does_not_have(self):
        token, = self.tokens("left")
        self.tokens("left")  # takes its place
        waiting = self.start(*self.words("--open", "left"))
        _, err = self.finish(self.board("a", token), code=5)
        self.assertIn("does not accept the token", err)
        self.assertFalse((self.dir / "lab.yaml").exists())
        waiting.send_signal(signal.SIGINT)
        self.finish(waiting, code=130)

    def test_a_service_waits_for_its_host(self):
        """No start that hangs, whatever time the host takes; a refusal is no end, either."""
        self.manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(self.manager.close)
        self.manager.bind(str(self.dir / "manager"))
        self.manager.settimeout(30 * program.SLOWER)
        token, = self.tokens("left")
        self.tokens("right")
        board = self.board("a", token, env={"NOTIFY_SOCKET": str(self.dir / "manager")})
        self.hear(r"EXTEND_TIMEOUT_USEC=\d{8,}\nSTATUS=waiting for tcp://127.0.0.1:\d+ to enrol ")
        waiting = self.start(*self.words("--open", "right"))
        self.hear(r"EXTEND_TIMEOUT_USEC=\d{8,}\nSTATUS=.* does not accept the token \(yet\)")
        waiting.send_signal(signal.SIGINT)
        self.finish(waiting, code=130)
        waiting = self.start(*self.words("--open", "left"))
        self.hear(r"READY=1")
        self.finish(waiting)
        self.end(board)

    def hear(self, pattern):
        """Of a service manager: until somebody says this."""
        said = []
        while not re.match(pattern, said[-1] if said else ""):
            try:
                said.append(self.manager.recv(600).decode())
            except TimeoutError:
                self.fail(f"it did not say {pattern}: {said}")

    def test_a_token_that_has_ended(self):
        token, = self.tokens("left")
        tokens = self.dir / "host" / "tokens"
        ends = int(time.time()) + 3
        tokens.write_text(re.sub(r"ends: \d+", f"ends: {ends}", tokens.read_text()))
        _, err = self.ringpipe(*self.words("--open", "left"), code=3)
        self.assertIn("has ended without being used", err)
        self.assertIn("'left' has no open token", self.refused(*self.words("--open", "left")))

    def test_who_does_not_come(self):
        out, err = self.enrol("left", "--wait", "1", code=3)
        self.assertIn("--enrol rpt1", out)
        self.assertIn("these boards have not enrolled within 1 s: left", err)

    def test_tokens_are_listed_and_withdrawn(self):
        left, _ = self.tokens("left", "right")
        words = ("boards", "enrol", "--keys", "host")
        listed, _ = self.ringpipe(*words, "--list")
        self.assertRegex(listed, r"left +\w{4}-\w{4}-\w{4}-\w{4}  open for 24 h 00 min\nright ")
        self.assertNotIn(left[:24], listed)
        out, _ = self.ringpipe(*words, "--list", "--format", "json")
        found = json.loads(out)["tokens"]
        self.assertEqual([(one["name"], one["state"], one["used_by"]) for one in found],
                         [("left", "open", None), ("right", "open", None)])
        self.assertLess(abs(found[0]["ends"] - time.time() - 24 * 3600), 600)
        err = self.refused(*words, "--withdraw", "left", "middle")
        self.assertIn("unknown token 'middle'; the list has: left right", err)
        self.ringpipe(*words, "--withdraw", "left", found[1]["id"])
        out, _ = self.ringpipe(*words, "--list", "--format", "json")
        self.assertEqual(json.loads(out)["tokens"], [])
        for wrong in (("--list", "left"), ("--withdraw",), ("--list", "--withdraw", "left"),
                      ("--list", "--open")):
            self.assertRegex(self.refused(*words, *wrong),
                             "expected: boards enrol --list|exclude each other")

    def test_the_command_has_real_addresses(self):
        """It works as it was printed."""
        words = ("boards", "enrol", "--roster", "lab.yaml", "--keys", "host", "--token")
        out, _ = self.ringpipe(*words, "--listen", "tcp://0.0.0.0:7900", "left")
        self.assertNotIn("HOST", out)
        self.assertRegex(out, r"--enrol rpt1[0-9a-z]{83}@\d+\.\d+\.\d+\.\d+:7900\n")
        out, _ = self.ringpipe(*words, "--host", "desk.local", "left")
        self.assertRegex(out, r"--enrol rpt1[0-9a-z]{83}@desk\.local:7900\n")
        out, _ = self.ringpipe(*words, "--host", "desk.local:81", "left", "--format", "json")
        self.assertEqual(json.loads(out)["addresses"], ["desk.local:81"])

    def test_the_board_says_whom_it_tries(self):
        """Nobody listens there; the token is in no list of processes."""
        token, = self.tokens("left")
        board = self.board("a", token)
        self.line(board, "this board's fingerprint is")
        command = pathlib.Path(f"/proc/{board.pid}/cmdline").read_bytes().decode()
        self.assertNotIn(token[:12], command)
        self.assertIn("--enrol\0xxxx", command)
        said = self.spoken(board, 2)
        for line in said:
            self.assertRegex(line, rf"enrol: trying {self.door}: the machine is there, and nothing "
                             r"listens at port \d+: is `ringpipe boards enrol` running there\?")
        self.end(board)

    def spoken(self, board, count):
        """Lines of its journal about the host that it tries."""
        found = []
        for line in board.stderr:
            found += [line] if "trying" in line else []
            if len(found) == count:
                return found
        return self.fail(f"it said no more than {found}")

    def test_a_token_in_a_file(self):
        token, = self.tokens("left")
        waiting = self.start(*self.words("--open", "left"))
        file = self.dir / "token"
        file.write_text(f"{token}@{self.door.removeprefix('tcp://')}\n")
        words = ("--listen", f"tcp://127.0.0.1:{enrolment.free_port()}", "--keys", "a",
                 "--threads", "1", "--enrol", "@token")
        file.chmod(0o644)
        _, err = self.ringpipe(*words, program=program.AGENT, code=5)
        self.assertIn("token has mode 644, so that others can use the token: `chmod 600 token`",
                      err)
        file.chmod(0o600)
        board = self.start(*words, program=program.AGENT)
        self.line(board, "enrolled as left")
        self.finish(waiting)
        self.end(board)
        self.assertIn('board: "', (self.dir / "lab.yaml").read_text())
        found, _ = self.ringpipe("boards", "enrol", "--keys", "host", "--list")
        self.assertIn("used by the board with fingerprint", found)

    def test_bad_words(self):
        self.assertIn("expected: boards enrol", self.refused("boards", "enrol", "left"))
        self.assertIn("name 'a b'", self.refused(*self.words("a b")))
        self.assertIn("--listen", self.refused(*self.words("left", "--listen", "here")))
        elsewhere = ("--listen", "tcp://no-such-name.invalid:7900")
        self.assertRegex(self.refused(*self.words("left", *elsewhere)),  # before a token is made
                         "^ringpipe: tcp://no-such-name.invalid:7900: the name .* is unknown here")
        (self.dir / "lab.yaml").write_text("boards: 3\n")
        self.assertIn("lab.yaml:1", self.refused(*self.words("left")))
        for text, said in (("rpt1qqq@127.0.0.1:7", "too short"), ("rpt1qqq", "TOKEN@ADDRESS:PORT"),
                           ("rpk1qqq@127.0.0.1:7", "is not a token"),
                           ("rpt1qqq@HOST:7900", "'HOST:7900' is the manual's example"),
                           ("@no-such-file", "no-such-file: No such file")):
            err = self.refused("--listen", "tcp://127.0.0.1:7000", "--keys", "a", "--enrol", text,
                               program=program.AGENT)
            self.assertIn(said, err)
            self.assertNotIn("qqq", err)
        self.assertFalse((self.dir / "a").exists())


if __name__ == "__main__":
    program.main()
