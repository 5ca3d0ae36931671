#!/usr/bin/env python3
"""What a service manager hears from the agent's loop: it serves, it goes round, it ends."""
import os
import signal
import socket

import program
import test_keys


class Notify(test_keys.Case):
    def setUp(self):
        super().setUp()
        self.new("keys")
        self.manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(self.manager.close)
        self.manager.bind(str(self.dir / "manager"))
        self.manager.settimeout(20 * program.SLOWER)

    def heard(self):
        return self.manager.recv(600).decode()

    def expect_self_test(self):
        """Said before it is ready: the driver compiles, which may take longer than a start does."""
        self.assertRegex(self.heard(), r"\AEXTEND_TIMEOUT_USEC=\d{9,}\nSTATUS=.*self-test\n\Z")

    def serve(self, **more):
        return self.agent("keys", env={"NOTIFY_SOCKET": str(self.dir / "manager"), **more})

    def test_a_life(self):
        process, address = self.serve(WATCHDOG_USEC="400000")
        self.expect_self_test()
        self.assertEqual(self.heard(), f"READY=1\nSTATUS=listening {address}\n")
        for _ in range(3):
            self.assertEqual(self.heard(), "WATCHDOG=1\n")
        # It stands still: a manager hears nothing, and would end it.
        os.kill(process.pid, signal.SIGSTOP)
        try:
            self.manager.settimeout(1)
            with self.assertRaises(TimeoutError):
                for _ in range(3):
                    self.heard()
        finally:
            os.kill(process.pid, signal.SIGCONT)
        self.manager.settimeout(20 * program.SLOWER)
        self.assertEqual(self.heard(), "WATCHDOG=1\n")
        self.stop(process)
        last = ""
        while last != "STOPPING=1\n":
            self.assertIn(last, ("", "WATCHDOG=1\n"))
            last = self.heard()

    def test_no_watchdog(self):
        process, _ = self.serve(WATCHDOG_USEC="100000", WATCHDOG_PID="1")
        self.expect_self_test()
        self.assertIn("READY=1\n", self.heard())
        self.manager.settimeout(1)
        with self.assertRaises(TimeoutError):
            self.heard()
        self.stop(process)

    def test_nobody_there(self):
        err = self.refused("--keys", "keys", "--listen", "tcp://127.0.0.1:0", code=None,
                           program=program.AGENT,
                           env={"NOTIFY_SOCKET": str(self.dir / "nobody")})
        self.assertIn("NOTIFY_SOCKET", err)


if __name__ == "__main__":
    program.main()
