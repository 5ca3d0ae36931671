#!/usr/bin/env python3
"""Keys, and what happens to those who have the wrong ones."""
import json
import os
import re
import signal
import stat
import subprocess

import lab
import program


class Case(program.Case):
    """Pairs of keys, agents that have them, and a roster of one agent."""

    def new(self, folder):
        self.ringpipe("keys", "new", "--dir", folder)
        out, _ = self.ringpipe("keys", "show", "--dir", folder)
        self.assertRegex(out, r"\Arpk1[02-9ac-hj-np-z]{58}\n\Z")
        return out.strip()

    def agent(self, keys, *words, listen="tcp://127.0.0.1:0", **options):
        """A running agent, and its endpoint as it says it. No `keys`: its account's."""
        words = ("--listen", listen, *(("--keys", keys) if keys else ()), *words)
        process = self.start(*words, program=program.AGENT, **options)
        for line in process.stdout:
            found = re.search(r"tcp://127\.0\.0\.1:\d+", line)
            if found:
                return process, found.group()
        return self.fail("the agent did not say where it listens")

    def roster(self, address, public):
        text = f"- {{name: one, address: '{address}', key: '{public}', board: pocl-cpu}}\n"
        (self.dir / "lab.yaml").write_text("boards:\n  " + text)
        return self.run_file(program.RUN.replace("boards: 2", "roster: lab.yaml"))

    def stop(self, process):
        process.send_signal(signal.SIGTERM)
        self.finish(process)


class Keys(Case):
    def test_new(self):
        public = self.new("keys")
        self.assertEqual((self.dir / "keys" / "public.key").read_text().strip(), public)
        secret = self.dir / "keys" / "secret.key"
        self.assertEqual(stat.S_IMODE(secret.stat().st_mode), 0o600)
        self.assertRegex(secret.read_text(), r"\Arpsecret1[02-9ac-hj-np-z]{58}\n\Z")
        out, err = self.ringpipe("keys", "show", "--dir", "keys")
        self.assertNotIn(secret.read_text().strip(), out + err)
        self.assertNotEqual(public, self.new("others"))

    def test_never_overwritten(self):
        public = self.new("keys")
        self.assertIn("keys", self.refused("keys", "new", "--dir", "keys"))
        self.assertEqual((self.dir / "keys" / "public.key").read_text().strip(), public)

    def test_trust(self):
        self.new("keys")
        public = self.new("others")
        self.ringpipe("keys", "trust", "--dir", "keys", "laptop", public)
        self.assertIn(f"laptop {public}", (self.dir / "keys" / "trusted").read_text())
        self.assertIn("short", self.refused("keys", "trust", "--dir", "keys", "laptop", "short"))
        wrong = public[:-1] + ("q" if public[-1] != "q" else "p")
        err = self.refused("keys", "trust", "--dir", "keys", "desk", wrong)
        self.assertIn("checksum", err)
        secret = (self.dir / "others" / "secret.key").read_text().strip()
        err = self.refused("keys", "trust", "--dir", "keys", "desk", secret)
        self.assertIn("secret", err)
        self.assertNotIn(secret, err)

    def fingerprint(self, folder):
        _, err = self.ringpipe("keys", "show", "--dir", folder)
        found = re.search(r"fingerprint ((?:[0-9a-z]{4}-){3}[0-9a-z]{4})\n", err)
        self.assertTrue(found, err)
        return found[1]

    def test_list_and_untrust(self):
        own, public = self.new("keys"), self.new("others")
        words = ("--dir", "keys")
        self.ringpipe("keys", "trust", *words, "laptop", public)
        self.ringpipe("keys", "trust", *words, "desk", own)
        out, _ = self.ringpipe("keys", "list", *words)
        lines = {line.split()[0]: line.split()[1:] for line in out.splitlines()}
        self.assertEqual(lines["(own)"], [self.fingerprint("keys"), own])
        self.assertEqual(lines["laptop"], [self.fingerprint("others"), public])
        self.ringpipe("keys", "untrust", *words, "desk")
        self.assertIn("laptop", self.refused("keys", "untrust", *words, "desk"))
        out, _ = self.ringpipe("keys", "list", *words, "--format", "json")
        found = json.loads(out)
        self.assertEqual(found["own"], {"key": own, "fingerprint": self.fingerprint("keys")})
        other = {"name": "laptop", "key": public, "fingerprint": self.fingerprint("others")}
        self.assertEqual(found["trusted"], [other])
        self.ringpipe("keys", "untrust", *words, "laptop")
        out, _ = self.ringpipe("keys", "list", *words, "--format", "json")
        self.assertEqual(json.loads(out)["trusted"], [])
        self.assertIn("missing; make keys", self.ringpipe("keys", "list", "--dir", "absent")[0])

    def test_roster_lines(self):
        """Lines as they are printed, in a file as it is described."""
        for folder in ("a", "b", "host"):
            self.new(folder)
        text = "boards:\n"
        for folder, address in (("a", "tcp://10.0.0.7:7000"), ("b", "tcp://board-b.lab:7000")):
            words = ("--dir", folder, "--roster", f"board-{folder}", address)
            text += self.ringpipe("keys", "show", *words)[0]
        line, _ = self.ringpipe("keys", "show", "--dir", "host", "--roster", "desk")
        (self.dir / "lab.yaml").write_text(text + "hosts:\n" + line)
        run = self.run_file(program.RUN.replace("boards: 2", "roster: lab.yaml"))
        self.ringpipe("train", run, "--dry-run", "--keys", "host")
        process, _ = self.agent("a", "--roster", "lab.yaml")
        self.stop(process)
        # One wrong character in either list is found, with its line.
        for name, words in (("board-b", ("train", run, "--dry-run", "--keys", "host")),
                            ("desk", ("--listen", "tcp://127.0.0.1:0", "--keys", "a",
                                      "--roster", "lab.yaml"))):
            lines = (text + "hosts:\n" + line).splitlines()
            (at,) = (i for i, one in enumerate(lines) if name in one)
            end = lines[at][-2]
            lines[at] = lines[at][:-2] + ("q" if end != "q" else "p") + "}"
            (self.dir / "lab.yaml").write_text("\n".join(lines) + "\n")
            used = program.RINGPIPE if words[0] == "train" else program.AGENT
            err = self.refused(*words, program=used)
            self.assertIn(f"lab.yaml:{at + 1}", err)
            self.assertIn("checksum", err)

    def test_roster_line_refused(self):
        self.new("keys")
        for words, part in (
            (("--roster", "a b"), "a b"),
            (("--roster", "host"), "host"),
            (("--roster", "x", "10.0.0.7:7000"), "tcp://HOST:PORT"),
            (("--roster", "x", "tcp://10.0.0.7:70000"), "65533"),
            (("--roster",), "NAME"),
            (("x", "y"), "keys show"),
        ):
            with self.subTest(words):
                self.assertIn(part, self.refused("keys", "show", "--dir", "keys", *words))

    def test_old_keys(self):
        """Z85 texts, which keys were before, in every file."""
        public = "Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID"
        secret = "D:)Q[IlAW!ahhC2ac:9*A}h:p?([4%wOTJ%JR%cs"
        for folder in ("agent", "controller"):
            (self.dir / folder).mkdir(mode=0o700)
            (self.dir / folder / "public.key").write_text(public + "\n")
            (self.dir / folder / "secret.key").write_text(secret + "\n")
            (self.dir / folder / "secret.key").chmod(0o600)
        (self.dir / "agent" / "trusted").write_text(f"controller {public}\n")
        process, address = self.agent("agent")
        run = self.roster(address, public)
        self.ringpipe("train", run, "--out", "out", "--keys", "controller")
        self.stop(process)
        word, _ = self.ringpipe("keys", "show", "--dir", "agent")
        self.assertRegex(word, r"\Arpk1")
        (self.dir / "agent" / "trusted").write_text("")
        (self.dir / "hosts.yaml").write_text(f"hosts:\n  - {{name: me, key: '{public}'}}\n")
        process, address = self.agent("agent", "--roster", "hosts.yaml")
        run = self.roster(address, word.strip())
        self.ringpipe("train", run, "--out", "other", "--keys", "controller")
        self.stop(process)

    def test_open_secret(self):
        """A secret that others can read is none."""
        self.new("keys")
        os.chmod(self.dir / "keys" / "secret.key", 0o644)
        words = ("--listen", "tcp://127.0.0.1:0", "--keys", "keys")
        err = self.refused(*words, code=5, program=program.AGENT)
        self.assertIn("secret.key", err)
        # Before the journal begins its messages are those of a program that a person calls.
        self.assertTrue(err.startswith("ringpipe-agent: "), err)

    def test_roster(self):
        public, controller = self.new("agent"), self.new("controller")
        self.ringpipe("keys", "trust", "--dir", "agent", "controller", controller)
        process, address = self.agent("agent")
        run = self.roster(address, public)
        held = []
        for optimizer in ("adam", "sgd"):  # two states of the size of the weights, and none
            words = ("--keys", "controller", "--format", "json")
            changed = ("--set", f"optimizer={{kind: {optimizer}, lr: 0.01}}")
            out, _ = self.ringpipe("train", run, "--out", optimizer, *words, *changed)
            held += [json.loads(out)["stage"][0]["device_bytes_max"]]
        self.assertLess(held[1], held[0], "what another run took is counted")
        self.stop(process)

    def test_hosts_of_a_roster(self):
        public, controller = self.new("agent"), self.new("controller")
        (self.dir / "hosts.yaml").write_text(f"hosts:\n  - {{name: me, key: '{controller}'}}\n")
        process, address = self.agent("agent", "--roster", "hosts.yaml")
        run = self.roster(address, public)
        self.ringpipe("train", run, "--out", "out", "--keys", "controller")
        self.stop(process)

    def test_replaced_controller(self):
        """An agent that has served a newer start of a run refuses an older one."""
        public, controller = self.new("agent"), self.new("controller")
        self.ringpipe("keys", "trust", "--dir", "agent", "controller", controller)
        process, address = self.agent("agent")
        run = self.roster(address, public)
        terms = {"newer": 7, "older": 2, "newest": 8}
        for folder, term in terms.items():
            (self.dir / folder).mkdir()
            identity = {"run": "0123456789abcdef", "term": term}
            (self.dir / folder / "identity.json").write_text(json.dumps(identity))
        self.ringpipe("train", run, "--out", "newer", "--keys", "controller")
        identity = json.loads((self.dir / "newer" / "identity.json").read_text())
        self.assertEqual(identity, {"run": "0123456789abcdef", "term": 8})
        _, err = self.ringpipe("train", run, "--out", "older", "--keys", "controller", code=3)
        self.assertIn("(its term is 8, ours 3)", err)
        self.ringpipe("train", run, "--out", "newest", "--keys", "controller")
        self.stop(process)

    def test_agent_does_not_trust(self):
        public = self.new("agent")
        self.new("controller")
        self.ringpipe("keys", "trust", "--dir", "agent", "somebody", self.new("somebody"))
        process, address = self.agent("agent")
        run = self.roster(address, public)
        _, err = self.ringpipe("train", run, "--out", "out", "--keys", "controller", code=5)
        self.assertIn(f"the one with fingerprint {self.fingerprint('agent')}", err)
        self.assertIsNone(process.poll(), "the agent must go on serving")
        process.send_signal(signal.SIGTERM)
        _, err = self.finish(process)
        # The operator sees who it was, and what would let it in.
        key = (self.dir / "controller" / "public.key").read_text().strip()
        self.assertIn(self.fingerprint("controller"), err)
        self.assertIn(f"`ringpipe keys trust NAME {key}` adds it", err)

    def test_the_list_may_change_while_the_agent_runs(self):
        public, controller = self.new("agent"), self.new("controller")
        journal = self.dir / "journal"
        with open(journal, "w", encoding="utf-8") as file:
            process, address = self.agent("agent", stderr=file)
        run = self.roster(address, public)

        def train(out, code):
            self.ringpipe("train", run, "--keys", "controller", "--out", out, code=code)

        def told(text):
            self.wait_for(text, lambda: text in journal.read_text(), process=process)

        train("before", 5)
        self.ringpipe("keys", "trust", "--dir", "agent", "controller", controller)
        told("number of hosts: 1")
        train("trusted", 0)
        (self.dir / "agent" / "trusted").write_text("nonsense\n")
        told("the previous one stays in force")
        self.assertIn("trusted:1: expected `name key`", journal.read_text())
        train("damaged", 0)
        (self.dir / "agent" / "trusted").write_text("")
        told("number of hosts: 0")
        train("nobody", 5)
        self.stop(process)

    def test_agent_is_another(self):
        """The key in the roster is not the agent's: whoever answers there is not trusted."""
        self.new("agent")
        self.ringpipe("keys", "trust", "--dir", "agent", "controller", self.new("controller"))
        process, address = self.agent("agent")
        run = self.roster(address, self.new("somebody"))
        self.ringpipe("train", run, "--out", "out", "--keys", "controller", code=5)
        self.stop(process)


# All that reach the boards of a roster; the last word is where they write.
REACHING = (
    ("train", "run.yaml", "--out", "out"),
    ("eval", "run.yaml", "--weights", "out/weights.safetensors"),
    ("plan", "run.yaml", "--out", "plan.json"),
    ("profile", "run.yaml", "--out", "profile.json"),
)


class Account(Case):
    """Nobody says where the keys are: the account's own folder is taken."""

    def setUp(self):
        super().setUp()
        self.home = {"HOME": str(self.dir / "home")}
        (self.dir / "home").mkdir(mode=0o755)

    def default(self, home="home"):
        return self.dir / home / ".config" / "ringpipe" / "keys"

    def test_new_on_a_fresh_account(self):
        old = os.umask(0)
        try:
            self.ringpipe("keys", "new", env=self.home)
        finally:
            os.umask(old)
        folder = self.default()
        for path in (folder, folder.parent, folder.parent.parent):
            self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o700, path)
        self.assertEqual(stat.S_IMODE((folder / "secret.key").stat().st_mode), 0o600)
        out, _ = self.ringpipe("keys", "show", env=self.home)
        self.assertEqual(out, (folder / "public.key").read_text())
        self.assertIn("exists", self.refused("keys", "new", env=self.home))

    def test_trust_before_new(self):
        """In which order an account gets its own keys and those of others does not matter."""
        public = self.new("others")
        self.ringpipe("keys", "trust", "laptop", public, env=self.home)
        self.ringpipe("keys", "new", env=self.home)
        self.assertIn(public, self.ringpipe("keys", "list", env=self.home)[0])

    def test_no_home(self):
        self.assertIn("HOME", self.refused("keys", "show", env={"HOME": ""}))

    def paste(self, err):
        """Gives the command that a message names to a shell."""
        command = re.search("`(ringpipe [^`]*)`", err)
        self.assertTrue(command, err)
        path = f"{program.RINGPIPE.parent}:{os.environ['PATH']}"
        subprocess.run(
            ["sh", "-c", command.group(1)], cwd=self.dir, check=True, capture_output=True,
            env=self.environment(PATH=path, **self.home),
        )

    def test_missing_keys(self):
        """Exit 2 before anything is written, with the command that helps when it is pasted."""
        self.roster("tcp://127.0.0.1:7999", self.new("agent"))
        (self.dir / "compare.yaml").write_text(lab.LAB)
        for words in (*REACHING, ("lab", "compare.yaml"), ("train", "run.yaml", "--dry-run")):
            with self.subTest(words):
                err = self.refused(*words, env=self.home)
                self.assertIn("no keys in " + str(self.default()), err)
                self.assertIn("`ringpipe keys new`", err)
        self.assertFalse((self.dir / "out").exists() or (self.dir / "runs").exists())
        for folder in ("own", "it's a folder; with $HOME"):
            words = ("train", "run.yaml", "--dry-run", "--keys", folder)
            self.paste(self.refused(*words, env=self.home))
            self.ringpipe(*words, env=self.home)
        words = ("train", "run.yaml", "--dry-run", "--set")
        self.paste(self.refused(*words, "keys=absent", env=self.home))
        self.ringpipe(*words, "keys=absent", env=self.home)
        self.paste(self.refused("train", "run.yaml", "--dry-run", env=self.home))
        self.ringpipe("train", "run.yaml", "--dry-run", env=self.home)

    def test_default_on_both_ends(self):
        board = {"HOME": str(self.dir / "board")}
        (self.dir / "board").mkdir()
        for env in (board, self.home):
            self.ringpipe("keys", "new", env=env)
        host, _ = self.ringpipe("keys", "show", env=self.home)
        public, _ = self.ringpipe("keys", "show", env=board)
        self.ringpipe("keys", "trust", "host", host.strip(), env=board)
        process, address = self.agent(None, env=board)
        self.roster(address, public.strip())
        for words in REACHING:
            self.ringpipe(*words, env=self.home)
            self.assertTrue((self.dir / words[-1]).exists())
        self.stop(process)

    def test_keys_of_the_run_file(self):
        public, controller = self.new("agent"), self.new("controller")
        self.ringpipe("keys", "trust", "--dir", "agent", "controller", controller)
        process, address = self.agent("agent")
        run = self.roster(address, public)
        run.write_text(run.read_text() + "keys: controller\n")
        self.ringpipe("train", run, "--out", "out", env=self.home)
        self.assertIn(f"keys: '{self.dir / 'controller'}'",
                      (self.dir / "out/run.yaml").read_text())
        # The command line comes before the file.
        self.new("stranger")
        words = ("train", run, "--out", "other", "--keys", "stranger")
        self.ringpipe(*words, env=self.home, code=5)
        self.stop(process)


class Lab(Case):
    def test_on_a_roster(self):
        """Comparisons on real boards: their keys are given once, the boards serve run after run."""
        public, controller = self.new("agent"), self.new("controller")
        self.ringpipe("keys", "trust", "--dir", "agent", "controller", controller)
        process, address = self.agent("agent")
        self.roster(address, public)
        (self.dir / "compare.yaml").write_text(lab.LAB.replace("[1, 2]", "[1]"))
        words = ("lab", "compare.yaml", "--out", "out", "--keys", "controller")
        self.assertIn("one run at a time", self.refused(*words, "--jobs", "2"))
        out, _ = self.ringpipe(*words)
        self.assertIn("2 of 2 runs finished", out)
        for run in ("slow", "fast"):
            plan = json.loads((self.dir / f"out/runs/mlp/{run}/seed-1/plan.json").read_text())
            self.assertIn("one", [node["name"] for node in plan["nodes"]])
        self.stop(process)


if __name__ == "__main__":
    program.main()
