#!/usr/bin/env python3
"""A board or a host loses its power at every step of an enrolment that changes a file: the same
start goes on from there, and the board is in the roster once."""
import itertools
import os
import re
import signal

import enrolment
import program

CUT = program.BUILD / "tests" / "cut"
WAS_CUT = 99  # exit code of `cut`
HOWS = ("before",) if os.environ.get("RP_SHORT") else ("before", "torn")


class Cuts(enrolment.Case):
    def setUp(self):
        super().setUp()
        self.cuts = 0

    def cut(self, at, how, program_, *words):
        return self.start(at, how, self.dir, program_, *words, program=CUT)

    def every_cut(self, one):
        """one(how, at) tells whether there was one; the first one without is the last."""
        for how in HOWS:
            with self.subTest(how):
                cuts = next(at for at in itertools.count(1) if not one(how, at)) - 1
                self.assertGreater(cuts, 3)
                self.cuts += cuts
        print(f"{self.cuts} cuts", flush=True)

    def board_words(self, name, token):
        host = self.door.removeprefix("tcp://")
        return ("--listen", f"tcp://127.0.0.1:{enrolment.free_port()}", "--keys", name, "--threads",
                "1", "--enrol", f"{token}@{host}")

    def says(self, process, pattern):
        """False: it was cut before it did."""
        for line in process.stdout:
            if re.search(pattern, line):
                return True
        _, err = self.finish(process, code=None)
        self.assertEqual(process.returncode, WAS_CUT, err)
        return False

    def serves(self, name, token):
        """The same start once more; then the host has the board, with its key, once."""
        board = self.start(*self.board_words(name, token), program=program.AGENT)
        self.line(board, "listening")
        board.send_signal(signal.SIGTERM)
        self.finish(board)
        own, _ = self.ringpipe("keys", "show", "--dir", name)
        roster = (self.dir / "lab.yaml").read_text()
        self.assertEqual(roster.count(own.strip()), 1, roster)
        self.assertEqual(roster.count(f'name: "{name}"'), 1, roster)
        self.ringpipe("boards", "list", "--roster", "lab.yaml")
        (self.dir / "lab.yaml").unlink()  # a port may come again

    def waits(self, name):
        return self.start(*self.words("--open", name, "--wait", "60"))

    def test_board(self):
        def one(how, at):
            name = f"{how}{at}"
            token, = self.tokens(name)
            host = self.waits(name)
            board = self.cut(at, how, program.AGENT, *self.board_words(name, token))
            done = self.says(board, "listening")
            if done:
                board.send_signal(signal.SIGTERM)
                self.end(board)
            if host.poll() is not None:  # it has let the board in, and its answer may be lost
                self.finish(host)
                host = self.waits(name)
            self.serves(name, token)
            host.send_signal(signal.SIGINT)
            self.finish(host, code=None)
            return not done
        self.every_cut(one)

    def test_host(self):
        def one(how, at):
            name = f"{how}{at}"
            token, = self.tokens(name)
            board = self.start(*self.board_words(name, token), program=program.AGENT)
            host = self.cut(at, how, program.RINGPIPE, *self.words("--open", name))
            _, err = self.finish(host, code=None)
            self.assertIn(host.returncode, (0, WAS_CUT), err)
            again = None
            if host.returncode:
                again = self.waits(name)
            self.line(board, "listening")
            board.send_signal(signal.SIGTERM)
            self.finish(board)
            if again:
                again.send_signal(signal.SIGINT)
                self.finish(again, code=None)
            self.serves(name, token)
            return host.returncode == WAS_CUT
        self.every_cut(one)

    def test_token(self):
        """The tokens that there were are there; the one that was asked for is made once more."""
        kept, = self.tokens("kept")

        def one(how, at):
            name = f"{how}{at}"
            host = self.cut(at, how, program.RINGPIPE, *self.words("--token", name))
            _, err = self.finish(host, code=None)
            self.assertIn(host.returncode, (0, WAS_CUT), err)
            self.tokens(name)
            return host.returncode == WAS_CUT
        self.every_cut(one)
        host = self.waits("kept")
        self.serves("kept", kept)
        self.finish(host)


if __name__ == "__main__":
    program.main()
