#!/usr/bin/env python3
"""How busy every board of a finished run was in its steady state: the middle of its trace.

    tests/bench/bench_busy.py RUN_FOLDER...

The summary's `bubble` is of the whole run, with the steps that fill and drain the pipes.
"""
import json
import sys
from pathlib import Path

EDGE = 0.1  # of the time, left out at both ends


def shares(trace):
    """stage -> share of the middle in which it worked."""
    ops = [(e["pid"], e["ts"], e["ts"] + e["dur"]) for e in trace
           if e.get("ph") == "X" and e.get("cat") == "training"]
    stages = sorted({stage for stage, _, _ in ops})
    # from where every stage has begun to where the first one ends
    first = max(min(begin for s, begin, _ in ops if s == stage) for stage in stages)
    last = min(max(end for s, _, end in ops if s == stage) for stage in stages)
    first, last = first + EDGE * (last - first), last - EDGE * (last - first)
    worked = {stage: 0.0 for stage in stages}
    for stage, begin, end in ops:
        worked[stage] += max(0.0, min(end, last) - max(begin, first))
    return {stage: worked[stage] / (last - first) for stage in stages}


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    for folder in map(Path, sys.argv[1:]):
        trace = json.loads((folder / "trace.json").read_text(encoding="utf-8"))
        trace = trace["traceEvents"] if isinstance(trace, dict) else trace
        summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
        each = shares(trace)
        print(f"{folder}: {100 * sum(each.values()) / len(each):.1f} % (stages "
              + " ".join(f"{100 * share:.1f}" for share in each.values())
              + f"), whole run {100 * (1 - summary['bubble']):.1f} %")


if __name__ == "__main__":
    main()
