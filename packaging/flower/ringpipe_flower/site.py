"""A site's part of a round: files and commands of ringpipe. Standard library only.

A site is a folder with a run file, site.yaml, in which `data.site` names its samples. A run of
Flower has a folder in it, NAME, with a folder for each round.
"""
import json
import math
import shutil
import signal
import subprocess
from pathlib import Path

from .guards import Refused, check_name, check_real, check_report, check_whole

RING_FAILED = 3  # exit code with which the same command goes on
END_SECONDS = 20  # time for the end of a command that was interrupted
SECONDS_MAX = 1000000


class Failed(RuntimeError):
    """A command that ended with an error, of which the text has the last messages. code: its exit
    code; None: it did not end in time."""

    def __init__(self, text, code=None):
        super().__init__(text)
        self.code = code


def run(words, seconds):
    """Standard output of a command. It is interrupted after this time, so that its boards end
    with it."""
    process = subprocess.Popen([str(word) for word in words], stdin=subprocess.DEVNULL, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        out, err = process.communicate(timeout=seconds)
    except BaseException as error:
        end(process)
        if not isinstance(error, subprocess.TimeoutExpired):
            raise
        raise Failed(f"{words[0]} {words[1]}: not finished after {seconds:g} s") from None
    if process.returncode != 0:
        raise Failed(f"{words[0]} {words[1]}: exit code {process.returncode}: "
                     f"{err.strip()[-600:]}", process.returncode)
    return out


def end(process):
    process.send_signal(signal.SIGINT)
    try:
        process.communicate(timeout=END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()


def run_twice(words, seconds):
    """The same command once more if its ring has failed."""
    try:
        return run(words, seconds)
    except Failed as failed:
        if failed.code != RING_FAILED:
            raise
    return run(words, seconds)


def read_object(text, what):
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise Refused(f"{what}: expected one JSON object")
    return found


class Site:
    """folder: of the site. program: path of ringpipe. config: what the server asks for: `name` of
    the run, `server-round`, `steps` or `epochs` (the one that is not 0), `anchor`, `seconds` for
    each try of a command."""

    def __init__(self, folder, program, config):
        self.folder = Path(folder)
        self.file = self.folder / "site.yaml"
        if not self.file.is_file():
            raise Refused(f"{self.file}: missing: expected the site's run file")
        self.program = program
        self.round = check_whole("server-round", config.get("server-round"), 1, 2**53)
        self.steps = check_whole("steps", config.get("steps", 0), 0, 2**24)
        self.epochs = check_whole("epochs", config.get("epochs", 0), 0, 2**24)
        if (self.steps > 0) == (self.epochs > 0):
            raise Refused("steps, epochs: expected one of them to be above 0")
        self.anchor = check_real("anchor", config.get("anchor", 0.0), 0, 1e6)
        self.seconds = check_real("seconds", config.get("seconds"), 0.001, SECONDS_MAX)
        self.run_folder = self.folder / check_name("name", config.get("name"))
        self.round_folder = self.run_folder / f"round-{self.round}"

    def given(self):
        """Where the weights of the message belong; removes what rounds before the last left."""
        for folder in self.run_folder.glob("round-*"):
            number = folder.name.partition("-")[2]
            if number.isdigit() and int(number) < self.round - 1:
                shutil.rmtree(folder)
        self.round_folder.mkdir(parents=True, exist_ok=True)
        return self.round_folder / "given.safetensors"

    def train(self):
        """(path of the weights, {site, status, loss, held, steps, samples}) of the round."""
        out = self.round_folder / "out"
        length = ("--steps", self.steps) if self.steps else ("--epochs", self.epochs)
        words = [self.program, "round", self.file, "--in", self.round_folder / "given.safetensors",
                 "--out", out, "--round", self.round, *length, "--format", "json", "--quiet"]
        words += ["--anchor", repr(self.anchor)] if self.anchor else []
        text = run_twice(words, self.seconds)
        report = check_report(read_object(text, "ringpipe round"), self.round)
        return out / "weights.safetensors", report

    def name(self):
        """Of the site: the round that it has trained says it."""
        path = self.round_folder / "out/round.json"
        report = read_object(path.read_text(encoding="utf-8"), path)
        return check_report(report, self.round)["site"]

    def weights_to_evaluate(self):
        return self.round_folder / "evaluate.safetensors"

    def evaluate(self, path, part):
        """{loss, accuracy, samples} of a file of weights on a part of the data: test or
        validation. What the task does not have is left out."""
        if part not in ("test", "validation"):
            raise Refused(f"part: {part!r}: expected test or validation")
        words = [self.program, "eval", self.file, "--weights", path, "--split", part, "--format",
                 "json", "--quiet"]
        scores = read_object(run_twice(words, self.seconds), "ringpipe eval").get("eval")
        if not isinstance(scores, dict):
            raise Refused("ringpipe eval: key 'eval': expected an object")
        check_whole("ringpipe eval: key 'eval.samples'", scores.get("samples"), 1, 2**53)
        kept = {key: scores[key] for key in ("loss", "accuracy", "samples")
                if isinstance(scores.get(key), (int, float))}
        if "loss" not in kept or not all(math.isfinite(value) for value in kept.values()):
            raise Refused("ringpipe eval: key 'eval.loss': expected a finite number")
        return kept
