#!/usr/bin/env python3
"""What lanes and spares buy when boards are away: samples/s and accuracy of three lanes, and of one
ring with a warm spare, against one ring that waits. One of the boards is killed again and again.

    bench_lanes.py RINGPIPE [--seconds 120] [--period 30] [--away 10] [--stage-ms 3] [--ways WAY...]

The boards are agents of a roster on this machine; one that is killed is started again after --away
seconds, as a board that reboots. Every op of a stage of the ring takes at least --stage-ms, and of
a lane, whose board has all three stages, three times as long: what differs is who waits for whom.
The disturbed run and the undisturbed one are at work at the same time, each with agents of its own.
"""
import argparse
import itertools
import json
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
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
COPIES = "copy_steps: 2"
WAYS = {"ring, 1f1b": ("", ["schedule=1f1b", "cut=[flatten, fc]"]),
        "ring, ea-pipe": ("", ["schedule=ea-pipe", "cut=[flatten, fc]", "train.microbatch=48"]),
        "ring, 1f1b, copies": (COPIES, ["schedule=1f1b", "cut=[flatten, fc]"]),
        "ring, 1f1b, copies, spare": (COPIES + ", spare: [four], spare_wait: 0",
                                      ["schedule=1f1b", "cut=[flatten, fc]"]),
        "3 lanes": ("", ["schedule=1f1b", "lanes={count: 3, every: 20}"])}
BOARDS = ("one", "two", "three")
SPARE = "four"
PORT = 7100


class Rig:
    """Three agents and a controller in a folder."""

    def __init__(self, args, way, kills):
        self.args, self.way, self.kills = args, way, kills
        self.folder = Path(tempfile.mkdtemp(prefix="ringpipe-lanes-"))
        self.agents = {}
        self.names = (*BOARDS, SPARE) if "spare" in way else BOARDS
        roster.make(args.program, self.folder, "controller",
                    {name: self.address(i) for i, name in enumerate(self.names)})
        (self.folder / "run.yaml").write_text(RUN)

    def address(self, board):
        return f"tcp://127.9.{4 if self.kills else 3}.{board + 1}:{PORT}"

    def words(self, *words):
        done = subprocess.run([self.args.program, *words], cwd=self.folder, text=True,
                              capture_output=True, check=False)
        if done.returncode:
            sys.exit(f"{words}: {done.stderr}")
        return done.stdout.strip()

    def start_agent(self, board):
        name = self.names[board]
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
                sys.exit(f"ended with {process.returncode}: {(self.folder / 'told').read_text()}")
            time.sleep(0.1)

    def disturb(self, out):
        """For --seconds; gives samples/s."""
        begin, first = time.monotonic(), self.samples(out)
        turn = itertools.cycle(range(len(self.names)))
        kill_s, back = self.args.period / 2, None
        while (now := time.monotonic() - begin) < self.args.seconds:
            if self.kills and back is None and now >= kill_s:
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

    def run(self):
        """Samples a second, and the accuracy at the end."""
        stage_ms = self.args.stage_ms * (3 if "lanes" in self.way else 1)
        ring, changes = WAYS[self.way]
        settings = (f"ring={{roster: lab.yaml, throttle: {{forward_ms: {stage_ms}, "
                    f"backward_ms: {stage_ms}}}{', ' if ring else ''}{ring}}}", *changes)
        changes = [word for change in settings for word in ("--set", change)]
        try:
            for board in range(len(self.names)):
                self.start_agent(board)
            with open(self.folder / "told", "w", encoding="utf-8") as told:
                process = subprocess.Popen(
                    [self.args.program, "train", "run.yaml", "--out", "run", "--quiet", *changes],
                    cwd=self.folder, stdout=subprocess.DEVNULL, stderr=told)
            self.wait_begin("run", process)
            speed = self.disturb("run")
            process.send_signal(signal.SIGINT)
            process.wait(timeout=300)
            return speed, self.accuracy("run", changes)
        finally:
            self.stop_agents()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("program", type=Path)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--period", type=float, default=30)
    parser.add_argument("--away", type=float, default=10)
    parser.add_argument("--stage-ms", type=float, default=3)
    parser.add_argument("--ways", nargs="+", default=list(WAYS), choices=list(WAYS))
    args = parser.parse_args()
    args.program = args.program.resolve()
    print("| way | samples/s | with kills | goodput | accuracy | with kills |\n"
          "|---|---|---|---|---|---|")
    for way in args.ways:
        with ThreadPoolExecutor(2) as pool:
            calm, disturbed = [job.result() for job in
                               [pool.submit(Rig(args, way, kills).run) for kills in (False, True)]]
        goodput = 100 * disturbed[0] / calm[0]
        print(f"| {way} | {calm[0]:.0f} | {disturbed[0]:.0f} | {goodput:.1f} % "
              f"| {100 * calm[1]:.1f} % | {100 * disturbed[1]:.1f} % |", flush=True)


if __name__ == "__main__":
    main()
