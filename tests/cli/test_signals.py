#!/usr/bin/env python3
"""However a run ends, no agent outlives it, and it says how to go on. Runs that go on by themselves
are in test_recover.py."""
import json
import os
import signal
import time

import program

STOPS = ("--set", "ring.wait=0")


TRANSLATOR = """\
input: {source: {shape: [6], type: i32}, target: {shape: [6], type: i32}}
layers:
  - {name: from, kind: embedding, from: source, count: tokens, out: 8}
  - {name: to, kind: embedding, from: target, count: tokens, out: 8}
  - {name: sum, kind: add, from: [from, to]}
  - {name: fc, kind: linear, out: classes}
"""
TRANSLATIONS = """\
model: net.yaml
data: {set: pairs, path: ., source: few.txt, target: few.txt, tokens: words}
ring: {boards: 1}
train: {steps: 2, batch: 8, microbatch: 8, seed: 1}
loss: {kind: cross-entropy, ignore: 0}
optimizer: {kind: sgd, lr: 0.05}
schedule: gpipe
"""


def start_as_nohup():
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    os.close(0)


class Signals(program.Case):
    def test_interrupt(self):
        for how in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(how.name):
                out = how.name
                process = self.train_until(out, 2)
                self.assertEqual(len(self.agents()), 2)
                process.send_signal(how)
                _, err = self.finish(process, code=130, seconds=20)
                self.assertIn("ringpipe resume ", err)
                self.expect_no_agents(5)
                self.resumable(out)

    def test_interrupt_of_the_group(self):
        """Ctrl-C on a terminal reaches the agents too."""
        process = self.train_until("out", 2, start_new_session=True)
        os.killpg(process.pid, signal.SIGINT)
        self.finish(process, code=130, seconds=20)
        self.resumable("out")

    def test_nohup_and_a_reader_that_goes(self):
        """A terminal that closes takes the reader of its programs along and sends SIGHUP. What was
        started by `nohup`, here with standard input closed, goes on."""
        process = self.start("train", self.run_file(), "--out", "out", "--set", "train.epochs=30",
                             preexec_fn=start_as_nohup)
        log = self.dir / "out" / "log.jsonl"
        self.wait_for("step 3", lambda: len(program.steps_of(log)) >= 3, process=process)
        process.stderr.close()
        process.stderr = None
        process.send_signal(signal.SIGHUP)
        self.finish(process, code=0)
        self.assertEqual(program.steps_of(log)[-1]["step"], 120)

    def test_closed_descriptors(self):
        """Files of the run do not get the numbers of standard input, output and error."""
        weights = []
        for closed in ((), (0,), (1,), (2,), (0, 1, 2)):
            with self.subTest(closed):
                out = "closed" + "".join(map(str, closed))
                process = self.start("train", self.run_file(), "--out", out,
                                     preexec_fn=lambda some=closed: [*map(os.close, some)])
                self.finish(process, code=0)
                weights.append((self.dir / out / "weights.safetensors").read_bytes())
                self.assertEqual(weights[-1], weights[0])

    def test_hangup(self):
        process = self.train_until("out", 2)
        process.send_signal(signal.SIGHUP)
        self.finish(process, code=130, seconds=20)
        self.resumable("out")

    def test_twice(self):
        """`timeout` signals its program twice, and means it once; a person who does it is tired of
        waiting for the end of the step."""
        for apart, twice in ((0.01, False), (0.4, True)):
            with self.subTest(apart):
                out = f"twice{twice}"
                process = self.train_until(
                    out, 2, "--set", "ring.throttle={forward_op_ms: 100, backward_op_ms: 100}")
                process.send_signal(signal.SIGTERM)
                time.sleep(apart)
                process.send_signal(signal.SIGTERM)
                _, err = self.finish(process, code=130, seconds=60)
                self.assertEqual("interrupted twice" in err, twice, err)
                bubble = json.loads((self.dir / out / "summary.json").read_text())["bubble"]
                self.assertEqual(bubble is None, twice)

    def test_interrupt_while_a_step_decision_is_due(self):
        """Most of the time of such small steps some stage waits for the others' norms."""
        sets = ("ring.boards=3", "train.batch=16", "train.eval_epochs=0")
        words = [word for text in sets for word in ("--set", text)]
        for steps in range(2, 7):
            process = self.train_until(f"out{steps}", steps, *words)
            process.send_signal(signal.SIGINT)
            self.finish(process, code=130, seconds=20)

    def test_interrupt_at_once(self):
        process = self.start("train", self.run_file(), "--out", "out", *program.LONG)
        self.wait_for("an agent", self.agents, process=process)
        process.send_signal(signal.SIGINT)
        self.finish(process, code=130, seconds=20)

    def test_kill_agent(self):
        process = self.train_until("out", 6, *STOPS)
        os.kill(self.agents()[1], signal.SIGKILL)
        _, err = self.finish(process, code=3, seconds=30)
        self.assertIn("ringpipe resume ", err)
        self.expect_no_agents(5)
        self.resumable("out")

    def test_stop_agent(self):
        """An agent that hangs is as dead as one that is gone: no wait is without end."""
        process = self.train_until("out", 2, *STOPS)
        agent = self.agents()[0]
        os.kill(agent, signal.SIGSTOP)
        try:
            self.finish(process, code=3, seconds=55)
        finally:
            if agent in self.agents():
                os.kill(agent, signal.SIGCONT)

    def test_kill_before_the_first_checkpoint(self):
        """Resumable means: from the beginning, when nothing was saved."""
        words = (*program.LONG, *STOPS, "--set", "data.train=60000")
        process = self.start("train", self.run_file(), "--out", "out", *words)
        log = self.dir / "out" / "log.jsonl"
        self.wait_for("a step", lambda: program.steps_of(log), process=process)
        os.kill(self.agents()[0], signal.SIGKILL)
        self.finish(process, code=3, seconds=30)
        bound = ("--set", "train.steps=2", "--set", "data.train=60000")
        self.ringpipe("train", self.run_file(), "--resume", "out", *bound)

    def test_kill_controller(self):
        process = self.train_until("out", 2)
        self.assertEqual(len(self.agents()), 2)
        process.kill()
        self.finish(process, code=-signal.SIGKILL)
        self.expect_no_agents(5)

    def test_folders_of_killed_controllers_go(self):
        """Keys lie in them. Those of a run that lives, and of others, stay."""
        temporary = self.dir / "tmp"
        (temporary / "ringpipe-abcdef").mkdir(parents=True)  # nobody's that we know
        env = {"TMPDIR": str(temporary)}
        killed = self.train_until("a", 2, env=env)
        (left,) = set(temporary.iterdir()) - {temporary / "ringpipe-abcdef"}
        lives = self.train_until("b", 2, env=env)
        self.assertTrue(left.exists())
        killed.kill()
        self.finish(killed, code=-signal.SIGKILL)
        self.assertTrue(left.exists())
        others = set(temporary.iterdir()) - {left}
        self.assertEqual(len(others), 2)
        self.ringpipe("train", self.run_file(), "--out", "c", env=env)
        self.assertEqual(set(temporary.iterdir()), others)
        lives.send_signal(signal.SIGINT)
        self.finish(lives, code=130)
        self.assertEqual([f.name for f in temporary.iterdir()], ["ringpipe-abcdef"])

    def test_interrupted_translations(self):
        """An evaluation says that it has ended early, and prints no result."""
        (self.dir / "net.yaml").write_text(TRANSLATOR)
        words = [f"w{i % 7} w{i % 11} w{i % 5}\n" for i in range(20000)]
        (self.dir / "few.txt").write_text("".join(words[:200]))
        (self.dir / "many.txt").write_text("".join(words))
        self.ringpipe("train", self.run_file(TRANSLATIONS), "--out", "out")
        for more in ((), ("--bleu",)):
            process = self.start("eval", "out", *more, "--set", "data.test_source=many.txt",
                                 "--set", "data.test_target=many.txt")
            self.wait_for("signals", lambda now=process: program.reads_interrupts(now),
                          process=process)
            process.send_signal(signal.SIGINT)
            out, err = self.finish(process, code=130)
            self.assertEqual(out, "")
            self.assertIn("interrupted before all samples were computed", err)

    def resumable(self, out):
        steps = len(program.steps_of(self.dir / out / "log.jsonl"))
        bound = ("--set", "train.epochs=1000", "--set", f"train.steps={steps + 40}")
        self.ringpipe("train", self.run_file(), "--resume", out, *bound)
        self.assertTrue((self.dir / out / "weights.safetensors").exists())


# Under a sanitizer, which makes a run slow: each signal once.
load_tests = program.few_when_short("Signals.test_interrupt", "Signals.test_kill_agent",
                                    "Signals.test_kill_controller")


if __name__ == "__main__":
    program.main()
