#!/usr/bin/env python3
"""How near a run comes to what its wires, or with far wires its boards, let through at most.

    bench_wire.py RINGPIPE [--rows emulated far real profile] [--steps N]

    emulated  wires of 10 Mbit/s and 50 ms (ring.link), against what 10 Mbit/s carry
    far       wires of 50 ms without a rate, against the same run with wires that take no time
    real      boards in network namespaces with cards of 10 and 100 Mbit/s each way (veth, tbf);
              against what the card of the middle board carries: it sends to both neighbours.
              As root; keys and a roster, as on boards. Beside it what one TCP stream gets there.
    profile   the same boards and cards: what `ringpipe profile` says of the wires between them

A ratio on a slow wire suffers little from other work on the machine; `far` and 100 Mbit/s do.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import roster

RUN = """\
model: thin.yaml
data: {set: glyphs, train: 4096, test: 64, size: 28}
ring: {%s, throttle: {forward_ms: %d, backward_ms: %d}}
train: {epochs: 100, steps: %d, batch: 8, microbatch: 8, seed: 3, eval_epochs: 0}
loss: cross-entropy
optimizer: {kind: sgd, lr: 0.005}
schedule: %s
cut: [relu1, flatten]
"""
# Little to compute, much to send: the wires are tested. `data` has 28 x 28 pixels.
MODEL = """\
input: data
layers:
  - {name: conv1, kind: conv2d, out: %d, kernel: 1, stride: %d}
  - {name: relu1, kind: relu}
  - {name: flatten, kind: flatten}
  - {name: fc, kind: dense, out: classes}
"""
# Channels and stride, and the bytes of a sample that cross each cut, either way.
NARROW, WIDE = (6, 2, 4 * 6 * 14 * 14), (16, 1, 4 * 16 * 28 * 28)
AUTO = "{kind: %s, advance: auto}"
NAMES = ("one", "two", "three")


def samples_per_s(out):
    """From a quarter of the steps to nine tenths: neither filled nor drained there."""
    steps = [e for e in map(json.loads, (out / "log.jsonl").read_text().splitlines())
             if "loss" in e and "time_s" in e and "event" not in e]
    a, z = steps[len(steps) // 4], steps[len(steps) * 9 // 10]
    return (z["step"] - a["step"]) * 8 / (z["time_s"] - a["time_s"])


def train(args, folder, net, text, before=()):
    run, out = folder / "run.yaml", folder / "out"
    (folder / "thin.yaml").write_text(MODEL % net[:2])
    shutil.rmtree(out, ignore_errors=True)
    run.write_text(text)
    done = subprocess.run([*before, args.program, "train", run, "--out", out], cwd=folder,
                          capture_output=True, text=True, timeout=1800, check=False)
    if done.returncode:
        sys.exit(f"{text}\n{done.stderr}")
    plan = json.loads((out / "plan.json").read_text())
    return samples_per_s(out), plan.get("advance", {}).get("chosen", "")


def tell(where, schedule, advance, got, limit, beside=""):
    print(f"| {where} | {schedule} | {advance} | {got:.0f} | {limit:.0f} | "
          f"{100 * got / limit:.1f} % | {beside} |", flush=True)


def emulated(args, folder):
    link = "boards: 3, link: {delay_ms: 50, rate_mbit: 10}"
    for schedule in ("gpipe", AUTO % "pipeoptim", AUTO % "async"):
        text = RUN % (link, 5, 5, args.steps, schedule)
        got, advance = train(args, folder, NARROW, text)
        tell("10 Mbit/s + 50 ms", schedule, advance, got, 10e6 / 8 / NARROW[2])


def far(args, folder):
    for schedule in (AUTO % "pipeoptim", "{kind: pipeoptim, advance: {max_staleness: 22}}"):
        near = RUN % ("boards: 3", 10, 10, args.steps, schedule)
        limit, _ = train(args, folder, NARROW, near)
        got, advance = train(args, folder, NARROW,
                             near.replace("boards: 3", "boards: 3, link: {delay_ms: 50}"))
        tell("50 ms", schedule, advance, got, limit)


class Cards:
    """A switch and four machines, each in a network namespace; a card of so many Mbit/s each."""

    def __init__(self, rate_mbit):
        self.mark = f"rpw{os.getpid()}"
        self.made = []
        self.space("switch")
        self.within("switch", "ip", "link", "add", "b0", "type", "bridge")
        self.within("switch", "ip", "link", "set", "b0", "up")
        for number, name in enumerate(("host", *NAMES)):
            self.machine(name, number, 1000 if name == "host" else rate_mbit)

    def space(self, name):
        subprocess.run(["ip", "netns", "add", self.mark + name], check=True)
        self.made.append(self.mark + name)
        self.within(name, "ip", "link", "set", "lo", "up")

    def words(self, name):
        return ["ip", "netns", "exec", self.mark + name]

    def within(self, name, *words):
        subprocess.run([*self.words(name), *words], check=True)

    def machine(self, name, number, rate_mbit):
        self.space(name)
        self.within(name, "ip", "link", "add", "e0", "type", "veth", "peer", "name", f"p{number}",
                    "netns", self.mark + "switch")
        self.within("switch", "ip", "link", "set", f"p{number}", "master", "b0", "up")
        self.within(name, "ip", "addr", "add", f"10.78.1.{number + 1}/24", "dev", "e0")
        self.within(name, "ip", "link", "set", "e0", "up")
        for space, device in ((name, "e0"), ("switch", f"p{number}")):
            self.within(space, "tc", "qdisc", "add", "dev", device, "root", "tbf", "rate",
                        f"{rate_mbit}mbit", "burst", "32kb", "latency", "50ms")

    def stream_mbit(self, seconds=5):
        """What one TCP connection from the middle board to the last gets."""
        sink = ("import socket, time; s = socket.create_server(('10.78.1.4', 7900)).accept()[0]\n"
                "n, b = 0, None\n"
                "while d := s.recv(1 << 16):\n"
                "    b = b or time.monotonic(); n += len(d)\n"
                "print(8e-6 * n / (time.monotonic() - b))")
        source = ("import socket, time; s = socket.create_connection(('10.78.1.4', 7900))\n"
                  f"e = time.monotonic() + {seconds}\n"
                  "while time.monotonic() < e: s.sendall(bytes(1 << 14))")
        end = subprocess.Popen([*self.words("three"), sys.executable, "-c", sink],
                               stdout=subprocess.PIPE, text=True)
        time.sleep(1)
        self.within("two", sys.executable, "-c", source)
        return float(end.communicate()[0])

    def close(self):
        for space in self.made:
            subprocess.run(["ip", "netns", "del", space], check=False)


class Boards:
    """Agents in the namespaces of their cards."""

    def __init__(self, args, folder, rate_mbit):
        self.cards, self.agents = Cards(rate_mbit), []
        for number, name in enumerate(NAMES):
            self.agents.append(subprocess.Popen(
                [*self.cards.words(name), args.program.parent / "ringpipe-agent", "--keys", name,
                 "--name", name, "--threads", "1", "--listen", f"tcp://10.78.1.{number + 2}:7000"],
                cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))

    def __enter__(self):
        return self.cards

    def __exit__(self, *_):
        for agent in self.agents:
            agent.kill()
            agent.wait()
        self.cards.close()


def write_roster(args, folder):
    roster.make(args.program, folder, "host",
                {name: f"tcp://10.78.1.{i + 2}:7000" for i, name in enumerate(NAMES)})


def real(args, folder):
    write_roster(args, folder)
    for rate_mbit, net in ((10, NARROW), (100, WIDE)):
        with Boards(args, folder, rate_mbit) as cards:
            stream = cards.stream_mbit()
            for schedule in ("gpipe", AUTO % "pipeoptim", "{kind: pipeoptim, advance: 4}"):
                text = RUN % ("roster: lab.yaml", 1, 1, args.steps, schedule) + "keys: host\n"
                got, advance = train(args, folder, net, text, cards.words("host"))
                limit = rate_mbit * 1e6 / 8 / (2 * net[2])
                tell(f"card {rate_mbit} Mbit/s", schedule, advance, got, limit,
                     f"one TCP stream {100 * stream / rate_mbit:.1f} %")


def profile(args, folder):
    write_roster(args, folder)
    for rate_mbit in (10, 100):
        with Boards(args, folder, rate_mbit) as cards:
            (folder / "thin.yaml").write_text(MODEL % NARROW[:2])
            (folder / "run.yaml").write_text(
                RUN % ("roster: lab.yaml", 1, 1, args.steps, "gpipe") + "keys: host\n")
            done = subprocess.run(
                [*cards.words("host"), args.program, "profile", "run.yaml", "--format", "json"],
                cwd=folder, capture_output=True, text=True, timeout=600, check=False)
            if done.returncode:
                sys.exit(done.stderr)
            for wire in json.loads(done.stdout)["wires"]:
                if not wire["assumed"]:
                    rate = 8e-6 * wire["bytes_per_s"]
                    print(f"| card {rate_mbit} Mbit/s | {wire['from']} to {wire['to']} | "
                          f"{1e3 * wire['latency_s']:.2f} ms | {rate:.1f} Mbit/s | {rate_mbit} | "
                          f"{100 * rate / rate_mbit:.1f} % | "
                          f"{'both ways take turns' if wire['shared'] else 'both ways at once'} |",
                          flush=True)


ROWS = {row.__name__: row for row in (emulated, far, real, profile)}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=lambda text: Path(text).resolve())
    parser.add_argument("--rows", nargs="+", default=list(ROWS), choices=list(ROWS))
    parser.add_argument("--steps", type=int, default=400)
    args = parser.parse_args()
    print("| wires | schedule | advance | samples/s | limit | of it | beside |")
    for row in args.rows:
        with tempfile.TemporaryDirectory() as folder:
            ROWS[row](args, Path(folder))


if __name__ == "__main__":
    main()
