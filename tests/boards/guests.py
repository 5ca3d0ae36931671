#!/usr/bin/env python3
"""Guests of qemu boot images that are made here, enrol by their tokens over qemu's user network,
and train in a ring with agents of this machine: to the bytes of a ring of this machine alone.

guests.py [--board NAME] [--guests N] [--memory MIB] [--keep DIR] [--model NAME] [--table]
          [--update]

It needs build/, and in build-package/ the packages of the board's architecture. Systems are kept in
build-image/. --keep: the folder of an earlier call, so that guests go on from their disks.
--table: what a guest takes, as a table: memory, flash, times.
--update: one run in which the first guest loses its power, comes back, and gets new software while
the others and a board of this machine train on; it needs some 150 steps. Then it reboots."""
import argparse
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("RP_BUILD_DIR", SOURCE / "build"))
RINGPIPE, AGENT = BUILD / "bin/ringpipe", BUILD / "bin/ringpipe-agent"
PORTS = 18  # of an agent: its own, and those of stages that boards share

MACHINES = {
    "arm64": ["qemu-system-aarch64", "-M", "virt", "-cpu", "cortex-a57", "-bios",
              "/usr/share/qemu-efi-aarch64/QEMU_EFI.fd"],
    "amd64": ["qemu-system-x86_64", "-M", "q35", "-cpu", "Nehalem", "-bios",
              "/usr/share/ovmf/OVMF.fd"],
}
RUN = """\
model: {model}
data: {{set: glyphs, train: 256, test: 64}}
ring: {{{ring}}}
train: {{steps: {steps}, batch: 64, microbatch: 16, seed: 1, checkpoint_steps: {save}}}
loss: cross-entropy
optimizer: {{kind: sgd, lr: 0.05, momentum: 0.9}}
schedule: gpipe
cut: [{cut}]
"""
# Where stages begin, in the order of layers; the first of each ring's size are enough.
CUTS = {"mlp": {2: "fc2", 3: "fc2, fc3", 4: "relu1, fc2, fc3", 5: "relu1, fc2, relu2, fc3"},
        "cnn-small": {2: "conv2", 3: "conv2, conv3", 4: "conv2, conv3, fc",
                      5: "pool1, conv2, conv3, fc"}}


def say(text):
    print(f"{time.monotonic() - BEGAN:7.1f} s  {text}", flush=True)


def own_address():
    """One of this machine that is not its loopback: the same from guests and from here."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.connect(("192.0.2.1", 9))  # sends nothing
        return one.getsockname()[0]


def free_ports(count, taken=set()):
    """The first of so many in a row that nobody has."""
    for first in range(21000, 32000, count):
        block = set(range(first, first + count))
        if not block & taken and all(map(is_free, block)):
            taken |= block
            return first
    raise RuntimeError("no free ports")


def is_free(port):
    with socket.socket() as one:
        try:
            one.bind(("0.0.0.0", port))
        except OSError:
            return False
    return True


class Lab:
    """A folder, this host's keys in it, and all processes that are to end with it."""

    def __init__(self, options):
        self.options = options
        self.dir = Path(options.keep or tempfile.mkdtemp(prefix="ringpipe-guests-"))
        self.dir.mkdir(exist_ok=True)
        self.address = own_address()
        self.door = free_ports(1)
        self.processes = []
        self.locals = {}
        self.arch = re.search(r"^arch: (\w+)", (SOURCE / "boards" / options.board / "board.yaml")
                              .read_text(), re.M)[1]

    def ringpipe(self, *words, **options):
        done = subprocess.run([RINGPIPE, *map(str, words)], cwd=self.dir, text=True, check=False,
                              stdout=subprocess.PIPE, **options)
        if done.returncode:
            sys.exit(f"ringpipe {words[0]} ended with {done.returncode}")
        return done.stdout

    def start(self, words, log, **options):
        with open(self.dir / log, "ab") as out:
            process = subprocess.Popen([*map(str, words)], cwd=self.dir, stdin=subprocess.DEVNULL,
                                       stdout=out, stderr=subprocess.STDOUT, **options)
        self.processes.append(process)
        return process

    def end(self):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.wait()

    def wait_for(self, log, pattern, seconds, process=None):
        """Until a log has the pattern; gives the seconds that it took."""
        began = time.monotonic()
        while time.monotonic() - began < seconds:
            path = self.dir / log
            text = path.read_bytes().decode(errors="replace") if path.exists() else ""
            if re.search(pattern, text):
                return time.monotonic() - began
            if process is not None and process.poll() is not None:
                sys.exit(f"{log}: it ended before '{pattern}':\n{text[-3000:]}")
            time.sleep(0.2)
        return sys.exit(f"{log}: no '{pattern}' after {seconds} s:\n{text[-3000:]}")

    # ---- guests ----

    def make_image(self, name, port):
        self.ringpipe("image", "--board", self.options.board, "--node", name, "--host",
                      f"{self.address}:{self.door}", "--listen", f"tcp://0.0.0.0:{port}",
                      "--keys", "host", "--packages", SOURCE / "build-package", "--cache",
                      SOURCE / "build-image", "--ssh-key", "ssh.pub", "-o", f"{name}.img", "--yes")

    def boot(self, name, port, ssh):
        """A guest whose agent is found at this machine's address, at its own ports."""
        forward = "".join(f",hostfwd=tcp:{self.address}:{p}-:{p}" for p in
                          range(port, port + PORTS))
        words = [*MACHINES[self.arch], "-smp", "2", "-m", self.options.memory, "-drive",
                 f"file={name}.img,format=raw,if=virtio,cache=writeback", "-netdev",
                 f"user,id=net,hostfwd=tcp:127.0.0.1:{ssh}-:22{forward}", "-device",
                 "virtio-net-pci,netdev=net,romfile=", "-display", "none", "-serial", "stdio",
                 "-monitor", "none"]
        return self.start(words, f"{name}.log")

    def inside(self, ssh, command, seconds=120):
        """What a command says in a guest."""
        words = ["ssh", "-i", "ssh", "-p", str(ssh), "-o", "StrictHostKeyChecking=no", "-o",
                 "UserKnownHostsFile=/dev/null", "-o", "ConnectTimeout=60", "-o", "LogLevel=ERROR",
                 "root@127.0.0.1", command]
        done = subprocess.run(words, cwd=self.dir, capture_output=True, text=True, check=False,
                              stdin=subprocess.DEVNULL, timeout=seconds)
        return done.stdout.strip() or "? " + done.stderr.strip()

    # ---- agents of this machine ----

    def local(self, name):
        out = self.ringpipe("boards", "enrol", "--token", "--roster", "lab.yaml", "--keys", "host",
                            "--listen", f"tcp://0.0.0.0:{self.door}", name)
        token = re.search(r"--enrol (rpt1\w+)@", out)[1]
        words = [AGENT, "--listen", f"tcp://{self.address}:{free_ports(PORTS)}", "--keys",
                 name, "--name", name, "--threads", "1", "--board", "pocl-cpu", "--enrol",
                 f"{token}@{self.address}:{self.door}"]
        self.locals[name] = self.start(words, f"{name}.log")

    def train(self, out, ring, **options):
        run = self.dir / f"{out}.yaml"
        cut = CUTS[self.options.model][self.options.guests + self.options.local]
        run.write_text(RUN.format(model=self.options.model, ring=ring, cut=cut,
                                  steps=self.options.steps,
                                  save=10 if self.options.update else 2))
        return self.start([RINGPIPE, "train", run, "--keys", "host", "--out", out], f"{out}.log",
                          **options)

    def finish(self, process, log, seconds):
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
            code = "no end"
        if code != 0:
            sys.exit(f"{log}: {code}\n" + (self.dir / log).read_text()[-3000:])


def first_step(folder):
    log = folder / "log.jsonl"
    return log.exists() and '"loss"' in log.read_text()


def reference(lab):
    """What the same run gives on this machine alone."""
    ours = lab.train("ours", f"boards: {lab.options.guests + lab.options.local}")
    lab.finish(ours, "ours.log", 600)
    return (lab.dir / "ours/weights.safetensors").read_bytes()


def set_up(lab, table):
    """Guests and agents of this machine, all in lab.yaml; {name: port for ssh}."""
    options = lab.options
    lab.ringpipe("keys", "new", "--dir", "host")
    if options.update:
        lab.ringpipe("bundle", "--new-key", "--keys", "host")
        make_bundle(lab)
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", "ssh"], cwd=lab.dir,
                   check=True)
    guests = {}
    for number in range(options.guests):
        name, port = f"guest{number}", free_ports(PORTS)
        began = time.monotonic()
        lab.make_image(name, port)
        table["image made in (system kept)"] = f"{time.monotonic() - began:.1f} s"
        guests[name] = (port, free_ports(1))
    for number in range(options.local):
        lab.local(f"here{number}")
    if options.update:
        lab.local("spare")
    enrol = lab.start([RINGPIPE, "boards", "enrol", "--open", "--roster", "lab.yaml", "--keys",
                       "host", "--listen", f"tcp://0.0.0.0:{lab.door}", "--wait", "3000"],
                      "enrol.log")
    booted = time.monotonic()
    running = {name: lab.boot(name, *ports) for name, ports in guests.items()}
    say(f"{len(guests)} guest(s) switched on, {options.memory} MiB each")
    for name, process in running.items():
        lab.wait_for(f"{name}.log", f"enrolled as {name} by", 1500, process)
        table["power-on to enrolled"] = f"{time.monotonic() - booted:.1f} s"
        say(f"{name} is enrolled")
    lab.finish(enrol, "enrol.log", 300)
    for name, process in running.items():
        lab.wait_for(f"{name}.log", r"listening tcp://", 1500, process)
        table["power-on to ready, kernels of the self-test compiled"] = \
            f"{time.monotonic() - booted:.1f} s"
        say(f"{name} serves")
    return guests, running


def train_with_guests(lab, want, guests, table):
    began = time.monotonic()
    process = lab.train("mixed", "roster: lab.yaml, wait: 600")
    while not first_step(lab.dir / "mixed") and process.poll() is None:
        time.sleep(0.2)
    table["train to first step, kernels compiled"] = f"{time.monotonic() - began:.1f} s"
    say("the first step is done")
    lab.finish(process, "mixed.log", 3000)
    table[f"train, {lab.options.steps} steps"] = f"{time.monotonic() - began:.1f} s"
    got = (lab.dir / "mixed/weights.safetensors").read_bytes()
    if got != want:
        sys.exit("the ring with guests has other weights")
    say("weights are those of this machine alone, byte for byte")
    for _, ssh in list(guests.values())[:1]:
        measure(lab, ssh, table)


INSIDE = """
sed -n 's/VmHWM: */agent, most memory: /p; s/VmRSS: */agent, memory now: /p' \
    /proc/$(pidof ringpipe-agent)/status
free -m | awk '/Mem/ { print "memory used of all, MiB: " $3 " of " $2 }'
echo "data partition used: $(df -BM --output=used /run/ringpipe/data | tail -1)"
echo "start: $(systemd-analyze time | head -1 | sed 's/Startup finished in//')"
"""


def measure(lab, ssh, table):
    for line in lab.inside(ssh, INSIDE).splitlines():
        key, _, value = line.partition(": ")
        table[key] = " ".join(value.split())


def power_cut(lab, want, guests, running, table):
    """The first guest loses its power in the middle of a run and is switched on again."""
    name, ports = next(iter(guests.items()))
    process = lab.train("cut", "roster: lab.yaml, wait: 1500")
    while not first_step(lab.dir / "cut") and process.poll() is None:
        time.sleep(0.2)
    running[name].kill()
    running[name].wait()
    say(f"{name} is without power")
    (lab.dir / f"{name}.log").write_bytes(b"")
    running[name] = lab.boot(name, *ports)
    began = time.monotonic()
    lab.wait_for(f"{name}.log", r"listening tcp://", 1500, running[name])
    table["power-on to ready, second time"] = f"{time.monotonic() - began:.1f} s"
    lab.finish(process, "cut.log", 3000)
    if (lab.dir / "cut/weights.safetensors").read_bytes() != want:
        sys.exit("the run with a power cut has other weights")
    say("the run with a power cut has the same weights")


# ---- an update while the ring trains ----

# An op takes at least so long, so that the run outlasts a start of a guest and a trial of software.
SLOW = "throttle: {forward_ms: 100, backward_ms: 150}"
RELEASE = 7


def make_bundle(lab):
    """The board's own agent once more, as a release that it does not have."""
    deb = sorted((SOURCE / "build-package").glob(f"ringpipe-agent_*_{lab.arch}.deb"))[-1]
    subprocess.run(["dpkg-deb", "--extract", deb, "deb"], cwd=lab.dir, check=True)
    for part in ("bin", "share/ringpipe"):
        shutil.copytree(lab.dir / "deb/usr" / part, lab.dir / "tree" / part)
    lab.ringpipe("bundle", "tree", "--board", lab.options.board, "--release", RELEASE, "--keys",
                 "host", "--out", "new.rpb")


def last_step(folder):
    log = folder / "log.jsonl"
    lines = log.read_text().splitlines(keepends=True) if log.exists() else []
    steps = [json.loads(line) for line in lines if line.endswith("\n")]
    return max((line["step"] for line in steps if "loss" in line and "event" not in line),
               default=0)


def wait_for_step(lab, folder, more, process, seconds=1500):
    """So many steps behind the last one that there is now."""
    want = last_step(folder) + more
    began = time.monotonic()
    while last_step(folder) < want:
        if process.poll() is not None or time.monotonic() - began > seconds:
            sys.exit(f"no step {want}:\n{(lab.dir / 'update.log').read_text()[-3000:]}")
        time.sleep(0.2)


def take_place(lab, process, name):
    """A spare board comes into the ring, and the ring goes on."""
    lab.wait_for("update/log.jsonl", f"the spare board {name} takes its place", 300, process)
    wait_for_step(lab, lab.dir / "update", 2, process)
    say(f"{name} has a stage: step {last_step(lab.dir / 'update')}")


def update(lab, want, guests, running, table):
    """While all guests train, the first one loses its power, and a board of this machine takes its
    place; it comes back, gets new software, and takes its place again when that board ends."""
    name, ports = next(iter(guests.items()))
    folder = lab.dir / "update"
    process = lab.train("update", f"roster: lab.yaml, spare: [spare], wait: 900, {SLOW}")
    began = time.monotonic()
    wait_for_step(lab, folder, 2, process)
    table["train to first steps, kernels compiled"] = f"{time.monotonic() - began:.1f} s"
    say(f"{len(guests)} guests train")
    running[name].kill()
    running[name].wait()
    say(f"{name} is without power")
    take_place(lab, process, "spare")
    (lab.dir / f"{name}.log").write_bytes(b"")
    running[name] = lab.boot(name, *ports)
    began = time.monotonic()
    lab.wait_for(f"{name}.log", r"listening tcp://", 1500, running[name])
    table["power-on to ready, second time"] = f"{time.monotonic() - began:.1f} s"
    say(f"{name} is back")
    before, began = last_step(folder), time.monotonic()
    lab.ringpipe("push", "new.rpb", name, "--roster", "lab.yaml", "--keys", "host")
    table["push, with 60 s of its trial"] = f"{time.monotonic() - began:.1f} s"
    found = json.loads(lab.ringpipe("slots", name, "--roster", "lab.yaml", "--keys", "host",
                                    "--format", "json"))
    if found["release"] != RELEASE or process.poll() is not None:
        sys.exit(f"slots: {found}; the run: {process.poll()} (more --steps?)")
    table["steps of the ring meanwhile"] = last_step(folder) - before
    say(f"{name} has release {RELEASE}: step {last_step(folder)}")
    lab.locals["spare"].terminate()
    take_place(lab, process, name)
    lab.finish(process, "update.log", 3000)
    if (folder / "weights.safetensors").read_bytes() != want:
        sys.exit("the run with an update has other weights")
    say("the run with a power cut and an update has the weights of this machine alone")
    measure(lab, ports[1], table)
    reboot(lab, name, ports[1], table)


def reboot(lab, name, ssh, table):
    """A host asks the agent, which asks systemd: the guest's kernel starts anew."""
    which = "cat /proc/sys/kernel/random/boot_id"
    before, began = lab.inside(ssh, which), time.monotonic()
    lab.ringpipe("boards", "reboot", name, "--roster", "lab.yaml", "--keys", "host", "--wait",
                 "1500")
    table["reboot, until its agent answers again"] = f"{time.monotonic() - began:.1f} s"
    after = lab.inside(ssh, which)
    while after.startswith("? ") and time.monotonic() - began < 1800:  # its sshd is not there yet
        time.sleep(1)
        after = lab.inside(ssh, which)
    if "? " in (before[:2], after[:2]) or before == after:
        sys.exit(f"reboot: {before} before, {after} after")
    say(f"{name} has rebooted")


def flash_of(lab, table):
    image = lab.dir / "guest0.img"
    systems = [path for path in (SOURCE / "build-image").glob(f"{lab.arch}-*/root.squashfs")]
    newest = max(systems, key=lambda path: path.stat().st_mtime)
    table["image"] = f"{image.stat().st_size >> 20} MiB"
    table["system (compressed)"] = f"{newest.stat().st_size >> 20} MiB"


def end_with_guests(*_):
    sys.exit("ended by a signal")


def main():
    signal.signal(signal.SIGTERM, end_with_guests)
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--board", default="qemu-virt-arm64")
    parser.add_argument("--guests", type=int, default=1)
    parser.add_argument("--local", type=int, default=2, help="boards of this machine in the ring")
    parser.add_argument("--memory", default="1024")
    parser.add_argument("--model", default="mlp")
    parser.add_argument("--steps", type=int)
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--keep")
    parser.add_argument("--no-cut", action="store_true", help="without the power cut")
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    options.steps = options.steps or (150 if options.update else 6)
    lab = Lab(options)
    table = {"guest": f"{lab.options.board}, {lab.options.memory} MiB, {lab.options.model}"}
    try:
        want = reference(lab)
        say("this machine alone has trained")
        guests, running = set_up(lab, table)
        flash_of(lab, table)
        if options.update:
            update(lab, want, guests, running, table)
        else:
            train_with_guests(lab, want, guests, table)
        if not (options.no_cut or options.update):
            power_cut(lab, want, guests, running, table)
    finally:
        lab.end()
        if not lab.options.keep:
            shutil.rmtree(lab.dir, ignore_errors=True)
    if lab.options.table:
        print("\n| what | |\n|---|---|")
        for key, value in table.items():
            print(f"| {key} | {value} |")
    print("ok")


BEGAN = time.monotonic()
if __name__ == "__main__":
    main()
