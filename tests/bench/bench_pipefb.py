#!/usr/bin/env python3
"""PipeFB's figure taken apart (METHODS 12.4): forward and backward of a stage on two boards against
pipedream, in rings of agents that are made equal, and in uneven ones. Simulated first (timed
executor), then measured.

    bench_pipefb.py RINGPIPE [--steps N] [--boards N ..] [--parts equal uneven memory peak]
        [--simulate]

Every op takes as long as it is told to (ring.throttle): forward 40 ms of one of D stages, backward
R times that; a stash takes A times the forward on its wire, whose rate is set so. The boards hardly
compute besides. Pipedream with transfers in its way is one whose every op takes A longer. Samples/s
are of the steady middle of the run; ratios are of rows of the same call. `--simulate`: no ring.
`peak` has a net whose stashes need the memory, and says what the fullest board has on its device.
"""
import argparse
import json
import math
import subprocess
import sys
import tempfile
from pathlib import Path

BATCH, WIDTH = 8, 32
FORWARD_MS = 40.0


def model_of(stages):
    """Of equal stages, but for the first, which takes the pixels, and the last."""
    layers = ["  - {name: flat, kind: flatten}"]
    for i in range(stages):
        out = WIDTH if i + 1 < stages else "classes"
        layers.append(f"  - {{name: fc{i}, kind: dense, out: {out}}}")
        if i + 1 < stages:
            layers.append(f"  - {{name: tanh{i}, kind: tanh}}")
    return "input: data\nlayers:\n" + "\n".join(layers) + "\n"


def run_of(stages, boards, schedule, throttle, link, steps, batch=BATCH, more=""):
    cut = ", ".join(f"fc{i}" for i in range(1, stages))
    ring = f"boards: {boards}, threads: 1, throttle: {throttle}"
    ring += f", link: {link}" if link else ""
    samples = batch * (steps + 8)
    return (f"model: net.yaml\ndata: {{set: glyphs, train: {samples}, test: 8, size: 12}}\n"
            f"ring: {{{ring}}}\n"
            f"train: {{epochs: 1, batch: {batch}, microbatch: {batch}, seed: 1, steps: {steps}, "
            "eval_epochs: 0}\n"
            "loss: cross-entropy\noptimizer: {kind: sgd, lr: 0.01, momentum: 0.9}\n"
            f"schedule: {schedule}\ncut: [{cut}]\nlinks: {{inputs: f32}}\n{more}")


def middle_rate(folder):
    """Steps/s between the ends of steps, without the first and the last third."""
    lines = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    ends = [line["time_s"] for line in lines if "lr" in line]
    third = len(ends) // 3
    return (len(ends) - 1 - 2 * third) / (ends[-1 - third] - ends[third])


def call(args, verb, text, stages, folder):
    (folder / "net.yaml").write_text(model_of(stages))
    (folder / "run.yaml").write_text(text)
    out = folder / f"{verb}-{len(list(folder.iterdir()))}"
    words = ("--executor", "timed") if verb == "sim" else ()
    done = subprocess.run([args.program, verb, "run.yaml", "--out", out, *words], cwd=folder,
                          text=True, capture_output=True, timeout=900, check=False)
    if done.returncode:
        sys.exit(f"{text}\n{done.stderr}")
    return out


class Row:
    """A ring, simulated and measured."""

    def __init__(self, args, name, stages, boards, schedule, throttle, link="", **run):
        self.name = name
        with tempfile.TemporaryDirectory(prefix="ringpipe-pipefb-") as text:
            folder = Path(text)
            run = run_of(stages, boards, schedule, throttle, link, args.steps, **run)
            self.simulated = middle_rate(call(args, "sim", run, stages, folder))
            self.measured = self.peak_kib = float("nan")
            if not args.simulate:
                out = call(args, "train", run, stages, folder)
                self.measured = middle_rate(out)
                summary = json.loads((out / "summary.json").read_text())
                self.peak_kib = max(s["device_bytes_max"] for s in summary["stage"]) / 1024


RATES = {}


def stash_rates(args, stages, boards, batch):
    """Mbit/s at which each stage's stash takes 1 ms, by what a short run has sent."""
    key = stages, boards, batch
    if key in RATES:
        return RATES[key]
    with tempfile.TemporaryDirectory(prefix="ringpipe-pipefb-") as text:
        folder = Path(text)
        run = run_of(stages, boards, "pipefb", "{forward_ms: 1, backward_ms: 1}", "", 20, batch)
        out = call(args, "train", run, stages, folder)
        links = json.loads((out / "summary.json").read_text())["link"]
    sent = {(link["from"], link["to"]): link["bytes"] / 20 for link in links}
    RATES[key] = [8e-3 * sent[k, boards - 1 - k] for k in range(stages)]
    return RATES[key]


def stash_link(args, stages, boards, ms, batch=BATCH):
    if ms == 0:
        return ""
    hops = ", ".join(f"{{from: {k}, to: {boards - 1 - k}, rate_mbit: {mbit / ms:.6g}}}"
                     for k, mbit in enumerate(stash_rates(args, stages, boards, batch)))
    return f"{{hops: [{hops}]}}"


def both_ms(forward, backward):
    return f"{{forward_ms: {forward:g}, backward_ms: {backward:g}}}"


def ahead_of(stages, forward, backward, stash):
    """METHODS 12.2, with 3 ms for each transfer that is not emulated."""
    ahead, trip, beside = [], 0, 3
    for _ in range(stages):
        over = trip + 2 * beside if ahead else 0
        trip = forward + max(stash + beside, over) + backward
        ahead.insert(0, math.ceil((trip + beside) / max(forward, backward, stash)))
    return f"{{kind: pipefb, ahead: {ahead}}}"


def equal(args, depth):
    """Of D boards or of twice as many, all alike."""
    for ratio in (1, 2):
        back = ratio * FORWARD_MS
        beside = Row(args, "pipedream, D boards", depth, depth, "pipedream",
                     both_ms(FORWARD_MS, back))
        for part in (0, 0.4, 0.77):
            extra = part * FORWARD_MS
            in_way = Row(args, "pipedream, D boards, transfers in its way", depth, depth,
                         "pipedream", both_ms(FORWARD_MS + extra, back + extra))
            twice = Row(args, "pipefb, 2 D boards", depth, 2 * depth,
                        ahead_of(depth, FORWARD_MS, back, extra), both_ms(FORWARD_MS, back),
                        stash_link(args, depth, 2 * depth, extra))
            same = Row(args, "pipefb, D boards", depth // 2, depth,
                       ahead_of(depth // 2, 2 * FORWARD_MS, 2 * back, 2 * extra),
                       both_ms(2 * FORWARD_MS, 2 * back),
                       stash_link(args, depth // 2, depth, 2 * extra))
            for other, base in ((twice, beside), (twice, in_way), (same, beside), (same, in_way)):
                print(f"| {depth} | {ratio} | {part} | {other.name} | {base.name} "
                      f"| {other.simulated / base.simulated:.2f} "
                      f"| {other.measured / base.measured:.2f} |", flush=True)


def two_kinds(others, last):
    """A ring of four whose last two boards take other times, [forward, backward] ms."""
    own = both_ms(*last)
    return both_ms(*others)[:-1] + f", boards: {{2: {own}, 3: {own}}}}}"


# A net that takes a board 80 ms forward and 160 ms backward: what four boards make of it. Without a
# split the best plan is named; its stages are shared out by the boards' speeds.
WEAK = (
    ("two boards can only do forwards, at half the power of the others", 2, "pipedream",
     both_ms(40, 80), "{forward_ms: 80, backward_ms: 80}"),
    ("two boards do forwards only, as fast as the others", 2, "pipedream", both_ms(40, 80),
     "{forward_ms: 40, backward_ms: 80}"),
    ("two boards take six times as long for backwards", 4, "pipedream",
     # 80 + 160 = 240 ms on a fast board, 80 + 960 on a weak one: 0.406 of the net, and 0.094
     two_kinds((32.5, 65), (7.5, 90)),
     "{forward_ms: 40, backward_ms: 80}"),
)


# Boards that are alike but for their memory, of which a net takes one 80 ms forward, and what plans
# of 24 layers bench_split finds best then. All with 0.77 of what an even plan of pipedream needs
# for its stashes: 5, 5, 7 and 7 layers, of which the first two stages compute their forwards again;
# or 3, 7, 7 and 7 where the first one's stashes are on flash, at no cost. Two with less: 7, 7, 5
# and 5 where stashes need the memory, 9, 9, 3 and 3 where weights do.
MEMORY = (
    ("equal boards with 0.77 of the memory", 4, "pipedream",
     two_kinds((16.67, 33.33), (23.33, 23.33)), both_ms(40, 40)),
    ("the same, with flash", 4, "pipedream",
     "{forward_ms: 23.33, backward_ms: 23.33, boards: {0: {forward_ms: 10, backward_ms: 10}}}",
     both_ms(40, 40)),
    ("two boards with 0.57 of the memory, for stashes", 4, "pipedream",
     two_kinds((23.33, 23.33), (16.67, 16.67)), both_ms(40, 40)),
    ("two boards with 0.40 of the memory, for weights", 4, "pipedream",
     two_kinds((30, 30), (10, 10)), both_ms(40, 40)),
    ("the same, a backward takes twice as long", 4, "pipedream",
     two_kinds((30, 60), (10, 20)), both_ms(40, 80)),
)


PEAK_BATCH = 256  # stashes of some 64 KiB, weights of 4


def peak(args, depth):
    """Pipedream keeps D stashes on its first board, or offloads all but three; pipefb on 2 D boards
    has none that waits. Transfers take 0.77 of a forward: beside the work, or in its way."""
    forward, back, extra = FORWARD_MS, 2 * FORWARD_MS, 0.77 * FORWARD_MS
    times = both_ms(forward, back)
    run = {"batch": PEAK_BATCH}
    leaves = {**run, "more": "offload: host\n"}
    fb = Row(args, "pipefb, 2 D boards", depth, 2 * depth, ahead_of(depth, forward, back, extra),
             times, stash_link(args, depth, 2 * depth, extra, PEAK_BATCH), **run)
    others = (
        Row(args, "pipedream, all on the device", depth, depth, "pipedream", times, **run),
        Row(args, "pipedream, offload", depth, depth, "pipedream", times, **leaves),
        Row(args, "pipedream, offload in its way", depth, depth, "pipedream",
            both_ms(forward + extra, back + extra), **leaves))
    print(f"| {depth} | {fb.name} | {fb.peak_kib:.0f} | 1 | 1 |", flush=True)
    for row in others:
        print(f"| {depth} | {row.name} | {row.peak_kib:.0f} | {fb.simulated / row.simulated:.2f} "
              f"| {fb.measured / row.measured:.2f} |", flush=True)


def uneven(args, rows):
    for what, boards, schedule, whole, halves in rows:
        best = Row(args, what, boards, boards, schedule, whole)
        for keys in ("", ", weights: pipeoptim"):
            split = Row(args, what, 2, 4, f"{{kind: pipefb{keys}}}", halves)
            simulated, measured = split.simulated / best.simulated, split.measured / best.measured
            print(f"| {what} | {boards} boards | pipefb{keys} | {simulated:.2f} | {measured:.2f} |",
                  flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", type=Path)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--boards", type=int, nargs="+", default=[4])
    parser.add_argument("--parts", nargs="+", default=["equal", "uneven"],
                        choices=["equal", "uneven", "memory", "peak"])
    parser.add_argument("--simulate", action="store_true")
    args = parser.parse_args()
    args.program = args.program.resolve()
    if "equal" in args.parts:
        print("| D | t_B / t_F | A / t_F | | against | simulated | measured |")
        print("|---|---|---|---|---|---|---|")
        for depth in args.boards:
            equal(args, depth)
    if "peak" in args.parts:
        print("\n| D | | KiB on the fullest device | pipefb against it: simulated | measured |")
        print("|---|---|---|---|---|")
        for depth in args.boards:
            peak(args, depth)
    for part, rows in (("uneven", WEAK), ("memory", MEMORY)):
        if part in args.parts:
            print("\n| boards | best without a split | | simulated | measured |")
            print("|---|---|---|---|---|")
            uneven(args, rows)


if __name__ == "__main__":
    main()
