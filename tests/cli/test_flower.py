#!/usr/bin/env python3
"""packaging/flower: rings as clients of Flower. The parts without Flower with a stub command; its
rules against golden vectors, and whole runs against `ringpipe train` with `sites`. That part needs
a Python with flwr 1.42, which Debian 12 has no package of: RP_PYTHON names one, otherwise this
Python is tried. Without one those tests are skipped, and say so."""
import contextlib
import io
import json
import math
import os
import signal
import socket
import subprocess
import sys
import time
import unittest
from pathlib import Path

import program
from program import SLOWER, SOURCE

PACKAGE = SOURCE / "packaging/flower"
HALF = Path(__file__).resolve().parent / "flower_half.py"
sys.path.insert(0, str(PACKAGE))
from ringpipe_flower import guards, settings, site, split  # noqa: E402

RUN = """\
model: mlp
data: {set: glyphs, train: 384, test: 64}
ring: {boards: 2}
train: {epochs: 1, batch: 32, microbatch: 16, seed: 3}
loss: cross-entropy
optimizer: {kind: sgd, lr: 0.05, momentum: 0.9}
schedule: gpipe
cut: [fc2]
"""
# Writes its words, then does what the line of `todo` with its number says.
STUB = """\
#!/bin/sh
cd "$(dirname "$0")" || exit 9
echo "$@" >>said
line=$(sed -n "$(wc -l <said)p" todo)
eval "$line"
"""
# Gives the weights back in another order, plus 1; integers as they are.
GIVES_BACK = """\
import json, sys
from pathlib import Path
from safetensors.numpy import load_file, save_file

out = Path(sys.argv[sys.argv.index("--out") + 1])
out.mkdir()
given = load_file(sys.argv[sys.argv.index("--in") + 1])
save_file({{name: w + 1 if w.dtype.kind == "f" else w for name, w in sorted(given.items())}},
          out / "weights.safetensors")
print(json.dumps({report}))
"""
# Adds a number that depends on the site.
ADDS = """\
import json, sys
from pathlib import Path
from safetensors.numpy import load_file, save_file

site = Path(sys.argv[2]).parent
out = Path(sys.argv[sys.argv.index("--out") + 1])
out.mkdir(exist_ok=True)
plus = "abc".index(site.name) + 1
given = load_file(sys.argv[sys.argv.index("--in") + 1])
save_file({name: w + (0 if (site / "still").exists() else plus)
           for name, w in sorted(given.items())}, out / "weights.safetensors")
print(json.dumps({"version": 1, "round": 1, "site": site.name, "status": "finished", "steps": 4,
                  "samples": 64, "held": 100 * plus, "loss": {"mean": 1.5}}))
"""
REPORT = {"version": 1, "round": 7, "site": "a", "status": "finished", "steps": 4, "samples": 64,
          "held": 100, "loss": {"first": 2.0, "mean": 1.5, "last": 1.0}}


def python_with_flower():
    """The first Python that has it. It is not loaded, which takes seconds."""
    has = ("import sys; from importlib.metadata import version; from importlib.util import "
           "find_spec; sys.exit(not (all(map(find_spec, ('flwr', 'safetensors'))) and "
           "version('flwr').startswith('1.42.')))")
    for python in filter(None, (os.environ.get("RP_PYTHON"), sys.executable, "/usr/bin/python3")):
        try:
            found = subprocess.run([python, "-c", has], capture_output=True, timeout=120 * SLOWER)
        except FileNotFoundError:
            continue
        if found.returncode == 0:
            return python
    return None


PYTHON = python_with_flower()
NO_FLOWER = ("no Python here has flwr 1.42: python3 -m venv DIR, DIR/bin/pip install "
             "packaging/flower, then RP_PYTHON=DIR/bin/python")


class Refusals(unittest.TestCase):
    def refused(self, part, call, *words):
        with self.assertRaises(guards.Refused) as caught:
            call(*words)
        self.assertIn(part, str(caught.exception))


class Guards(Refusals):
    def test_rules(self):
        for name in guards.RULES:
            guards.check_rule(name, settings.DEFAULTS.get(name, {}))
        for name, part in (("krum", "float32 from weights"), ("multikrum", "float32"),
                           ("bulyan", "one ranking of Krum"), ("dpadaptive", "wrong sign"),
                           ("dpfixed", "division by zero"), ("fedprox", "give `anchor`"),
                           ("qfedavg", "not compared"), ("FedAvg", "expected fedavg, fedavgm")):
            self.refused(part, guards.check_rule, name, {})
        self.refused("no such setting", guards.check_rule, "fedavg", {"lr": 1})
        for value in (1, -0.1, math.nan, math.inf):
            self.refused("momentum", guards.check_rule, "fedavgm", {"momentum": value})
        self.refused("0.5", guards.check_rule, "fedtrimmedavg", {"trim": 0.5})

    def test_versions(self):
        guards.check_version("1.42.3")
        for version in ("1.41.0", "1.43.0", "1.420.0", "2.1.42"):
            self.refused("expected 1.42", guards.check_version, version)

    def test_tensors(self):
        given = [("a", "float32", (2, 3)), ("b", "float32", (2, 3))]
        guards.check_tensors("x", given, list(given))
        self.refused("site x: tensor 0 is 'b'", guards.check_tensors, "x", given, given[::-1])
        self.refused("1 tensors: expected 2", guards.check_tensors, "x", given, given[:1])
        for other in (("b", "float64", (2, 3)), ("b", "float32", (3, 2))):
            self.refused("expected 'b' float32 [2, 3]", guards.check_tensors, "x", given,
                         [given[0], other])
        self.refused("2 GiB", guards.check_size, 2**31)

    def test_numbers_and_names(self):
        for name in ("a", "site-0", "A_b.c"):
            self.assertEqual(guards.check_name("site", name), name)
        for name in ("", ".", "../a", "-x", "a/b", "a" * 65, "a\n", 3, None):
            self.refused("letters", guards.check_name, "site", name)
        for value in (True, 1.5, "1", -1, 11, None):
            self.refused("whole number from 0 to 10", guards.check_whole, "n", value, 0, 10)
        for value in (math.nan, math.inf, "1", None, True):
            self.refused("finite", guards.check_finite_number, "a", "loss", value)
            self.refused("number from 0", guards.check_real, "n", value, 0, 10)

    def test_reports(self):
        self.assertEqual(guards.check_report(REPORT, 7)["loss"], 1.5)
        self.assertIsNone(guards.check_report({**REPORT, "loss": {"mean": None}}, 7)["loss"])
        for key, value in (("round", 8), ("version", 2), ("site", "../a"), ("held", 0),
                           ("held", None), ("steps", -1), ("samples", 1.5), ("status", "late"),
                           ("loss", {"mean": math.nan})):
            self.refused(key, guards.check_report, {**REPORT, key: value}, 7)
        self.refused("round 7", guards.check_report, [], 7)


class Settings(Refusals):
    GIVEN = {"start": "/a/w.safetensors", "out": "/a/out"}

    def test_defaults(self):
        found = settings.read_settings({**self.GIVEN, "rule": "fedadam", "lr": "", "tau": 0.1})
        self.assertEqual((found["epochs"], found["steps"]), (1, 0))
        self.assertEqual((found["sites"], found["least"]), (2, 2))
        self.assertEqual(found["settings"], {"lr": 0.1, "beta1": 0.9, "beta2": 0.99, "tau": 0.1})
        for name, keys in guards.RULES.items():
            self.assertEqual(set(settings.read_rule(name, {})), set(keys))

    def test_refusals(self):
        for part, change in (("'round'", {"round": 3}), ("absolute", {"out": "out"}),
                             ("absolute", {"start": ""}), ("rounds", {"rounds": 0}),
                             ("only one", {"steps": 3, "epochs": 1}), ("sites", {"sites": 0}),
                             ("least: 3: expected at most the 2 sites", {"least": 3}),
                             ("least", {"least": -1}),
                             ("anchor", {"anchor": math.nan}), ("wait", {"wait": 0}),
                             ("evaluate", {"evaluate": "train"}), ("krum", {"rule": "krum"}),
                             ("lr", {"rule": "fedavg", "lr": 1.0}), ("name", {"name": "../x"}),
                             ("momentum", {"rule": "fedavgm", "momentum": math.nan})):
            self.refused(part, settings.read_settings, {**self.GIVEN, **change})

    def test_a_run_that_goes_on(self):
        before = settings.read_settings({**self.GIVEN, "rounds": 2})
        settings.check_same(before, settings.read_settings({**self.GIVEN, "rounds": 5,
                                                            "evaluate": "test"}))
        other = settings.read_settings({**self.GIVEN, "rule": "fedavgm"})
        self.refused("rule: the run in", settings.check_same, before, other)

    def test_the_app_has_these_keys(self):
        import tomllib
        app = tomllib.loads((PACKAGE / "pyproject.toml").read_text())["tool"]["flwr"]["app"]
        self.assertEqual(set(app["config"]), settings.KEYS)
        settings.read_settings({**app["config"], **self.GIVEN})


class Command(program.Case):
    """The client's files and commands, with a stub in place of ringpipe."""

    def setUp(self):
        super().setUp()
        self.stub = self.dir / "ringpipe"
        self.stub.write_text(STUB)
        self.stub.chmod(0o755)
        (self.dir / "a").mkdir()
        (self.dir / "a/site.yaml").write_text("")

    def todo(self, *lines):
        (self.dir / "todo").write_text("\n".join(lines) + "\n")
        (self.dir / "said").unlink(missing_ok=True)

    def said(self):
        return (self.dir / "said").read_text().splitlines()

    def site(self, **changes):
        config = {"name": "first", "server-round": 7, "steps": 4, "epochs": 0, "anchor": 0.0,
                  "seconds": 60.0, **changes}
        return site.Site(self.dir / "a", self.stub, config)

    def report(self, **changes):
        return "echo '" + json.dumps({**REPORT, **changes}) + "'"

    def fails(self, part, call):
        with self.assertRaises((guards.Refused, site.Failed)) as caught:
            call()
        self.assertIn(part, str(caught.exception))

    def test_round(self):
        self.todo(self.report())
        one = self.site(anchor=0.5)
        self.assertEqual(one.given(), self.dir / "a/first/round-7/given.safetensors")
        path, report = one.train()
        self.assertEqual(path, self.dir / "a/first/round-7/out/weights.safetensors")
        self.assertEqual((report["site"], report["held"], report["loss"]), ("a", 100, 1.5))
        folder = self.dir / "a/first/round-7"
        self.assertEqual(self.said(), [
            f"round {self.dir}/a/site.yaml --in {folder}/given.safetensors --out {folder}/out "
            "--round 7 --steps 4 --format json --quiet --anchor 0.5"])
        self.todo(self.report())
        self.site(steps=0, epochs=2).train()
        self.assertIn("--epochs 2 --format", self.said()[0])

    def test_a_ring_that_fails_once(self):
        self.todo("exit 3", self.report())
        self.assertEqual(self.site().train()[1]["steps"], 4)
        self.assertEqual(len(self.said()), 2)
        self.assertEqual(*self.said())
        self.todo("echo 'no board' >&2; exit 3", "echo 'still no board' >&2; exit 3", self.report())
        self.fails("exit code 3: still no board", self.site().train)
        self.assertEqual(len(self.said()), 2)

    def test_other_failures_are_not_repeated(self):
        for code in (2, 4, 5, 130):
            self.todo(f"echo 'why' >&2; exit {code}", self.report())
            self.fails(f"round: exit code {code}: why", self.site().train)
            self.assertEqual(len(self.said()), 1)
        self.todo("head -c 100000 /dev/zero | tr '\\0' e >&2; exit 2")
        with self.assertRaises(site.Failed) as caught:
            self.site().train()
        self.assertLess(len(str(caught.exception)), 1000)

    def test_a_command_that_does_not_end(self):
        self.todo("trap 'echo interrupted >>said; kill $!; exit 130' INT; "
                  "sleep 100 >&- 2>&- & wait")
        began = time.monotonic()
        self.fails("not finished after 0.5 s", self.site(seconds=0.5).train)
        self.assertLess(time.monotonic() - began, 15 * SLOWER)
        self.assertEqual(self.said()[1:], ["interrupted"])

    def test_wrong_answers(self):
        for line, part in (("echo nothing", "one JSON object"), ("echo '[1]'", "one JSON object"),
                           ("echo '{}'", "round 7"), (self.report(round=6), "round 7"),
                           (self.report(site="../b"), "site"), (self.report(held=0), "held"),
                           (self.report(loss={"mean": math.nan}), "loss.mean")):
            self.todo(line)
            self.fails(part, self.site().train)

    def test_wrong_questions(self):
        for part, changes in (("steps, epochs", {"epochs": 1}), ("steps, epochs", {"steps": 0}),
                              ("name", {"name": "../x"}), ("server-round", {"server-round": 0}),
                              ("seconds", {"seconds": math.nan}), ("anchor", {"anchor": -1.0})):
            self.fails(part, lambda changes=changes: self.site(**changes))
        (self.dir / "a/site.yaml").unlink()
        self.fails("a/site.yaml: missing", self.site)

    def test_old_rounds_are_removed(self):
        for number in (4, 5, 6):
            self.site(**{"server-round": number}).given().write_bytes(b"x")
        self.site().given()
        self.assertEqual({path.name for path in (self.dir / "a/first").iterdir()},
                         {"round-6", "round-7"})

    def test_evaluation(self):
        answer = {"version": 1, "eval": {"loss": 1.25, "accuracy": 0.5, "samples": 64}}
        self.todo("echo '" + json.dumps(answer) + "'")
        one = self.site()
        self.assertEqual(one.evaluate("w", "validation"), answer["eval"])
        self.assertIn("eval", self.said()[0])
        self.assertIn("--weights w --split validation --format json", self.said()[0])
        self.fails("part", lambda: one.evaluate("w", "train"))
        for scores in ({"loss": math.nan, "samples": 1}, {"samples": 1}, {"loss": 1.0}, None):
            self.todo("echo '" + json.dumps({"eval": scores}) + "'")
            self.fails("eval", lambda: one.evaluate("w", "test"))
        out = one.round_folder / "out"
        out.mkdir(parents=True)
        (out / "round.json").write_text(json.dumps(REPORT))
        self.assertEqual(one.name(), "a")


class Partitioner:
    """Like those of flwr-datasets: a data set is given, parts of it are taken."""
    num_partitions = 2

    def load_partition(self, number):
        rows = self.dataset.columns["ringpipe_sample"]
        return {"ringpipe_sample": rows[number::2][::-1]}


class Dataset:
    def __init__(self, count, columns=None):
        self.count, self.columns = count, columns or {}

    def __len__(self):
        return self.count

    def add_column(self, name, values):
        return Dataset(self.count, {**self.columns, name: values})


class Split(program.Case):
    ABOUT = {"set": "glyphs", "digest": "0123456789abcdef", "samples": 6}

    def test_forms(self):
        made = split.make_split([[5, 0, 1, 2], [3, 4]], self.ABOUT, "by hand", 4)
        self.assertEqual(made, {
            "version": 1, "set": "glyphs", "digest": "0123456789abcdef", "seed": 4,
            "rule": "by hand", "samples": 6,
            "sites": [{"name": "site-0", "train": ["0-2", 5]},
                      {"name": "site-1", "train": ["3-4"]}]})
        made = split.make_split({"a": {"train": [0, 2], "validation": [4]}, "b": [1, 3, 5]},
                                self.ABOUT, "x", 0)
        self.assertEqual(made["sites"][0], {"name": "a", "train": [0, 2], "validation": [4]})
        self.assertEqual(split.parts_of(Partitioner(), Dataset(6)),
                         {"site-0": [0, 2, 4], "site-1": [1, 3, 5]})

    def test_refusals(self):
        for part, parts in (("sample 1 occurs twice", [[0, 1], [1, 2]]), ("0 to 5", [[6]]),
                            ("0 to 5", [[-1]]), ("0 to 5", [[True]]), ("0 to 5", [["0-3"]]),
                            ("no training sample", [[0], []]), ("list of numbers", [3]),
                            ("letters", {"../a": [0]}), ("1 to 1024 sites", []),
                            ("1 to 1024 sites", 3), ("keys train", {"a": {"test": [0]}}),
                            ("2 of 6 samples belong to no site", [[0, 1], [2, 3]])):
            with self.subTest(part), self.assertRaisesRegex(guards.Refused, part):
                split.make_split(parts, self.ABOUT, "x", 0)
        self.assertEqual(len(split.make_split([[0], [2]], self.ABOUT, "x", 0, True)["sites"]), 2)

    def main(self, *words):
        err = io.StringIO()
        with contextlib.redirect_stderr(err), contextlib.redirect_stdout(io.StringIO()):
            code = split.main([str(word) for word in ("split", *words)])
        return code, err.getvalue()

    def test_command(self):
        """What it writes is what `ringpipe data split` would, and a run takes it."""
        run = self.run_file(RUN)
        self.ringpipe("data", "split", run, "--sites", "2", "--by", "dirichlet:1", "--seed", "3",
                      "--validation", "0.2", "--out", "want.json")
        want = json.loads((self.dir / "want.json").read_text())
        (self.dir / "parts.json").write_text(json.dumps({
            one["name"]: {part: expand(one[part]) for part in ("train", "validation")}
            for one in want["sites"]}))
        words = (run, self.dir / "parts.json", "-o", self.dir / "split.json", "--rule",
                 "dirichlet:1", "--seed", "3", "--program", program.RINGPIPE)
        self.assertEqual(self.main(*words), (0, ""))
        self.assertEqual(json.loads((self.dir / "split.json").read_text()), want)
        self.ringpipe("train", run, "--dry-run", "--set",
                      "data.site={split: split.json, name: site-1}")
        code, err = self.main(*words)
        self.assertEqual((code, "--yes" in err), (2, True))
        (self.dir / "parts.json").write_text('{"a": [0], "a": [1]}')
        code, err = self.main(*words, "--yes")
        self.assertEqual((code, "'a' occurs twice" in err), (2, True))
        (self.dir / "parts.json").write_text("[[0], [1]]")
        run.write_text(RUN.replace("glyphs", "gliphs"))
        code, err = self.main(*words, "--yes")
        self.assertEqual((code, "gliphs" in err), (2, True))
        self.assertEqual(json.loads((self.dir / "split.json").read_text()), want)


def expand(samples):
    found = []
    for item in samples:
        first, _, last = str(item).partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


@unittest.skipUnless(PYTHON, NO_FLOWER)
class Rules(program.Case):
    """Client, server and Flower's own classes, without a network."""

    MOMENTS = {"lr": 0.1, "beta1": 0.9, "beta2": 0.99, "tau": 0.001}
    # Of tests/federation/test_rule.c: three sites, two weights, exact gradients. FedAdagrad by its
    # formula in double, with v from 0.
    WANT = (
        ("fedavg", {}, [[0.9295276781, -1.538012], [0.8695890910, -1.2488287634]]),
        ("fedavgm", {"lr": 1.0, "momentum": 0.9},
         [[0.9295276781, -1.538012], [0.8061640012, -0.8330395634], [0.6536376884, -0.1730732540]]),
        ("fedadam", MOMENTS, [[0.9349802963, -1.9273270691], [0.8581442841, -1.8431669189]]),
        ("fedyogi", MOMENTS, [[0.9124266329, -1.9021186979], [0.7926724021, -1.7702735803]]),
        ("fedadagrad", {"lr": 0.1, "tau": 0.001},
         [[0.901399143, -1.9002159883], [0.8400502986, -1.8326494975]]),
    )

    def ask(self, do, **more):
        done = subprocess.run([PYTHON, "-W", "ignore", str(HALF)], text=True, capture_output=True,
                              input=json.dumps({"do": do, **more}), timeout=300 * SLOWER,
                              env={**os.environ, "FLWR_TELEMETRY_ENABLED": "0",
                                   "FLWR_DISABLE_UPDATE_CHECK": "1"})
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout.splitlines()[-1])

    def test_vectors(self):
        for name, given, want in self.WANT:
            for restored in (False, True):
                with self.subTest(name, restored=restored):
                    found = self.ask("rounds", rule=name, settings=given, rounds=len(want),
                                     restored=restored)
                    for have, x in zip(found["x"], want, strict=True):
                        for a, b in zip(have, x, strict=True):
                            self.assertLessEqual(abs(a - b), 1e-6)
                    # In the order given, as float32, which FedAdam's are not.
                    self.assertEqual(found["order"], ["w", "b", "bn.running_var",
                                                      "bn.num_batches_tracked"])
                    self.assertEqual(found["types"], ["float32"] * 3 + ["int64"])
                    self.assertEqual(found["count"], 7)
                    # Running statistics are the plain mean.
                    for difference in found["statistics"]:
                        self.assertLessEqual(abs(difference), 1e-6)

    def test_middle(self):
        """The median of three sites, which is also what a trim of one at each end leaves."""
        sites = []  # of the half's problem, in closed form
        for a, b, steps in (((1, 0.5), (3, 0), 2), ((0.2, 2), (-1, 1), 5),
                            ((0.6, 1), (0.5, -3), 3)):
            sites.append([b[j] + (1 - 0.1 * a[j]) ** steps * (x - b[j])
                          for j, x in enumerate((1, -2))])
        want = [sorted(values)[1] for values in zip(*sites)]
        for name, given in (("fedmedian", {}), ("fedtrimmedavg", {"trim": 0.34})):
            found = self.ask("rounds", rule=name, settings=given, rounds=1, restored=False)
            for a, b in zip(found["x"][0], want, strict=True):
                self.assertLessEqual(abs(a - b), 1e-6, name)

    def test_guards_are_needed(self):
        """What is refused is still wrong in this version of Flower."""
        distances = self.ask("krum")  # 200000 * 1e-8 = 0.002 between neighbours
        self.assertGreater(abs(distances[0][1] - 0.002), 0.001)
        self.assertLess(self.ask("adaptive"), 1)  # all were clipped, so that it has to grow

    def test_client(self):
        """The reply has the tensors of the message: their order, float32, integers as they were."""
        (self.dir / "a").mkdir()
        (self.dir / "a/site.yaml").write_text("")
        stub = self.dir / "ringpipe"
        stub.write_text(f"#!{PYTHON}\n" + GIVES_BACK.format(report={**REPORT, "round": 2}))
        stub.chmod(0o755)
        node = {"site": str(self.dir / "a"), "program": str(stub)}
        found = self.ask("client", node=node)
        self.assertIsInstance(found, dict, found)
        self.assertEqual(found["arrays"], [["w", "float32", [[1, 2, 3], [4, 5, 6]]],
                                           ["a", "float32", [2, 3]], ["n", "int64", 7]])
        self.assertEqual(found["metrics"], {"num-examples": 100, "steps": 4, "samples": 64,
                                            "loss": 1.5})
        self.assertEqual(found["about"], {"site": "a", "round": 2})
        self.assertIn("expected site and program", self.ask("client", node={}))
        self.assertIn("expected site and program", self.ask("client", node={**node, "sit": "b"}))
        stub.write_text("#!/bin/sh\necho 'run.yaml:3: wrong' >&2\nexit 2\n")
        self.assertIn("exit code 2: run.yaml:3: wrong", self.ask("client", node=node))

    def test_record(self):
        found = self.ask("record", folder=str(self.dir))
        self.assertEqual((found["done"], found["weights"]), (1, {"w": [5, 6], "n": 7}))
        self.assertEqual(found["state"], [["m/1", "float64", [0.5]]])
        self.assertEqual(found["rows"], '{"round": 1, "loss": 2.0}\n')
        for text, part in zip(found["refused"], ("rule: the run in", "is not the file from which"),
                              strict=True):
            self.assertIn(part, text)

    def test_messages(self):
        """All sites have to answer."""
        found = self.ask("messages", sites=2, least=2, replies=[
            [["b"], ["a"]], [["a"]], [["a"], ["a"]], [["a"], ["b", "exit code 2: no tensor"]],
            [["../a"], ["b"]], [["a"], ["b", "", 2]]])
        self.assertEqual(found[0], [["a", "b"], []])
        for text, part in zip(found[1:], (
                "round 3: 1 of 2 sites answered within 0.01 s: expected 2; some of these are away: "
                "c", "site a is at two nodes", "round 3: node 1: exit code 2: no tensor",
                "site '../a'", "site b: a reply to round 2: expected one to round 3"), strict=True):
            self.assertIn(part, text)

    def test_least(self):
        """Two of three sites are enough: one that fails has a row, one that is silent has none."""
        failed = [{"round": 3, "site": "c", "failed": "no board"}]
        found = self.ask("messages", sites=3, least=2, replies=[
            [["b"], ["a"]], [["b"], ["a"], ["", "no board"]], [["a"], ["", "x" * 5000], ["b"]],
            [["a"], ["", "no board"]], [["a"]]])
        self.assertEqual(found[:2], [[["a", "b"], []], [["a", "b"], failed]])
        (_, (row,)), *ends = found[2:]
        self.assertEqual((row["site"], row["failed"]), (None, "x" * 600))
        self.assertIn("round 3: node 1: no board", ends[0])
        self.assertIn("1 of 3 sites answered within 0.01 s: expected 2", ends[1])
        found = self.ask("nodes", sites=3, least=2, connected=[1, 2, 3, 4])
        self.assertEqual(found[1:3], [2, 3])
        self.assertIn("1 nodes are connected after 0 s: expected 3 sites; some of these are away: "
                      "a", found[0])
        self.assertTrue(found[3].endswith("expected 3 sites"), found[3])

    def sites(self):
        """Three sites whose training adds 1, 2 and 3 to each weight, and which hold 100, 200 and
        300 samples; a site with a file `still` adds nothing."""
        stub = self.dir / "ringpipe"
        stub.write_text(f"#!{PYTHON}\n" + ADDS)
        stub.chmod(0o755)
        folders = [self.dir / name for name in "abc"]
        for folder in folders:
            folder.mkdir()
            (folder / "site.yaml").write_text("")
        return {"folders": [str(folder) for folder in folders], "program": str(stub)}

    def test_differential_privacy(self):
        """Flower's mods around this client and its strategies: the clipping is exact, the noise is
        as large as it has to be. A site without a change is an error, which is why the ServerApp
        here refuses them."""
        sites = self.sites()
        for kind in ("client", "server", "local"):
            found = self.ask("privacy", kind=kind, norm=0.3, noise=0, large=False, **sites)
            self.assertEqual((found["errors"], found["names"]), ([], ["w", "a"]))
            for moved in found["moved"]:  # all in the same direction: 9 values of one length
                self.assertLessEqual(abs(moved - 0.1), 2e-6, kind)
        for kind in ("client", "server"):
            found = self.ask("privacy", kind=kind, norm=0.3, noise=2.0, large=True, **sites)
            # 2.0 * 0.3 / 3 sites, in 20,003 values: its own deviation is 0.5 %
            self.assertLessEqual(abs(found["deviation"] - 0.2), 0.006, kind)
        (self.dir / "b/still").write_text("")
        found = self.ask("privacy", kind="client", norm=0.3, noise=0, large=False, **sites)
        self.assertIn("division by zero", found["errors"][0])
        found = self.ask("privacy", kind="server", norm=0.3, noise=0, large=False, **sites)
        self.assertIn("division by zero", found["ended"])

    def test_secure_aggregation(self):
        """SecAgg+ gives the mean by samples held; the server sees no weights of a site. A site
        that is lost after the exchange of keys is left out."""
        sites = self.sites()
        for silent, plus in ((), 14 / 6), ((2,), 10 / 4):
            found = self.ask("secure", silent=silent, **sites)
            self.assertEqual((found["errors"], found["seen"]), ([], []))
            start = [[[0, 1, 2], [3, 4, 5]], [1, 2, 3]]
            for row, want in zip([*found["arrays"][0], found["arrays"][1]],
                                 [*start[0], start[1]], strict=True):
                for a, b in zip(row, want, strict=True):
                    self.assertLessEqual(abs(a - b - plus), 1e-4)


@unittest.skipUnless(PYTHON, NO_FLOWER)
class WithFlower(program.Case):
    def environment(self, **changes):
        path = f"{Path(PYTHON).parent}:{program.BUILD / 'bin'}:{os.environ['PATH']}"
        return super().environment(**{
            "PATH": path, "FLWR_TELEMETRY_ENABLED": "0", "FLWR_DISABLE_UPDATE_CHECK": "1",
            "FLWR_HOME": str(self.dir / "home"), **changes})

    def rows(self, folder):
        lines = (self.dir / folder / "sites.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines]


class Whole(WithFlower):
    """A link and two nodes on the loopback device, each with a ring of two boards."""

    ROUNDS, STEPS, NEAR = 3, 4, 1e-6

    def setUp(self):
        super().setUp()
        self.run_file(RUN)
        self.ringpipe("data", "split", "run.yaml", "--sites", "2", "--by", "dirichlet:1", "--least",
                      "40", "--out", "split.json")
        self.ringpipe("train", "run.yaml", "--set", "train.steps=1", "--set", "optimizer.lr=0",
                      "--out", "first")
        for name in ("site-0", "site-1"):
            (self.dir / name).mkdir()
            self.run_file(RUN.replace("data: {", f"data: {{site: {{split: ../split.json, name: "
                                      f"{name}}}, "), f"{name}/site.yaml")

    def serve(self, name, *words):
        """A program of Flower and its children, which end with the test."""
        log = open(self.dir / f"{name}.log", "w", encoding="utf-8")
        self.addCleanup(log.close)
        process = subprocess.Popen([str(word) for word in words], cwd=self.dir, stdout=log,
                                   stderr=log, stdin=subprocess.DEVNULL, start_new_session=True,
                                   env=self.environment())
        self.addCleanup(self.end_all, process)
        return process

    def end_all(self, process):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(10)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def start_link(self):
        self.port = program.ports().find(3)
        (self.dir / "home").mkdir()
        (self.dir / "home/config.toml").write_text(
            '[superlink]\ndefault = "lo"\n\n[superlink.lo]\n'
            f'address = "127.0.0.1:{self.port}"\ninsecure = true\n')
        link = self.serve("link", "flower-superlink", "--insecure",
                          "--disable-runtime-dependency-installation", "--host", "127.0.0.1",
                          "--port", self.port)
        self.wait_for("the link", self.answers, 60, process=None)
        self.assertIsNone(link.poll())
        self.nodes = [self.start_node(i) for i in range(2)]

    def start_node(self, i):
        return self.serve(f"node-{i}", "flower-supernode", "--insecure", "--superlink",
                          f"127.0.0.1:{self.port}", "--port", self.port + 1 + i, "--node-config",
                          f'site="{self.dir}/site-{i}" program="{program.RINGPIPE}"')

    def answers(self):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
            return True
        return False

    def start_run(self, name, rounds=ROUNDS, **config):
        given = {"name": name, "start": str(self.dir / "first/weights.safetensors"),
                 "out": str(self.dir / name), "rounds": rounds, "steps": self.STEPS, "sites": 2,
                 "wait": 240.0, **config}
        words = " ".join(f"{key}={json.dumps(value)}" for key, value in given.items())
        return self.start("run", PACKAGE, "lo", "--stream", "--run-config", words, program="flwr",
                          stderr=subprocess.STDOUT)

    def flower(self, name, *rounds, **config):
        """Runs to its end. Returns what was said."""
        return self.finish(self.start_run(name, *rounds, **config), code=None, seconds=300)[0]

    def weights(self, folder):
        return program.read_safetensors(self.dir / folder / "weights.safetensors")

    def native(self, rule):
        """The same by `ringpipe train` with `sites`."""
        self.run_file(RUN + f"sites: {{split: split.json, rule: {rule}, rounds: {self.ROUNDS}, "
                      f"steps: {self.STEPS}}}\n", "sites.yaml")
        folder = "native-" + rule.strip("{").split(",")[0].split()[-1]
        self.ringpipe("train", "sites.yaml", "--set", "train.eval_epochs=0", "--out", folder,
                      seconds=200)
        return self.weights(folder)

    def expect_near(self, name, rule, said):
        have, want = self.weights(name), self.native(rule)
        self.assertEqual(sorted(have), sorted(want), said)
        farthest = 0
        for key, (shape, values) in want.items():
            self.assertEqual(have[key][0], shape)
            for a, b in zip(have[key][1], values, strict=True):
                self.assertLessEqual(abs(a - b), self.NEAR, (rule, key))
                farthest = max(farthest, abs(a - b))
        moved = max(abs(a - b) for key, (_, values) in self.weights("first").items()
                    for a, b in zip(have[key][1], values))
        self.assertGreater(moved, 0.01)
        print(f"{name}: farthest value {farthest:.2e} from that of `sites`, moved {moved:.3f}")

    def test_same_weights(self):
        """The same split, start and rule give the weights of `ringpipe train` with `sites`; a run
        in two parts those of a whole one; and twice the same bits."""
        self.start_link()
        said = self.flower("avg", evaluate="test")
        self.expect_near("avg", "fedavg", said)
        self.expect_rows("avg")
        said = self.flower("avgm", rule="fedavgm")
        self.expect_near("avgm", "{kind: fedavgm}", said)
        said = self.flower("adam", rule="fedadam", lr=0.01)
        self.expect_near("adam", "{kind: fedadam, variant: flower, lr: 0.01}", said)
        said = self.flower("yogi", rule="fedyogi")
        self.expect_near("yogi", "{kind: fedyogi, variant: flower}", said)
        self.flower("parts", 1, rule="fedadam", lr=0.01)
        said = self.flower("parts", rule="fedadam", lr=0.01)
        for name in ("weights.safetensors", "sites.jsonl"):
            self.assertEqual((self.dir / "parts" / name).read_bytes(),
                             (self.dir / "adam" / name).read_bytes(), said)

    def expect_rows(self, folder):
        rows = self.rows(folder)
        self.assertEqual([row["round"] for row in rows], [1] * 5 + [2] * 5 + [3] * 5)
        names = ["site-0", "site-1"]
        held = {one["name"]: len(expand(one["train"])) for one in
                json.loads((self.dir / "split.json").read_text())["sites"]}
        for first in (0, 5, 10):
            sites, whole, scores = rows[first:first + 2], rows[first + 2], rows[first + 3:first + 5]
            self.assertEqual([row["site"] for row in sites + scores], names * 2)
            self.assertEqual([(row["held"], row["steps"]) for row in sites],
                             [(held[name], self.STEPS) for name in names])
            self.assertAlmostEqual(whole["loss"], sum(row["held"] * row["loss"] for row in sites) /
                                   sum(held.values()))
            for row in scores:
                self.assertEqual((row["evaluated"], row["samples"]), ("test", 64))
                self.assertGreater(row["loss"], 0)

    def test_failures(self):
        """A site that cannot train ends the run with its words; corrected, the run goes on."""
        self.start_link()
        file = self.dir / "site-1/site.yaml"
        text = file.read_text()
        file.write_text(text.replace("sgd", "sdg"))
        said = self.flower("f", 1)
        self.assertIn("sdg", said)
        self.assertIn("exit code 2", said)
        self.assertFalse((self.dir / "f/weights.safetensors").exists())
        file.write_text(text)
        self.flower("f", 1)
        self.assertEqual(len(self.rows("f")), 3)
        said = self.flower("f", 2, steps=3)
        self.assertIn("steps: the run in", said)
        said = self.flower("g", 1, rule="krum")
        self.assertIn("float32 from weights", said)
        said = self.flower("h", 1, sites=3, wait=2.0)
        self.assertIn("2 nodes are connected after 2 s: expected 3 sites", said)


    def test_a_node_that_is_late(self):
        """One of two sites is enough. A node is stopped until its round is over: the round closes
        without it, and what it then sends of that round counts nowhere."""
        self.start_link()
        process = self.start_run("k", 4, least=1, wait=40.0 * SLOWER)
        self.wait_for("round 2", (self.dir / "site-1/k/round-2").exists, 120, process=process)
        os.killpg(self.nodes[1].pid, signal.SIGSTOP)
        self.addCleanup(self.wake, self.nodes[1])
        self.wait_for("the end of round 2", lambda: self.rounds("k")[-1:] == [2], 120 * SLOWER,
                      process=process)
        self.wake(self.nodes[1])
        said, _ = self.finish(process, code=None, seconds=400)
        rows = self.rows("k")
        self.assertEqual(self.rounds("k"), [1, 2, 3, 4], said)
        trained = [(row["round"], row["site"]) for row in rows if "steps" in row]
        self.assertEqual(len(trained), len(set(trained)), said)
        self.assertIn((1, "site-1"), trained)
        self.assertNotIn((2, "site-1"), trained)
        for number in (1, 2, 3, 4):
            self.assertIn((number, "site-0"), trained)

    def wake(self, process):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGCONT)

    def rounds(self, folder):
        """Rounds that are closed."""
        try:
            return [row["round"] for row in self.rows(folder) if "sites" in row]
        except (FileNotFoundError, ValueError):
            return []

    def test_a_node_that_is_killed(self):
        """The run ends with an error, which Flower sends after its heartbeats are missing; with the
        node back, the same command ends with the weights of a run without the kill."""
        self.start_link()
        self.flower("whole", 2)
        process = self.start_run("k", 2)
        self.wait_for("round 2", (self.dir / "site-1/k/round-2").exists, 120, process=process)
        os.killpg(self.nodes[1].pid, signal.SIGKILL)
        said, _ = self.finish(process, code=None, seconds=200)
        self.assertIn("heartbeat", said)
        self.assertEqual(len(self.rows("k")), 3)
        self.start_node(1)
        said = self.flower("k", 2)
        for name in ("weights.safetensors", "sites.jsonl"):
            self.assertEqual((self.dir / "k" / name).read_bytes(),
                             (self.dir / "whole" / name).read_bytes(), said)


class Example(WithFlower):
    def test_run(self):
        """packaging/flower/example: run.sh trains, goes on, and leaves no process."""
        script = PACKAGE / "example/run.sh"
        port = program.ports().find(3)
        for rounds in (1, 2):
            out, _ = self.ringpipe(script, "example", port, f"rounds={rounds}", program="sh",
                                   seconds=600)
            self.assertIn("accuracy", out)
        rows = self.rows("example/out")
        self.assertEqual([row["round"] for row in rows], [1] * 3 + [2] * 3)
        self.assertLess(rows[-1]["loss"], rows[2]["loss"])


load_tests = program.few_when_short("Guards", "Settings", "Command", "Split", "Rules.test_vectors")

if __name__ == "__main__":
    program.main()
