#!/usr/bin/env python3
"""Run folders of an older version are resumed, and end with the weights that it ended with, or are
refused with a message where they have something that was removed.

old_runs/make.py says how they were made; one method here for each.
"""
import hashlib
import json
import tarfile

import program

FOLDER = program.SOURCE / "tests" / "cli" / "old_runs"
RUNS = json.loads((FOLDER / "weights.json").read_text(encoding="utf-8"))


# The plan that is resumed is the one in the folder; a flush hides another cut from the weights.
KEPT = ("schedule", "method", "cut", "batch", "microbatch")
MAY_CHANGE = ("drift",)  # its plan changes at pauses


def plans_of(folder):
    plans = (json.loads(path.read_text(encoding="utf-8"))
             for path in sorted(folder.glob("**/plan.json")))
    return [{key: plan[key] for key in KEPT} for plan in plans]


class OldRuns(program.Case):
    def resume_old(self, name):
        with tarfile.open(FOLDER / "runs.tar.xz") as archive:
            archive.extractall(self.dir, [entry for entry in archive.getmembers()
                                          if entry.name.split("/")[0] == name])
        folder = self.dir / name
        self.assertFalse((folder / "weights.safetensors").exists(), "it had ended")
        if "refused" in RUNS[name]:
            self.assertIn(RUNS[name]["refused"], self.refused("resume", name))
            return
        plans = plans_of(folder)
        self.assertTrue(plans, "no plan.json")
        self.ringpipe("resume", name)
        if name not in MAY_CHANGE:
            self.assertEqual(plans_of(folder), plans)
        logs = list(folder.glob("lane-*/log.jsonl")) or [folder / "log.jsonl"]
        for log in logs:
            steps = [record["step"] for record in program.steps_of(log)]
            self.assertEqual(steps, list(range(1, steps[-1] + 1)))
            self.assertGreater(len(steps), RUNS[name]["stopped"])
        digest = hashlib.sha256((folder / "weights.safetensors").read_bytes()).hexdigest()
        self.assertEqual(digest, RUNS[name]["weights"],
                         f"other weights than those of commit {RUNS[name]['commit']}")


def add_method(name):
    setattr(OldRuns, f"test_{name}", lambda self: self.resume_old(name))


for each in RUNS:
    add_method(each)

# By day a flush, versions in flight, replicas, and a choice of the planner's.
load_tests = program.few_when_short("OldRuns.test_gpipe", "OldRuns.test_pipedream",
                                    "OldRuns.test_ea_pipe", "OldRuns.test_codec_auto")


if __name__ == "__main__":
    program.main()
