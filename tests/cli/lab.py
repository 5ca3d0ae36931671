"""What tests of `ringpipe lab` share."""
import json
from pathlib import Path

import program

LAB = """\
base: run.yaml
seeds: [1, 2]
baseline: slow
methods:
  slow: {optimizer.lr: 0.001}
  fast: {schedule: 1f1b}
"""

# A few seconds a run, so that it can be interrupted and then finished.
SOME = program.RUN.replace("train: 256", "train: 2048").replace("epochs: 1", "epochs: 12")


class Case(program.Case):
    def lab_file(self, text=LAB, run=program.RUN, name="compare.yaml"):
        self.run_file(run)
        path = self.dir / name
        path.write_text(text, encoding="utf-8")
        return path

    def lab(self, *words, code=0, seconds=120, **options):
        return self.ringpipe("lab", *words, "--out", "out", code=code, seconds=seconds, **options)

    def table(self):
        return json.loads((self.dir / "out/table.json").read_text(encoding="utf-8"))

    def summary(self, name):
        return json.loads((self.dir / "out/runs" / name / "summary.json").read_text())

    def trainings(self):
        """Process ids of the runs that this test started."""
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                mark = self.mark.encode() in (folder / "environ").read_bytes().split(b"\0")
                words = (folder / "cmdline").read_bytes().split(b"\0")
                state = (folder / "stat").read_text().rsplit(")", 1)[1].split()[0]
                if mark and state != "Z" and words[1:2] == [b"train"]:
                    found.append(int(folder.name))
            except OSError:
                continue
        return found

    def expect_nothing_left(self):
        self.expect_no_agents(5)
        self.wait_for("end of the runs", lambda: not self.trainings(), 5)

    def lab_until(self, name, steps, *words):
        """A comparison at work, with so many steps of a run done."""
        process = self.start("lab", *words, "--out", "out")
        log = self.dir / "out/runs" / name / "log.jsonl"
        self.wait_for(
            f"step {steps} of {name}",
            lambda: len(program.steps_of(log)) >= steps,
            process=process,
        )
        return process

    def losses(self, folder):
        return [step["loss"] for step in program.steps_of(folder / "log.jsonl")]
