#!/usr/bin/env python3
"""Software that a host brings to boards, and what becomes of it."""
import json
import re
import shutil
import signal
import subprocess

import enrolment
import program

# An agent that is another one: it says so in its journal, and goes on as the one that is tested.
NEW = '#!/bin/sh\necho "the new one" >&2\nexec "{agent}" "$@"\n'
# One that has a version, and no more.
BAD = '#!/bin/sh\n[ "$1" = --version ]\n'


class Software(enrolment.Case):
    """Boards that are enrolled and keep the key of whoever signs their software."""

    NAMES = ("left",)

    def setUp(self):
        super().setUp()
        self.ringpipe("bundle", "--new-key", "--keys", "host")
        tokens = self.tokens(*self.NAMES)
        waiting = self.start(*self.words("--open", *self.NAMES))
        boards = [self.board(name, token, f"tcp://127.0.0.1:{program.ports().find(8)}")
                  for name, token in zip(self.NAMES, tokens)]
        for board in boards:
            self.line(board, "listening")
        self.finish(waiting)
        for name, board in zip(self.NAMES, boards):
            board.send_signal(signal.SIGTERM)
            self.finish(board)
            shutil.copy(self.dir / "host" / "update.key", self.dir / name)
        found = re.findall(r'name: "(\w+)", address: "([^"]+)"',
                           (self.dir / "lab.yaml").read_text())
        self.addresses = dict(found)
        self.address = self.addresses["left"]

    def bundle(self, release, agent=NEW):
        """Of a script, or of a program's bytes."""
        path = self.dir / "tree" / "bin" / "ringpipe-agent"
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(agent, str):
            agent = agent.format(agent=program.AGENT).encode()
        path.write_bytes(agent)
        path.chmod(0o755)
        self.ringpipe("bundle", "tree", "--board", "pocl-cpu", "--release", release,
                      "--keys", "host")
        return f"pocl-cpu-{release}.rpb"

    def serve(self, name="left"):
        board = self.start("--slots", f"slots-{name}", "--keys", name, "--board", "pocl-cpu",
                           "--threads", "1", "--settle", "2", "--listen", self.addresses[name],
                           program=program.AGENT)
        self.line(board, "listening")
        return board

    def talk(self, *words, **options):
        return self.ringpipe(*words, "--roster", "lab.yaml", "--keys", "host", **options)

    def slots(self, *names):
        out, _ = self.talk("slots", *names, "--format", "json")
        return json.loads(out)


class Push(Software):
    def test_a_release_comes_and_goes(self):
        board = self.serve()
        out, _ = self.talk("push", self.bundle(7), "left")
        self.assertIn("release 7 is good", out)
        self.line(board, "listening")  # the new one, in the same process
        run = self.run_file(program.RUN.replace("boards: 2", "roster: lab.yaml"))
        self.ringpipe("train", run, "--keys", "host", "--out", "out")
        self.assertEqual(self.slots()["release"], 7)
        _, err = self.talk("push", "pocl-cpu-7.rpb", code=5)
        self.assertIn("expected a newer one", err)
        self.talk("revert", "left")
        self.line(board, "listening")
        found = self.slots()
        self.assertEqual((found["release"], found["failed"]), (0, 7))
        board.send_signal(signal.SIGTERM)
        _, err = self.finish(board)
        self.assertEqual(err.count("the new one"), 1)

    def test_a_release_that_does_not_come_up_is_left(self):
        """The board's service starts it again and again, as systemd does."""
        service = self.dir / "service"
        service.write_text(
            "#!/bin/sh\ntrap 'kill $agent; exit' TERM\n"
            f'while :; do "{program.AGENT}" --slots slots-left --keys left --board pocl-cpu '
            f'--threads 1 --settle 2 --listen {self.address} & agent=$!; wait $agent; '
            'sleep 0.1; done\n')
        board = self.start(service, program="/bin/sh")
        self.line(board, "listening")
        _, err = self.talk("push", self.bundle(8, BAD), code=3)
        self.assertIn("release 8 failed its trial; the board has returned to the system's own", err)
        self.assertEqual(self.slots()["failed"], 8)
        board.send_signal(signal.SIGTERM)
        self.finish(board, code=None)

    def test_one_that_can_not_be_started_is_no_trial(self):
        """It needs a library that the board does not have, or no program can be it at all."""
        program_bytes = program.AGENT.read_bytes()
        needs, count = re.subn(rb"libsodium\.so\.\d\d\0", b"libsodium.so.9x\0", program_bytes)
        self.assertGreater(count, 0)
        board = self.serve()
        _, err = self.talk("push", self.bundle(7, needs), "left", code=5)
        self.assertRegex(err, r"left refuses: the agent of release 7 does not start on this board: "
                              r".*libsodium\.so\.9x: cannot open shared object file")
        other = bytearray(program_bytes)
        other[18:20] = b"\x02\x00"  # e_machine: a processor that nobody here has
        _, err = self.talk("push", self.bundle(8, bytes(other)), "left", code=5)
        self.assertIn("does not start on this board: Exec format error", err)
        _, err = self.talk("push", self.bundle(9, "#!/bin/sh\nexit 1\n"), "left", code=5)
        self.assertIn("ended with an error, without a message", err)
        found = self.slots()
        self.assertEqual((found["release"], found["trial_release"]), (0, 0))
        # The board has not begun anew, and takes the next one.
        out, _ = self.talk("push", self.bundle(10), "left")
        self.assertIn("release 10 is good", out)
        board.send_signal(signal.SIGTERM)
        self.finish(board)

    def test_a_push_goes_on_where_it_was(self):
        bundle = self.bundle(7)
        path = self.dir / bundle
        board = self.serve()
        big = self.dir / "tree" / "share"
        big.write_bytes(bytes(range(256)) * 40000)  # ten million bytes
        bundle = self.bundle(8)
        push = self.start("push", bundle, "--mbit", "20", "--roster", "lab.yaml", "--keys", "host")
        path = None
        while path is None or path.stat().st_size < 2_000_000:
            self.assertIsNone(push.poll())
            path = next((self.dir / "slots-left").glob("incoming-*"), None)
        push.send_signal(signal.SIGINT)
        self.finish(push, code=130)
        self.assertIn("incoming-", str(next((self.dir / "slots-left").iterdir())) + str(path))
        self.talk("push", bundle, "--no-wait")
        self.line(board, "listening")
        self.assertFalse(list((self.dir / "slots-left").glob("incoming-*")))
        board.send_signal(signal.SIGTERM)
        _, err = self.finish(board)
        have = [int(n) for n in re.findall(r"bytes, of which (\d+) are already stored", err)]
        self.assertEqual(have[0], 0)
        self.assertGreater(have[1], 1_900_000)

    def test_what_does_not_fit_is_refused_at_once(self):
        """A disk with 16 MiB to spare and little more: the board has them as it had them before."""
        slots = self.small_disk("slots-left", "20m")
        board = self.serve()
        tree = self.dir / "tree"
        tree.mkdir()
        (tree / "big").write_bytes(bytes(range(256)) * 12000)  # three million bytes, and twice that
        _, err = self.talk("push", self.bundle(7), code=5)
        self.assertRegex(err, r"left refuses: the bundle does not fit on the disk of slots-left: "
                              r"it needs 60\d\d KiB, but 2\d{4} are free, of which 16384 must ")
        self.assertFalse(list(slots.glob("incoming-*")))
        (tree / "big").unlink()
        self.talk("push", self.bundle(8), "--no-wait")
        self.line(board, "listening")
        board.send_signal(signal.SIGTERM)
        self.finish(board)

    def test_what_is_refused(self):
        bundle = self.bundle(7)
        _, err = self.talk("push", bundle, code=3)
        self.assertIn("left: nothing answers at tcp://", err)
        self.assertIn("nothing listens at port", err)
        _, err = self.talk("push", bundle, "right", code=2)
        self.assertIn("board 'right' is not in the roster", err)
        self.assertIn("--roster FILE", self.refused("push", bundle))
        board = self.start("--listen", self.address, "--keys", "left", "--threads", "1",
                           program=program.AGENT)
        self.line(board, "listening")
        _, err = self.talk("push", bundle, code=5)
        self.assertIn("runs without --slots", err)
        board.send_signal(signal.SIGTERM)
        self.finish(board)
        board = self.serve()
        whole = (self.dir / bundle).read_bytes()
        (self.dir / "other.rpb").write_bytes(whole[:100] + b"x" + whole[101:])
        _, err = self.talk("push", "other.rpb", code=5)
        self.assertIn("is not signed by the key", err)
        (self.dir / "empty.rpb").write_bytes(b"")
        _, err = self.talk("push", "empty.rpb", code=5)
        self.assertIn("the bundle is empty or too large", err)
        self.assertEqual(self.slots()["trial_release"], 0)
        # A board that trains is left alone.
        run = self.run_file(program.RUN.replace("boards: 2", "roster: lab.yaml"))
        train = self.start("train", run, "--keys", "host", "--out", "out", *program.LONG)
        for line in train.stderr:
            if "step" in line:
                break
        _, err = self.talk("push", bundle, code=3)
        self.assertRegex(err, r"left: is busy: it is held by \S+: out \(.*\) with run [0-9a-f]{16}")
        train.send_signal(signal.SIGINT)
        self.finish(train, code=130)
        board.send_signal(signal.SIGTERM)
        self.finish(board)


class Several(Software):
    NAMES = ("left", "right")

    def test_boards_get_it_at_the_same_time(self):
        boards = [self.serve(name) for name in self.NAMES]
        push = self.start("push", self.bundle(7), "--at-once", "2", "--roster", "lab.yaml",
                          "--keys", "host", stderr=subprocess.STDOUT)
        out, _ = self.finish(push)  # into a pipe: lines, in the order in which they were written
        self.assertNotIn("\r", out)
        good = min(out.index(f"{name:16}  release 7 is good") for name in self.NAMES)
        for name in self.NAMES:
            for said in ("0.0 of 0.0 MB", "received all 0.0 MB; verifying",
                         "release 7 is on trial; waiting for the end of the trial"):
                self.assertLess(out.index(f"{name}: {said}"), good, out)
        for board in boards:
            board.send_signal(signal.SIGTERM)
            self.finish(board)
        self.assertIn("from 0 to 64", self.refused("push", "x", "--at-once", "65"))


class Rolling(Software):
    """Two boards in a ring and a spare one: all get their software while the ring trains."""

    NAMES = ("left", "right", "spare")

    def steps(self):
        return program.steps_of(self.dir / "out/log.jsonl")

    def take_place(self, name, train):
        said = f"the spare board {name} takes its place"
        log = self.dir / "out/log.jsonl"
        self.wait_for(said, lambda: said in log.read_text(), process=train, seconds=90)
        done = len(self.steps())
        self.wait_for("steps", lambda: len(self.steps()) > done + 3, process=train)

    def push(self, name, bundle):
        out, _ = self.talk("push", bundle, name, seconds=120)
        self.assertIn("release 7 is good", out)

    def test_a_ring_is_updated_while_it_trains(self):
        boards = {name: self.serve(name) for name in self.NAMES}
        bundle = self.bundle(7)
        run = self.run_file(program.RUN.replace("cut: auto", "cut: [fc2]"))
        ring = "ring={roster: lab.yaml, spare: [spare], wait: 600, "\
               "throttle: {forward_ms: 20, backward_ms: 20}}"
        train = self.start("train", run, "--keys", "host", "--out", "out", "--set", ring,
                           "--set", "train.checkpoint_steps=20", *program.LONG)
        log = self.dir / "out/log.jsonl"
        self.wait_for("steps", lambda: len(program.steps_of(log)) > 3, process=train)
        _, err = self.talk("push", bundle, "left", code=3)
        self.assertIn("is busy: it is held by", err)
        self.push("spare", bundle)
        for name, other in (("left", "spare"), ("right", "left")):
            boards[name].send_signal(signal.SIGTERM)
            self.finish(boards[name], code=None)
            self.take_place(other, train)
            boards[name] = self.serve(name)
            self.push(name, bundle)
        train.send_signal(signal.SIGINT)
        self.finish(train, code=130)
        for name in self.NAMES:
            self.assertEqual(self.slots(name)["release"], 7)
        steps = len(self.steps()) + 4
        more = ("--set", f"train.steps={steps}", *program.LONG)
        self.ringpipe("resume", "out", "--set", f"train.steps={steps}", "--keys", "host")
        self.assertEqual([r["step"] for r in self.steps()], list(range(1, steps + 1)))
        self.ringpipe("train", run, "--out", "alone", *more)
        alone, updated = ((self.dir / out / "weights.safetensors").read_bytes()
                          for out in ("alone", "out"))
        self.assertTrue(alone == updated, "other weights")
        for board in boards.values():
            board.send_signal(signal.SIGTERM)
            self.finish(board)


if __name__ == "__main__":
    program.main()
