#!/usr/bin/env python3
"""What the operator of a board reads: runs and peers that come and go, and why; no steps."""
import json
import re
import signal

import program
import test_keys

BEGINS = (r"run ([0-9a-f]{16}), term (\d+): board (\w+), (\d) of 2; stage (\d): (\w+) to (\w+) "
          r"\((\d) layers\); [\d.]+ MiB of device memory, built in [\d.]+ s")


class Journal(test_keys.Case):
    def setUp(self):
        super().setUp()
        controller = self.new("controller")
        self.boards, lines = {}, ""
        for name in ("one", "two"):
            public = self.new(name)
            self.ringpipe("keys", "trust", "--dir", name, "controller", controller)
            process, address = self.agent(name, "--name", name)
            self.boards[name] = process
            lines += f"  - {{name: {name}, address: '{address}', key: {public}}}\n"
        (self.dir / "lab.yaml").write_text("boards:\n" + lines)
        self.run_yaml = self.run_file(program.RUN.replace("boards: 2", "roster: lab.yaml")
                                      .replace("cut: auto", "cut: [fc2]") + "keys: controller\n")

    def train(self, out, *words, **options):
        return self.ringpipe("train", self.run_yaml, "--out", out, *words, **options)

    def journals(self):
        said = {}
        for name, process in self.boards.items():
            process.send_signal(signal.SIGTERM)
            said[name] = self.finish(process)[1]
        return said

    def test_runs(self):
        """The same few lines for a run of 4 steps and for one of 400."""
        self.train("short")
        self.train("long", "--set", "train.epochs=100", "--set", "train.checkpoint_steps=1",
                   "--set", "train.eval_epochs=10")
        runs = [json.loads((self.dir / out / "identity.json").read_text())
                for out in ("short", "long")]
        for name, text in self.journals().items():
            self.assertEqual(len(re.findall(r"a host \(ringpipe [\d.]+\) says hello", text)), 2)
            self.assertEqual(len(re.findall("driver .* memory for runs: [1-9]", text)), 1)
            other = "two" if name == "one" else "one"
            self.assertEqual(text.count(f"board {other} is connected"), 2)
            stage = {"one": ("one", "1", "0", "fc1", "relu1", "2"),
                     "two": ("two", "2", "1", "fc2", "fc3", "3")}[name]
            for run, found in zip(runs, re.findall(BEGINS, text), strict=True):
                self.assertEqual(found, (run["run"], str(run["term"]), *stage))
            for run, microbatches in zip(runs, (16, 1600)):
                begin = f"run {run['run']}, term {run['term']}"
                self.assertEqual(text.count(f"{begin}: trains from step 0 on"), 1)
                self.assertRegex(text, begin + f" ends after [\\d.]+ s and {microbatches} "
                                 "microbatches: the host has ended the run")
            self.assertLess(len(text.splitlines()), 20, text)
            self.assertTrue(text.rstrip().endswith("a signal ends the agent"))

    def test_why_a_run_ends(self):
        """A host that was killed and comes again; a fault, with its text; on both boards."""
        host = self.start("train", self.run_yaml, "--out", "killed", *program.LONG)
        log = self.dir / "killed" / "log.jsonl"
        self.wait_for("step 5", lambda: len(program.steps_of(log)) >= 5, process=host)
        host.kill()
        host.communicate()
        self.train("out", "--set", "cut=auto")
        # The host itself finds that nothing helps; without its means, the boards say it.
        self.train("limited", "--set", "ring.memory_mib=1", "--set", "recompute=none",
                   "--set", "offload=none", code=2)
        said = self.journals()
        for text in said.values():
            self.assertRegex(text, r"microbatches: a host says hello")
        self.assertRegex(said["one"],
                         "a profile of 5 layers ends after .* s: its layers are measured")
        self.assertRegex(said["one"], r"ends .*: stage 0 needs [\d.]+ MiB of device memory")
        for text in said.values():
            ends = len(re.findall(r"run [0-9a-f]{16}, term \d+ ends ", text))
            self.assertEqual(ends, 3, text)

    def test_nobody_is_trusted(self):
        self.new("alone")
        process, _ = self.agent("alone")
        process.send_signal(signal.SIGTERM)
        self.assertIn("`ringpipe keys trust NAME KEY`", self.finish(process)[1])
        self.assertNotIn("no host is trusted", "".join(self.journals().values()))


if __name__ == "__main__":
    program.main()
