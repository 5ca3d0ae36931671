#!/usr/bin/env python3
"""A whole system that a host brings to a board with two slots for it. The board here is a folder, a
boot loader by systemd-boot's rules, and what the services of an image do; the programs are the real
ones. With a real board's: tests/boards/systems.py."""
import itertools
import json
import os
import re
import shutil
import subprocess
import threading

import program
import test_push

SYSTEM = program.RINGPIPE.parent / "ringpipe-system"
PART_BYTES = 1 << 16


class Board(threading.Thread):
    """Switched on until `off`: each turn of the loop is one start."""

    def __init__(self, root, agent, slots=True):
        super().__init__()
        self.root, self.agent, self.slots = root, agent, slots
        self.process = None
        self.ends = threading.Event()
        self.began = []  # (slot, release) of each start
        self.log = ""

    def folder(self, name):
        path = self.root / name
        path.mkdir(parents=True, exist_ok=True)
        return path

    def make(self, key):
        """A card as `ringpipe image` makes it, behind its first start."""
        boot = self.folder("boot/loader/entries")
        (boot / "ringpipe-a.conf").write_text(
            "title ringpipe 0 (a)\nsort-key ringpipe\nversion 0\noptions quiet ringpipe.slot=a\n"
            "initrd /a/initrd\nlinux /a/vmlinuz\n")
        for name in ("vmlinuz", "initrd"):
            (self.folder("boot/a") / name).write_text("works 0")
        for slot in "ab":
            (self.root / f"part-{slot}").write_bytes(b"works 0".ljust(PART_BYTES, b"\0"))
        keys = self.folder("etc/ringpipe")
        shutil.copy(key, keys)
        (keys / "board").write_text("pocl-cpu\n")
        self.folder("var/lib/private/ringpipe-agent/slots")

    def load(self):
        """What the loader takes: the newest release that has a start left; names count."""
        entries = self.root / "boot/loader/entries"
        found = []
        for path in entries.glob("*.conf"):
            text = path.read_text()
            kernel = re.search(r"^linux /(\S+)$", text, re.M)
            if not kernel or not (self.root / "boot" / kernel[1]).is_file():
                continue
            count = re.search(r"\+(\d+)(?:-(\d+))?\.conf$", path.name)
            left = int(count[1]) if count else None
            found.append((left != 0, int(re.search(r"^version (\d+)", text, re.M)[1]), path, count))
        _, release, path, count = max(found, key=lambda one: one[:2])
        slot = re.search(r"ringpipe\.slot=(\w)", path.read_text())[1]
        if count and int(count[1]) > 0:
            left, done = int(count[1]) - 1, int(count[2] or 0) + 1
            path.rename(entries / f"ringpipe-{slot}+{left}-{done}.conf")
        return slot, release

    def system(self, action):
        subprocess.run([SYSTEM, action], check=True, capture_output=True, timeout=60,
                       env={**os.environ, "RINGPIPE_SYSTEM_ROOT": str(self.root)})

    def start_once(self, number):
        shutil.rmtree(self.root / "run", ignore_errors=True)
        slot, release = self.load()
        self.began.append((slot, release))
        run = self.folder("run/ringpipe")
        (run / "slot").write_text(f"{slot}\n")
        for one in "ab":
            (run / f"device-{one}").write_text(f"{self.root}/part-{one}\n")
        (self.folder("proc/sys/kernel/random") / "boot_id").write_text(f"start-{number}\n")
        if not (self.root / f"part-{slot}").read_bytes().startswith(b"works"):
            return  # its first program ends, and the kernel starts again
        wishes = self.root / "var/lib/private/ringpipe-agent/slots"
        code = None
        while code != 84 and not self.ends.is_set():
            self.system("publish")
            env = dict(os.environ)
            if self.slots:
                env["RINGPIPE_SYSTEM"] = str(run / "system/state")
            self.process = subprocess.Popen([*self.agent, "--slots", wishes], cwd=self.root.parent,
                                            env=env, stdout=subprocess.DEVNULL,
                                            stderr=subprocess.PIPE, text=True)
            while self.process.poll() is None and not self.ends.wait(0.1):
                if (wishes / "system.rpb").exists() or (wishes / "system-wish").exists():
                    self.system("serve")
            self.process.terminate()
            self.log += self.process.communicate(timeout=60)[1]
            code = self.process.returncode

    def run(self):
        for number in itertools.count():
            if self.ends.is_set():
                return
            self.start_once(number)

    def off(self):
        self.ends.set()
        self.join(90)


class Systems(test_push.Software):
    def setUp(self):
        super().setUp()
        self.card = self.dir / "card"

    def switch_on(self, slots=True, settle=2):
        agent = [program.AGENT, "--keys", "left", "--board", "pocl-cpu", "--threads", "1",
                 "--settle", str(settle), "--reboot", "allow", "--listen", self.address]
        board = Board(self.card, agent, slots)
        board.make(self.dir / "host/update.key")
        self.addCleanup(board.off)
        board.start()
        return board

    def system(self, release, word="works", board="pocl-cpu"):
        tree = self.dir / "system-tree/system"
        tree.mkdir(parents=True, exist_ok=True)
        for name in ("root.squashfs", "vmlinuz", "initrd"):
            (tree / name).write_text(f"{word} {release}")
        self.ringpipe("bundle", "system-tree", "--board", board, "--release", release, "--keys",
                      "host", "-o", f"system-{release}.rpb")
        return f"system-{release}.rpb"

    def systems(self):
        return self.slots()["systems"]

    def there(self):
        """Until it answers."""
        self.wait_for("the board", lambda: subprocess.run(
            [program.RINGPIPE, "slots", "--roster", "lab.yaml", "--keys", "host"], cwd=self.dir,
            check=False, capture_output=True, timeout=120).returncode == 0, seconds=120)

    def test_a_system_comes_and_goes(self):
        board = self.switch_on()
        self.there()
        self.assertEqual(self.systems(), {
            "runs": "a", "a": {"state": "good", "release": 0, "starts": 0},
            "b": {"state": "empty", "release": 0, "starts": 0}})
        out, _ = self.talk("push", self.system(7), "left", seconds=300)
        self.assertIn("b runs; a has release 0, which is good; b has release 7, which is good", out)
        self.assertEqual(board.began, [("a", 0), ("b", 7)])
        self.assertFalse(list(self.card.glob("var/lib/private/ringpipe-agent/slots/*.rpb")))
        out, _ = self.ringpipe("boards", "show", "left", "--roster", "lab.yaml", "--keys", "host")
        self.assertIn("  systems      b runs; ", out)
        # It has an agent of its own: an older one that is pushed would never start.
        _, err = self.talk("push", self.bundle(7), code=5)
        self.assertIn("but the running system has 7: expected a newer one", err)
        self.talk("revert", "--system", "left")
        self.wait_for("another start", lambda: len(board.began) > 2, seconds=60)
        self.there()
        self.assertEqual(board.began[2], ("a", 0))
        self.assertEqual(self.systems()["b"], {"state": "failed", "release": 7, "starts": 0})
        _, err = self.talk("revert", "--system", "left")
        self.assertEqual(self.systems()["runs"], "a")

    def test_a_system_that_does_not_come_up_is_left(self):
        board = self.switch_on()
        self.there()
        _, err = self.talk("push", self.system(8, "breaks"), "left", code=3, seconds=300)
        self.assertIn("the system of release 8 failed its trial; the board has returned to the "
                      "previous system", err)
        self.assertEqual(board.began, [("a", 0)] + 3 * [("b", 8)] + [("a", 0)])
        self.assertEqual(self.systems()["b"], {"state": "failed", "release": 8, "starts": 0})
        out, _ = self.talk("push", self.system(9), "left", seconds=300)
        self.assertIn("b has release 9, which is good", out)

    def test_a_board_that_meets_no_host_says_nothing(self):
        """It runs, and nobody says that it is good but a person."""
        board = self.switch_on(settle=3600)
        self.there()
        self.talk("push", self.system(7), "left", "--no-wait")
        self.wait_for("another start", lambda: len(board.began) > 1, seconds=60)
        self.there()
        self.assertEqual(self.systems()["b"], {"state": "trial", "release": 7, "starts": 2})
        _, err = self.talk("push", self.system(8), "left", code=5)
        self.assertIn("the running system is still on trial", err)
        self.talk("validate", "left")
        self.wait_for("good", lambda: self.systems()["b"]["state"] == "good", seconds=60)

    def test_what_is_refused(self):
        board = self.switch_on(slots=False)
        self.there()
        self.assertIsNone(self.systems())
        _, err = self.talk("push", self.system(7), code=5)
        self.assertIn("this board has no system slots", err)
        self.talk("revert", "--system", "left", code=5)
        board.off()
        board = self.switch_on()
        self.there()
        _, err = self.talk("push", self.system(7, board="rk3588"), code=5)
        self.assertIn("profile rk3588, and this is a pocl-cpu", err)
        # What passes here and not there is told, too: the card's own key is another one.
        other = self.dir / "other"
        self.ringpipe("bundle", "--new-key", "--keys", "other")
        shutil.copy(other / "update.key", self.card / "etc/ringpipe")
        _, err = self.talk("push", self.system(7), code=3, seconds=300)
        self.assertIn("left: the system was not installed: system.rpb: is not signed by the key",
                      err)
        self.assertEqual(board.began, [("a", 0)])
        self.assertEqual(self.systems()["b"]["state"], "empty")


if __name__ == "__main__":
    program.main()
