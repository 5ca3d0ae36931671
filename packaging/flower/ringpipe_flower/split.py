"""ringpipe-flower split: lists of samples, as of a partitioner, become a split file.

Standard library only: a partitioner of flwr-datasets is an argument.
source  format of the file: ringpipe-data(1)
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from .guards import Refused, check_name, check_whole

SITES_MAX = 1024
SECONDS = 600  # for ringpipe, which reads the labels of the set


def parts_of(partitioner, dataset):
    """{"site-0": [samples], ...} of a partitioner of flwr-datasets, which is given `dataset`, the
    whole training part in its stored order. It keeps its lists of samples to itself, so that a
    column of numbers is added, divided, and read back."""
    partitioner.dataset = dataset.add_column("ringpipe_sample", list(range(len(dataset))))
    return {f"site-{i}": sorted(partitioner.load_partition(i)["ringpipe_sample"])
            for i in range(partitioner.num_partitions)}


def ranges(samples):
    """[0, 1, 2, 7] as ["0-2", 7]."""
    found, i = [], 0
    while i < len(samples):
        end = i + 1
        while end < len(samples) and samples[end] == samples[end - 1] + 1:
            end += 1
        found.append(f"{samples[i]}-{samples[end - 1]}" if end > i + 1 else samples[i])
        i = end
    return found


def take_list(site, what, samples, count, taken):
    if not isinstance(samples, list):
        raise Refused(f"site {site}: {what}: expected a list of numbers of samples")
    for sample in samples:
        check_whole(f"site {site}: {what}", sample, 0, count - 1)
        if sample in taken:
            raise Refused(f"site {site}: sample {sample} occurs twice: expected each sample at "
                          "most once")
        taken.add(sample)
    return ranges(sorted(samples))


def make_split(parts, about, rule, seed, partial=False):
    """The split file as an object.

    parts    [[samples], ...], or {site: [samples]}, or {site: {"train": [...],
             "validation": [...]}}; samples are counted from 0 as the set stores them
    about    {"set", "digest", "samples"}: the set, as `ringpipe data split` says
    partial  whether samples may belong to no site
    """
    if isinstance(parts, list):
        parts = {f"site-{i}": samples for i, samples in enumerate(parts)}
    if not isinstance(parts, dict) or not 1 <= len(parts) <= SITES_MAX:
        raise Refused(f"expected a list or an object of 1 to {SITES_MAX} sites")
    taken, sites = set(), []
    for name, lists in parts.items():
        lists = lists if isinstance(lists, dict) else {"train": lists}
        if not {"train"} <= set(lists) <= {"train", "validation"}:
            raise Refused(f"site {name}: expected the keys train and validation")
        site = {"name": check_name("site", name)}
        for what, samples in lists.items():
            site[what] = take_list(name, what, samples, about["samples"], taken)
        if not site["train"]:
            raise Refused(f"site {name} has no training sample")
        sites.append({key: value for key, value in site.items() if value})
    left = about["samples"] - len(taken)
    if left and not partial:
        raise Refused(f"{left} of {about['samples']} samples belong to no site: expected all, or "
                      "--partial")
    return {"version": 1, "set": about["set"], "digest": about["digest"],
            "seed": check_whole("seed", seed, 0, 2**63 - 1), "rule": rule,
            "samples": about["samples"], "sites": sites}


def read_parts(path):
    """The lists of a file. A name that occurs twice would hide the first list."""
    def take_object(pairs):
        for number, (name, _) in enumerate(pairs):
            if name in (other for other, _ in pairs[:number]):
                raise Refused(f"{path}: '{name}' occurs twice")
        return dict(pairs)

    text = Path(path).read_text(encoding="utf-8")
    try:
        return json.loads(text, object_pairs_hook=take_object)
    except json.JSONDecodeError as error:
        raise Refused(f"{path}: expected lists of samples as JSON: {error}") from None


def describe_set(program, run_file):
    """{"set", "digest", "samples"} of the data of a run file, as ringpipe reads it."""
    with tempfile.TemporaryDirectory() as folder:
        words = [program, "data", "split", str(run_file), "--sites", "1", "--format", "json",
                 "--quiet", "-o", str(Path(folder) / "split.json")]
        done = subprocess.run(words, capture_output=True, text=True, timeout=SECONDS, check=False)
    if done.returncode != 0:
        raise Refused(f"{program}: exit code {done.returncode}: {done.stderr.strip()[-600:]}")
    return json.loads(done.stdout)


def write_split(path, split):
    """Replaces the file as a whole."""
    part = Path(f"{path}.part")
    part.write_text(json.dumps(split, indent=1) + "\n", encoding="utf-8")
    os.replace(part, path)


def main(words=None):
    parser = argparse.ArgumentParser(prog="ringpipe-flower",
                                     description="Splits for rings as clients of Flower.")
    verbs = parser.add_subparsers(dest="verb", required=True)
    split = verbs.add_parser("split", help="lists of samples become a split file")
    split.add_argument("run", metavar="RUN.yaml", help="run file whose data set is divided")
    split.add_argument("parts", metavar="PARTS.json", help="lists of samples by site")
    split.add_argument("-o", "--out", metavar="FILE.json", required=True)
    split.add_argument("--rule", default="flower", help="what made the lists (default: flower)")
    split.add_argument("--seed", type=int, default=0, help="its seed (default: 0)")
    split.add_argument("--partial", action="store_true", help="samples may belong to no site")
    split.add_argument("--program", default="ringpipe", help="path of ringpipe")
    split.add_argument("-y", "--yes", action="store_true", help="replace what exists")
    given = parser.parse_args(words)
    try:
        if Path(given.out).exists() and not given.yes:
            raise Refused(f"{given.out} exists: --yes replaces it")
        parts = read_parts(given.parts)
        made = make_split(parts, describe_set(given.program, given.run), given.rule, given.seed,
                          given.partial)
        write_split(given.out, made)
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        print(f"ringpipe-flower: {error}", file=sys.stderr)
        return 2
    print(f"{given.out}: {made['samples']} samples of '{made['set']}', {len(made['sites'])} sites")
    return 0


if __name__ == "__main__":
    sys.exit(main())
