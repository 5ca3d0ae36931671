#!/usr/bin/env python3
"""A ring of two agents, one of them of another architecture under emulation, each with its own
machine's PoCL: it trains to the very bytes of the ring whose agents are both this machine's.

ring.py BUILD SYSROOT    BUILD: the cross build's folder; RP_BUILD_DIR: this machine's"""
import os
import re
import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cli"))
import program  # noqa: E402
import test_keys  # noqa: E402

CROSS, SYSROOT = (Path(word).resolve() for word in sys.argv[1:3])
EMULATE = program.SOURCE / "packaging" / "cross" / "emulate"
MACHINE = "aarch64"
# A convolution, batch normalisation and a loss on the stage that is emulated, or on the other one.
RUN = program.RUN.replace("model: mlp", "model: cnn-small").replace("epochs: 1", "steps: 6")


class Ring(test_keys.Case):
    def emulated(self, *words):
        return ("-n", "5", str(EMULATE), MACHINE, str(SYSROOT), str(CROSS / "bin/ringpipe-agent"),
                *words)

    def dial(self, name, emulated):
        """A running agent with keys of its own; gives its line of a roster."""
        public = self.new(name)
        self.ringpipe("keys", "trust", "--dir", name, "controller", self.controller)
        words = ("--name", name, "--keys", str(self.dir / name),
                 "--listen", f"tcp://127.0.0.1:{program.ports().find(8)}")
        agent = program.AGENT
        if emulated:
            agent, words = "/usr/bin/nice", self.emulated(*words)
        # What PoCL of the other machine has compiled is kept beside what it was compiled for.
        cache = {}
        if emulated:
            cache = {"POCL_CACHE_DIR": str(CROSS / "cache/pocl"),
                     "XDG_CACHE_HOME": str(CROSS / "cache")}
        with open(self.dir / f"{name}.log", "w", encoding="utf-8") as log:
            process = self.start(*words, program=agent, stderr=log, env=cache)
        for line in process.stdout:
            found = re.search(r"tcp://127\.0\.0\.1:\d+", line)
            if found:
                return f"  - {{name: {name}, address: '{found.group()}', key: {public}}}\n"
        return self.fail(f"{name} does not listen:\n" + (self.dir / f"{name}.log").read_text())

    def train(self, out, *emulated):
        """The weights of two boards; `emulated`: those of the other architecture."""
        lines = "".join(self.dial(f"{out}-{i}", i in emulated) for i in range(2))
        (self.dir / f"{out}.yaml").write_text("boards:\n" + lines)
        run = self.run_file(RUN.replace("boards: 2", f"roster: {out}.yaml, wait: 300")
                            + "keys: controller\n", f"run-{out}.yaml")
        self.ringpipe("train", run, "--out", out, seconds=900)
        return (self.dir / out / "weights.safetensors").read_bytes()

    def test_same_bytes(self):
        self.controller = self.new("controller")
        said = subprocess.run([*map(str, ("/usr/bin/nice", *self.emulated("--version")))],
                              capture_output=True, text=True, timeout=60, check=True).stdout
        self.assertIn("ringpipe-agent", said)
        ours = self.train("ours")
        for board in (0, 1):
            mixed = self.train(f"mixed{board}", board)
            self.assertEqual(len(mixed), len(ours))
            self.assertTrue(mixed == ours, f"other weights with board {board} emulated")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    del sys.argv[1:]
    if not os.access(CROSS / "bin/ringpipe-agent", os.X_OK):
        sys.exit(f"{CROSS}/bin/ringpipe-agent is not there: ./bootstrap cross arm64")
    unittest.main()
