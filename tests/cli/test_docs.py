#!/usr/bin/env python3
"""Man pages without warnings; the completion knows what the program knows, and no more."""
import json
import os
import re
import shlex
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

    def example(self, page):
        """The literal text of a page's examples."""
        text = (program.SOURCE / "host/cli/man" / page).read_text().split(".Sh EXAMPLES")[1]
        return re.search(r"^\.Bd -literal\n(.*?)^\.Ed$", text, re.M | re.S)[1]

    def test_roster_page(self):
        (self.dir / "lab.yaml").write_text(self.example("ringpipe-roster.5"))
        self.ringpipe("keys", "new", "--dir", "keys")
        words = ("--set", "ring={roster: lab.yaml}", "--keys", "keys")
        out, _ = self.ringpipe("train", self.run_file(), "--dry-run", *words)
        self.assertIn("2 stages", out)
        words = ("--listen", "tcp://127.0.0.1:0", "--keys", "keys", "--board", "no-board")
        err = self.refused(*words, "--roster", "lab.yaml", program=program.AGENT)
        self.assertIn("no-board", err)  # the roster comes first

    def test_board_page(self):
        (self.dir / "my-board").mkdir()
        (self.dir / "my-board/board.yaml").write_text(self.example("ringpipe-board.5"))
        words = ("doctor", "--board", "my-board", "--format", "json")
        out, _ = self.ringpipe(*words, env={"RINGPIPE_BOARDS": str(self.dir)})
        self.assertEqual(json.loads(out)["board"], "my-board")

    def test_folder_page(self):
        """It names every key of a run's files."""
        page = (program.SOURCE / "host/cli/man/ringpipe-folder.5").read_text()
        known = set(re.findall(r"\w+", " ".join(re.findall(r"(?m)^\.(?:It )?Cm .*", page))))
        changes = ("--set", "schedule={kind: pipeoptim, probe: 2}", "--set", "data.validation=64")
        self.ringpipe("train", self.run_file(), "--out", "out", *changes, seconds=120)
        folder = self.dir / "out"

        def walk(value):
            if isinstance(value, dict):
                for key, inner in value.items():
                    yield key
                    yield from walk(inner)
            elif isinstance(value, list):
                for inner in value:
                    yield from walk(inner)

        for name in ("summary.json", "plan.json", "about.json", "data.json", "now.json",
                     "log.jsonl"):
            text = (folder / name).read_text()
            lines = text.splitlines() if name.endswith("l") else [text]
            keys = {key for line in lines for key in walk(json.loads(line))}
            self.assertGreater(len(keys), 5)
            self.assertEqual(keys - known, set(), name)
        for path in folder.iterdir():
            stem = re.sub(r"-\d+\.log", "-N.log", path.name)
            self.assertRegex(page, rf"(?m)^\.(Ss|It).*{re.escape(stem)}", path.name)

    def test_glossary_page(self):
        """Every word, and the way to it from the first page."""
        page = (program.SOURCE / "host/cli/man/ringpipe-glossary.7").read_text()
        words = (program.SOURCE / "firmware/GLOSSARY.md").read_text().split("\n\n")[2].split("\n")
        self.assertEqual(page.count("\n.It "), len(words) - 2)
        first = (program.SOURCE / "host/cli/man/ringpipe.1").read_text()
        for page in ("ringpipe-folder 5", "ringpipe-faults 7", "ringpipe-glossary 7"):
            self.assertIn(".Xr " + page, first)

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
        return set(re.findall(r"^ +(?:-\w, )?(--[a-z][a-z-]*)", out, re.M))

    def test_verbs(self):
        out, _ = self.ringpipe("--help")
        verbs = {w for w in self.complete("ringpipe", "") if not w.startswith("-")}
        self.assertEqual(verbs, set(re.findall(r"^\s+ringpipe ([a-z]+)", out, re.M)))

    def verbs(self):
        """The words of each verb that has options: ["boards", "list"]."""
        out, _ = self.ringpipe("list", "verbs", "--format", "json")
        verbs = [v["name"].split() for v in json.loads(out)["verbs"] if v["options"]]
        self.assertGreater(len(verbs), 30)
        return verbs

    def test_options(self):
        for verb in self.verbs():
            with self.subTest(verb):
                self.assertEqual(self.complete("ringpipe", *verb, "-"), self.options(*verb))
        self.assertEqual(self.complete("ringpipe", "boards", ""),
                         {verb[1] for verb in self.verbs() if verb[0] == "boards"} | {"--help"})
        self.assertEqual(self.complete("ringpipe", "draw", "--format", ""), {"text", "svg"})
        self.assertEqual(self.complete("ringpipe", "predict", "--format", ""),
                         {"text", "csv", "json"})
        self.assertIn("mnist", self.complete("ringpipe", "data", "fetch", ""))
        known = self.complete("ringpipe-agent", "-")
        self.assertEqual(known, self.options(program=program.AGENT))
        self.assertIn("--listen", known)

    def test_verb_pages(self):
        """Every verb has a page with examples, and ringpipe(1) names the page."""
        first = (program.SOURCE / "host/cli/man/ringpipe.1").read_text()
        aliases = {"validate": "slots", "revert": "slots"}
        for verb in self.verbs():
            name = "ringpipe-" + aliases.get(verb[0], verb[0])
            page = (program.SOURCE / f"host/cli/man/{name}.1").read_text()
            self.assertIn(f".It Xr {name} 1", first)
            self.assertRegex(page, rf"(?m)^\.Nm ringpipe {' '.join(verb)}$")
            self.assertRegex(page.split(".Sh EXAMPLES")[1], rf"(?m)^\.Dl ringpipe {verb[0][:3]}")
            self.assertRegex(page.split(".Sh DESCRIPTION")[1], rf"(?m)^\..*\b{verb[-1]}\b")

    def test_examples_have_known_options(self):
        """Every command in a manual page has a known verb, and options that the verb has."""
        known = {tuple(verb): self.options(*verb) for verb in self.verbs()}
        count = 0
        for page in MAN:
            for line in re.findall(r"(?m)^\.Dl ringpipe (.*)$", page.read_text()):
                words = shlex.split(line.replace("Ar ", ""), comments=True)
                verb = tuple(words[:2]) if tuple(words[:2]) in known else tuple(words[:1])
                self.assertIn(verb, known, f"{page.name}: {line}")
                given = {word.partition("=")[0] for word in words if word.startswith("--")}
                self.assertEqual(given - known[verb], set(), f"{page.name}: {line}")
                count += 1
        self.assertGreater(count, 50)

    def test_pages_are_in_short_pieces(self):
        """No more than 80 words without an empty line, so that a page can be searched by eye."""
        if not shutil.which("man"):
            self.skipTest("no man program (package man-db)")
        for page in MAN:
            with self.subTest(page.name):
                words = ["man", "--nj", "--nh", "-l", "-Tascii", str(page)]
                env = {**os.environ, "MANWIDTH": "100"}
                done = subprocess.run(words, capture_output=True, text=True, check=True, env=env)
                text = re.sub(r".\x08|\x1b\[\d*m", "", done.stdout)
                longest = max(re.split(r"\n\s*\n", text), key=lambda piece: len(piece.split()))
                self.assertLessEqual(len(longest.split()), 80, longest)

    def test_man_names_every_agent_option(self):
        page = (program.SOURCE / "host/cli/man/ringpipe-agent.1").read_text()
        for option in self.options(program=program.AGENT) - {"--help", "--version"}:
            self.assertIn("Fl Fl " + option[2:], page)


if __name__ == "__main__":
    program.main()
