#!/usr/bin/env python3
"""Keys, and what happens to those who have the wrong ones."""
import json
import os
import re
import signal
import stat

import program


class Keys(program.Case):
    def new(self, folder):
        self.ringpipe("keys", "new", "--dir", folder)
        out, _ = self.ringpipe("keys", "show", "--dir", folder)
        found = re.search(r"(?<!\S)[0-9a-zA-Z.\-:+=^!/*?&<>()\[\]{}@%$#]{40}(?!\S)", out)
        self.assertTrue(found, out)
        return found.group()

    def test_new(self):
        public = self.new("keys")
        self.assertEqual((self.dir / "keys" / "public.key").read_text().strip(), public)
        secret = self.dir / "keys" / "secret.key"
        self.assertEqual(stat.S_IMODE(secret.stat().st_mode), 0o600)
        self.assertNotIn(secret.read_text().strip(), self.ringpipe("keys", "show", "--dir", "keys"))
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

    def test_open_secret(self):
        """A secret that others can read is none."""
        self.new("keys")
        os.chmod(self.dir / "keys" / "secret.key", 0o644)
        words = ("--listen", "tcp://127.0.0.1:0", "--keys", "keys")
        err = self.refused(*words, code=5, program=program.AGENT)
        self.assertIn("secret.key", err)

    def agent(self, keys, *words):
        """A running agent, and its endpoint as it says it."""
        words = ("--listen", "tcp://127.0.0.1:0", "--keys", keys, *words)
        process = self.start(*words, program=program.AGENT)
        for line in process.stdout:
            found = re.search(r"tcp://127\.0\.0\.1:\d+", line)
            if found:
                return process, found.group()
        return self.fail("the agent did not say where it listens")

    def roster(self, address, public):
        text = f"- {{name: one, address: '{address}', key: '{public}', board: pocl-cpu}}\n"
        (self.dir / "lab.yaml").write_text("boards:\n  " + text)
        return self.run_file(program.RUN.replace("boards: 2", "roster: lab.yaml"))

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
        process.send_signal(signal.SIGTERM)
        self.finish(process)

    def test_hosts_of_a_roster(self):
        public, controller = self.new("agent"), self.new("controller")
        (self.dir / "hosts.yaml").write_text(f"hosts:\n  - {{name: me, key: '{controller}'}}\n")
        process, address = self.agent("agent", "--roster", "hosts.yaml")
        run = self.roster(address, public)
        self.ringpipe("train", run, "--out", "out", "--keys", "controller")
        process.send_signal(signal.SIGTERM)
        self.finish(process)

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
        self.assertIn("term 8, this controller has 3", err)
        self.ringpipe("train", run, "--out", "newest", "--keys", "controller")
        process.send_signal(signal.SIGTERM)
        self.finish(process)

    def test_agent_does_not_trust(self):
        public = self.new("agent")
        self.new("controller")
        self.ringpipe("keys", "trust", "--dir", "agent", "somebody", self.new("somebody"))
        process, address = self.agent("agent")
        run = self.roster(address, public)
        self.ringpipe("train", run, "--out", "out", "--keys", "controller", code=5)
        self.assertIsNone(process.poll(), "the agent must go on serving")
        process.send_signal(signal.SIGTERM)
        self.finish(process)

    def test_agent_is_another(self):
        """The key in the roster is not the agent's: whoever answers there is not trusted."""
        self.new("agent")
        self.ringpipe("keys", "trust", "--dir", "agent", "controller", self.new("controller"))
        process, address = self.agent("agent")
        run = self.roster(address, self.new("somebody"))
        self.ringpipe("train", run, "--out", "out", "--keys", "controller", code=5)
        process.send_signal(signal.SIGTERM)
        self.finish(process)


if __name__ == "__main__":
    program.main()
