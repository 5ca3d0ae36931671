"""tests/NIGHT.md: what the nights found. `./bootstrap test night` adds a row and replaces the
table of the slowest tests; the file is committed with the next change."""

import datetime
import os
import re

HEAD = """\
# Nights

What `./bootstrap test night` found, newest first; `tests/doors.py` says what its steps are. A
step is `seconds`, with `(N failed)` where some did not pass.

"""
NIGHTS_MAX = 20
SLOWEST = 30


def kernels_seen(source):
    """The digest of the kernels and their rooms that the last night's oclgrind has passed, or
    None."""
    path = source / "tests/NIGHT.md"
    found = (
        re.search(r"^Kernels that oclgrind passed: `(\w+)`", path.read_text("utf-8"), re.M)
        if path.exists()
        else None
    )
    return found.group(1) if found else None


def machine():
    """The processor, its cores and its memory."""
    cpu = "unknown processor"
    with open("/proc/cpuinfo", encoding="utf-8") as lines:
        for line in lines:
            if line.startswith(("model name", "Model")):
                cpu = line.partition(":")[2].strip()
                break
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{cpu}, {os.cpu_count()} cores, {memory:.0f} GiB"


def row_of(commit, results):
    failed = [name for outcome, name, *_ in results.rows if outcome == "fail"]
    steps = []
    for step, seconds in results.steps.items():
        wrong = results.failures[step]
        steps.append(f"{step} {seconds:.0f}" + (f" ({wrong} failed)" if wrong else ""))
    total = sum(results.steps.values())
    outcome = "passed" if not failed else "FAILED: " + ", ".join(failed[:10])
    date = datetime.date.today().isoformat()
    return (
        f"| `{commit[:10]}` | {date} | {machine()} | {total:.0f} s | {outcome} | "
        f"{', '.join(steps)} |"
    )


def slowest(results):
    rows = sorted(results.rows, key=lambda row: -float(row[2]))[:SLOWEST]
    return [f"| `{name}` | {seconds} |" for _, name, seconds, _ in rows]


def record(source, commit, digest, results):
    """Writes NIGHT.md: this night's row before the earlier ones."""
    path = source / "tests/NIGHT.md"
    old = (
        re.findall(r"^\| `[0-9a-f]{10}` \|.*", path.read_text("utf-8"), re.M)
        if path.exists()
        else []
    )
    passed = not any(
        outcome == "fail" and name.startswith("oclgrind/") for outcome, name, *_ in results.rows
    )
    seen = digest if passed and digest else kernels_seen(source)
    lines = [
        "| commit | date | machine | seconds | result | by step |",
        "|---|---|---|---|---|---|",
        row_of(commit, results),
        *old[: NIGHTS_MAX - 1],
        "",
        f"Kernels that oclgrind passed: `{seen}`",
        "",
        f"## The {SLOWEST} slowest tests of the last night",
        "",
        "| test | seconds |",
        "|---|---|",
        *slowest(results),
    ]
    path.write_text(HEAD + "\n".join(lines) + "\n", encoding="utf-8")
