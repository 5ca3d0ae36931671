#!/usr/bin/env python3
"""What zsh and fish offer is what the program knows, and no more (bash: test_docs.py)."""
import json
import re
import shutil
import subprocess
import unittest

import program

FOLDER = program.SOURCE / "host/cli/completion"

# The function as zsh calls it, with what it calls itself in place of a line editor.
ZSH = """\
compadd() { while [[ $1 != -- ]]; do shift; done; shift; print -l -- "$@"; }
_files() { print -- "files $*"; }
service=$1; words=("${@:2}"); CURRENT=${#words}
source $script
"""


class Completion(program.Case):
    def ask(self, *words):
        raise NotImplementedError

    def check(self):
        def known(*words, **options):
            out, _ = self.ringpipe(*words, "--help", **options)
            return set(re.findall(r"^ +(?:-\w, )?(--[a-z][a-z-]*)", out, re.M))

        out, _ = self.ringpipe("--help")
        verbs = set(re.findall(r"^\s+ringpipe ([a-z]+)", out, re.M))
        self.assertEqual({w for w in self.ask("ringpipe", "") if w[0] != "-"}, verbs)
        out, _ = self.ringpipe("list", "verbs", "--format", "json")
        for words in (v["name"].split() for v in json.loads(out)["verbs"] if v["options"]):
            with self.subTest(words):
                self.assertEqual(self.ask("ringpipe", *words, "--"), known(*words))
        self.assertEqual(self.ask("ringpipe-agent", "--"), known(program=program.AGENT))
        self.assertIn("reboot", self.ask("ringpipe", "boards", ""))
        self.assertEqual(self.ask("ringpipe", "draw", "--format", ""), {"text", "svg"})
        self.assertIn("1f1b", self.ask("ringpipe", "draw", ""))
        self.assertIn("mnist", self.ask("ringpipe", "data", "fetch", ""))
        self.assertNotIn("mnist", self.ask("ringpipe", "data", ""))
        self.assertIn("untrust", self.ask("ringpipe", "keys", ""))
        self.assertIn("json", self.ask("ringpipe", "plan", "--format", ""))
        self.assertIn("layers", self.ask("ringpipe", "list", ""))


class Zsh(Completion):
    def ask(self, *words):
        text = f"script={FOLDER / '_ringpipe'}\n" + ZSH
        done = subprocess.run(
            ["zsh", "-f", "-c", text, "zsh", words[0], *words],
            capture_output=True, text=True, check=True, cwd=self.dir, timeout=60,
        )
        self.assertEqual(done.stderr, "")
        return set(done.stdout.split("\n")) - {""}

    @unittest.skipUnless(shutil.which("zsh"), "no zsh")
    def test_zsh(self):
        self.check()
        self.assertIn("files -g *.yaml", self.ask("ringpipe", "train", ""))


class Fish(Completion):
    def ask(self, *words):
        line = " ".join(words)
        text = f"source {FOLDER / 'ringpipe.fish'}; complete -C '{line}'"
        done = subprocess.run(
            ["fish", "--no-config", "-c", text],
            capture_output=True, text=True, check=True, cwd=self.dir, timeout=60,
        )
        self.assertEqual(done.stderr, "")
        return {answer.split("\t")[0] for answer in done.stdout.split("\n")} - {""}

    @unittest.skipUnless(shutil.which("fish"), "no fish")
    def test_fish(self):
        self.check()
        (self.dir / "mine.yaml").write_text("")
        self.assertIn("mine.yaml", self.ask("ringpipe", "train", ""))


if __name__ == "__main__":
    program.main()
