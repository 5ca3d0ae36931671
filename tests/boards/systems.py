#!/usr/bin/env python3
"""A guest of qemu that boots an image made here gets another whole system, over the network, into
its other slot: one whose first program does not start, which the boot loader leaves after its
starts, and then one that works, which becomes good by itself.

systems.py [--board NAME] [--memory MIB] [--table] [--only bad|good] [--keep DIR]

It needs build/, and in build-package/ the packages of the board's architecture. Systems are kept in
build-image/. One guest at a time. --only: one of the two. The system that works is some hundred
megabytes that an emulated processor decrypts, checks and writes. It is the guest's own, with a file
more, and without drivers that no guest needs; to make that takes the rights of root."""
import argparse
import io
import json
import re
import shutil
import subprocess
import sys
import tarfile
import time

import guests
from guests import RINGPIPE, SOURCE, say

GROWS = 1536 << 20  # behind the image, as a card is larger than it


def bundle(lab, release, tree):
    lab.ringpipe("bundle", tree, "--board", lab.options.board, "--release", release, "--keys",
                 "host", "-o", f"system-{release}.rpb")
    return f"system-{release}.rpb"


DRIVERS = ("gpu", "media", "infiniband", "scsi", "usb", "iio", "staging", "hwmon", "input", "mmc",
           "video", "mtd", "net/ethernet", "net/wireless", "net/usb", "net/can", "nvme")


def change_system(lab):
    """Another one, which says so in a file of its own."""
    root = lab.dir / "tree/system/root.squashfs"
    tree = lab.dir / "root"
    subprocess.run(["unsquashfs", "-q", "-n", "-d", tree, root], check=True)
    for kernel in tree.glob("usr/lib/modules/*/kernel"):
        for folder in ("sound", *(f"drivers/{name}" for name in DRIVERS)):
            shutil.rmtree(kernel / folder, ignore_errors=True)
    (tree / "usr/share/ringpipe/which").write_text("another\n")
    root.unlink()
    subprocess.run(["mksquashfs", tree, root, "-comp", "lz4", "-quiet", "-no-progress"],
                   check=True)
    shutil.rmtree(tree)


def break_system(lab):
    """Kernel and first file system of the one that works; behind them there is no program."""
    shutil.copytree(lab.dir / "tree", lab.dir / "bad")
    text = io.BytesIO()
    with tarfile.open(fileobj=text, mode="w") as tar:
        for name in ("sbin", "boot", "run", "dev", "proc", "sys"):
            folder = tarfile.TarInfo(name)
            folder.type, folder.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(folder)
        script = b"#!/nonexistent\n"
        init = tarfile.TarInfo("sbin/init")
        init.size, init.mode = len(script), 0o755
        tar.addfile(init, io.BytesIO(script))
    root = lab.dir / "bad/system/root.squashfs"
    root.unlink()
    subprocess.run(["sqfstar", "-quiet", "-no-progress", root], input=text.getvalue(), check=True)


def systems(lab):
    out = lab.ringpipe("slots", "--roster", "lab.yaml", "--keys", "host", "--format", "json")
    return json.loads(out)["systems"]


def push(lab, name, good):
    """What the program says at the end of a push that ends well, or does not."""
    began = time.monotonic()
    words = [RINGPIPE, "push", name, "--roster", "lab.yaml", "--keys", "host", "--wait", "3600"]
    done = subprocess.run(words, cwd=lab.dir, text=True, check=False, capture_output=True)
    if done.returncode != (0 if good else 3):
        sys.exit(f"push {name}: {done.returncode}\n{done.stdout}{done.stderr}")
    say(f"push {name}: {(done.stdout if good else done.stderr).strip()}")
    return time.monotonic() - began, done.stderr


def expect(found, runs, **slots):
    have = {slot: (found[slot]["state"], found[slot]["release"]) for slot in "ab"}
    if found["runs"] != runs or have != slots:
        sys.exit(f"expected {runs} to run and {slots}, found {found}")


def set_up(lab, table):
    lab.ringpipe("keys", "new", "--dir", "host")
    lab.ringpipe("bundle", "--new-key", "--keys", "host")
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", "ssh"], cwd=lab.dir,
                   check=True)
    port, ssh = guests.free_ports(guests.PORTS), guests.free_ports(1)
    lab.make_image("guest0", port)
    with open(lab.dir / "guest0.img", "r+b") as image:
        image.truncate(image.seek(0, 2) + GROWS)
    lab.ringpipe("image", "--system", "--board", lab.options.board, "--packages",
                 SOURCE / "build-package", "--cache", SOURCE / "build-image", "-o", "tree")
    enrol = lab.start([RINGPIPE, "boards", "enrol", "--open", "--roster", "lab.yaml", "--keys",
                       "host", "--listen", f"tcp://0.0.0.0:{lab.door}", "--wait", "3000"],
                      "enrol.log")
    began = time.monotonic()
    guest = lab.boot("guest0", port, ssh)
    say("the guest is switched on")
    lab.wait_for("guest0.log", "enrolled as guest0 by", 1500, guest)
    lab.finish(enrol, "enrol.log", 300)
    lab.wait_for("guest0.log", r"listening tcp://", 1500, guest)
    table["power-on to ready, the first time"] = f"{time.monotonic() - began:.0f} s"
    say("it serves, from slot a")
    expect(systems(lab), "a", a=("good", 0), b=("empty", 0))
    return ssh


def good_system(lab, ssh, table):
    change_system(lab)
    name = bundle(lab, 3, "tree")
    seconds, _ = push(lab, name, True)
    mib = (lab.dir / name).stat().st_size >> 20
    table["a system that works"] = f"{mib} MiB, {seconds:.0f} s from push to good: transfer, " \
        "written and read back, start, self-test, 60 s"
    expect(systems(lab), "b", a=("good", 0), b=("good", 3))
    slot = lab.inside(ssh, "cat /run/ringpipe/slot /usr/share/ringpipe/which; "
                           "ls /boot/loader/entries")
    say(f"inside: {slot.split()}")
    if slot.split() != ["b", "another", "ringpipe-a.conf", "ringpipe-b.conf"]:
        sys.exit(f"other entries: {slot}")


def bad_system(lab, ssh, table):
    """Its kernel and first file system start, three times; then slot a comes back by itself."""
    (lab.dir / "guest0.log").write_bytes(b"")
    break_system(lab)
    seconds, said = push(lab, bundle(lab, 2, "bad"), False)
    table["a system that does not start"] = f"{seconds:.0f} s from push to the one before"
    if "release 2 failed its trial" not in said:
        sys.exit(said)
    expect(systems(lab), "a", a=("good", 0), b=("failed", 2))
    log = (lab.dir / "guest0.log").read_bytes().decode(errors="replace")
    tries = len(re.findall(r"(?<!end )Kernel panic - not|starting again in", log))
    say(f"inside: {lab.inside(ssh, 'cat /run/ringpipe/slot; ls /boot/loader/entries').split()}")
    say(f"{tries} starts of slot b came to their end on the console")
    if tries != 3:
        sys.exit("expected 3 starts")


def main():
    guests.signal.signal(guests.signal.SIGTERM, guests.end_with_guests)
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--board", default="qemu-virt-arm64")
    parser.add_argument("--memory", default="1024")
    parser.add_argument("--only", choices=("bad", "good"))
    parser.add_argument("--keep", help="a folder, which stays")
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    lab = guests.Lab(options)
    table = {"guest": f"{options.board}, {options.memory} MiB"}
    try:
        ssh = set_up(lab, table)
        if options.only != "good":
            bad_system(lab, ssh, table)
        if options.only != "bad":
            good_system(lab, ssh, table)
    finally:
        lab.end()
        if not options.keep:
            shutil.rmtree(lab.dir, ignore_errors=True)
    if options.table:
        print("\n| what | |\n|---|---|")
        for key, value in table.items():
            print(f"| {key} | {value} |")
    print("ok")


if __name__ == "__main__":
    main()
