#!/usr/bin/env python3
"""Software for boards: signed, on trial, and back by itself when it does not come up."""
import re
import shutil
import signal

import enrolment
import program


HAS_A_VERSION = '#!/bin/sh\n[ "$1" = --version ]\n'


class Update(enrolment.Case):
    """A board that is enrolled, with the key of whoever signs its software."""

    def setUp(self):
        super().setUp()
        self.ringpipe("bundle", "--new-key", "--keys", "host")
        token, = self.tokens("left")
        waiting = self.start(*self.words("--open", "left"))
        board = self.board("a", token)
        self.line(board, "listening")
        self.finish(waiting)
        self.stop(board)
        shutil.copy(self.dir / "host" / "update.key", self.dir / "a")
        self.address = re.search(r"tcp://[^\"]+", (self.dir / "lab.yaml").read_text())[0]

    def stop(self, board):
        board.send_signal(signal.SIGTERM)
        return self.finish(board)

    def bundle(self, release, agent=None, board="pocl-cpu"):
        """Of the agent that is tested, or of a script."""
        tree = self.dir / "tree"
        (tree / "bin").mkdir(parents=True, exist_ok=True)
        if agent:
            (tree / "bin" / "ringpipe-agent").write_text(agent)
            (tree / "bin" / "ringpipe-agent").chmod(0o755)
        else:
            shutil.copy(program.AGENT, tree / "bin" / "ringpipe-agent")
        self.ringpipe("bundle", "tree", "--board", board, "--release", release, "--keys", "host")
        return f"{board}-{release}.rpb"

    def agent(self, *words, **options):
        return self.ringpipe("--slots", "slots", "--keys", "a", "--board", "pocl-cpu",
                             *words, program=program.AGENT, **options)

    def serve(self, settle=60):
        board = self.start("--slots", "slots", "--keys", "a", "--board", "pocl-cpu", "--threads",
                           "1", "--settle", settle, "--listen", self.address,
                           program=program.AGENT, env={"RINGPIPE_BOARDS":
                                                       str(program.SOURCE / "boards")})
        self.line(board, "listening")
        return board

    def state(self):
        text = (self.dir / "slots" / "state").read_text()
        return dict(re.findall(r"^(\w+): (\w+)$", text, re.M))

    def train(self):
        run = self.run_file(program.RUN.replace("boards: 2", "roster: lab.yaml"))
        self.ringpipe("train", run, "--keys", "host", "--out", "out")

    def test_a_release_becomes_good_by_working(self):
        out, _ = self.agent("--install", self.bundle(7))
        self.assertIn("version 7 is on trial in slot a", out)
        board = self.serve(settle=0)
        self.assertEqual(self.state()["good"], "none")  # no host has come yet
        self.train()
        _, err = self.stop(board)
        self.assertIn("version 7 in slot a is good", err)
        self.assertEqual(self.state()["good"], "a")
        self.agent("--revert")
        self.assertEqual(self.state()["good"], "none")

    def test_a_release_that_does_not_start_is_left(self):
        """Three starts, each as a service would make it; the fourth takes what was there before."""
        self.agent("--install", self.bundle(8, HAS_A_VERSION))
        for _ in range(3):
            self.agent("--listen", self.address, code=1)
        board = self.serve()
        _, err = self.stop(board)
        self.assertIn("never reported that it works", err)
        self.assertEqual(self.state()["failed"], "8")
        # One that can not be executed at all is no trial.
        _, err = self.agent("--install", self.bundle(9, "#!/nonexistent\n"), code=5)
        self.assertIn("the agent of release 9 does not start on this board: No such file", err)
        self.assertEqual(self.state()["trial"], "none")
        # Where it could, and can no more, it says so at each start.
        self.agent("--install", self.bundle(10, HAS_A_VERSION))
        slot = self.dir / "slots" / self.state()["trial"] / "bin/ringpipe-agent"
        slot.write_text("#!/nonexistent\n")
        _, err = self.agent("--listen", self.address, code=2)
        self.assertIn("does not start", err)

    def test_what_is_refused(self):
        bundle = self.bundle(7)
        self.agent("--install", bundle)
        self.agent("--revert")
        _, err = self.agent("--install", self.bundle(9, board="rk3588"), code=5)
        self.assertIn("profile rk3588, and this is a pocl-cpu", err)
        # Without --board it is the profile that the agent chooses by itself.
        _, err = self.ringpipe("--slots", "slots", "--keys", "a", "--install", "rk3588-9.rpb",
                               program=program.AGENT, code=5,
                               env={"RINGPIPE_BOARDS": str(program.SOURCE / "boards"),
                                    "RINGPIPE_MACHINE": "a board of no profile"})
        self.assertIn("profile rk3588, and this is a pocl-cpu", err)
        whole = (self.dir / bundle).read_bytes()
        (self.dir / "short.rpb").write_bytes(whole[:-1])
        _, err = self.agent("--install", "short.rpb", code=2)
        self.assertIn("cut off", err)
        (self.dir / "other.rpb").write_bytes(whole[:100] + b"x" + whole[101:])
        _, err = self.agent("--install", "other.rpb", code=5)
        self.assertIn("is not signed by the key", err)
        (self.dir / "a" / "update.key").unlink()
        _, err = self.agent("--install", bundle, code=2)
        self.assertIn("update.key", err)
        self.assertEqual(self.state()["trial"], "none")

    def test_bundle_words(self):
        self.assertIn("expected: bundle", self.refused("bundle", "--keys", "host"))
        self.assertIn("--release N", self.refused("bundle", "host", "--keys", "host"))
        self.assertIn("bin/ringpipe-agent", self.refused(
            "bundle", "host", "--keys", "host", "--board", "x", "--release", 1))
        self.assertIn("not overwritten", self.refused("bundle", "--new-key", "--keys", "host"))
        self.assertIn("need --slots", self.refused("--revert", program=program.AGENT))


if __name__ == "__main__":
    program.main()
