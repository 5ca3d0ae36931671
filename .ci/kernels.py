#!/usr/bin/env python3
"""Every kernel of kernels/*.cl was run clean by a program under oclgrind: kernels.py LIST

LIST is what .ci/oclgrind wrote, `file/entry<TAB>program` a line. Prints each kernel with its
programs; exit 1 when one has none, or when the list names a kernel that no source has."""
import collections
import glob
import os
import re
import subprocess
import sys

KERNELS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "kernels")
ENTRY = re.compile(r"\bkernel\s+(?:__attribute__\s*\(\(.*?\)\)\s*)?void\s+(\w+)\s*\(", re.DOTALL)


def entries():
    """file/entry of every kernel; the preprocessor expands those that macros write."""
    found = set()
    for path in sorted(glob.glob(os.path.join(KERNELS, "*.cl"))):
        text = subprocess.run(["cc", "-E", "-P", "-x", "c", path], check=True, text=True,
                              stdout=subprocess.PIPE).stdout
        names = ENTRY.findall(text)
        if not names or len(names) != len(re.findall(r"\bkernel\b", text)):
            sys.exit(f"{path}: {len(names)} kernels understood, there are more")
        found |= {f"{os.path.basename(path)[:-3]}/{name}" for name in names}
    return found


def main():
    ran = collections.defaultdict(set)
    with open(sys.argv[1], encoding="utf-8") as lines:
        for line in lines:
            kernel, program = line.rstrip("\n").split("\t")
            ran[kernel].add(program)
    known = entries()
    for kernel in sorted(known):
        print(kernel, *sorted(ran[kernel]) or ["NO PROGRAM RUNS IT"])
    strange = sorted(set(ran) - known)
    if strange:
        print("not in kernels/:", *strange)
    return 1 if strange or any(not ran[kernel] for kernel in known) else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main())
