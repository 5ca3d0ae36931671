"""Profiles of rings that are not there, drawn from a number: boards of different speeds, wires of
different rates, and a run that leaves choices to the planner."""
import json
import random
import re
import subprocess

COUNT = 30

RUN = """\
model: model.yaml
data: {set: glyphs, train: 128, test: 16}
ring: %s
train: {epochs: 1, batch: 32, microbatch: 4, seed: 1}
loss: cross-entropy
optimizer: {kind: sgd, lr: 0.05, momentum: 0.9}
schedule: %s
cut: auto
plan: %s
"""
SCHEDULES = (
    "1f1b", "gpipe", "zb-h1", "{kind: pipedream, advance: auto}",
    "{kind: pipedream-2bw, weights: pipeoptim}", "{kind: ea-pipe, advance: auto}",
    "{kind: pipeoptim, advance: auto}", "{kind: umpipe, planner: auto}",
    "{kind: pipefb, ahead: measured}", "{kind: umpipe, planner: dgap}", "spectrain", "async",
    "avgpipe", "xpipe", "{kind: interleaved-1f1b, chunks: 2}",
)
FLUSHED = ("1f1b", "gpipe", "zb-h1")
SAMPLE = 28 * 28  # values of a glyph
CLASSES = 10
SIZES = (1, 4, 16, 32)  # samples that were measured
PASSES = {"forward": 1, "backward": 2, "backward_input": 1, "backward_weight": 1.2}
CODECS = {"f16": 1, "bf16": 0.7, "int8": 1.5, "int4": 4, "topk-0.1": 3, "topk-0.03": 3,
          "topk-0.01": 3}


class Ring:
    """A run file's parts and the boards that its profile is of."""

    def __init__(self, number, has_roster):
        self.chance = chance = random.Random(f"profile {number} {has_roster}")
        self.schedule = SCHEDULES[number % len(SCHEDULES)]
        self.boards = chance.randint(2, 4) if has_roster else chance.choice((2, 3, 4, 6))
        if "pipefb" in self.schedule or "interleaved" in self.schedule:
            self.boards = 4
        self.names = [f"b{i}" if has_roster else str(i) for i in range(self.boards)]
        self.speeds = [2 ** chance.uniform(-2, 2) for _ in range(self.boards)]
        self.has_roster = has_roster
        self.widths = [chance.choice((8, 16, 32, 64, 128)) for _ in range(chance.randint(4, 7))]
        self.link = chance.choice((None, None, "{rate_mbit: %g, delay_ms: %g}" % (
            chance.choice((2, 20, 200)), chance.choice((0, 1, 10)))))
        # A real ring measures its own links for an advance, though a profile is given.
        if "advance: auto" in self.schedule and not has_roster:
            self.link = self.link or "{rate_mbit: 200, delay_ms: 1}"
        self.memory_mib = 1 if number % 4 == 3 else 64

    def settings(self):
        """What is left to the planner; `plan.seconds` would depend on this machine."""
        chance = self.chance
        plan = {"seconds": 0}
        more = {}
        if self.schedule in FLUSHED:
            boards = {"boards": "auto"} if self.has_roster else {}
            plan.update(chance.choice((boards, boards, {"share": 2}, {"drift": 0.1},
                                       {"schedules": "[1f1b, zb-h1, gpipe]"})))
            more["train.microbatch"] = chance.choice((None, "auto", "8"))
        if self.schedule in FLUSHED or "pipe" in self.schedule:
            more["recompute"] = chance.choice((None, "auto", "none"))
        more["links.codec"] = chance.choice((None, "auto", "auto", "f16"))
        words = "{" + ", ".join(f"{key}: {value}" for key, value in plan.items()) + "}"
        return words, {key: value for key, value in more.items() if value}

    def layers(self):
        """(name, operations of a sample, parameters)."""
        inputs = SAMPLE
        for i, width in enumerate((*self.widths, CLASSES)):
            yield f"fc{i}", 2 * inputs * width, (inputs + 1) * width
            if i < len(self.widths):
                yield f"relu{i}", width, 0
            inputs = width

    def model(self):
        lines = ["input: data", "layers:"]
        for i, width in enumerate(self.widths):
            lines += [f"  - {{name: fc{i}, kind: dense, out: {width}}}",
                      f"  - {{name: relu{i}, kind: relu}}"]
        lines.append(f"  - {{name: fc{len(self.widths)}, kind: dense, out: classes}}")
        return "\n".join(lines) + "\n"

    def measured(self, name, speed):
        """What a board needs: a fixed part and one by operations, at up to 20 million a second."""
        def points(operations, factor):
            return [{"samples": n, "spread": 0.02,
                     "seconds": round((2e-5 + n * operations / 2e7) * factor / speed, 9)}
                    for n in SIZES]
        layers = [{"name": layer, "update_s": round((1e-6 + parameters * 2e-9) / speed, 12),
                   **{kind: points(operations, factor) for kind, factor in PASSES.items()}}
                  for layer, operations, parameters in self.layers()]
        pair = [round(1e-5 / speed, 12), round(1e-4 / speed, 12)]
        besides = {"handling_s": round(4e-5 / speed, 12), "handling_spread": 0.1,
                   "prediction_s": pair, "average_s": pair,
                   "codecs": [{"codec": codec, "encode_s": [t * factor for t in pair],
                               "decode_s": [t * factor for t in pair]}
                              for codec, factor in CODECS.items()]}
        return {"name": name, "device": "drawn", "like": name, "memory_bytes": 1 << 30,
                "device_memory": 1, "to_device_s": pair, "from_device_s": pair,
                "flash_bytes_per_s": [5e7, 1e8], "besides": besides, "layers": layers}

    def wires(self):
        ends = [*self.names, "host"]
        for here in ends:
            for there in ends:
                if here != there:
                    rate = 10 ** self.chance.uniform(4.5, 8)
                    yield {"from": here, "to": there, "shared": self.chance.random() < 0.3,
                           "latency_s": round(10 ** self.chance.uniform(-4.5, -2), 9),
                           "bytes_per_s": round(rate), "assumed": False,
                           "sizes": [{"bytes": n, "seconds": round(n / rate, 9), "spread": 0.05}
                                     for n in (1 << 14, 1 << 18)]}

    def profile(self, digest):
        boards = [self.measured(*board) for board in zip(self.names, self.speeds)]
        first = [{"name": layer["name"], "kind": "any", "forward_s": 1, "backward_s": 1}
                 for layer in boards[0]["layers"]]
        return {"version": 2, "model": "model.yaml", "model_digest": digest, "microbatch": 4,
                "board": "drawn", "layers": first, "boards": boards, "wires": list(self.wires())}

    def ring(self):
        words = {"roster": "roster.yaml"} if self.has_roster else {"boards": self.boards}
        words["memory_mib"] = self.memory_mib
        if self.link:
            words["link"] = self.link
        return "{" + ", ".join(f"{key}: {value}" for key, value in words.items()) + "}"


def find_digest(program, run, profile):
    """What the program calls this model: it says so when it refuses another one's profile, before
    it starts a board."""
    words = ["plan", run, "--profile", profile]
    for text in ("ring={boards: 2}", "plan={}", "schedule=gpipe"):
        words += ["--set", text]
    said = subprocess.run([program, *words], capture_output=True, text=True, check=False).stderr
    found = re.search(r"than the run's \('[^']*', ([0-9a-f]{16})\)", said)
    if not found:
        raise RuntimeError(f"{program} names no digest of the model: {said}")
    return found.group(1)


def write(program, folder, number, has_roster):
    """Files of ring `number` in a folder: run.yaml, model.yaml and profile.json; gives words that
    `ringpipe plan` and `ringpipe sim` take. A roster's file is written by the caller."""
    ring = Ring(number, has_roster)
    plan, settings = ring.settings()
    (folder / "model.yaml").write_text(ring.model())
    (folder / "run.yaml").write_text(RUN % (ring.ring(), ring.schedule, plan))
    words = [folder / "run.yaml", "--profile", folder / "profile.json"]
    for key, value in settings.items():
        words += ["--set", f"{key}={value}"]
    (folder / "profile.json").write_text(json.dumps(ring.profile("0" * 16)))
    digest = find_digest(program, words[0], words[2])
    (folder / "profile.json").write_text(json.dumps(Ring(number, has_roster).profile(digest)))
    return words
