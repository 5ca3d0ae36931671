#!/usr/bin/env python3
"""Wrong words on the command line: exit 2, a message that helps, nothing on standard output."""
import os
import signal
import subprocess

import program

VERBS = ("train", "eval", "lab", "draw", "tune", "keys", "data", "inspect")


class Usage(program.Case):
    def test_no_verb(self):
        self.assertIn("train", self.refused())

    def test_unknown_verb(self):
        self.assertIn("trian", self.refused("trian", "run.yaml"))

    def test_unknown_flag(self):
        for verb in VERBS:
            with self.subTest(verb):
                self.assertIn("--wrong", self.refused(verb, "--wrong"))

    def test_meant(self):
        """A wrong word is answered with the one that was meant, in one line."""
        err = self.refused("trian", "run.yaml")
        self.assertIn("did you mean 'train'?", err)
        self.assertLess(len(err.splitlines()), 3, err)
        self.assertIn(" doctor", self.refused("xyzzy"))
        err = self.refused("train", self.run_file(), "--ot", "x", "--formt=json")
        self.assertIn("--formt", self.refused("train", self.run_file(), "--formt=json"))
        self.assertIn("did you mean '--out'?", err)
        self.assertIn("--minutes", self.refused("tune", "--wrong"))
        # A value is no option; names are not abbreviated.
        err = self.refused("train", "absent.yaml", "--out", "--formt", "--dry-run")
        self.assertIn("absent.yaml", err)
        self.assertIn("did you mean '--dry-run'?", self.refused("train", "absent.yaml", "--dry"))
        self.assertIn("did you mean 'boards list'?", self.refused("boards", "lst"))
        self.assertIn(" reboot", self.refused("boards", "--roster", "x"))

    def test_option_of_another_verb(self):
        """Each is refused with the name of the verb; test_options.c has all of them."""
        for verb, words, option in (("boards list", ("--roster", "x"), "--dial"),
                                    ("train", ("run.yaml",), "--seeds"),
                                    ("keys new", (), "--board"),
                                    ("data fetch", ("mnist", "--to", "x"), "--out")):
            err = self.refused(*verb.split(), *words, option, "x")
            self.assertRegex(err, rf"^ringpipe: {verb}: no option '{option}'")
        err = self.refused("boards", "enrol", "x", "--token", "--open")
        self.assertIn("boards enrol: --token and --open exclude each other", err)
        self.assertIn("--roster FILE.yaml is missing", self.refused("boards", "list"))

    def test_form_of_messages(self):
        """As of every program: its name, the place, what is wrong; no clock, no room."""
        run = self.run_file(program.RUN + "surprise: 1\n")
        for words in (("train", run), ("draw", "gpip"), ("inspect", "absent"), ("eval", run)):
            with self.subTest(words[0]):
                for line in self.refused(*words).splitlines():
                    self.assertRegex(line, "^ringpipe: ")
                    self.assertNotRegex(line, r"\d\d:\d\d:\d\d|error:")
        self.assertRegex(self.refused("train", run), r"^ringpipe: \S*run\.yaml:9: ")
        _, err = self.ringpipe("train", run, code=2, env={"RP_LOG": "debug"})
        self.assertRegex(err, r"(?m)^\d\d:\d\d:\d\d\.\d+ base error: .*run\.yaml:9: ")

    def test_flag_without_value(self):
        self.assertIn("--out", self.refused("train", self.run_file(), "--out"))

    def test_word_too_many(self):
        self.assertIn("surplus", self.refused("inspect", "a.safetensors", "surplus"))

    def test_no_run_file(self):
        self.assertIn("RUN.yaml", self.refused("train"))
        self.assertIn("absent.yaml", self.refused("train", "absent.yaml"))

    def test_unknown_format(self):
        self.assertIn("xml", self.refused("train", self.run_file(), "--format", "xml"))

    def test_environment(self):
        """A variable with a value that cannot be used is named."""
        for name, value in (("RP_LOG", "loud"), ("RINGPIPE_BOARDS", "/none/boards"),
                            ("RINGPIPE_MODELS", "/none/models"), ("RINGPIPE_LINKS", "/none/links")):
            _, err = self.ringpipe("list", env={name: value})
            self.assertIn(f"ringpipe: warning: {name} is '{value}'", err)
        err = self.refused("train", self.run_file(), "--out", "out", env={"TMPDIR": "/none"})
        self.assertIn("TMPDIR names the folder", err)

    def test_lost_output(self):
        """Each verb says that its output could not be written, and is quiet where its reader has
        gone."""
        verbs = [("list", "--format", "json"), ("list",), ("draw", "1f1b"), ("draw", "table"),
                 ("keys", "list", "--dir", "."), ("ps",), ("ps", "--format", "json"),
                 ("train", self.run_file(), "--dry-run"), ("--help",), ("list", "--help"),
                 ("train", self.run_file(), "--dry-run", "--format", "json"), ("--version",),
                 ("sim", self.run_file(), "--quiet")]
        (self.dir / "trusted").touch()
        for words in verbs:
            with self.subTest(words), open("/dev/full", "w", encoding="utf-8") as full:
                command = [program.RINGPIPE, *words]
                done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, cwd=self.dir,
                                      text=True, check=False)
                self.assertEqual(done.returncode, 2, done.stderr)
                said = done.stderr.splitlines()
                self.assertEqual(said[-1:], ["ringpipe: standard output could not be written: "
                                             "No space left on device"])
                # `ps` may name folders of other tests' runs, which are being removed.
                self.assertTrue(len(said) == 1 or words[0] == "ps", done.stderr)
        reader, writer = os.pipe()
        os.close(reader)
        self.addCleanup(os.close, writer)
        for words in (("list",), ("sim", self.run_file(), "--quiet")):
            done = subprocess.run([program.RINGPIPE, *words], stdout=writer, cwd=self.dir,
                                  stderr=subprocess.PIPE, check=False)
            self.assertEqual((done.returncode, done.stderr), (-signal.SIGPIPE, b""), words)

    def test_help(self):
        out, _ = self.ringpipe("--help")
        for verb in VERBS:
            with self.subTest(verb):
                self.assertIn(verb, out)
                said, err = self.ringpipe(verb, "--help")
                self.assertIn(verb, said)
                self.assertEqual(err, "")

    def test_agent(self):
        out, _ = self.ringpipe("--help", program=program.AGENT)
        for option in ("--listen", "--board", "--keys", "--roster", "--threads"):
            self.assertIn(option, out)
        self.assertIn("--wrong", self.refused("--wrong", program=program.AGENT))
        self.assertIn("--listen", self.refused("--board", "pocl-cpu", program=program.AGENT))


if __name__ == "__main__":
    program.main()
