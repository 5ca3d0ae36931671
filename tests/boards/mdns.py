#!/usr/bin/env python3
"""A board lists itself in its network by the file of its package, and a host beside it finds it.

mdns.py [--keep] [--resolved FOLDER]

Host and board are two network namespaces that a cable joins, with a bus and an avahi-daemon each.
The board has the agent and what the package puts into /etc/avahi/services; `avahi-browse` on the
host has to list it, its name has to be good for a roster, and what the program says of a board that
is not found has to be true, step by step, as one thing after the other is taken away.

--resolved: the board has systemd-resolved and the file of an image in place of avahi-daemon; it is
taken from FOLDER, where its package is unpacked, for an installed one changes this machine's names.
It needs build/, and avahi-daemon, avahi-utils, dbus, libnss-mdns, iproute2, util-linux. All of it
lives in namespaces that end with this program; no root is needed."""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("RP_BUILD_DIR", SOURCE / "build"))
RINGPIPE, AGENT = BUILD / "bin/ringpipe", BUILD / "bin/ringpipe-agent"
ADVERT = SOURCE / "packaging/debian/avahi/ringpipe-agent.service"
IMAGE_ADVERT = SOURCE / "packaging/image/root/etc/systemd/dnssd/ringpipe.dnssd"
TOOLS = ("avahi-daemon", "avahi-browse", "dbus-daemon", "ip", "unshare", "nsenter")

BUS = """\
<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>system</type>
  <listen>unix:path=/run/dbus/system_bus_socket</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow user="*"/>
    <allow own="*"/>
    <allow send_type="method_call"/>
    <allow send_destination="*"/>
    <allow receive_sender="*"/>
  </policy>
</busconfig>
"""
AVAHI = """\
[server]
host-name={name}
use-ipv4=yes
use-ipv6=no
allow-interfaces=cable
[publish]
publish-workstation=no
"""
# What a machine of its own has in /etc. A namespace of users has one account, under all names.
ETC = {"nsswitch.conf": "hosts: files mdns4_minimal [NOTFOUND=return] dns\n",
       "passwd": "".join(f"{name}:x:0:0::/:/bin/sh\n" for name in
                         ("root", "avahi", "systemd-resolve")),
       "group": "".join(f"{name}:x:0:\n" for name in
                        ("root", "avahi", "netdev", "systemd-resolve"))}


def say(text):
    print(f"{time.monotonic() - BEGAN:6.1f} s  {text}", flush=True)


class Machine:
    """Network, mounts and name of its own; what is started here ends with this program."""

    def __init__(self, folder, name, address):
        self.folder, self.name, self.address = folder, name, address
        self.first = subprocess.Popen(
            ["unshare", "--net", "--mount", "--uts", "sleep", "3600"], cwd=folder)
        time.sleep(0.5)
        (folder / f"{name}.bus").write_text(BUS)
        (folder / f"{name}.avahi").write_text(AVAHI.format(name=name))
        (folder / f"{name}.services").mkdir()
        self.run("hostname", name)
        self.run("ip", "link", "set", "lo", "up")
        self.run("mount", "-t", "tmpfs", "tmpfs", "/run")
        self.run("mkdir", "/run/dbus", "/run/avahi-daemon")
        for file, text in ETC.items():
            (folder / f"{name}.{file}").write_text(text)
            self.run("mount", "--bind", f"{name}.{file}", f"/etc/{file}")
        self.run("mount", "--bind", f"{name}.services", "/etc/avahi/services")

    def words(self, words):
        return ["nsenter", "-t", str(self.first.pid), "--net", "--mount", "--uts",
                f"--wd={self.folder}", *map(str, words)]

    def run(self, *words, code=0):
        done = subprocess.run(self.words(words), text=True, check=False, capture_output=True,
                              stdin=subprocess.DEVNULL, timeout=120)
        if done.returncode != code:
            sys.exit(f"{self.name}: {' '.join(map(str, words))}: {done.returncode}\n"
                     f"{done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    def start(self, *words, log):
        with open(self.folder / log, "ab") as out:
            return subprocess.Popen(self.words(words), stdin=subprocess.DEVNULL, stdout=out,
                                    stderr=subprocess.STDOUT)

    def connect(self, end):
        self.run("ip", "link", "set", end, "name", "cable")
        self.run("ip", "address", "add", f"{self.address}/24", "dev", "cable")
        self.run("ip", "link", "set", "cable", "up")

    def start_bus(self):
        bus = self.start("dbus-daemon", f"--config-file={self.name}.bus", "--nofork",
                         "--nopidfile", log=f"{self.name}.log")
        wait_for("the bus", lambda: self.has("/run/dbus/system_bus_socket"))
        return bus

    def start_avahi(self):
        bus = self.start_bus()
        avahi = self.start("avahi-daemon", "-f", f"{self.folder}/{self.name}.avahi",
                           "--no-drop-root", "--no-chroot", "--no-rlimits",
                           log=f"{self.name}.log")
        wait_for("avahi-daemon", lambda: self.has("/run/avahi-daemon/socket"))
        return bus, avahi

    def start_resolved(self, folder):
        """As in an image, whose networks say MulticastDNS=yes."""
        bus = self.start_bus()
        (self.folder / "dnssd").mkdir()
        shutil.copy(IMAGE_ADVERT, self.folder / "dnssd")
        self.run("mount", "-t", "tmpfs", "tmpfs", "/etc/systemd")
        self.run("mkdir", "-p", "/etc/systemd/dnssd", "/run/systemd/resolve")
        self.run("mount", "--bind", "dnssd", "/etc/systemd/dnssd")
        resolved = self.start(folder / "lib/systemd/systemd-resolved", log=f"{self.name}.log")
        wait_for("systemd-resolved", lambda: self.has("/run/systemd/resolve/resolv.conf"))
        self.run(folder / "usr/bin/resolvectl", "mdns", "cable", "yes")
        return bus, resolved

    def has(self, path):
        return self.good("test", "-e", path)

    def knows(self, name):
        return self.good("getent", "hosts", name)

    def good(self, *words):
        return subprocess.run(self.words(words), check=False, capture_output=True).returncode == 0


def wait_for(what, found, seconds=30):
    began = time.monotonic()
    while time.monotonic() - began < seconds:
        have = found()
        if have:
            return have
        time.sleep(0.2)
    return sys.exit(f"{what}: not within {seconds} s")


def end(process):
    process.terminate()
    process.wait(10)


def lay_cable(host, board):
    host.run("ip", "link", "add", "end0", "type", "veth", "peer", "name", "end1", "netns",
             str(board.first.pid))
    host.connect("end0")
    board.connect("end1")


def browse(host):
    out = host.run("avahi-browse", "--resolve", "--parsable", "--terminate", "_ringpipe._tcp")
    return [line.split(";") for line in out.splitlines() if line.startswith("=")]


def enrol(host, board):
    host.run(RINGPIPE, "keys", "new", "--dir", "host")
    where = ("--roster", "lab.yaml", "--keys", "host", "--listen", "tcp://0.0.0.0:7900")
    out = host.run(RINGPIPE, "boards", "enrol", "--token", *where, "left")
    token = re.search(r"--enrol (rpt1\w+)@", out)[1]
    waiting = host.start(RINGPIPE, "boards", "enrol", "--open", *where, "left", log="enrol.log")
    agent = board.start(AGENT, "--listen", "tcp://0.0.0.0:7000", "--keys", "left", "--name",
                        "left", "--board", "pocl-cpu", "--threads", "1", "--enrol",
                        f"{token}@{host.address}:7900", log="agent.log")
    if waiting.wait(300) != 0:
        sys.exit((host.folder / "enrol.log").read_text())
    log = host.folder / "agent.log"
    wait_for("the agent", lambda: "listening" in log.read_text(), 300)
    return agent


def use_address(folder, address):
    roster = folder / "lab.yaml"
    text, count = re.subn(r"tcp://[^\":]+:", f"tcp://{address}:", roster.read_text())
    if count != 1:
        sys.exit(f"the roster:\n{text}")
    roster.write_text(text)


def ask(host, pattern, code):
    """What the program says of the board in the roster."""
    said = host.run(RINGPIPE, "boards", "show", "left", "--roster", "lab.yaml", "--keys", "host",
                    code=code)
    if not re.search(pattern, said, re.M):
        sys.exit(f"expected {pattern}:\n{said}")
    say(next(line for line in said.splitlines() if re.search(pattern, line)).strip())


def check(folder, resolved):
    host = Machine(folder, "desk", "10.98.7.1")
    board = Machine(folder, "left", "10.98.7.2")
    lay_cable(host, board)
    shutil.copy(ADVERT, folder / "left.services")
    host.start_avahi()
    served = board.start_resolved(resolved.resolve()) if resolved else board.start_avahi()
    agent = enrol(host, board)
    say("the board is enrolled")
    found = wait_for("the advert", lambda: browse(host), 60)
    say(f"avahi-browse: {';'.join(found[0])}")
    _, interface, _, name, kind, _, target, address, port = found[0][:9]
    if (len(found), interface, kind, target, address, port) != \
            (1, "cable", "_ringpipe._tcp", "left.local", board.address, "7000") or \
            name.replace("\\032", " ") != "ringpipe on left":
        sys.exit(f"another advert: {found}")
    use_address(folder, "left.local")
    ask(host, r"^ *state +hello", 0)
    end(agent)
    ask(host, rf"left\.local is {board.address}, tried through cable \({host.address}\): the "
              r"machine is there, and nothing listens at port 7000", 3)
    use_address(folder, "10.98.7.77")
    ask(host, r"10\.98\.7\.77, tried through cable .*`avahi-browse -rt _ringpipe\._tcp`", 3)
    for process in reversed(served):
        end(process)
    # systemd-resolved says no goodbye: what it has said holds for two minutes.
    wait_for("no advert", lambda: not browse(host), 200)
    wait_for("no name", lambda: not host.knows("left.local"), 200)
    say("avahi-browse: nothing any more")
    use_address(folder, "left.local")
    ask(host, r"the name 'left\.local' is not known here .*do avahi-daemon", 3)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keep", action="store_true", help="the folder with all logs")
    parser.add_argument("--resolved", type=Path)
    options = parser.parse_args()
    missing = [tool for tool in TOOLS if not shutil.which(tool, path=os.environ["PATH"] + ":/sbin:"
                                                          "/usr/sbin")]
    if missing:
        print(f"SKIP: {' '.join(missing)} not here")
        sys.exit(77)
    if os.environ.get("RINGPIPE_APART") != "1":
        os.environ["RINGPIPE_APART"] = "1"
        os.environ["PATH"] += ":/sbin:/usr/sbin"
        os.execvp("unshare", ["unshare", "--user", "--map-root-user", "--mount", "--net", "--pid",
                              "--fork", "--kill-child", "--mount-proc", sys.executable,
                              *sys.argv])
    folder = Path(tempfile.mkdtemp(prefix="ringpipe-mdns-"))
    try:
        check(folder, options.resolved)
        print("ok")
    finally:
        if options.keep:
            print(folder)
        else:
            shutil.rmtree(folder, ignore_errors=True)


BEGAN = time.monotonic()
if __name__ == "__main__":
    main()
