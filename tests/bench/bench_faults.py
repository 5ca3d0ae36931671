#!/usr/bin/env python3
"""Faults of every kind in runs of real agents: does every run end by itself with the bits of an
undisturbed one, and how long does each kind of fault cost?

    bench_faults.py RINGPIPE [--faults N] [--minutes N] [--schedules NAME...] [--kinds NAME...]
                             [--told FILE]

With --told every fault becomes a line of FILE, and the table is of all lines that are there: of
several calls, one after the other.

Three boards of a roster; whoever is killed is started again, as systemd would do it, and a killed
controller's run is resumed. Every port of a board lies behind a wire of this program, that can
reset, hold back (both ways or one way) and damage what it carries; with root's rights packets are
dropped in the kernel, too (nftables, in a network namespace of this program's own). A device that
hangs needs the tests' hanging_device.so; an agent that has not ended by itself is ended, as by a
watchdog.
"""
import argparse
import collections
import ctypes
import json
import math
import os
import random
import resource
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import roster

RUN = """\
model: lenet
data: {set: glyphs, train: 2048, test: 64, size: 28}
ring: {roster: lab.yaml, throttle: {forward_ms: 3, backward_ms: 3}}
keys: controller
train: {epochs: 1000, batch: 64, microbatch: 16, seed: 1, eval_epochs: 5, checkpoint_steps: 50}
loss: cross-entropy
optimizer: {kind: sgd, lr: 0.01, momentum: 0.9}
cut: [conv2, fc1]
"""
SCHEDULES = ["gpipe", "1f1b", "pipedream", "pipeoptim", "ea-pipe"]
BOARDS = ("one", "two", "three")
PORT = 7000  # of the orders; feed and ring on the two above it
HUNG_S = 120  # no new step for so long behind a fault's end
GIVEN_UP_S = 60  # a device that hangs: 30 s, and more while the first op of a stage is at work


class Wire:
    """A port of a board, and what is done to the bytes on their way to it and from it."""

    def __init__(self, public, board):
        self.public, self.board = public, board
        self.held = set()  # of "to", "from"
        self.flips = 0
        self.ends = []
        self.door = None
        self.closed = False
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        """The door is open while somebody listens behind it: as without a wire."""
        while not self.closed:
            try:
                socket.create_connection(self.board, timeout=5).close()
                self.door = socket.create_server(self.public, backlog=64)
                with self.door:
                    self.let_in()
            except OSError:
                time.sleep(0.02)

    def let_in(self):
        while True:
            guest, _ = self.door.accept()
            try:
                board = socket.create_connection(self.board, timeout=5)
            except OSError:
                guest.close()
                raise
            for end in (guest, board):
                end.settimeout(None)
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.ends = [end for end in self.ends if end.fileno() >= 0] + [guest, board]
            for way, pair in (("to", (guest, board)), ("from", (board, guest))):
                threading.Thread(target=self.carry, args=(way, *pair), daemon=True).start()

    def carry(self, way, source, target):
        try:
            while data := source.recv(1 << 16):
                while way in self.held:
                    time.sleep(0.01)
                if self.flips and len(data) > 64:
                    self.flips -= 1
                    data = bytearray(data)
                    data[len(data) // 2] ^= 4
                target.sendall(data)
        except OSError:
            pass
        for end in (source, target):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            end.close()

    def reset(self):
        for end in self.ends:
            try:
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                end.shutdown(socket.SHUT_RDWR)
                end.close()
            except OSError:
                pass
        self.ends = []

    def close(self):
        self.closed = True
        if self.door:
            self.door.close()
        self.held.clear()
        self.reset()


class Ring:
    """Three agents behind wires, and a controller."""

    def __init__(self, args, net, schedule):
        self.args, self.net, self.schedule = args, net, schedule
        self.folder = Path(tempfile.mkdtemp(prefix="ringpipe-faults-"))
        self.agents, self.wires, self.lines = {}, {}, collections.deque(maxlen=60)
        self.stopped = False
        self.costs = []  # of faults that the run outlived: seconds from their end to a new step
        self.story = []  # of every fault: its kind, and the ways back before it
        self.open()

    def open(self):
        roster.make(self.args.program, self.folder, "controller",
                    {name: f"tcp://{self.public(i)}:{PORT}" for i, name in enumerate(BOARDS)})
        for i in range(len(BOARDS)):
            for port in range(PORT, PORT + 3):
                self.wires[i, port] = Wire((self.public(i), port), (self.private(i), port))
            self.start_agent(i)
        (self.folder / "run.yaml").write_text(RUN)

    def public(self, board):
        return f"127.{self.net}.1.{board + 1}"

    def private(self, board):
        return f"127.{self.net}.2.{board + 1}"

    def start_agent(self, board):
        name = BOARDS[board]
        journal = open(self.folder / f"{name}.log", "a", encoding="utf-8")
        self.agents[board] = subprocess.Popen(
            [str(self.args.program.parent / "ringpipe-agent"), "--keys", name, "--name", name,
             "--threads", "1", "--listen", f"tcp://{self.private(board)}:{PORT}"],
            cwd=self.folder, stdout=journal, stderr=journal, env=self.agent_environment(board))

    def hang_file(self, board):
        return self.folder / f"hang-{board}"

    def agent_environment(self, board):
        if not self.args.hanging.exists():
            return None
        return {**os.environ, "LD_PRELOAD": str(self.args.hanging),
                "RP_HANG": str(self.hang_file(board))}

    def command(self, *words):
        """Starts the controller; a thread reads its messages, so that it never waits."""
        self.controller = subprocess.Popen([str(self.args.program), *words], cwd=self.folder,
                                           text=True, stdout=subprocess.DEVNULL,
                                           stderr=subprocess.PIPE)
        threading.Thread(target=self.listen, args=(self.controller.stderr,), daemon=True).start()

    def listen(self, pipe):
        for line in pipe:
            self.lines.append(line.rstrip())

    def train(self):
        self.command("train", "run.yaml", "--out", "out", "--set", f"schedule={self.schedule}",
                     "--set", f"train.steps={self.args.steps}")

    def last_step(self):
        """Of log.jsonl, whose end is enough."""
        try:
            with open(self.folder / "out" / "log.jsonl", "rb") as log:
                log.seek(max(0, log.seek(0, os.SEEK_END) - (1 << 14)))
                lines = log.read().split(b"\n")[1:-1]
        except OSError:
            return 0
        steps = [json.loads(line)["step"] for line in lines if b'"loss"' in line
                 and b'"event"' not in line]
        return steps[-1] if steps else 0

    def over(self):
        return self.controller.poll() is not None

    def events(self):
        return [r for r in map(json.loads, (self.folder / "out" / "log.jsonl").read_text()
                               .splitlines()) if "event" in r]

    def ways_back(self):
        return sum(event["event"] == "recovered" for event in self.events())

    def result(self):
        out = self.folder / "out"
        return (json.loads((out / "summary.json").read_text()),
                (out / "weights.safetensors").read_bytes())

    def close(self):
        for process in (self.controller, *self.agents.values()):
            if process.poll() is None:
                process.kill()
            process.wait()
        for wire in self.wires.values():
            wire.close()
        if not self.stopped:
            shutil.rmtree(self.folder, ignore_errors=True)


# ---- faults: each a function of (ring, chance) that is back when the fault is over ----

def long(chance):
    """Seconds: some too short to be noticed, some long enough for a fault."""
    return chance.choice([0.5, 2, 5, 12]) * (0.75 + 0.5 * chance.random())


def any_wire(ring, chance):
    return chance.choice(list(ring.wires.values()))


def kill(ring, chance):
    board = chance.randrange(3)
    ring.agents[board].kill()
    ring.agents[board].wait()
    time.sleep(0.2 + 2 * chance.random())
    ring.start_agent(board)


def two_killed(ring, chance):
    """The second one while the run goes back because of the first."""
    kill(ring, chance)
    time.sleep(2 * chance.random())
    kill(ring, chance)


def all_killed(ring, _chance):
    for board, agent in ring.agents.items():
        agent.kill()
        agent.wait()
    time.sleep(0.5)
    for board in range(3):
        ring.start_agent(board)


def stopped(ring, chance):
    pid = ring.agents[chance.randrange(3)].pid
    os.kill(pid, signal.SIGSTOP)
    time.sleep(long(chance))
    os.kill(pid, signal.SIGCONT)


def reset(ring, chance):
    any_wire(ring, chance).reset()


def flip(ring, chance):
    any_wire(ring, chance).flips = 1


def held(ring, chance, ways=("to", "from")):
    """TCP is alive, and nothing comes through: a stuck proxy."""
    wire = any_wire(ring, chance)
    wire.held.update(ways)
    time.sleep(long(chance))
    wire.held.clear()


def held_one_way(ring, chance):
    held(ring, chance, (chance.choice(["to", "from"]),))


def drop(ring, chance, ways=("daddr", "saddr")):
    """Packets of a board vanish: all of its ports, in both directions or one."""
    address = ring.public(chance.randrange(3))
    table = f"faults_{address.replace('.', '_')}"
    rules = "".join(f"ip {way} {address} drop\n" for way in ways)
    text = f"table ip {table} {{\nchain out {{\ntype filter hook output priority 0;\n{rules}}}\n}}"
    subprocess.run(["nft", text], check=True)
    time.sleep(long(chance))
    subprocess.run(["nft", f"delete table ip {table}"], check=True)


def drop_one_way(ring, chance):
    drop(ring, chance, (chance.choice(["daddr", "saddr"]),))


def controller_killed(ring, chance):
    ring.controller.kill()
    ring.controller.wait()
    time.sleep(2 * chance.random())
    ring.command("resume", "out")


def controller_stopped(ring, chance):
    ring.controller.send_signal(signal.SIGSTOP)
    time.sleep(long(chance))
    ring.controller.send_signal(signal.SIGCONT)


def full_disk(ring, chance):
    """Of the controller: no file of it grows meanwhile."""
    before = resource.prlimit(ring.controller.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(ring.controller.pid, resource.RLIMIT_FSIZE, (0, before[1]))
    time.sleep(long(chance))
    resource.prlimit(ring.controller.pid, resource.RLIMIT_FSIZE, before)


def device_hangs(ring, chance):
    """What the device is given from now on never begins; the agent answers."""
    board = chance.randrange(3)
    file, agent = ring.hang_file(board), ring.agents[board]
    file.touch()
    until = time.monotonic() + 10
    while file.exists() and time.monotonic() < until and not ring.over():
        time.sleep(0.01)
    if file.exists():
        file.unlink()  # it has been given nothing
        return
    try:
        agent.wait(GIVEN_UP_S)
    except subprocess.TimeoutExpired:
        agent.kill()
        agent.wait()
    ring.start_agent(board)


KINDS = [kill, two_killed, all_killed, stopped, reset, flip, held, held_one_way, drop,
         drop_one_way, controller_killed, controller_stopped, full_disk,
         device_hangs]
BY_NAME = {kind.__name__: kind for kind in KINDS}


# ---- runs ----

def wait_for_new_step(ring, last):
    """Seconds until a step above `last` is done, or the run is over; None: neither came."""
    began = time.monotonic()
    while time.monotonic() - began < HUNG_S:
        if ring.last_step() > last or ring.over():
            return time.monotonic() - began
        time.sleep(0.02)
    return None


def disturb(ring, chance, tell):
    """Fault after fault while the run goes on; what each cost. Also at the very start."""
    pause_s = 1.5 * chance.random()
    while True:
        time.sleep(pause_s)
        if ring.over():
            return True
        kind = chance.choice(ring.args.faults_of)
        last, began = ring.last_step(), time.monotonic()
        if last == 0 and kind in (controller_killed, full_disk):
            continue  # there may be no folder yet that could be resumed, or be written
        ring.story.append((kind.__name__, ring.ways_back() if last else 0))
        kind(ring, chance)
        lasted = time.monotonic() - began
        behind = wait_for_new_step(ring, last)
        if behind is None:
            tell(f"HUNG {ring.schedule}: {kind.__name__} of {lasted:.1f} s behind step {last}, "
                 f"in {ring.folder}")
            ring.stopped = True
            return False
        if not ring.over():
            ring.costs.append((kind.__name__, behind))
        pause_s = 3 * chance.random()


def check(ring, wanted):
    """What is wrong with a run that has ended."""
    if ring.controller.returncode != 0:
        return [f"exit code {ring.controller.returncode}"]
    summary, weights = ring.result()
    wrong = []
    if weights != wanted:
        wrong.append("other weights")
    if (summary["ledger"]["lost"], summary["ledger"]["repeated"]) != (0, 0):
        wrong.append(f"ledger {summary['ledger']}")
    return wrong


def states(ring):
    """Of the controllers, those that a fault has ended."""
    return [event["state"] for event in ring.events() if event["event"] == "fault"]


def by_kind(ring):
    """The summary's ways back, which are those of its last controller, with what began them."""
    rows = ring.result()[0]["recovery"]
    first = ring.ways_back() - len(rows)
    return [([kind for kind, before in ring.story if before <= first + i][-1], row)
            for i, row in enumerate(rows)]


def tell_lines(args, lines):
    args.told.extend(lines)
    if args.told_file:
        with open(args.told_file, "a", encoding="utf-8") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)


def run(args, number, schedule, wanted, tell):
    """Whether it was as it should be; its faults, and its ways back with what began them."""
    ring = Ring(args, 1 + number % 200, schedule)
    chance = random.Random(f"{args.seed} {number}")
    try:
        ring.train()
        ended = disturb(ring, chance, tell)
        wrong = check(ring, wanted) if ended else ["hung"]
        if wrong:
            ring.stopped = True  # keep the folder
            tell(f"WRONG run {number} {schedule}: {', '.join(wrong)}; {ring.folder}\n  " +
                 "\n  ".join(ring.lines))
        back = by_kind(ring) if ended and not wrong else []
        lines = [{"schedule": schedule, "kind": kind, "behind_s": cost}
                 for kind, cost in ring.costs]
        lines += [{"schedule": schedule, "kind": kind, "back": row} for kind, row in back]
        lines += [{"schedule": schedule, "state": state} for state in states(ring)] if ended else []
        return not wrong, lines
    finally:
        ring.close()


def undisturbed(args, schedule):
    ring = Ring(args, 201 + args.schedules.index(schedule), schedule)
    try:
        ring.train()
        if ring.controller.wait() != 0:
            sys.exit("the undisturbed run failed:\n" + "\n".join(ring.lines))
        return ring.result()
    finally:
        ring.close()


def spread(values):
    if not values:
        return "–"
    ordered = sorted(values)
    at = [ordered[min(len(ordered) - 1, int(share * len(ordered)))] for share in (0.5, 0.95)]
    return f"{at[0]:.2f} / {at[1]:.2f} / {ordered[-1]:.2f}"


def report(told):
    print("\nSeconds, p50 / p95 / most:\n\n| fault | count | from its end to a new step | "
          "went back | noticed | boards there again | loaded | in all |\n"
          "|---|---|---|---|---|---|---|---|")
    kinds = [line for line in told if "kind" in line]
    for name in [*sorted({line["kind"] for line in kinds}), "all"]:
        own = [line for line in kinds if name in (line["kind"], "all")]
        behind = [line["behind_s"] for line in own if "behind_s" in line]
        back = [[line["back"][key] for key in ("detect_s", "replan_s", "restore_s")]
                for line in own if "back" in line]
        parts = " | ".join(spread(list(part)) for part in zip(*(row + [sum(row)] for row in back)))
        print(f"| {name} | {len(behind)} | {spread(behind)} | {len(back)} | "
              f"{parts or '– | – | – | –'} |")
    ended = collections.Counter(line["state"] for line in told if "state" in line)
    print("\nStates of the controller that a fault ended: " +
          (", ".join(f"{state} {count}" for state, count in ended.most_common()) or "none"))


def own_network():
    """Into a network namespace of its own, where dropped packets harm nobody; False: may not."""
    libc = ctypes.CDLL(None, use_errno=True)
    clone_newnet = 0x40000000
    if not shutil.which("nft") or libc.unshare(clone_newnet) != 0:
        return False
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=lambda text: Path(text).resolve())
    parser.add_argument("--faults", type=int, default=100, help="at least so many in all")
    parser.add_argument("--minutes", type=float, default=math.inf, help="no run begins later")
    parser.add_argument("--steps", type=int, default=1000, help="of a run")
    parser.add_argument("--schedules", nargs="+", default=SCHEDULES)
    parser.add_argument("--kinds", nargs="+", default=list(BY_NAME), choices=list(BY_NAME))
    parser.add_argument("--at-once", type=int, default=2, help="runs")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--told", dest="told_file", type=Path)
    args = parser.parse_args()
    there = args.told_file and args.told_file.exists()
    args.told = list(map(json.loads, args.told_file.read_text().splitlines())) if there else []
    if not own_network():
        print("no packets are dropped: that needs root and nft")
        args.kinds = [kind for kind in args.kinds if not kind.startswith("drop")]
    args.hanging = args.program.parent.parent / "tests" / "hanging_device.so"
    if not args.hanging.exists():
        print(f"no device hangs: that needs {args.hanging}")
        args.kinds = [kind for kind in args.kinds if kind != "device_hangs"]
    args.faults_of = [BY_NAME[name] for name in args.kinds]
    ends = time.monotonic() + 60 * args.minutes
    with ThreadPoolExecutor(args.at_once) as pool:
        calm = dict(zip(args.schedules, pool.map(lambda schedule: undisturbed(args, schedule),
                                                 args.schedules)))
    for schedule, (summary, _) in calm.items():
        print(f"{schedule}: {summary['samples'] / summary['seconds']:.0f} samples/s undisturbed",
              flush=True)
    good, number, faults = True, 0, 0
    with ThreadPoolExecutor(args.at_once) as pool:
        while faults < args.faults and time.monotonic() < ends:
            batch = [(number + i, args.schedules[(number + i) % len(args.schedules)])
                     for i in range(args.at_once)]
            number += args.at_once
            for fine, told in pool.map(lambda job: run(args, *job, calm[job[1]][1],
                                                       lambda text: print(text, flush=True)),
                                       batch):
                good &= fine
                faults += sum("behind_s" in line for line in told)
                tell_lines(args, told)
            print(f"{number} runs, {faults} faults", flush=True)
    report(args.told)
    print(f"\n{number} runs, {faults} faults: "
          f"{'all with the bits of an undisturbed run' if good else 'NOT all good, see above'}")
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
