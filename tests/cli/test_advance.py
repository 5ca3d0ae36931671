#!/usr/bin/env python3
"""`advance: auto` where the links are real: how long they take is measured."""
import queue
import re
import socket
import threading
import time

import program
import test_keys

DELAY_S = 0.03


def carry(source, target):
    """What comes from one socket goes into the other, so much later."""
    late = queue.Queue()

    def send():
        due, data = late.get()
        while data:
            time.sleep(max(0, due - time.monotonic()))
            target.sendall(data)
            due, data = late.get()

    threading.Thread(target=send, daemon=True).start()
    try:
        while data := source.recv(1 << 16):
            late.put((time.monotonic() + DELAY_S, data))
    except OSError:
        pass  # one end is gone, and so is the test
    late.put((0, b""))


class Advance(program.Case):
    new, agent = test_keys.Keys.new, test_keys.Keys.agent

    def far(self, address):
        """An address behind which that one lies, far away."""
        host, port = re.fullmatch(r"tcp://(.*):(\d+)", address).groups()
        door = socket.create_server((host, 0))
        self.addCleanup(door.close)

        def serve():
            try:
                while True:
                    guest, _ = door.accept()
                    board = socket.create_connection((host, int(port)))
                    for ends in ((guest, board), (board, guest)):
                        threading.Thread(target=carry, args=ends, daemon=True).start()
            except OSError:
                pass  # the door is closed

        threading.Thread(target=serve, daemon=True).start()
        return f"tcp://{host}:{door.getsockname()[1]}"

    def test_round_trips(self):
        """Of a far board too, which hears nothing while it measures its layers; the answers to
        what came meanwhile are late, and no measure of its link."""
        controller = self.new("controller")
        boards = []
        for name in ("one", "two"):
            public = self.new(name)
            self.ringpipe("keys", "trust", "--dir", name, "controller", controller)
            _, address = self.agent(name)
            address = self.far(address) if name == "one" else address
            boards.append(f"- {{name: {name}, address: '{address}', key: '{public}', "
                          "board: pocl-cpu}\n")
        (self.dir / "lab.yaml").write_text("boards:\n  " + "  ".join(boards))
        run = self.run_file(program.RUN.replace("boards: 2", "roster: lab.yaml"))
        said = "".join(self.ringpipe(
            "train", run, "--out", "out", "--keys", "controller", "--set", "train.steps=2",
            "--set", "cut=[fc2]", "--set", "schedule={kind: async, advance: auto}"))
        found = re.search(r"links take ([\d.]+) ms", said)
        self.assertTrue(found, said)
        self.assertGreaterEqual(float(found[1]), 1e3 * DELAY_S)
        self.assertLess(float(found[1]), 2e3 * DELAY_S)


if __name__ == "__main__":
    program.main()
