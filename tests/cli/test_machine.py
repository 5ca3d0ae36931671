#!/usr/bin/env python3
"""Faults of the machine: no device, folders that cannot be written, ports in use."""
import os
import socket
import unittest

import program


class Device(program.Case):
    def test_no_driver(self):
        nothing = {"OCL_ICD_VENDORS": str(self.dir / "nothing")}
        err = self.refused("train", self.run_file(), "--out", "out", code=4, env=nothing)
        self.assertIn("pocl-opencl-icd", err)

    def test_a_home_that_cannot_be_written(self):
        """PoCL offers no device then. A file stands in for such a home: root may write anywhere."""
        home = self.dir / "home"
        home.write_text("")
        env = {"HOME": str(home), "XDG_CACHE_HOME": "", "TMPDIR": str(self.dir)}
        err = self.refused("doctor", code=4, env={**env, "POCL_CACHE_DIR": str(home)})
        self.assertIn(f"{home} is not writable", err)
        self.assertIn("set POCL_CACHE_DIR or XDG_CACHE_HOME", err)
        _, err = self.ringpipe("doctor", env=env)
        self.assertRegex(err, f"{home}/.cache is not writable: compiled kernels are kept in "
                              f"{self.dir}/ringpipe-cache-\\d+")

    def test_agent_without_driver(self):
        self.ringpipe("keys", "new", "--dir", "keys")
        words = ("--listen", "tcp://127.0.0.1:0", "--keys", "keys")
        nothing = {"OCL_ICD_VENDORS": str(self.dir / "nothing")}
        err = self.refused(*words, code=4, program=program.AGENT, env=nothing)
        self.assertIn("pocl-opencl-icd", err)


class Folders(program.Case):
    def test_out_below_a_file(self):
        (self.dir / "file").write_text("")
        err = self.refused("train", self.run_file(), "--out", "file/out")
        self.assertIn("file/out", err)

    def test_out_not_writable(self):
        folder = self.dir / "closed"
        folder.mkdir(mode=0o555)
        if os.access(folder, os.W_OK):
            # Root may write anywhere but here.
            folder = "/proc/ringpipe"
        err = self.refused("train", self.run_file(), "--out", f"{folder}/out")
        self.assertIn(str(folder), err)

    def test_out_of_another_run(self):
        """A finished run is not overwritten."""
        self.ringpipe("train", self.run_file(), "--out", "out", "--set", "train.steps=1")
        error = self.refused("train", self.run_file(), "--out", "out")
        self.assertIn("continue it with `ringpipe resume out`", error)

    def test_out_over_files_of_others(self):
        """Whatever is written to --out replaces only what the same verb has made."""
        run = self.run_file()
        text = run.read_text()
        weights = self.dir / "weights.safetensors"
        program.write_safetensors(weights, {"w": ((1,), (1.0,))})
        before = weights.read_bytes()
        run.rename(self.dir / "mine.yaml")
        error = self.refused("train", "mine.yaml", "--out", ".")
        self.assertIn("weights.safetensors exists already", error)
        for words in (("--dry-run",), ("--set", "lanes={count: 2}")):
            self.assertIn("weights.safetensors exists already", self.refused(
                "train", "mine.yaml", "--out", ".", *words))
        for verb in ("plan", "profile"):
            error = self.refused(verb, "mine.yaml", "--out", "mine.yaml")
            self.assertIn(f"already exists and is not a {verb}", error)
        (self.dir / "report.html").write_text("mine")
        (self.dir / "compare.yaml").write_text("base: mine.yaml\nseeds: [1]\nbaseline: plain\n"
                                               "methods: {plain: {}}\n")
        error = self.refused("lab", "compare.yaml", "--out", ".")
        self.assertIn("report.html exists", error)
        self.assertEqual(weights.read_bytes(), before)
        self.assertEqual((self.dir / "mine.yaml").read_text(), text)
        self.assertEqual((self.dir / "report.html").read_text(), "mine")

    def test_resume_of_nothing(self):
        self.assertIn("absent", self.refused("train", self.run_file(), "--resume", "absent"))


class Ports(program.Case):
    def agent(self, listen, code):
        self.ringpipe("keys", "new", "--dir", "keys")
        words = ("--listen", listen, "--keys", "keys")
        return self.refused(*words, code=code, program=program.AGENT)

    def test_port_in_use(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            err = self.agent(f"tcp://127.0.0.1:{port}", code=2)
            self.assertIn(str(port), err)
            self.assertRegex(err.lower(), "in use")

    def test_not_an_address(self):
        self.assertIn("nonsense", self.agent("nonsense", code=2))

    def test_unknown_board(self):
        self.ringpipe("keys", "new", "--dir", "keys")
        words = ("--listen", "tcp://127.0.0.1:0", "--board", "no-board", "--keys", "keys")
        self.assertIn("no-board", self.refused(*words, program=program.AGENT))


if __name__ == "__main__":
    program.main()
