"""The folder of a run at the server.

state.safetensors    weights, state of the rule, number of the round, settings: replaced as a whole
                     after each round, so that a run that was killed goes on
weights.safetensors  weights after the newest round
sites.jsonl          a line for each site and round, and one for each round
"""
import hashlib
import json
import os
from pathlib import Path

from safetensors import safe_open
from safetensors.numpy import save_file

from .guards import Refused
from .settings import check_same
from .tensors import read_weights, write_weights

VERSION = "1"


def digest_of(path):
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


class Record:
    def __init__(self, settings):
        self.folder = Path(settings["out"])
        self.folder.mkdir(parents=True, exist_ok=True)
        self.settings = settings
        self.state = self.folder / "state.safetensors"
        self.rows = self.folder / "sites.jsonl"
        self.start = digest_of(settings["start"])

    def open(self):
        """(rounds done, weights, state of the rule): of the start, or of the state that is there.
        """
        if not self.state.exists():
            if self.rows.exists():
                self.keep_rows(0)
            return 0, read_weights(self.settings["start"]), {}
        with safe_open(self.state, "numpy") as file:
            about = file.metadata() or {}
            found = {key: file.get_tensor(key) for key in file.keys()}
        if about.get("version") != VERSION:
            raise Refused(f"{self.state}: expected the state of a run in version {VERSION}")
        check_same(json.loads(about["settings"]), self.settings)
        if about["start"] != self.start:
            raise Refused(f"start: {self.settings['start']} is not the file from which the run in "
                          f"{self.folder} started")
        done = int(about["round"])
        self.keep_rows(done)
        weights = {name: found["weights/" + name] for name in json.loads(about["order"])}
        self.write_result(weights)
        return done, weights, {key.removeprefix("rule/"): array for key, array in found.items()
                               if key.startswith("rule/")}

    def close_round(self, number, weights, state):
        tensors = {"weights/" + name: array for name, array in weights.items()}
        tensors.update(("rule/" + name, array) for name, array in state.items())
        about = {"version": VERSION, "round": str(number), "start": self.start,
                 "settings": json.dumps(self.settings), "order": json.dumps(list(weights))}
        self.replace(self.state, lambda part: save_file(tensors, part, about))
        self.write_result(weights)

    def write_result(self, weights):
        self.replace(self.folder / "weights.safetensors",
                     lambda part: write_weights(part, weights))

    def replace(self, path, write):
        part = Path(f"{path}.part")
        write(part)
        with open(part, "rb") as file:
            os.fsync(file.fileno())
        os.replace(part, path)

    def add_rows(self, rows):
        with open(self.rows, "a", encoding="utf-8") as file:
            file.write("".join(json.dumps(row) + "\n" for row in rows))

    def keep_rows(self, done):
        """Removes the rows of rounds that are not in the state, and a line that was cut off."""
        text = self.rows.read_text(encoding="utf-8") if self.rows.exists() else ""
        lines = [line for line in text.splitlines(keepends=True) if line.endswith("\n")]
        kept = "".join(line for line in lines if json.loads(line)["round"] <= done)
        self.replace(self.rows, lambda part: part.write_text(kept, encoding="utf-8"))
