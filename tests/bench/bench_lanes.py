#!/usr/bin/env python3
"""What lanes buy when boards are away: samples/s and accuracy of three lanes against one ring that
waits, over the same three boards, one of which is killed again and again.

    bench_lanes.py RINGPIPE [--seconds 120] [--period 30] [--away 10] [--stage-ms 3]

The boards are agents of a roster on this machine; one that is killed is started again after --away
seconds, as a board that reboots. Every op of a stage of the ring takes at least --stage-ms, and of
a lane, whose board has all three stages, three times as long: what differs is who waits for whom.
"""
import argparse
import itertools
import json
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import roster

RUN = """\
model: cnn-small
data: {set: glyphs, train: 9600, test: 1000, size: 28}
keys: controller
train: {epochs: 1000, batch: 48, microbatch: 16, seed: 1, eval_epochs: 0, checkpoint_steps: 20}
loss: cross-entropy
optimizer: {kind: sgd, lr: 0.02, momentum: 0.9}
"""
WAYS = {"ring, 1f1b": ["schedule=1f1b", "cut=[flatten, fc]"],
        "ring, ea-pipe": ["schedule=ea-pipe", "cut=[flatten, fc]", "train.microbatch=48"],
        "3 lanes": ["schedule=1f1b", "lanes={count: 3, every: 20}"]}
BOARDS = ("one", "two", "three")
PORT = 7100


class Rig:
    """Three agents and a controller in a folder."""

    def __init__(self, args):
        self.args = args
        self.folder = Path(tempfile.mkdtemp(prefix="ringpipe-lanes-"))
        self.agents = {}
        roster.make(args.program, self.folder, "controller",
                    {name: self.address(i) for i, name in enumerate(BOARDS)})
        (self.folder / "run.yaml").write_text(RUN)

    def address(self, board):
        return f"tcp://127.9.3.{board + 1}:{PORT}"

    def words(self, *words):
        done = subprocess.run([self.args.program, *words], cwd=self.folder, text=True,
                              capture_output=True, check=False)
        if done.returncode:
            sys.exit(f"{words}: {done.stderr}")
        return done.stdout.strip()

    def start_agent(self, board):
        name = BOARDS[board]
        with open(self.folder / f"{name}.log", "a", encoding="utf-8") as log:
            self.agents[board] = subprocess.Popen(
                [self.args.program.parent / "ringpipe-agent", "--keys", name, "--name", name,
                 "--threads", "1", "--listen", self.address(board)],
                cwd=self.folder, stdout=log, stderr=log)

    def stop_agents(self):
        for agent in self.agents.values():
            agent.kill()
            agent.wait()

    def samples(self, out):
        """Trained so far, by what has been noted on the disk."""
        lanes = self.folder / out / "lanes.json"
        log = self.folder / out / "log.jsonl"
        if lanes.exists():
            return sum(lane["samples"] for lane in json.loads(lanes.read_text())["lanes"])
        lines = log.read_text().splitlines(keepends=True) if log.exists() else []
        steps = [r["step"] for r in map(json.loads, (s for s in lines if s[-1] == "\n"))
                 if "event" not in r]
        return 48 * steps[-1] if steps else 0

    def wait_begin(self, out, process):
        while self.samples(out) == 0:
            if process.poll() is not None:
                sys.exit(f"ended with {process.returncode}: {process.stderr.read()}")
            time.sleep(0.1)

    def disturb(self, out, kills):
        """For --seconds; gives samples/s."""
        begin, first = time.monotonic(), self.samples(out)
        turn = itertools.cycle(range(3))
        kill_s, back = self.args.period / 2, None
        while (now := time.monotonic() - begin) < self.args.seconds:
            if kills and back is None and now >= kill_s:
                lost = next(turn)
                self.agents[lost].kill()
                self.agents[lost].wait()
                back = now + self.args.away
                kill_s += self.args.period
            if back is not None and now >= back:
                self.start_agent(lost)
                back = None
            time.sleep(0.1)
        if back is not None:
            self.start_agent(lost)
        return (self.samples(out) - first) / (time.monotonic() - begin)

    def accuracy(self, out, changes):
        """Of the centre, or of the newest checkpoint."""
        center = self.folder / out / "center.safetensors"
        newest = sorted((self.folder / out / "checkpoint").glob("step-*.safetensors"))
        weights = center if center.exists() else newest[-1]
        text = self.words("eval", "run.yaml", "--weights", weights, "--format", "json", *changes)
        return json.loads(text)["eval"]["accuracy"]

    def run(self, way, kills):
        out = f"{way}-{kills}".replace(" ", "").replace(",", "-")
        stage_ms = self.args.stage_ms * (3 if "lanes" in way else 1)
        ring = (f"ring={{roster: lab.yaml, throttle: {{forward_ms: {stage_ms}, "
                f"backward_ms: {stage_ms}}}}}")
        changes = [word for change in (ring, *WAYS[way]) for word in ("--set", change)]
        for board in range(3):
            self.start_agent(board)
        process = subprocess.Popen(
            [self.args.program, "train", "run.yaml", "--out", out, "--quiet", *changes],
            cwd=self.folder, text=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.wait_begin(out, process)
        speed = self.disturb(out, kills)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=300)
        accuracy = self.accuracy(out, changes)
        self.stop_agents()
        return speed, accuracy


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("program", type=Path)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--period", type=float, default=30)
    parser.add_argument("--away", type=float, default=10)
    parser.add_argument("--stage-ms", type=float, default=3)
    args = parser.parse_args()
    args.program = args.program.resolve()
    rig = Rig(args)
    print("| way | samples/s | with kills | goodput | accuracy | with kills |\n"
          "|---|---|---|---|---|---|")
    try:
        for way in WAYS:
            calm, accuracy = rig.run(way, False)
            speed, disturbed = rig.run(way, True)
            print(f"| {way} | {calm:.0f} | {speed:.0f} | {100 * speed / calm:.0f} % "
                  f"| {100 * accuracy:.1f} % | {100 * disturbed:.1f} % |", flush=True)
    finally:
        rig.stop_agents()


if __name__ == "__main__":
    main()
