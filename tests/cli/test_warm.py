#!/usr/bin/env python3
"""Kernels of a run are built ahead of it, on boards that say so and have an end to it."""
import json
import os
import re
import signal

import enrolment
import program

READY = re.compile(r"2 boards are ready: (\d+) kernels built in [\d.]+ s, (\d+) found in the")
NAMES = ("left", "right")


class Warm(enrolment.Case):
    """Two boards, each with caches of its own that are empty, as after a first boot."""

    cold = True

    def setUp(self):
        super().setUp()
        self.run_path = self.run_file(program.RUN.replace("boards: 2", "roster: lab.yaml"))
        self.addresses = [f"tcp://127.0.0.1:{enrolment.free_port()}" for _ in NAMES]

    def caches(self, name):
        own = {"XDG_CACHE_HOME": str(self.dir / name / "cache"),
               "POCL_CACHE_DIR": str(self.dir / name / "pocl"), "RINGPIPE_BINARIES": ""}
        return own if self.cold else {}

    def enrol_all(self, *words, code=0):
        """Boards that come for the first time; what `boards enrol` says."""
        tokens = self.tokens(*NAMES)
        waiting = self.start(*self.words("--open", *NAMES, *words))
        boards = [self.board(name, token, listen=address, env=self.caches(name))
                  for name, token, address in zip(NAMES, tokens, self.addresses)]
        for board in boards:
            self.line(board, "listening")
        return boards, self.finish(waiting, code=code, seconds=500)

    def serve_one(self, name, address):
        board = self.start("--listen", address, "--keys", name, "--threads", "1",
                           program=program.AGENT, env=self.caches(name))
        self.line(board, "listening")
        return board

    def serve(self):
        return [self.serve_one(*board) for board in zip(NAMES, self.addresses)]

    def stop(self, boards):
        for board in boards:
            board.send_signal(signal.SIGTERM)
            self.finish(board)

    def warm(self, *words, **options):
        return self.ringpipe("boards", "warm", self.run_path, "--keys", "host", *words,
                             **{"seconds": 500, **options})

    def show(self):
        out, _ = self.ringpipe("boards", "show", *NAMES, "--roster", "lab.yaml", "--keys", "host",
                               "--format", "json")
        return [json.loads(line) for line in out.splitlines()]

    def train(self, out, *words):
        """Kernels that its boards have built, and found."""
        _, err = self.ringpipe("train", self.run_path, "--keys", "host", "--out", out, *words,
                               seconds=500)
        said = READY.search(err)
        self.assertTrue(said, err)
        return int(said[1]), int(said[2])

    def test_a_first_boot(self):
        """Enrolled, warmed, and the first run builds nothing; nor does one behind a reboot."""
        # Of this machine's boards: --roster takes over. A cut that is measured may be another one
        # each time.
        cut = "cut: [fc2]"
        plain = self.run_file(program.RUN.replace("cut: auto", cut), name="plain.yaml")
        self.run_path.write_text(self.run_path.read_text().replace("cut: auto", cut))
        boards, (out, err) = self.enrol_all("--run", plain)
        built = re.findall(r"^(\w+): (\d+) kernels built in [\d.]+ s, (\d+) found", out, re.M)
        self.assertEqual(sorted(name for name, _, _ in built), sorted(NAMES), out)
        for _, count, _ in built:
            self.assertGreater(int(count), 0)
        self.assertIn("within 1800 s", err)
        self.assertEqual([said["state"] for said in self.show()], ["hello", "hello"])
        self.stop(boards)
        boards = self.serve()
        built, found = self.train("out")
        self.assertEqual(built, 0)
        self.assertGreater(found, 0)
        out, _ = self.warm("--format", "json")
        result = json.loads(out)
        self.assertEqual(result["status"], "finished")
        self.assertEqual({board["name"] for board in result["boards"]}, set(NAMES))
        self.assertEqual([board["built"] for board in result["boards"]], [0, 0])
        self.stop(boards)

    def test_it_is_seen_and_has_an_end(self):
        boards, _ = self.enrol_all()
        warming = self.start("boards", "warm", self.run_path, "--keys", "host")
        seen = self.wait_for("warming", lambda: [
            said for said in self.show() if said["state"] == "warming"], process=warming)
        self.assertIsNone(seen[0]["run"])
        self.assertGreater(seen[0]["warm_left_s"], 1500)
        self.assertLessEqual(seen[0]["warm_left_s"], 1800)
        out, _ = self.ringpipe("boards", "show", seen[0]["name"], "--roster", "lab.yaml", "--keys",
                               "host")
        if "state        warming" in out:  # it may have ended meanwhile
            self.assertRegex(out, r"timeout in \d+ s")
        warming.send_signal(signal.SIGINT)
        self.finish(warming, code=130)
        self.wait_for("its end", lambda: all(said["state"] == "hello" for said in self.show()))
        _, err = self.warm("--within", "1", code=3)
        self.assertRegex(err, r"board (left|right): the time limit of 1 s for warming is over: "
                              r"\d+ of \d+ kernels are ready and kept; the last one begun is ")
        self.assertEqual([said["state"] for said in self.show()], ["hello", "hello"])
        self.warm()
        self.stop(boards)

    def test_spares(self):
        """A spare has what every place needs, and one that is not there costs nobody else."""
        self.run_path.write_text(self.run_path.read_text().replace("cut: auto", "cut: [fc2]"))
        names = (*NAMES, "extra", "away")
        addresses = [*self.addresses, *(f"tcp://127.0.0.1:{enrolment.free_port()}" for _ in "12")]
        tokens = self.tokens(*names)
        waiting = self.start(*self.words("--open", *names))
        boards = [self.board(name, token, listen=address, env=self.caches(name))
                  for name, token, address in zip(names, tokens, addresses)]
        for board in boards:
            self.line(board, "listening")
        self.finish(waiting, seconds=500)
        ring = ("--set", "ring.spare=[away, extra]")
        self.warm("--set", "ring.where={name: [left, right]}")
        # Nothing is left to build for the ring, and the spares have nothing yet.
        out, err = self.warm(*ring, "--within", "1", "--format", "json", code=3)
        result = json.loads(out)
        self.assertEqual(result["status"], "incomplete")
        self.assertEqual(sorted((row["name"], row["built"]) for row in result["boards"]),
                         [(name, 0) for name in NAMES])
        self.assertEqual([row["name"] for row in result["spares"]], ["away", "extra"])
        for row in result["spares"]:
            self.assertIn("the time limit of 1 s for warming is over", row["missing"])
        self.assertIn("the ring is warm, the spare board away is not", err)
        boards[3].send_signal(signal.SIGTERM)
        self.finish(boards.pop())
        out, err = self.warm(*ring, code=3)
        for name in NAMES:
            self.assertIn(f"{name}: nothing was left to build\n", out)
        places = "(left, right|right, left)"
        self.assertRegex(out, rf"(?m)^away: nothing was built, not for {places}: board away: "
                              r"nothing answers at \S+: .*, and nothing listens at port .*; "
                              r"no hello within 30 s$")
        self.assertRegex(out, r"(?m)^extra: [1-9]\d* kernels built in .*, as a spare for "
                              rf"{places}$")
        self.assertIn("the spare board extra builds the stages of right", err)
        self.assertIn("the ring is warm, the spare board away is not: board away: nothing", err)
        for k, name in enumerate(row["name"] for row in result["boards"]):
            ring = [row["name"] for row in result["boards"]]
            ring[k] = "extra"
            self.stop([boards.pop()])  # so that it has its cache only
            boards.append(self.serve_one("extra", addresses[2]))
            built, found = self.train(name, "--set", f"plan.boards=[{', '.join(ring)}]")
            self.assertEqual(built, 0)
            self.assertGreater(found, 0)
        self.stop(boards)

    def test_a_board_at_work_is_left_alone(self):
        self.cold = False
        boards, _ = self.enrol_all()
        run = self.start("train", self.run_path, "--keys", "host", "--out", "out", *program.LONG)
        log = self.dir / "out/log.jsonl"
        self.wait_for("steps", lambda: program.steps_of(log), seconds=300, process=run)
        _, err = self.warm(code=3)
        self.assertRegex(err, r"(left|right): has a run \(state \w+\)")
        self.assertIn("which warming would end; do it anyway with --force", err)
        steps = len(program.steps_of(log))
        self.wait_for("more steps", lambda: len(program.steps_of(log)) > steps, process=run)
        run.send_signal(signal.SIGINT)
        self.finish(run, code=130)
        summary = json.loads((self.dir / "out/summary.json").read_text())
        self.assertEqual(summary["recovery"], [])
        self.stop(boards)

    def test_bad_words(self):
        self.assertIn("boards warm: expected RUN.yaml", self.refused("boards", "warm"))
        self.assertIn("no-such.yaml", self.refused("boards", "warm", "no-such.yaml"))
        (self.dir / "lab.yaml").write_text("boards: []\n")
        err = self.refused(*self.words("left", "--run", "no-such.yaml"))
        self.assertIn("--run no-such.yaml: cannot be read", err)
        err = self.refused(*self.words("left", "--token", "--run", self.run_path))
        self.assertIn("--token does not wait", err)
        self.assertFalse(os.path.exists(self.dir / "host/tokens"))  # none was made


load_tests = program.few_when_short("Warm.test_a_first_boot", "Warm.test_bad_words")

if __name__ == "__main__":
    program.main()
