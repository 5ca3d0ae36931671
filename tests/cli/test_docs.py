#!/usr/bin/env python3
"""Man pages without warnings; the completion knows what the program knows, and no more."""
import re
import shutil
import subprocess

import program

MAN = sorted((program.SOURCE / "host/cli/man").glob("*.[0-9]"))
COMPLETION = program.SOURCE / "host/cli/completion/ringpipe.bash"


class Docs(program.Case):
    def test_man_pages(self):
        self.assertGreaterEqual(len(MAN), 4)
        if not shutil.which("man"):
            self.skipTest("no man program (package man-db)")
        for page in MAN:
            with self.subTest(page.name):
                words = ["man", "--warnings", "-l", "-Tutf8", "-Z", str(page)]
                done = subprocess.run(words, capture_output=True, text=True, check=True)
                self.assertEqual(done.stderr, "")

    def test_readme_names_what_exists(self):
        text = (program.SOURCE / "README.md").read_text()
        rooms = "bootstrap|firmware|host|kernels|boards|tests|README|LICENSE"
        names = re.findall(rf"(?:`|\./|\s)((?:{rooms})[\w./-]*)", text)
        self.assertGreater(len(names), 15)
        for name in names:
            self.assertTrue((program.SOURCE / name.rstrip(".")).exists(), name)

    def complete(self, *words):
        script = (
            'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); '
            '"_${1//-/_}" 2>/dev/null; printf "%s\\n" "${COMPREPLY[@]}"'
        )
        done = subprocess.run(
            ["bash", "-c", script, "bash", str(COMPLETION), *words],
            capture_output=True,
            text=True,
            check=True,
        )
        return set(done.stdout.split())

    def options(self, *words, **options):
        out, _ = self.ringpipe(*words, "--help", **options)
        return set(re.findall(r"--[a-z][a-z-]*", out)) - {"--usage"}

    def test_verbs(self):
        out, _ = self.ringpipe("--help")
        verbs = {w for w in self.complete("ringpipe", "") if not w.startswith("-")}
        self.assertEqual(verbs, set(re.findall(r"^\s+ringpipe ([a-z]+)", out, re.M)))

    def test_options(self):
        for verb in self.complete("ringpipe", ""):
            if not verb.startswith("-"):
                with self.subTest(verb):
                    self.assertEqual(self.complete("ringpipe", verb, "-"), self.options(verb))
        known = self.complete("ringpipe-agent", "-") - {"--version"}
        self.assertEqual(known, self.options(program=program.AGENT) - {"--version"})

    def test_man_names_every_option(self):
        page = (program.SOURCE / "host/cli/man/ringpipe.1").read_text()
        for verb in self.complete("ringpipe", ""):
            if not verb.startswith("-"):
                self.assertIn(f".Cm {verb}", page)
                for option in self.complete("ringpipe", verb, "-") - {"--help"}:
                    self.assertIn("Fl Fl " + option[2:], page)


if __name__ == "__main__":
    program.main()
