"""Commands, builds and CTests, run and recorded: what the steps of the doors are made of."""
import concurrent.futures
import os
import re
import subprocess
import sys
import time
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(SOURCE / ".ci"))
import report  # noqa: E402

BUILD = SOURCE / "build"
CORES = os.cpu_count() or 1


class Results:
    """What was checked: (outcome, name, seconds, reason); the seconds of each step."""

    def __init__(self):
        self.rows = []
        self.steps = {}
        self.path = BUILD / "results.txt"
        BUILD.mkdir(exist_ok=True)
        self.path.write_text("")

    def add(self, outcome, name, seconds, reason=""):
        self.rows.append((outcome, name, f"{seconds:.1f}", reason))
        with self.path.open("a", encoding="utf-8") as out:
            out.write("\t".join(self.rows[-1]) + "\n")


def say(text):
    print(text, flush=True)


def call(words, log, env=None, timeout=None):
    """Exit code of a command, whose output goes to a file of the build folder."""
    with open(log, "w", encoding="utf-8") as out:
        try:
            return subprocess.run(
                [str(w) for w in words],
                cwd=SOURCE,
                env={**os.environ, **(env or {})},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                timeout=timeout,
                check=False,
            ).returncode
        except subprocess.TimeoutExpired:
            out.write(f"no end after {timeout} s\n")
            return 124


def tail(log, lines=60):
    return "\n".join(Path(log).read_text("utf-8", "replace").splitlines()[-lines:])


def check(results, name, *words, env=None, timeout=None):
    """One test that is not a CTest. Exit code 77 is a skip, with the reason in `SKIP: ...`."""
    log = BUILD / f"check.{name.replace('/', '.')}.log"
    began = time.monotonic()
    code = call(words, log, env, timeout)
    seconds = time.monotonic() - began
    if code == 77:
        said = re.findall(r"^SKIP: (.*)", log.read_text("utf-8", "replace"), re.M)
        results.add("skip", name, seconds, said[-1] if said else "")
    elif code != 0:
        results.add("fail", name, seconds, f"exit code {code}")
        say(f"\nFAILED {name} (exit code {code}):\n{tail(log)}")
    else:
        results.add("pass", name, seconds)
        say(f"{name:60} {seconds:6.1f} s")
    return code == 0


def check_each(results, jobs):
    """check() for each (name, words, options), on all cores."""
    with concurrent.futures.ThreadPoolExecutor(CORES) as pool:
        for one in [
            pool.submit(check, results, name, *words, **options) for name, words, options in jobs
        ]:
            one.result()


# ---- builds --------------------------------------------------------------------------------

COMPILERS = {
    "build": ("gcc",),
    # Without a fuzzer's coverage, with which tests take two to four times as long, and with lines
    # alone for the debugger, which is quicker to compile.
    "build-asan": (
        "clang",
        "-DRP_SANITIZE=address",
        "-DCMAKE_C_FLAGS_RELWITHDEBINFO=-O2 -gline-tables-only -DNDEBUG",
    ),
    "build-fuzz": ("clang", "-DRP_FUZZ=ON"),
    "build-tsan": ("clang", "-DRP_SANITIZE=thread"),
}


def compiled(results, folder, *targets):
    """Configures a build folder once, and builds these targets, or all. False when that fails."""
    began = time.monotonic()
    log = BUILD / f"{folder.name}.log"
    compiler, *options = COMPILERS[folder.name]
    code = 0
    if not (folder / "build.ninja").exists():
        code = call(
            [
                "cmake",
                "-S",
                ".",
                "-B",
                folder,
                "-G",
                "Ninja",
                f"-DCMAKE_C_COMPILER={compiler}",
                "-DCMAKE_BUILD_TYPE=RelWithDebInfo",
                *options,
            ],
            log,
        )
    if code == 0:
        code = call(["ninja", "-C", folder, *targets], log)
    seconds = time.monotonic() - began
    name = f"{folder.name}/{'all' if not targets else targets[0]}"
    results.add("fail" if code else "pass", name, seconds, "does not build" if code else "")
    say(f"{name:60} {seconds:6.1f} s")
    if code:
        say(tail(log))
    return code == 0


# ---- CTests --------------------------------------------------------------------------------


def run_ctest(folder, junit, options, env=None, prefix=()):
    (folder / junit).unlink(missing_ok=True)
    subprocess.run(
        [
            *prefix,
            "ctest",
            "--test-dir",
            folder,
            "--output-on-failure",
            "--output-junit",
            junit,
            *options,
        ],
        cwd=SOURCE,
        env={**os.environ, **(env or {})},
        stdin=subprocess.DEVNULL,
        check=False,
    )
    return folder / junit


def ctests(results, step, folder, *options, env=None, prefix=(), again=None, at_once=CORES):
    """The CTests that these options choose. What `again` names of the failed ones is run once more,
    alone, and the second outcome counts; the first is printed and stays in the results."""
    first = run_ctest(folder, "junit.xml", ("-j", str(at_once), *options), env, prefix)
    if not first.exists():
        results.add("fail", f"{step}/ctest", 0, "no result file")
        return
    rows = {name: row for name, *row in report.outcomes(first)}
    names = [name for name in again(first) if name in rows] if again else []
    if names:
        say("once more, alone: " + ", ".join(names))
        pattern = "^(" + "|".join(re.escape(name) for name in names) + ")$"
        second = run_ctest(folder, "again.xml", ("-R", pattern, "-FA", "."), env, prefix)
        for name, outcome, seconds, reason in report.outcomes(second):
            if outcome == "pass":
                reason = "FAILED FIRST, next to other tests; passed alone"
                say(f"{reason}: {name}")
            rows[name] = (outcome, rows[name][1] + seconds, reason)
    for name, (outcome, seconds, reason) in rows.items():
        results.add(outcome, f"{step}/{name}", seconds, reason)


def failed(junit):
    return [name for name, outcome, *_ in report.outcomes(junit) if outcome == "fail"]

