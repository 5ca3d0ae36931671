#!/usr/bin/env python3
"""Wrong words on the command line: exit 2, a message that helps, nothing on standard output."""
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

    def test_flag_without_value(self):
        self.assertIn("--out", self.refused("train", self.run_file(), "--out"))

    def test_word_too_many(self):
        self.assertIn("surplus", self.refused("inspect", "a.safetensors", "surplus"))

    def test_no_run_file(self):
        self.assertIn("RUN.yaml", self.refused("train"))
        self.assertIn("absent.yaml", self.refused("train", "absent.yaml"))

    def test_unknown_format(self):
        self.assertIn("xml", self.refused("train", self.run_file(), "--format", "xml"))

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
