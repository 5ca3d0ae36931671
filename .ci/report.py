#!/usr/bin/env python3
"""Results of ./bootstrap test: one line a check, `outcome<TAB>name<TAB>seconds<TAB>reason`.

report.py collect STEP JUNIT.xml...   prints the lines of one ctest run; a test that a later file has
                                      again counts as that one says
report.py crashed JUNIT.xml           names, one a line, of the tests that passed until the leak
                                      checker itself crashed
report.py summary RESULTS MAY_SKIP    prints the summary; exit 1 on a failure or a skip too many
"""
import re
import sys
import xml.etree.ElementTree as xml


# Its own words, after a signal in the thread that looks for leaks: no leak was found or ruled out.
TOOL_CRASHED = "LeakSanitizer has encountered a fatal error"


def cases_of(path):
    return xml.parse(path).getroot().iter("testcase")


def crashed(path):
    for case in cases_of(path):
        output = case.findtext("system-out") or ""
        if case.get("status") != "run" and TOOL_CRASHED in output and "FAILED" not in output:
            print(case.get("name"))


def collect(step, *paths):
    for case in {case.get("name"): case for path in paths for case in cases_of(path)}.values():
        output = case.findtext("system-out") or ""
        outcome, reason = "pass", ""
        if case.find("skipped") is not None or case.get("status") == "notrun":
            outcome = "skip"
            said = re.findall(r"SKIP: *(.*)", output)
            reason = said[-1].strip() if said else ""
        elif case.get("status") != "run":
            outcome = "fail"
            failure = case.find("failure")
            reason = failure.get("message", "") if failure is not None else ""
        if outcome == "skip" and not reason:
            outcome, reason = "fail", "skipped or not run, without a reason"
        seconds = f"{float(case.get('time', 0)):.1f}"
        print(outcome, f"{step}/{case.get('name')}", seconds, reason, sep="\t")


def allowed(path):
    """Patterns of tests that may skip, one a line: `pattern  # why`."""
    with open(path, encoding="utf-8") as lines:
        patterns = [line.split("#")[0].strip() for line in lines]
    return [re.compile(p + r"\Z") for p in patterns if p]


def summary(path, may_skip):
    with open(path, encoding="utf-8") as lines:
        rows = [line.rstrip("\n").split("\t") for line in lines]
    patterns = allowed(may_skip)
    skipped = [row for row in rows if row[0] == "skip"]
    failed = [row for row in rows if row[0] == "fail"]
    surplus = [row for row in skipped if not any(p.match(row[1]) for p in patterns)]
    slowest = sorted(rows, key=lambda row: -float(row[2]))[:5]
    print("\n== summary")
    print("slowest:", ", ".join(f"{row[1]} {row[2]} s" for row in slowest))
    for _, name, _, reason in skipped:
        print(f"skipped {name}: {reason}")
    for _, name, _, _ in surplus:
        print(f"NOT ALLOWED TO SKIP {name} (see {may_skip})")
    for _, name, _, reason in failed:
        print(f"FAILED {name}: {reason}")
    passed = len(rows) - len(skipped) - len(failed)
    print(f"{passed} passed, {len(failed)} failed, {len(skipped)} skipped")
    return 1 if failed or surplus or not passed else 0


if __name__ == "__main__":
    commands = {"collect": collect, "crashed": crashed, "summary": summary}
    if len(sys.argv) < 3 or sys.argv[1] not in commands:
        sys.exit(__doc__)
    sys.exit(commands[sys.argv[1]](*sys.argv[2:]))
