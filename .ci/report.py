"""Results of the tests: what CTest's files say, and the summary at the end of a door."""
import re
import xml.etree.ElementTree as xml

# The leak checker's own words, after a signal in its thread: no leak was found or ruled out.
TOOL_CRASHED = "LeakSanitizer has encountered a fatal error"


def cases_of(path):
    return xml.parse(path).getroot().iter("testcase")


def crashed(path):
    """Names of the tests that passed until the leak checker itself crashed."""
    found = []
    for case in cases_of(path):
        output = case.findtext("system-out") or ""
        if case.get("status") != "run" and TOOL_CRASHED in output and "FAILED" not in output:
            found.append(case.get("name"))
    return found


def outcomes(path):
    """(name, pass|fail|skip, seconds, reason) of each CTest. A skip without a reason is a failure."""
    for case in cases_of(path):
        output = case.findtext("system-out") or ""
        outcome, reason = "pass", ""
        if case.find("skipped") is not None or case.get("status") == "notrun":
            said = re.findall(r"SKIP: *(.*)", output)
            reason = said[-1].strip() if said else "skipped or not run, without a reason"
            outcome = "skip" if said else "fail"
        elif case.get("status") != "run":
            outcome = "fail"
            failure = case.find("failure")
            reason = failure.get("message", "") if failure is not None else ""
        yield case.get("name"), outcome, float(case.get("time", 0)), reason


def allowed(path):
    """Patterns of tests that may skip, one a line: `pattern  # why`."""
    with open(path, encoding="utf-8") as lines:
        patterns = [line.split("#")[0].strip() for line in lines]
    return [re.compile(p + r"\Z") for p in patterns if p]


def summary(rows, may_skip):
    """Prints what failed and what was skipped; 1 on a failure, on a skip that is not allowed, or when
    nothing passed."""
    patterns = allowed(may_skip)
    skipped = [row for row in rows if row[0] == "skip"]
    failed = [row for row in rows if row[0] == "fail"]
    surplus = [row for row in skipped if not any(p.match(row[1]) for p in patterns)]
    slowest = sorted(rows, key=lambda row: -float(row[2]))[:8]
    print("\n== summary")
    print("slowest:", ", ".join(f"{row[1]} {row[2]} s" for row in slowest))
    for outcome, name, _, reason in rows:
        if outcome == "pass" and reason:
            print(f"{name}: {reason}")
    for _, name, _, reason in skipped:
        print(f"skipped {name}: {reason}")
    for _, name, _, _ in surplus:
        print(f"NOT ALLOWED TO SKIP {name} (see {may_skip})")
    for _, name, _, reason in failed:
        print(f"FAILED {name}: {reason}")
    passed = len(rows) - len(skipped) - len(failed)
    print(f"{passed} passed, {len(failed)} failed, {len(skipped)} skipped", flush=True)
    return 1 if failed or surplus or not passed else 0
