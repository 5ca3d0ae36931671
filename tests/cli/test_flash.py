#!/usr/bin/env python3
"""Cards are written, read back, or left alone with the reason. Disks are files of a made-up
machine."""
import os
import pty
import random

import program

MIB = 1 << 20


def image(size=2 * MIB, arch=None):
    """The bytes of a disk with a table of partitions, and noise behind it."""
    data = bytearray(random.Random(1).randbytes(size))
    data[:34 * 512] = bytes(34 * 512)
    data[510:512] = b"\x55\xaa"
    if arch:
        data[512:520] = b"EFI PART"
        data[1024 + 128:1024 + 144] = bytes.fromhex(arch)
    return bytes(data)


class Flash(program.Case):
    def setUp(self):
        super().setUp()
        self.root = self.dir / "machine"
        self.put("proc/self/mountinfo", "22 1 8:2 / / rw - ext4 /dev/sda2 rw\n"
                 "30 22 0:41 / /tmp rw - tmpfs tmpfs rw\n")
        self.put("proc/swaps", "Filename Type Size Used Priority\n/dev/sda3 partition 1 0 -2\n")
        self.disk("sda", 4 * MIB, parts=("8:1", "8:2", "8:3"), model="Fixed")
        self.disk("sdb", 8 * MIB, dev="8:16", parts=("8:17",), removable=1, model="Card Reader")
        self.disk("mmcblk0", 4 * MIB, dev="179:0", parts=("179:1",), letter="p")
        self.disk("loop0", 4 * MIB)
        self.disk("sdz", 0, removable=1)  # a reader without a card
        self.image = self.dir / "left.img"
        self.image.write_bytes(image())

    def put(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def disk(self, name, size, dev="8:0", parts=(), removable=0, model=None, letter=""):
        self.put(f"sys/block/{name}/size", f"{size // 512}\n")
        self.put(f"sys/block/{name}/removable", f"{removable}\n")
        self.put(f"sys/block/{name}/ro", "0\n")
        self.put(f"sys/block/{name}/dev", dev + "\n")
        if model:
            self.put(f"sys/block/{name}/device/model", model + "   \n")
        for number, part in enumerate(parts, 1):
            self.put(f"sys/block/{name}/{name}{letter}{number}/dev", part + "\n")
            self.put(f"dev/{name}{letter}{number}", "")
        self.put(f"dev/{name}", "")
        os.truncate(self.root / f"dev/{name}", size)

    def flash(self, *words, **options):
        return self.ringpipe("flash", *words, env={"RINGPIPE_FLASH_ROOT": str(self.root)},
                             **options)

    def refuse(self, *words):
        before = {path: path.read_bytes() for path in (self.root / "dev").iterdir()}
        err = self.refused("flash", *words, env={"RINGPIPE_FLASH_ROOT": str(self.root)})
        self.assertEqual(before, {path: path.read_bytes() for path in before})
        return err

    def left_alone(self, device):
        return self.refuse(self.image, device, "--yes")

    def test_listed(self):
        out, _ = self.flash()
        self.assertRegex(out, r"/dev/sdb +0\.0 GB  Card Reader +free")
        self.assertIn("/dev/mmcblk0", out)
        for name in ("sda", "loop0", "sdz"):
            self.assertNotIn(name, out)
        self.assertIn("2 disks can be written", out)

    def test_written_and_read_back(self):
        for runner in ((), ("--runner", "dd")):
            for device in ("sdb", "mmcblk0"):
                out, _ = self.flash(self.image, f"/dev/{device}", "--yes", *runner)
                self.assertIn("2 MiB, read back and equal", out)
                card = (self.root / "dev" / device).read_bytes()
                self.assertEqual(card[:2 * MIB], self.image.read_bytes())
                self.assertEqual(card[2 * MIB:], bytes(len(card) - 2 * MIB))

    def test_bmaptool(self):
        """In its place a script that copies, or copies all but the last byte."""
        tools = self.dir / "tools"
        tools.mkdir()
        for tail, said in (("", ""),
                           ('truncate -s 1M "$4"; truncate -s 8M "$4"', "at byte 1048576"),
                           ("exit 5", "bmaptool failed with exit code 5")):
            with self.subTest(tail):
                script = tools / "bmaptool"
                script.write_text('#!/bin/sh\n[ "$1 $2" = "copy --nobmap" ] || exit 9\n'
                                  f'dd if="$3" of="$4" conv=notrunc status=none\n{tail}\n')
                script.chmod(0o755)
                _, err = self.ringpipe(
                    "flash", self.image, "/dev/sdb", "--yes", "--runner", "bmaptool",
                    code=3 if said else 0,
                    env={"RINGPIPE_FLASH_ROOT": str(self.root),
                         "PATH": f"{tools}:{os.environ['PATH']}"})
                self.assertIn(said, err)
        err = self.refused("flash", self.image, "/dev/sdb", "--yes", "--runner", "bmaptool",
                           env={"RINGPIPE_FLASH_ROOT": str(self.root), "PATH": "/nonexistent"})
        self.assertIn("missing programs: bmaptool; on Debian install them with "
                      "`apt-get install bmap-tools`", err)

    def test_left_alone(self):
        self.assertIn("/dev/sda is in use: sda2 is mounted at /", self.left_alone("/dev/sda"))
        self.assertIn("/dev/sdb1 is a partition; expected the whole disk, /dev/sdb",
                      self.left_alone("/dev/sdb1"))
        self.assertIn("is not a disk", self.left_alone("/dev/loop0"))
        self.assertIn("No such file", self.left_alone("/dev/sdq"))
        self.put("proc/self/mountinfo", "22 1 8:17 / /media/card rw - vfat /dev/sdb1 rw\n")
        self.assertIn("sdb1 is mounted at /media/card", self.left_alone("/dev/sdb"))
        self.assertIn("sda3 is swap space of this machine", self.left_alone("/dev/sda"))
        # By its name where the file system has a number of its own, as btrfs has.
        self.put("proc/self/mountinfo", "22 1 0:30 / /data rw - btrfs /dev/mmcblk0p1 rw\n")
        self.assertIn("mmcblk0p1 is mounted at /data",
                      self.left_alone("/dev/mmcblk0"))
        (self.root / "proc/self/mountinfo").unlink()
        self.assertIn("disks in use cannot be detected", self.left_alone("/dev/mmcblk0"))
        (self.root / "proc/self/mountinfo").mkdir()
        self.assertIn("mountinfo: Is a directory", self.left_alone("/dev/mmcblk0"))
        (self.root / "proc/self/mountinfo").rmdir()
        self.put("proc/self/mountinfo", "")
        self.put("proc/swaps", "")
        self.put("sys/block/sdb/sdb1/holders/dm-0/x", "")
        self.assertIn("sdb1 is used by dm-0", self.left_alone("/dev/sdb"))
        self.assertIn("/dev/sda is an internal disk", self.left_alone("/dev/sda"))
        self.put("sys/block/mmcblk0/ro", "1\n")
        self.assertIn("is write-protected", self.left_alone("/dev/mmcblk0"))

    def test_too_small(self):
        self.image.write_bytes(image(12 * MIB))
        err = self.left_alone("/dev/sdb")
        self.assertIn("/dev/sdb is too small: it has 8 MiB, the image 12", err)

    def test_no_image(self):
        for data, said in ((b"hello", "in whole sectors"),
                           (bytes(MIB), "it has no partition table"),
                           (b"\xfd7zXZ" + bytes(MIB - 5), "it seems to be compressed"),
                           (image()[:-1], "in whole sectors")):
            self.image.write_bytes(data)
            self.assertIn(said, self.left_alone("/dev/sdb"))
        self.assertIn("absent.img: No such file", self.refuse("absent.img", "/dev/sdb", "--yes"))
        self.assertIn("it is a directory", self.refuse(self.dir, "/dev/sdb", "--yes"))

    def test_words(self):
        self.assertIn("flash IMAGE... DEVICE", self.refuse(self.image))
        self.assertIn("--runner: expected bmaptool|dd|qemu, found 'fwup'",
                      self.refuse(self.image, "/dev/sdb", "--runner", "fwup"))
        self.assertIn("without a device", self.refuse(self.image, "/dev/sdb", "--runner", "qemu"))
        self.assertIn("does not name its machine", self.refuse(self.image, "--runner", "qemu"))

    def test_qemu(self):
        """Nothing is written: the image starts as a guest, whose ports are this machine's."""
        firmware = "/usr/share/qemu-efi-aarch64/QEMU_EFI.fd"
        tools = self.dir / "tools"
        tools.mkdir()
        (tools / "qemu-system-aarch64").write_text('#!/bin/sh\necho "$@"\n')
        (tools / "qemu-system-aarch64").chmod(0o755)
        self.image.write_bytes(image(arch="45b021b9f01dc341af444c6f280d3fae"))
        there = os.path.exists(firmware)
        out, err = self.ringpipe(
            "flash", self.image, "--runner", "qemu", "--listen", "tcp://10.0.0.2:7100",
            code=0 if there else 2, env={"PATH": f"{tools}:{os.environ['PATH']}"})
        if there:
            self.assertIn(f"-bios {firmware} -drive file={self.image},format=raw,", out)
            self.assertIn(",hostfwd=tcp:10.0.0.2:7100-:7100,hostfwd=tcp:10.0.0.2:7101-:7101,", out)
        else:
            self.assertIn("apt-get install qemu-efi-aarch64", err)
        err = self.refused("flash", self.image, "--runner", "qemu", env={"PATH": "/nonexistent"})
        if not os.path.exists("/usr/sbin/qemu-system-aarch64"):
            self.assertIn("missing programs: qemu-system-aarch64; on Debian install them with "
                          "`apt-get install qemu-system-arm`", err)

    def test_asks(self):
        before = (self.root / "dev/sdb").read_bytes()
        for answer in (b"n\n", b"\n"):
            _, err = self.flash(self.image, "/dev/sdb", code=2, stdin_bytes=answer)
            self.assertIn("/dev/sdb (Card Reader, 0.0 GB) will be overwritten with", err)
            self.assertIn("nothing was written", err)
        self.assertEqual((self.root / "dev/sdb").read_bytes(), before)
        self.flash(self.image, "/dev/sdb", stdin_bytes=b"y\n")
        self.assertNotEqual((self.root / "dev/sdb").read_bytes(), before)
        # Of this machine itself nobody is asked who is not there.
        self.assertRegex(self.refused("flash", self.image, "/dev/null"), "is not a disk")

    def test_several_cards(self):
        other = self.dir / "right.img"
        other.write_bytes(image())
        _, err = self.flash(self.image, other, "/dev/sdb", stdin_bytes=b"y\n\ny\n")
        self.assertIn(f"the card for {other} into /dev/sdb", err)
        self.assertEqual((self.root / "dev/sdb").read_bytes()[:2 * MIB], other.read_bytes())

    def test_progress(self):
        self.image.write_bytes(image(8 * MIB))
        ours, theirs = pty.openpty()
        process = self.start("flash", self.image, "/dev/sdb", "--yes", stderr=theirs,
                             env={"RINGPIPE_FLASH_ROOT": str(self.root)})
        os.close(theirs)
        self.finish(process)
        said = b""
        try:
            while more := os.read(ours, 4096):
                said += more
        except OSError:
            pass
        os.close(ours)
        self.assertIn(b"writing  50 %       4 of 8 MiB", said)
        self.assertIn(b"reading back 100 %", said)


if __name__ == "__main__":
    program.main()
