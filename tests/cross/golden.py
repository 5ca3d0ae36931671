#!/usr/bin/env python3
"""Golden cases on this machine and on another one that is emulated: both pass, with the same bits.
(With our own matrix products.)

golden.py BUILD SYSROOT TEST...    BUILD: the cross build's folder; RP_BUILD_DIR: this machine's;
                                   TEST: programs, e.g. test_layer_dense"""
import os
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
HERE = Path(os.environ.get("RP_BUILD_DIR", SOURCE / "build"))
EMULATE = SOURCE / "packaging" / "cross" / "emulate"


def run(words, build, folder):
    """The digests of a test program: {case: digest}."""
    digests = Path(folder) / "digests"
    digests.unlink(missing_ok=True)
    env = {**os.environ, "RP_SOURCE_DIR": str(SOURCE), "RP_BUILD_DIR": str(build),
           "RINGPIPE_TUNING": "/nonexistent", "RP_SMALL": "1", "RP_GOLDEN_DIGESTS": str(digests),
           "XDG_CACHE_HOME": str(build / "cache"), "POCL_CACHE_DIR": str(build / "cache" / "pocl")}
    done = subprocess.run([str(word) for word in words], env=env, capture_output=True, text=True,
                          timeout=900, check=False)
    if done.returncode != 0:
        sys.exit(f"{words}: exit {done.returncode}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
    found = {}
    for line in digests.read_text().splitlines() if digests.exists() else []:
        name, digest = line.split()
        found[name] = digest
    return found


def main():
    build, sysroot, *tests = sys.argv[1:]
    build = Path(build).resolve()
    emulate = ("nice", "-n", "5", EMULATE, "aarch64", sysroot)
    cases, other = 0, []
    with tempfile.TemporaryDirectory() as folder:
        for test in tests:
            here = run([HERE / "tests/tests_nn", test], HERE, folder)
            there = run([*emulate, build / "tests/tests_nn", test], build, folder)
            if not here:
                sys.exit(f"{test} has noted no digest")
            cases += len(here)
            differ = [name for name in sorted({*here, *there}) if here.get(name) != there.get(name)]
            print(f"{test}: {len(here)} cases, {len(differ)} of them with other bits: {differ}",
                  flush=True)
            other += differ
    print(f"{cases} cases, {len(other)} with other bits than on this machine")
    return 1 if other else 0


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    sys.exit(main())
