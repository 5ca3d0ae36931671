#!/usr/bin/env python3
"""`ringpipe round`: one site's step, from given weights to weights and round.json."""
import json
import math
import os
import random
import shutil
import signal
import struct
import subprocess
import time

import program

SITE = """\
model: mlp
data: {set: glyphs, train: 1024, test: 64, site: {split: split.json, name: site-1}}
ring: {boards: 2}
train: {epochs: 1, batch: 64, microbatch: 16, seed: 1, checkpoint_steps: 2}
loss: cross-entropy
optimizer: {kind: sgd, lr: 0.05, momentum: 0.9}
schedule: gpipe
cut: [fc2]
"""

KILLS = 4 if os.environ.get("RP_SHORT") else 8


def read_tensors(path):
    """name: (type, shape, bytes), in the order of the file."""
    raw = path.read_bytes()
    size = struct.unpack("<Q", raw[:8])[0]
    header = json.loads(raw[8:8 + size])
    header.pop("__metadata__", None)
    return {name: (one["dtype"], one["shape"],
                   raw[8 + size + one["data_offsets"][0]:8 + size + one["data_offsets"][1]])
            for name, one in header.items()}


def write_tensors(path, tensors):
    header, at = {}, 0
    for name, (kind, shape, data) in tensors.items():
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(d for _, _, d in
                                                                    tensors.values()))


def floats(data):
    return struct.unpack(f"<{len(data) // 4}f", data)


class Case(program.Case):
    def setUp(self):
        super().setUp()
        whole = SITE.replace(", site: {split: split.json, name: site-1}", "")
        self.ringpipe("data", "split", self.run_file(whole), "--sites", "2", "--by",
                      "dirichlet:0.5", "--out", "split.json")
        self.ringpipe("train", self.run_file(whole), "--set", "train.steps=1", "--out", "w")
        self.site = self.run_file(SITE, "site.yaml")

    def words(self, out, number=3, given="w/weights.safetensors", *more):
        return ("round", self.site, "--in", given, "--out", out, "--round", number, *more)

    def round(self, out, *more, number=3, given="w/weights.safetensors", **options):
        said, _ = self.ringpipe(*self.words(out, number, given, "--format", "json", *more),
                                **options)
        return json.loads(said)

    def kill_at_random(self, words, check, longest):
        """Kills the command of words(folder) with -9 at drawn moments of its time, RP_KILLS times;
        a folder whose command has ended is checked, and the next one begins."""
        draw = random.Random(5)
        kills, number = int(os.environ.get("RP_KILLS", KILLS)), 0
        while kills > 0:
            process = self.start(*words(f"k{number}"))
            try:
                process.wait(draw.uniform(0.02, longest))
                self.finish(process)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()
                kills -= 1
                if kills % 4 == 0:  # not each of them at its start
                    check(f"k{number}")
                    number += 1
                continue
            check(f"k{number}")
            number += 1
        return number


class Round(Case):
    def test_an_answer(self):
        answer = self.round("a", "--steps", "6")
        self.assertEqual(json.loads((self.dir / "a/round.json").read_text()), answer)
        self.assertEqual((answer["round"], answer["site"], answer["status"]),
                         (3, "site-1", "finished"))
        self.assertEqual((answer["steps"], answer["asked"], answer["samples"]), (6, 6, 384))
        self.assertEqual(answer["after"]["samples"], 64)
        self.assertIsNone(answer["before"])  # the site has no validation part
        # 6 steps with momentum 0.9: the sum over k of (1 - 0.9^k) / 0.1
        self.assertIsNone(answer["joules"])  # local boards report none
        self.assertAlmostEqual(answer["norm_a"], sum((1 - 0.9 ** k) / 0.1 for k in range(1, 7)))
        before = read_tensors(self.dir / "w/weights.safetensors")
        after = read_tensors(self.dir / "a/weights.safetensors")
        self.assertEqual([(n, t[:2]) for n, t in before.items()],
                         [(n, t[:2]) for n, t in after.items()])
        squares = sum((a - b) ** 2 for name in before
                      for a, b in zip(floats(after[name][2]), floats(before[name][2])))
        self.assertAlmostEqual(answer["delta_norm"], squares ** 0.5, places=6)
        # The same command gives the same answer, without a run.
        start = time.monotonic()
        self.assertEqual(self.round("a", "--steps", "6"), answer)
        self.assertLess(time.monotonic() - start, 60)
        self.assertEqual(len(program.steps_of(self.dir / "a/run/log.jsonl")), 6)
        # A round that was killed before its answer is told again from its run.
        (self.dir / "a/round.json").unlink()
        again = self.round("a", "--steps", "6")
        self.assertEqual({**again, "seconds": 0}, {**answer, "seconds": 0})
        # Weights that were removed are made again.
        (self.dir / "a/weights.safetensors").unlink()
        again = self.round("a", "--steps", "6")
        self.assertEqual(again["out"], answer["out"])
        self.assertTrue((self.dir / "a/weights.safetensors").exists())
        # Elsewhere the round has the same weights; another round, or another site, has not.
        self.assertEqual(self.round("b", "--steps", "6")["out"], answer["out"])
        self.assertNotEqual(self.round("c", "--steps", "6", number=4)["out"], answer["out"])
        self.site.write_text(SITE.replace("site-1", "site-0"))
        self.assertNotEqual(self.round("d", "--steps", "6")["out"], answer["out"])

    def test_kills(self):
        """The same command goes on after kill -9 at any moment, with the same weights."""
        began = time.monotonic()
        want = self.round("whole", "--epochs", "2")
        longest = time.monotonic() - began

        def check(folder):
            got = self.round(folder, "--epochs", "2")
            self.assertEqual((got["out"], got["steps"], got["status"]),
                             (want["out"], want["steps"], "finished"))

        self.kill_at_random(lambda folder: self.words(folder, 3, "w/weights.safetensors",
                                                      "--epochs", "2"), check, longest)

    def test_an_interruption(self):
        process = self.start(*self.words("i", 3, "w/weights.safetensors", "--epochs", "500"))
        self.wait_for("a step", lambda: program.steps_of(self.dir / "i/run/log.jsonl"),
                      process=process)
        # A second process on the same folder does not wait; another site trains meanwhile.
        said = self.refused(*self.words("i", 3, "w/weights.safetensors", "--epochs", "500"), code=3)
        self.assertIn("i: the round is busy with another process", said)
        self.round("j", "--steps", "1", "--set", "data.site.name=site-0")
        process.send_signal(signal.SIGINT)
        self.finish(process, code=130)
        self.assertFalse((self.dir / "i/round.json").exists())

    def test_locked_state(self):
        process = self.start(*self.words("i", 3, "w/weights.safetensors", "--epochs", "500",
                                         "--state", "site"))
        self.wait_for("a step", lambda: program.steps_of(self.dir / "i/run/log.jsonl"),
                      process=process)
        said = self.refused(*self.words("j", 3, "w/weights.safetensors", "--state", "site"), code=3)
        self.assertIn("site: the site is busy with another process", said)
        process.send_signal(signal.SIGINT)
        self.finish(process, code=130)

    def test_within(self):
        answer = self.round("p", "--epochs", "100000", "--within", "3")
        self.assertEqual(answer["status"], "partial")
        self.assertEqual(answer["steps"], len(program.steps_of(self.dir / "p/run/log.jsonl")))
        self.assertGreater(answer["steps"], 0)
        self.assertGreater(answer["delta_norm"], 0)
        newest = sorted((self.dir / "p/run/checkpoint").glob("step-*.safetensors"))[-1]
        self.assertEqual(int(newest.stem[5:]), answer["steps"])
        trained = read_tensors(newest)
        for name, tensor in read_tensors(self.dir / "p/weights.safetensors").items():
            self.assertEqual(tensor, trained[name])
        (self.dir / "p/weights.safetensors").unlink()
        again = self.round("p", "--epochs", "100000", "--within", "3")
        self.assertEqual({**again, "seconds": 0}, {**answer, "seconds": 0})

    def test_no_time(self):
        """The start may take longer than --within; the round ends all the same."""
        answer = self.round("n", "--epochs", "100000", "--within", "1")
        self.assertEqual(answer["status"], "partial")
        self.assertGreaterEqual(answer["steps"], 0)

    def test_given_weights(self):
        given = read_tensors(self.dir / "w/weights.safetensors")
        plain = self.round("plain", "--steps", "2")
        # F64, in another order, with a tensor of integers that is given back.
        other = {}
        for name, (_, shape, data) in reversed(given.items()):
            values = floats(data)
            other[name] = ("F64", shape, struct.pack(f"<{len(values)}d", *values))
        other["steps.num_batches_tracked"] = ("I64", [], struct.pack("<q", 77))
        write_tensors(self.dir / "f64.safetensors", other)
        self.round("f64", "--steps", "2", given="f64.safetensors")
        got = read_tensors(self.dir / "f64/weights.safetensors")
        want = read_tensors(self.dir / "plain/weights.safetensors")
        self.assertEqual(list(got), list(other))
        self.assertEqual(got["steps.num_batches_tracked"], other["steps.num_batches_tracked"])
        for name, tensor in want.items():
            self.assertEqual(got[name], tensor)
        self.assertEqual(plain["steps"], 2)
        # F16 is another starting point, but a valid one.
        half = {name: ("F16", shape, struct.pack(f"<{len(floats(d))}e", *floats(d)))
                for name, (_, shape, d) in given.items()}
        write_tensors(self.dir / "f16.safetensors", half)
        self.assertEqual(self.round("f16", "--steps", "2", given="f16.safetensors")["steps"], 2)

    def test_refusals(self):
        given = read_tensors(self.dir / "w/weights.safetensors")
        name = next(iter(given))
        missing = {n: t for n, t in given.items() if n != name}
        write_tensors(self.dir / "missing.safetensors", missing)
        self.assertIn(name, self.refused(*self.words("a", 3, "missing.safetensors")))
        kind, shape, data = given[name]
        nan = {**given, name: (kind, shape, struct.pack("<f", float("nan")) + data[4:])}
        write_tensors(self.dir / "nan.safetensors", nan)
        self.assertIn(name, self.refused(*self.words("b", 3, "nan.safetensors")))
        self.assertIn("none.safetensors", self.refused(*self.words("c", 3, "none.safetensors")))
        self.round("d", "--steps", "1")
        said = self.refused(*self.words("d", 4, "w/weights.safetensors", "--steps", "1"))
        self.assertIn("--round is 3 there and 4 now", said)
        said = self.refused(*self.words("d", 3, "w/weights.safetensors", "--steps", "2"))
        self.assertIn("--steps is 1 there and 2 now", said)
        (self.dir / "split.json").write_text((self.dir / "split.json").read_text() + " ")
        said = self.refused(*self.words("d", 3, "w/weights.safetensors", "--steps", "1"))
        self.assertIn("data.site.split is", said)
        said = self.refused(*self.words("d", 3, "w/weights.safetensors", "--steps", "1", "--set",
                                        "optimizer.lr=0.1"))
        self.assertIn("the digest of the run file with --set is", said)
        self.site.write_text(SITE.replace("test: 64,", "test: 64, validation: 16,"))
        self.assertIn("split file", self.refused(*self.words("e")))
        self.site.write_text(SITE.replace("epochs: 1", "epochs: 1, init: other.safetensors"))
        self.round("f", "--steps", "1")


    def test_corrected(self):
        """What a refused command leaves behind does not belong to it: the corrected one goes on in
        the same folder."""
        want = self.round("want", "--steps", "2", "--state", "fresh", "--keep", "fc3*")
        for number, site in ((2, "site-0"), (7, "site-1")):
            self.round(f"{site}-{number}", "--steps", "1", "--state", f"state-{site}", "--keep",
                       "fc3*", "--set", f"data.site.name={site}", number=number)
        given = read_tensors(self.dir / "w/weights.safetensors")
        name, (kind, shape, data) = next(iter(given.items()))
        write_tensors(self.dir / "shape.safetensors", {
            **given, name: (kind, [*shape[:-1], shape[-1] - 1], data[:len(data) // shape[-1] *
                                                                     (shape[-1] - 1)])})
        write_tensors(self.dir / "missing.safetensors",
                      {n: t for n, t in given.items() if n != name})
        write_tensors(self.dir / "nan.safetensors",
                      {**given, name: (kind, shape, struct.pack("<f", float("nan")) + data[4:])})
        (self.dir / "text.safetensors").write_text("no weights")
        steps = ("--steps", "2")
        good = "w/weights.safetensors"
        for part, given_file, more in (
                (name, "shape.safetensors", ()),
                (name, "missing.safetensors", ()),
                (name, "nan.safetensors", ()),
                ("text.safetensors", "text.safetensors", ()),
                ("matches no tensor", good, ("--keep", "tail*", "--state", "new")),
                ("expected a folder of its own for site 'site-1'", good,
                 ("--keep", "fc3*", "--state", "state-site-0")),
                ("finished round 7", good, ("--keep", "fc3*", "--state", "state-site-1")),
                ("device memory", good, ("--set", "ring.memory_mb=1")),
                ("not a layer", good, ("--set", "cut=[none]"))):
            with self.subTest(part=part, given=given_file):
                said = self.refused(*self.words("a", 3, given_file, *steps, *more))
                self.assertIn(part, said)
                self.assertNotIn("remove the folder", said)  # it may be another site's
                self.assertFalse((self.dir / "a/asked.json").exists())
                self.assertFalse((self.dir / "a/start.safetensors").exists())
        # The same after a kill between the start and the claim.
        shutil.copy(self.dir / "site-0-2/start.safetensors", self.dir / "a")
        (self.dir / "a/before.json").write_text('{"eval": {"loss": 1}}')
        got = self.round("a", *steps, "--state", "new", "--keep", "fc3*")
        self.assertEqual((got["out"], got["before"]), (want["out"], None))
        # A folder of a round is left alone.
        files = {path: path.read_bytes() for path in (self.dir / "a").glob("*") if path.is_file()}
        self.refused(*self.words("a", 3, "nan.safetensors", *steps))
        self.refused(*self.words("a", 3, good, *steps, "--set", "ring.memory_mb=1"))
        self.assertEqual(files, {path: path.read_bytes() for path in files})
        # Nor are files removed that no round has made.
        (self.dir / "own").mkdir()
        shutil.copy(self.dir / good, self.dir / "own/start.safetensors")
        self.assertIn("own/start.safetensors", self.refused(*self.words("own")))
        self.assertEqual((self.dir / "own/start.safetensors").read_bytes(),
                         (self.dir / good).read_bytes())
        shutil.copytree(self.dir / "w", self.dir / "other/run")
        self.assertIn("has no asked.json", self.refused(*self.words("other")))

    def test_no_evaluation(self):
        """An evaluation of the start that ends early is reported once."""
        whole = SITE.replace(", site: {split: split.json, name: site-1}", "")
        self.ringpipe("data", "split", self.run_file(whole), "--sites", "2", "--validation", "0.2",
                      "--out", "split.json", "--yes")
        said = self.refused(*self.words("a", 3, "w/weights.safetensors", "--set",
                                        "ring.memory_mb=1"))
        self.assertNotIn("before.json", said)
        process = self.start(*self.words("b"))
        self.wait_for("the evaluation", (self.dir / "b/before.json.tmp").exists, process=process)
        process.send_signal(signal.SIGINT)
        _, err = self.finish(process, code=130)
        self.assertNotIn("before.json", err)
        self.assertFalse((self.dir / "b/before.json").exists())
        self.assertFalse((self.dir / "b/before.json.tmp").exists())
        self.assertEqual(self.round("b")["before"]["samples"], 512 // 5)

    def test_rates(self):
        """norm_a follows the schedule of the learning rate, over all steps of the round."""
        schedules = {
            "{kind: constant, warmup_steps: 4}": [min(1, (k + 1) / 4) for k in range(6)],
            "{kind: cosine}": [(1 + math.cos(math.pi * k / 6)) / 2 for k in range(6)],
            "{kind: step, step_size: 1, gamma: 0.5}": [1] * 6}  # 8 steps in an epoch
        for number, (schedule, rates) in enumerate(schedules.items()):
            answer = self.round(f"r{number}", "--steps", "6", "--set", f"lr_schedule={schedule}",
                                "--set", "data.site=none")
            u = want = 0
            for rate in rates:
                u = 0.9 * u + 1
                want += rate * u
            self.assertAlmostEqual(answer["norm_a"], want)
        # A step that was skipped has no weight, so the sum is not known.
        log = self.dir / "r0/run/log.jsonl"
        log.write_text('{"event":"skipped","step":2}\n' + log.read_text())
        (self.dir / "r0/round.json").unlink()
        again = self.round("r0", "--steps", "6", "--set", "lr_schedule={kind: constant, "
                           "warmup_steps: 4}", "--set", "data.site=none")
        self.assertIsNone(again["norm_a"])


PLAIN = SITE.replace(", momentum: 0.9", "")


def values(path):
    """name: floats of every F32 tensor."""
    return {name: floats(data) for name, (kind, _, data) in read_tensors(path).items()
            if kind == "F32"}


def decode_topk(data, share, count):
    """The values of an update's tensor; those that were not sent are 0."""
    found, at = [], 0
    for first in range(0, count, 256):
        block = [0.0] * min(256, count - first)
        kept = math.ceil(share * len(block))
        for place, value in zip(data[at:at + kept], floats(data[at + kept:at + 5 * kept])):
            block[place] = value
        found += block
        at += 5 * kept
    assert at == len(data)
    return found


class Rules(Case):
    """Anchor, drift, kept layers, kept optimisers, clipping."""

    def setUp(self):
        super().setUp()
        self.site.write_text(PLAIN)

    def weights(self, out):
        return values(self.dir / out / "weights.safetensors")

    def expect_differences(self, got, base, want, within=2e-7):
        """got - base is want(name, index), for every weight."""
        for name, found in got.items():
            for i, value in enumerate(found):
                self.assertAlmostEqual(value - base[name][i], want(name, i), delta=within)

    def test_an_anchor(self):
        given = values(self.dir / "w/weights.safetensors")
        one = self.round("one", "--steps", "1")
        self.assertEqual(one["anchor"], 0)
        self.assertEqual(self.round("at-1", "--steps", "1", "--anchor", "3")["out"], one["out"])
        self.round("two", "--steps", "2")
        answer = self.round("at-2", "--steps", "2", "--anchor", "3")
        self.assertEqual(answer["anchor"], 3)
        self.assertAlmostEqual(answer["norm_a"], 1 + (1 - 0.05 * 3))
        first = self.weights("one")
        self.expect_differences(
            self.weights("at-2"), self.weights("two"),
            lambda name, i: -0.05 * 3 * (first[name][i] - given[name][i]))
        # The cut changes no bit, and clipping follows the anchor.
        clip = ("--steps", "5", "--anchor", "3", "--set", "optimizer.clip_norm=0.4")
        want = self.round("c2", *clip)["out"]
        for boards, cut in ((1, "[]"), (3, "[fc2, fc3]")):
            got = self.round(f"c{boards}", *clip, "--set", f"ring.boards={boards}", "--set",
                             f"cut={cut}")
            self.assertEqual(got["out"], want)
        self.assertNotEqual(self.round("free", *clip[:4])["out"], want)

    def test_a_drift(self):
        rules = ("--steps", "2", "--drift")
        sites = []
        for k in range(2):
            site = ("--set", f"data.site.name=site-{k}", "--state", f"s{k}")
            answer = self.round(f"first-{k}", *rules, *site, number=1)
            self.assertEqual(answer["state"],
                             {"from": None, "drift": "fresh", "kept": 0, "own": 0})
            sites.append((site, self.weights(f"first-{k}")))
        # To the server a drift costs nothing: its files are those of a plain round.
        self.round("plain-1", "--steps", "2", "--set", "data.site.name=site-1", number=1)
        self.assertEqual((self.dir / "first-1/weights.safetensors").read_bytes(),
                         (self.dir / "plain-1/weights.safetensors").read_bytes())
        centre = {}
        for name, (kind, shape, _) in read_tensors(self.dir / "w/weights.safetensors").items():
            mean = [(a + b) / 2 for a, b in zip(*(y[name] for _, y in sites))]
            centre[name] = (kind, shape, struct.pack(f"<{len(mean)}f", *mean))
        write_tensors(self.dir / "centre.safetensors", centre)
        x = values(self.dir / "centre.safetensors")
        for k, (site, y) in enumerate(sites):
            self.round(f"plain-2{k}", "--steps", "1", *site[:2], given="centre.safetensors",
                       number=2)
            answer = self.round(f"second-{k}", "--steps", "1", "--drift", *site,
                                given="centre.safetensors", number=2)
            self.assertEqual(answer["state"]["drift"], "kept")
            self.assertEqual(answer["state"]["from"], 1)
            self.expect_differences(self.weights(f"second-{k}"), self.weights(f"plain-2{k}"),
                                    lambda name, i, y=y: (x[name][i] - y[name][i]) / 2)
            again = self.round(f"third-{k}", "--steps", "1", "--drift", *site,
                               given="centre.safetensors", number=2)
            self.assertEqual(again["out"], answer["out"])

    def test_drift_ends_at_the_optimum(self):
        """Two sites, the loss of each a parabola over one weight: with a drift they meet at the
        optimum of both, from which a round without it leads away."""
        (self.dir / "line.yaml").write_text(
            "input: [1]\nlayers:\n  - {name: fc, kind: dense, out: 1, bias: false}\n")
        sites = ((0.75 ** 0.5, 1.0), (0.5, -1.0))  # x and the weight that gives the target
        for k, (x, least) in enumerate(sites):
            (self.dir / f"{k}.csv").write_text(f"{x:.9f},{x * least:.9f}\n" * 2)
            (self.dir / f"line-{k}.yaml").write_text(
                f"model: line.yaml\ndata: {{set: table, path: {k}.csv, normalise: none}}\n"
                "ring: {boards: 1}\ntrain: {epochs: 2, batch: 2}\nloss: mse\n"
                "optimizer: {kind: sgd, lr: 0.4}\nschedule: gpipe\n")
        best = sum(x * x * least for x, least in sites) / sum(x * x for x, _ in sites)

        def average(name, number, centre, *more):
            write_tensors(self.dir / "centre.safetensors",
                          {"fc.weight": ("F32", [1, 1], struct.pack("<f", centre))})
            ends = []
            for k in range(2):
                out = f"{name}-{k}-{number}"
                state = ("--state", f"state-{k}") if more else ()
                self.ringpipe("round", f"line-{k}.yaml", "--in", "centre.safetensors", "--out",
                              out, "--round", number, "--steps", "2", *more, *state)
                ends.append(self.weights(out)["fc.weight"][0])
            return sum(ends) / 2

        centre = 1.0
        for number in range(1, 13):
            centre = average("drift", number, centre, "--drift")
        self.assertAlmostEqual(centre, best, delta=1e-6)
        self.assertGreater(abs(average("plain", 1, centre) - best), 0.03)

    def test_kept_layers(self):
        rules = ("--steps", "2", "--keep", "fc3*", "--state", "s")
        first = self.round("k1", *rules, number=1)
        given = read_tensors(self.dir / "w/weights.safetensors")
        out = read_tensors(self.dir / "k1/weights.safetensors")
        kept = [name for name in given if name.startswith("fc3")]
        self.assertEqual(first["state"], {"from": None, "drift": None, "kept": len(kept), "own": 0})
        for name in given:
            self.assertEqual(out[name] == given[name], name in kept)
        own = read_tensors(self.dir / "k1/run/weights.safetensors")
        second = self.round("k2", *rules, number=2, given="k1/weights.safetensors")
        self.assertEqual(second["state"]["own"], len(kept))
        start = read_tensors(self.dir / "k2/start.safetensors")
        for name in given:
            self.assertEqual(start[name], own[name])
        # A folder that was lost starts fresh, and says so.
        for path in (self.dir / "s").glob("*"):
            path.unlink()
        third = self.round("k3", *rules, number=3, given="k1/weights.safetensors")
        self.assertEqual(third["state"], {"from": None, "drift": None, "kept": len(kept), "own": 0})

    def test_a_kept_optimizer(self):
        self.site.write_text(SITE)
        rules = ("--steps", "1", "--optimizer", "keep", "--state", "s")
        self.assertEqual(self.round("o1", *rules, number=1)["optimizer"]["state"], "fresh")
        answer = self.round("o2", *rules, number=2, given="o1/weights.safetensors")
        self.assertEqual(answer["optimizer"]["state"], "kept")
        self.assertIsNone(answer["norm_a"])
        self.round("f2", "--steps", "1", number=2, given="o1/weights.safetensors")
        x, y = values(self.dir / "w/weights.safetensors"), self.weights("o1")
        self.expect_differences(self.weights("o2"), self.weights("f2"),
                                lambda name, i: 0.9 * (y[name][i] - x[name][i]))
        # Adam's count of updates goes on too, through a checkpoint and a resumed run.
        adam = ("--set", "optimizer={kind: adam, lr: 0.01}", "--state", "t", "--optimizer", "keep")
        self.round("a1", *adam, "--steps", "3", number=1)
        want = self.round("a2", *adam, "--steps", "5", number=2, given="a1/weights.safetensors")
        self.assertEqual(want["optimizer"]["state"], "kept")
        checkpoint = sorted((self.dir / "a2/run/checkpoint").glob("*.safetensors"))[-1]
        raw = checkpoint.read_bytes()
        meta = json.loads(raw[8:8 + struct.unpack("<Q", raw[:8])[0]])["__metadata__"]
        self.assertEqual(meta["applied"], "8;8")
        (self.dir / "a2/run/summary.json").unlink()
        (self.dir / "a2/round.json").unlink()
        checkpoint.unlink()
        again = self.round("a2", *adam, "--steps", "5", number=2, given="a1/weights.safetensors")
        self.assertEqual(again["out"], want["out"])
        # A damaged checkpoint is made again before the state is saved.
        kept = (self.dir / "t/round-0000000002.safetensors").read_bytes()
        newest = sorted((self.dir / "a2/run/checkpoint").glob("*.safetensors"))[-1]
        newest.write_bytes(newest.read_bytes()[:-4])
        (self.dir / "a2/round.json").unlink()
        again = self.round("a2", *adam, "--steps", "5", number=2, given="a1/weights.safetensors")
        self.assertEqual(again["out"], want["out"])
        self.assertEqual((self.dir / "t/round-0000000002.safetensors").read_bytes(), kept)
        self.refuse("'sgd'", "x", 3, *rules[2:4], "--state", "t")

    def refuse(self, part, out, number, *more):
        said = self.refused(*self.words(out, number, "w/weights.safetensors", "--steps", "1",
                                        *more))
        self.assertIn(part, said)

    def test_kills(self):
        """As for a plain round, with everything that a site keeps; its state has the same bytes."""
        rules = ("--steps", "8", "--anchor", "0.5", "--drift", "--keep", "fc3*", "--optimizer",
                 "keep", "--clip", "0") + ("--state",)
        self.round("first", *rules, "s", number=1)
        shutil.copytree(self.dir / "s", self.dir / "before")
        began = time.monotonic()
        want = self.round("second", *rules, "s", number=2, given="first/weights.safetensors")
        longest = time.monotonic() - began
        self.assertEqual(want["state"]["drift"], "kept")
        name = "round-0000000002.safetensors"

        def words(folder):
            if not (self.dir / f"s-{folder}").exists():
                shutil.copytree(self.dir / "before", self.dir / f"s-{folder}")
            return self.words(folder, 2, "first/weights.safetensors", *rules, f"s-{folder}")

        def check(folder):
            got = self.round(folder, *rules, f"s-{folder}", number=2,
                             given="first/weights.safetensors")
            self.assertEqual((got["out"], got["state"]), (want["out"], want["state"]))
            self.assertEqual((self.dir / f"s-{folder}" / name).read_bytes(),
                             (self.dir / "s" / name).read_bytes())

        self.kill_at_random(words, check, longest)

    def test_before_and_after(self):
        whole = PLAIN.replace(", site: {split: split.json, name: site-1}", "")
        self.ringpipe("data", "split", self.run_file(whole), "--sites", "2", "--validation", "0.2",
                      "--out", "split.json", "--yes")
        first = self.round("b1", "--steps", "3", number=1)
        self.assertEqual(first["before"]["samples"], first["after"]["samples"])
        self.assertEqual(first["before"]["samples"], 512 // 5)
        second = self.round("b2", "--steps", "3", number=2, given="b1/weights.safetensors")
        self.assertEqual(second["before"]["loss"], first["after"]["loss"])
        self.assertEqual(second["before"]["accuracy"], first["after"]["accuracy"])
        self.assertNotEqual(second["after"]["loss"], first["after"]["loss"])

    def test_clipping(self):
        free = self.round("free", "--steps", "4")
        length = free["delta_norm"] / 2
        answer = self.round("clipped", "--steps", "4", "--clip", f"{length:.9f}")
        self.assertTrue(answer["clipped"])
        self.assertEqual(answer["delta_norm"], free["delta_norm"])
        given = values(self.dir / "w/weights.safetensors")
        got = self.weights("clipped")
        norm = sum((a - b) ** 2 for name in given for a, b in zip(got[name], given[name])) ** 0.5
        self.assertAlmostEqual(norm, length, delta=1e-4 * length)
        loose = self.round("loose", "--steps", "4", "--clip", f"{4 * length:.9f}")
        self.assertFalse(loose["clipped"])
        self.assertEqual(loose["out"], free["out"])

    def test_an_update(self):
        """A coded difference leaves the site; what it loses is in the next round's."""
        rules = ("--steps", "3", "--keep", "fc3*", "--delta", "topk:0.1", "--state", "s")
        given = values(self.dir / "w/weights.safetensors")
        errors = {name: [0.0] * len(value) for name, value in given.items()
                  if not name.startswith("fc3")}
        for number, word in ((1, "fresh"), (2, "kept")):
            answer = self.round(f"u{number}", *rules, number=number)
            self.assertEqual((answer["delta"], answer["state"]["error"]), ("topk:0.1", word))
            self.assertFalse((self.dir / f"u{number}/weights.safetensors").exists())
            update = read_tensors(self.dir / f"u{number}/update.safetensors")
            trained = values(self.dir / f"u{number}/run/weights.safetensors")
            kept = values(self.dir / f"s/round-000000000{number}.safetensors")
            self.assertEqual(sorted(update), sorted(errors))
            for name, before in errors.items():
                sent = decode_topk(update[name][2], 0.1, len(given[name]))
                self.assertIn(0.0, sent)
                errors[name] = kept[f"optim.error.{name}"]
                for e, x, y, s, after in zip(before, given[name], trained[name], sent,
                                             errors[name]):
                    self.assertAlmostEqual(e + y - x, s + after, delta=1e-6)
        # An update that was removed is made again, from the errors of before the round.
        (self.dir / "u2/update.safetensors").unlink()
        self.assertEqual(self.round("u2", *rules, number=2)["out"], answer["out"])
        self.assertEqual(read_tensors(self.dir / "u2/update.safetensors"), update)
        said = self.refused(*self.words("u2", 2, "w/weights.safetensors", *rules[:4], "--state",
                                        "s"))
        self.assertIn('--delta is "topk:0.1" there and missing now', said)
        self.refuse("topk:0.01", "a", 1, "--delta", "topk", "--state", "t")
        self.refuse("excludes", "a", 1, "--delta", "int8", "--clip", "1", "--state", "t")
        self.refuse("--delta needs", "a", 1, "--delta", "int8")

    def test_refused_rules(self):
        for option in (("--drift",), ("--keep", "fc3*"), ("--optimizer", "keep")):
            self.refuse(f"{' '.join(option[:1])}", "a", 1, *option)
        self.refuse("exclude each other", "a", 1, "--drift", "--clip", "1", "--state", "s")
        self.refuse("without momentum", "a", 1, "--drift", "--state", "s", "--set",
                    "optimizer.momentum=0.9")
        self.refuse("expected --drift", "a", 1, "--set", "train.anchor={drift: true}")
        self.refuse("replicas", "a", 1, "--anchor", "1", "--set", "schedule=ea-pipe")
        self.refuse("matches no tensor", "b", 1, "--keep", "tail*", "--state", "s")
        self.round("c", "--steps", "1", "--keep", "fc3*", "--state", "s", number=5)
        self.refuse("finished round 5", "d", 4, "--keep", "fc3*", "--state", "s")
        self.refuse("--keep is", "c", 5, "--state", "s")
        (self.dir / "w/weights.safetensors").write_bytes(b"changed")
        self.refuse("the digest of --in is", "c", 5, "--keep", "fc3*", "--state", "s")


load_tests = program.few_when_short("Round.test_an_answer", "Round.test_kills",
                                    "Round.test_refusals", "Round.test_corrected",
                                    "Rules.test_a_drift", "Rules.test_refused_rules")


if __name__ == "__main__":
    program.main()
