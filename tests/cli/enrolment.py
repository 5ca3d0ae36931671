"""A host with keys, tokens for boards, and boards that use them."""
import re
import socket

import program


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as door:
        return door.getsockname()[1]


class Case(program.Case):
    def setUp(self):
        super().setUp()
        self.ringpipe("keys", "new", "--dir", "host")
        self.door = f"tcp://127.0.0.1:{free_port()}"

    def tokens(self, *names, words=()):
        """Makes them without waiting."""
        out, _ = self.enrol("--token", *words, *names)
        found = re.findall(r"--enrol (rpt1[0-9a-z]{83})@127\.0\.0\.1:\d+$", out, re.M)
        self.assertEqual(len(found), len(names), out)
        return found

    def enrol(self, *words, **options):
        return self.ringpipe(*self.words(*words), **options)

    def words(self, *words):
        return ("boards", "enrol", "--roster", "lab.yaml", "--keys", "host", "--listen", self.door,
                *words)

    def board(self, keys, token, listen=None, **options):
        """An agent that enrols; what it says goes to standard output and error."""
        listen = listen or f"tcp://127.0.0.1:{free_port()}"
        host = self.door.removeprefix("tcp://")
        return self.start("--listen", listen, "--keys", keys, "--threads", "1", "--enrol",
                          f"{token}@{host}", program=program.AGENT, **options)

    def line(self, process, pattern):
        for line in process.stdout:
            found = re.search(pattern, line)
            if found:
                return found
        _, err = self.finish(process, code=None)
        return self.fail(f"it did not say {pattern}: {err}")
