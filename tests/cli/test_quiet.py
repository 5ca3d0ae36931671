#!/usr/bin/env python3
"""--quiet and --verbose of every verb and of the agent."""
import json
import re
import signal

import lab
import program


class Quiet(program.Case):
    def test_every_verb_has_both(self):
        out, _ = self.ringpipe("list", "verbs", "--format", "json")
        verbs = [v["name"].split() for v in json.loads(out)["verbs"] if v["options"]]
        self.assertGreater(len(verbs), 30)
        for words in verbs + [()]:
            with self.subTest(words):
                used = program.RINGPIPE if words else program.AGENT
                out, _ = self.ringpipe(*words, "--help", program=used)
                self.assertRegex(out, r"-q, --quiet\b")
                self.assertRegex(out, r"-v, --verbose\b")

    def test_train(self):
        """The result is where it always is; nothing is said besides, whatever RP_LOG wants."""
        run = self.run_file()
        loud, err = self.ringpipe("train", run, "--out", "loud")
        self.assertIn("step", err)
        quiet, err = self.ringpipe("train", run, "--out", "quiet", "--quiet",
                                   env={"RP_LOG": "info"})
        self.assertEqual(err, "")
        same = [re.sub(r"loud|quiet|[\d.]+ (s|samples/s)\b|bubble .*", "", text)
                for text in (loud, quiet)]
        self.assertEqual(*same)
        out, err = self.ringpipe("train", run, "--out", "json", "-q", "--format", "json")
        self.assertEqual((json.loads(out)["status"], err), ("finished", ""))

    def test_errors_are_said(self):
        err = self.refused("train", "absent.yaml", "--quiet")
        self.assertIn("absent.yaml", err)
        err = self.refused("train", self.run_file(), "-q", "-v")
        self.assertIn("--quiet", err)

    def test_verbose(self):
        """Also of the agents that are started here."""
        _, err = self.ringpipe("train", self.run_file(), "--out", "out", "--verbose",
                               env={"RP_LOG": "error"})
        self.assertRegex(err, r"(?m)^\d\d:\d\d:\d\d\.\d+ control debug: ")
        self.assertIn(" debug: ", (self.dir / "out/agent-0.log").read_text())

    def test_lab_and_keys(self):
        self.run_file()
        (self.dir / "compare.yaml").write_text(lab.LAB.replace("[1, 2]", "[1]"))
        out, err = self.ringpipe("lab", "compare.yaml", "--out", "out", "--quiet")
        self.assertIn("2 of 2 runs", out)
        self.assertEqual(err, "")
        out, err = self.ringpipe("keys", "new", "--dir", "keys", "--quiet")
        self.assertEqual(err, "")
        words = ("keys", "trust", "--dir", "keys", "one", out.strip())
        self.assertEqual(self.ringpipe(*words, "--quiet"), ("", ""))
        self.assertIn("fingerprint", self.ringpipe(*words)[1])

    def test_agent(self):
        """Where it listens is its result."""
        self.ringpipe("keys", "new", "--dir", "keys")
        said = {}
        for option in ("--quiet", "--verbose"):
            words = ("--listen", "tcp://127.0.0.1:0", "--keys", "keys", option)
            process = self.start(*words, program=program.AGENT, env={"RP_LOG": "info"})
            self.assertIn("listening tcp://", process.stdout.readline())
            process.send_signal(signal.SIGTERM)
            said[option] = self.finish(process)[1]
        self.assertEqual(said["--quiet"], "")
        self.assertIn(" debug: ", said["--verbose"])


if __name__ == "__main__":
    program.main()
