"""tests/NIGHT.md: what the nights found. `./bootstrap test night` records each step when it ends,
in the row of its commit, so a night may be run in parts; the file is committed with the next
change."""
import datetime
import os
import re

HEAD = """\
# Nights

What `./bootstrap test night` found, newest first; `tests/steps.py` says what its steps are. Each
step is followed by its seconds, and by the number of its failures if it has any. A night may be run
in parts: steps that are not named in a row were not run at that commit.

| commit | date | machine | result | seconds by step |
|---|---|---|---|---|
"""
ROW = re.compile(r"^\| `(\w{10})` \| ([\d-]+) \| (.*?) \| \w+ \| (.*) \|$", re.M)
STEP = re.compile(r"(\w+) (\d+)(?: \((\d+) failed\))?")
KERNELS = re.compile(r"^Kernels that oclgrind passed: `(\w+)`", re.M)
SLOW = re.compile(r"^\| `(\S+)` \| ([\d.]+) \|$", re.M)
FAILURE = re.compile(r"^- `(\S+)`: (.*)$", re.M)
NIGHTS_MAX = 20
SLOWEST = 30


def path_in(source):
    return source / "tests/NIGHT.md"


def text_of(source):
    path = path_in(source)
    return path.read_text("utf-8") if path.exists() else ""


def kernels_seen(source):
    """The digest of the kernels and their rooms that the last night's oclgrind passed, or None."""
    found = KERNELS.search(text_of(source))
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


def row_of(commit, date, where, by_step):
    """by_step: {step: (seconds, failures)}"""
    told = ", ".join(f"{step} {seconds}" + (f" ({failures} failed)" if failures else "")
                     for step, (seconds, failures) in by_step.items())
    result = "FAILED" if any(failures for _, failures in by_step.values()) else "passed"
    return f"| `{commit}` | {date} | {where} | {result} | {told} |"


def record(source, commit, digest, step, seconds, rows):
    """Adds a step to the row of this commit, which comes first. rows: as Results.rows, of the step.
    digest: what oclgrind looked at."""
    old = text_of(source)
    nights = {found[0]: found[1:] for found in ROW.findall(old)}
    first = next(iter(nights), None) == commit[:10]  # else the lists are those of another night
    slow = {name: float(s) for name, s in SLOW.findall(old)} if first else {}
    failures = dict(FAILURE.findall(old)) if first else {}
    told = nights.pop(commit[:10], ("", "", ""))[2]
    by_step = {name: (s, int(count or 0)) for name, s, count in STEP.findall(told)}
    failed = {name: reason or "no reason" for outcome, name, _, reason in rows if outcome == "fail"}
    by_step[step] = (f"{seconds:.0f}", len(failed))
    for _, name, taken, _ in rows:
        slow[name] = float(taken)
        failures.pop(name, None)
    failures.update(failed)
    passed = step.startswith("oclgrind") and not failed
    seen = digest if passed and digest else kernels_seen(source) or "none"
    today = datetime.date.today().isoformat()
    lines = [row_of(commit[:10], today, machine(), by_step)]
    lines += [f"| `{c}` | {d} | {m} | {'FAILED' if ' failed)' in s else 'passed'} | {s} |"
              for c, (d, m, s) in list(nights.items())[:NIGHTS_MAX - 1]]
    lines += ["", f"Kernels that oclgrind passed: `{seen}`", ""]
    lines += ["## Failures of the last night", ""]
    lines += [f"- `{name}`: {reason}" for name, reason in failures.items()] or ["None."]
    lines += ["", f"## The {SLOWEST} slowest tests of the last night", "", "| test | seconds |",
              "|---|---|"]
    slowest = sorted(slow.items(), key=lambda item: -item[1])[:SLOWEST]
    lines += [f"| `{name}` | {taken:.1f} |" for name, taken in slowest]
    path_in(source).write_text(HEAD + "\n".join(lines) + "\n", encoding="utf-8")
