#!/usr/bin/env python3
"""Memory that the system refuses (RP_FAIL_AT=n: the n-th allocation of a process fails), in the
controller or in one of its agents: a message, an exit code, no hang, and the run can be resumed.

A sample of n, the same each time; RP_TORTURE=all: every n, RP_TORTURE=SEED: another sample."""
import os
import random
import shutil
import time

import program

RUN = program.RUN.replace("train: 256", "train: 128")
SECONDS = 30  # for one run, which takes about half a second
SAMPLES = 8
REFUSED = r"(RP_FAIL_AT|the system has no memory )"
# Stands where the controller looks for its agents: memory is refused to board 1 only.
WRAPPER = """\
#!/bin/sh
unset RP_FAIL_AT
case " $* " in
*" --name 1 "*) [ -z "$AGENT_FAIL_AT" ] || export RP_FAIL_AT="$AGENT_FAIL_AT" ;;
esac
exec {agent} "$@"
"""


class Torture(program.Case):
    def setUp(self):
        super().setUp()
        folder = self.dir / "bin"
        folder.mkdir()
        self.copy = folder / "ringpipe"
        shutil.copy(program.RINGPIPE, self.copy)
        wrapper = folder / "ringpipe-agent"
        wrapper.write_text(WRAPPER.format(agent=program.AGENT), encoding="utf-8")
        wrapper.chmod(0o755)
        self.run_path = self.run_file(RUN)
        self.folders = {
            "RINGPIPE_MODELS": str(program.SOURCE / "host/models"),
            "RINGPIPE_BOARDS": str(program.SOURCE / "boards"),
        }

    def train(self, *words, **refused):
        """Exit code and standard error of a run in which these allocations fail."""
        env = {**self.folders, **{name: str(n) for name, n in refused.items()}}
        process = self.start("train", self.run_path, *words, program=self.copy, env=env)
        _, err = self.finish(process, code=None, seconds=SECONDS)
        return process.returncode, err

    def count(self, who):
        """How many allocations a run makes there."""
        known, most = 1, 1 << 20
        while most - known > 1:
            middle = (known + most) // 2 if most < 1 << 20 else 2 * known
            code, _ = self.train("--out", f"count-{who}-{middle}", **{who: middle})
            known, most = (known, middle) if code == 0 else (middle, most)
        return known

    def chosen(self, count, who):
        seed = os.environ.get("RP_TORTURE", "1")
        if seed == "all":
            return range(1, count + 1)
        print(f"{who}: {SAMPLES} of {count} allocations, RP_TORTURE={seed}")
        # A few allocations depend on time, so the count differs a little between runs.
        return sorted(random.Random(f"{seed} {who}").sample(range(1, count * 9 // 10), SAMPLES))

    def weights(self, out):
        return (self.dir / out / "weights.safetensors").read_bytes()

    def fail_each(self, who):
        self.assertEqual(self.train("--out", "whole")[0], 0)
        for n in self.chosen(self.count(who), who):
            with self.subTest(f"{who}={n}"):
                out = f"out-{who}-{n}"
                begun = time.monotonic()
                code, err = self.train("--out", out, **{who: n})
                self.assertLess(time.monotonic() - begun, SECONDS)
                self.expect_no_agents()
                if code == 0:  # a kernel that can not be read from the cache is built, say
                    log = (self.dir / out / "agent-1.log").read_text() + err
                    self.assertRegex(log, REFUSED)
                    self.assertEqual(self.weights(out), self.weights("whole"))
                    continue
                self.assertEqual(code, 3, err)
                self.assertRegex(err, REFUSED)
                if f"--resume {out}" in err:
                    self.assertEqual(self.train("--resume", out)[0], 0)
                    self.assertEqual(self.weights(out), self.weights("whole"))

    def test_controller(self):
        self.fail_each("RP_FAIL_AT")

    def test_agent(self):
        self.fail_each("AGENT_FAIL_AT")


if __name__ == "__main__":
    program.main()
