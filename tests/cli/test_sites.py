#!/usr/bin/env python3
"""A federated run: sites train in rounds, and a rule averages their weights."""
import json
import os
import random
import shutil
import signal
import struct
import time
import unittest

import program
import test_lost_boards

RUN = """\
model: mlp
data: {set: glyphs, train: 384, test: 64}
ring: {boards: 2}
train: {epochs: 1, batch: 32, microbatch: 16, seed: 3}
loss: cross-entropy
optimizer: {kind: sgd, lr: 0.05, momentum: 0.9}
schedule: gpipe
cut: [fc2]
sites: {split: split.json, rounds: 3, steps: 4}
"""
NAMES = ["site-0", "site-1", "site-2"]


def read_tensors(path):
    """name: floats"""
    raw = path.read_bytes()
    size = struct.unpack("<Q", raw[:8])[0]
    header = json.loads(raw[8:8 + size])
    header.pop("__metadata__", None)
    found = {}
    for name, one in header.items():
        first, end = one["data_offsets"]
        kind = {"F32": "f", "F64": "d"}[one["dtype"]]
        data = raw[8 + size + first:8 + size + end]
        found[name] = struct.unpack(f"<{len(data) // struct.calcsize(kind)}{kind}", data)
    return found


class Sites(program.Case):
    def setUp(self):
        super().setUp()
        whole = self.run_file(RUN[:RUN.index("sites:")], "whole.yaml")
        self.ringpipe("data", "split", whole, "--sites", "3", "--by", "dirichlet:1", "--least",
                      "40", "--out", "split.json")
        self.file = self.run_file(RUN)
        self.held = {site["name"]: len(expand(site["train"])) for site in
                     json.loads((self.dir / "split.json").read_text())["sites"]}

    def train(self, out, *words, **options):
        return self.ringpipe("train", self.file, "--out", out, *words, seconds=200, **options)

    def lines(self, out):
        log = self.dir / out / "log.jsonl"
        text = log.read_text() if log.exists() else ""
        return [json.loads(line) for line in text.splitlines(keepends=True) if line[-1] == "\n"]

    def rounds(self, out):
        return [line for line in self.lines(out) if "digest" in line]

    def members(self, out):
        """[lines of the sites] by round."""
        found = {}
        for line in self.events(out, "site"):
            found.setdefault(line["round"], []).append(line)
        return [found[number] for number in sorted(found)]

    def names(self, out):
        return [[site["site"] for site in sites] for sites in self.members(out)]

    def events(self, out, name):
        return [line for line in self.lines(out) if line.get("event") == name]

    def summary(self, out):
        return json.loads((self.dir / out / "summary.json").read_text())

    def bits(self, out):
        return [line["digest"] for line in self.rounds(out)]

    def sets(self, **keys):
        return [word for key, value in keys.items()
                for word in ("--set", f"sites.{key}={value}")]

    # ---- whole runs ----

    def test_same_bits(self):
        said, _ = self.train("a", "--format", "json")
        self.train("b", *self.sets(at_once=3))
        summary = self.summary("a")
        self.assertEqual(json.loads(said), summary)
        self.assertEqual((summary["status"], summary["steps"], summary["rule"]),
                         ("finished", 3, "fedavg"))
        self.assertEqual(summary["samples"], sum(site["samples"] for sites in self.members("a")
                                                 for site in sites))
        self.assertEqual(summary["eval"]["samples"], 64)
        self.assertEqual(self.bits("a"), self.bits("b"))
        self.assertEqual(len(set(self.bits("a"))), 3)
        self.assertTrue((self.dir / "a/weights.safetensors").read_bytes() ==
                        (self.dir / "b/weights.safetensors").read_bytes())
        # Each round has a row of each site, in the order of the split file.
        self.assertEqual(self.names("a"), [NAMES] * 3)
        for line, sites in zip(self.rounds("a"), self.members("a")):
            self.assertEqual((line["sites"], line["asked"]), (3, 3))
            for site in sites:
                self.assertEqual((site["status"], site["steps"], site["held"]),
                                 ("finished", 4, self.held[site["site"]]))
            loss = sum(site["loss"] * site["held"] for site in sites) / 384
            self.assertAlmostEqual(line["loss"], loss, places=6)
        self.assertEqual([line["step"] for line in self.rounds("a")], [1, 2, 3])
        self.assertEqual([line["step"] for line in self.events("a", "eval")], [1, 2, 3])
        # Bytes are those of the files.
        size = (self.dir / "a/center.safetensors").stat().st_size
        for site in summary["sites"]:
            self.assertEqual((site["rounds"], site["late"], site["failed"]), (3, 0, 0))
            self.assertAlmostEqual(site["down_bytes"], 3 * size, delta=30)
            self.assertAlmostEqual(site["up_bytes"], 3 * size, delta=0.02 * 3 * size)
        # The weights of the sites are gone, what they came to is not.
        self.assertEqual(list((self.dir / "a/rounds").rglob("*.safetensors")), [])
        self.assertEqual(len(list((self.dir / "a/rounds").rglob("round.json"))), 9)
        out, _ = self.ringpipe("eval", "a", "--format", "json")
        self.assertEqual(json.loads(out)["eval"], summary["eval"])
        _, err = self.ringpipe("resume", "a")
        self.assertIn("nothing is left to do", err)
        said = self.refused("train", self.file, "--out", "a")
        self.assertIn("contains a run already", said)

    def test_a_round_is_the_mean(self):
        """The centre is the mean of what `round` gives for each site, weighted by samples."""
        self.train("a", *self.sets(rounds=1))
        self.train("none", "--set", "sites.rounds=1", "--set", "sites.rule={kind: fedavgm, lr: "
                   "0.000001, momentum: 0}")
        # The start is that of a run on its own.
        self.ringpipe("train", self.dir / "whole.yaml", "--set", "train.steps=1", "--set",
                      "optimizer.lr=0", "--out", "w")
        given = read_tensors(self.dir / "w/weights.safetensors")
        total = {name: [0.0] * len(values) for name, values in given.items()}
        for name in NAMES:
            self.run_file(RUN[:RUN.index("sites:")].replace(
                "test: 64", f"test: 64, site: {{split: split.json, name: {name}}}"), f"{name}.yaml")
            self.ringpipe("round", f"{name}.yaml", "--in", "w/weights.safetensors", "--round", "1",
                          "--steps", "4", "--out", name)
            for key, values in read_tensors(self.dir / name / "weights.safetensors").items():
                total[key] = [t + v * self.held[name] / 384 for t, v in zip(total[key], values)]
        center = read_tensors(self.dir / "a/weights.safetensors")
        self.assertEqual(sorted(center), sorted(total))
        for key, values in total.items():
            self.assertLess(max(abs(a - b) for a, b in zip(values, center[key])), 1e-6)
        still = read_tensors(self.dir / "none/weights.safetensors")
        self.assertLess(max(abs(a - b) for key in given for a, b in zip(given[key], still[key])),
                        1e-5)

    def test_rules(self):
        """Every rule runs and goes on from its state with the same bits."""
        for rule in ("{kind: fedavgm, lr: 0.7, momentum: 0.9, nesterov: true, weights: equal}",
                     "{kind: fedadam, variant: flower, lr: 0.01}", "{kind: elastic, alpha: 0.3}",
                     "fednova", "median"):
            with self.subTest(rule=rule):
                for out in ("whole", "parts"):
                    shutil.rmtree(self.dir / out, ignore_errors=True)
                self.train("whole", "--set", f"sites.rule={rule}", "--set", "train.eval_epochs=0",
                           *self.sets(rounds=2))
                self.train("parts", "--set", f"sites.rule={rule}", "--set", "train.eval_epochs=0",
                           *self.sets(rounds=1))
                self.ringpipe("resume", "parts", "--set", "sites.rounds=2", seconds=200)
                self.assertEqual(self.bits("whole"), self.bits("parts"))
                self.assertLess(self.summary("whole")["train"]["loss"], 4)

    # ---- kills ----

    @unittest.skipIf(program.SLOWER > 1, "a sanitizer would have to be loaded before killed.so")
    def test_host_killed(self):
        """Killed in each state of a round, the run goes on with the same bits: the short form of
        the bench, which also kills sites."""
        bench = program.SOURCE / "tests/bench/bench_site_faults.py"
        said, _ = self.ringpipe(program.RINGPIPE, "--rounds", "6", "--sites", "2", "--boards", "1",
                                "--ahead", "0", "--cases", "host", program=bench, seconds=200)
        self.assertIn("host: the same bits over 6 rounds", said)

    def test_random_kills(self):
        """The host is killed at random moments, again and again."""
        sets = ("--set", "train.eval_epochs=0", *self.sets(rule="fedadam", at_once=2))
        self.train("whole", *sets)
        draw = random.Random(7)
        for attempt in range(int(os.environ.get("RP_KILLED_RUNS", "1"))):
            out = f"k{attempt}"
            for _ in range(8):
                words = ("resume", out) if (self.dir / out / "federation.json").exists() else (
                    "train", self.file, "--out", out, *sets)
                if words[0] == "train":
                    shutil.rmtree(self.dir / out, ignore_errors=True)
                process = self.start(*words)
                time.sleep(draw.uniform(0.05, 6))
                process.kill()
                process.communicate()
            self.ringpipe("resume", out, seconds=200)
            self.assertEqual(self.bits(out), self.bits("whole"))
            self.assertEqual(self.names(out), [NAMES] * 3)
            self.assertTrue((self.dir / out / "state.safetensors").read_bytes() ==
                            (self.dir / "whole/state.safetensors").read_bytes())

    def test_killed_around_the_journal(self):
        """A round counts from its journal on: files that it has made are moved, others are not."""
        self.train("whole", "--set", "train.eval_epochs=0")
        self.train("two", "--set", "train.eval_epochs=0", *self.sets(rounds=2))
        folder = self.dir / "two"
        # After the journal: the centre has not been moved, and the log has no row.
        (folder / "center.safetensors").rename(folder / "next-center.safetensors")
        shutil.copy(self.dir / "whole/center.safetensors", folder / "center.safetensors")
        log = folder / "log.jsonl"
        text = log.read_text()
        log.write_text(text[:text.index('{"event":"site","step":2,"round":2,"site":"site-1"')] +
                       '{"step":2,"lo')
        self.ringpipe("resume", "two", "--set", "sites.rounds=3", seconds=200)
        self.assertEqual(self.bits("two"), self.bits("whole"))
        self.assertEqual(self.names("two"), [NAMES] * 3)
        # Before the journal: a centre of a round that was never closed is removed.
        shutil.copy(self.dir / "whole/center.safetensors", folder / "next-center.safetensors")
        journal = json.loads((folder / "federation.json").read_text())
        self.assertEqual((journal["round"], journal["digest"]), (3, self.bits("whole")[2]))
        self.ringpipe("resume", "two", "--set", "sites.rounds=4", seconds=200)
        self.train("four", "--set", "train.eval_epochs=0", *self.sets(rounds=4))
        self.assertEqual(self.bits("two"), self.bits("four"))

    def test_site_killed(self):
        self.train("whole", "--set", "train.eval_epochs=0")
        process = self.start("train", self.file, "--out", "k", "--set", "train.eval_epochs=0")
        log = self.dir / "k/rounds/2/site-1/run/log.jsonl"
        self.wait_for("work in round 2", log.exists, 120, process)
        owner = json.loads((self.dir / "k/rounds/2/site-1/run/controller.json").read_text())
        os.kill(owner["pid"], signal.SIGKILL)
        away = self.wait_for("its name", lambda: self.events("k", "away"), 3, process)
        self.assertEqual((away[0]["site"], away[0]["round"], away[0]["exit_code"]),
                         ("site-1", 2, 137))
        self.finish(process, seconds=200)
        self.assertEqual(self.bits("k"), self.bits("whole"))

    def test_interrupted(self):
        process = self.start("train", self.file, "--out", "i", *self.sets(rounds=1000))
        self.wait_for("a round", lambda: self.rounds("i"), 120, process)
        process.send_signal(signal.SIGINT)
        _, err = self.finish(process, code=130, seconds=150)
        self.assertIn("resume i", err)
        self.assertEqual(self.summary("i")["status"], "interrupted")
        count = len(self.rounds("i"))
        self.ringpipe("resume", "i", "--set", f"sites.rounds={count + 1}", seconds=200)
        self.assertEqual([line["round"] for line in self.rounds("i")],
                         list(range(1, count + 2)))

    # ---- options of a site's round ----

    def answers(self, out, number):
        return [json.loads((self.dir / out / f"rounds/{number}/{name}/round.json").read_text())
                for name in NAMES]

    def states(self, out):
        return {path.relative_to(self.dir / out): path.read_bytes()
                for path in (self.dir / out / "sites").glob("*.state/*")}

    def kill_at(self, out, reached, *words):
        """Kills the run at a moment; it begins with `words` if it does not exist."""
        begins = not (self.dir / out / "federation.json").exists()
        process = self.start(*(("train", self.file, "--out", out, *words) if begins else
                               ("resume", out)))
        self.wait_for("a moment to kill at", lambda: reached() or process.poll() is not None, 120)
        process.kill()
        process.communicate()

    def test_options(self):
        """What a site keeps is in its folder, is part of a resume, and its loss is reported."""
        words = ("--set", "train.eval_epochs=0", *self.sets(
            keep="[fc2.*]", optimizer="keep", clip=0.2, rule="fedavgm", at_once=3))
        self.train("whole", *words)
        one, two = self.dir / "k/rounds/1", self.dir / "k/rounds/2"
        for reached in (lambda: list(one.glob("*/run/log.jsonl")),
                        lambda: list((self.dir / "k/sites").glob("*.state/round-*1.safetensors")),
                        lambda: list(two.glob("*/round.json")),
                        lambda: len(self.rounds("k")) == 2):
            self.kill_at("k", reached, *words)
        self.ringpipe("resume", "k", seconds=200)
        self.assertEqual(self.bits("k"), self.bits("whole"))
        self.assertEqual(self.states("k"), self.states("whole"))
        self.assertEqual(len(self.states("k")), 6)  # the last two rounds of three sites
        for answer, site in zip(self.answers("k", 3), self.members("k")[2]):
            self.assertEqual(answer["state"], {"from": 2, "drift": None, "kept": 2, "own": 2})
            self.assertEqual(answer["optimizer"]["state"], "kept")
            self.assertEqual((site["clipped"], answer["clipped"]), (True, True))
        # The centre has the kept tensors of the start; each site has its own.
        center = read_tensors(self.dir / "k/center.safetensors")
        self.train("first", *words, *self.sets(rounds=1))
        first = read_tensors(self.dir / "first/center.safetensors")
        own = [read_tensors(self.dir / f"k/sites/{name}.state/round-0000000003.safetensors")
               ["keep.fc2.weight"] for name in NAMES]
        self.assertEqual(center["fc2.weight"], first["fc2.weight"])
        self.assertNotEqual(center["fc1.weight"], first["fc1.weight"])
        self.assertEqual(len({center["fc2.weight"], *own}), 4)
        # A folder that was deleted is missed in the next round.
        shutil.rmtree(self.dir / "k/sites/site-1.state")
        self.ringpipe("resume", "k", *self.sets(rounds=4), seconds=200)
        self.assertEqual([(line["site"], line["round"]) for line in self.events("k", "fresh")],
                         [("site-1", 4)])
        self.assertEqual([answer["state"]["from"] for answer in self.answers("k", 4)], [3, None, 3])
        self.assertIn("expected the same", self.refused("resume", "k", *self.sets(
            rounds=5, keep="fc1.*")))

    def test_delta(self):
        """Coded differences take less room, and their errors are part of a resume."""
        words = ("--set", "train.eval_epochs=0", "--set", "train.seed=5", *self.sets(at_once=3))
        coded = (*words, *self.sets(delta="{codec: int8}"))
        self.train("plain", *words)
        self.train("whole", *coded)
        self.kill_at("k", lambda: list((self.dir / "k/rounds/2").glob("*/update.safetensors")),
                     *coded)
        process = self.start("resume", "k")
        run = self.dir / "k/rounds/3/site-1/run"
        self.wait_for("work in round 3", (run / "log.jsonl").exists, 120, process)
        os.kill(json.loads((run / "controller.json").read_text())["pid"], signal.SIGKILL)
        self.finish(process, seconds=200)
        self.assertEqual([line["site"] for line in self.events("k", "away")][-1:], ["site-1"])
        self.assertEqual(self.bits("k"), self.bits("whole"))
        self.assertEqual(self.states("k"), self.states("whole"))
        self.assertEqual([answer["state"]["error"] for number in (1, 2, 3)
                          for answer in self.answers("k", number)], ["fresh"] * 3 + ["kept"] * 6)
        plain, whole = self.summary("plain"), self.summary("whole")
        self.assertEqual(whole["bytes"]["down"], plain["bytes"]["down"])
        self.assertLess(whole["bytes"]["up"], 0.3 * plain["bytes"]["up"])
        self.assertAlmostEqual(whole["eval"]["loss"], plain["eval"]["loss"], delta=0.01)
        self.assertEqual(list((self.dir / "k/rounds").rglob("*.safetensors")), [])
        # With all values of topk nothing is lost but the rounding of a difference.
        self.train("all", *words, *self.sets(delta="{codec: topk, share: 1}"))
        one, two = (read_tensors(self.dir / out / "center.safetensors") for out in ("plain", "all"))
        self.assertLess(max(abs(a - b) for name in one for a, b in zip(one[name], two[name])), 1e-5)
        said, _ = self.train("x", "--dry-run", "--format", "json", *coded)
        cost = json.loads(said)["round"]
        sent = whole["bytes"]["up"] / 3
        self.assertAlmostEqual(cost["up_bytes"], sent, delta=0.05 * sent)

    def test_drift(self):
        """Drifts come from the averages, at no additional bytes, also after kills."""
        words = ("--set", "train.eval_epochs=0", "--set", "optimizer={kind: sgd, lr: 0.05}",
                 *self.sets(rule="{kind: fedavg, weights: equal}", at_once=3))
        self.train("plain", *words)
        self.train("whole", *words, *self.sets(drift="true"))
        self.kill_at("k", lambda: list((self.dir / "k/rounds/2").glob("*/start.safetensors")),
                     *words, *self.sets(drift="true"))
        self.kill_at("k", lambda: list((self.dir / "k/rounds/2").glob("*/round.json")))
        self.ringpipe("resume", "k", seconds=200)
        self.assertEqual(self.bits("k"), self.bits("whole"))
        # The first drift is zero, so the first centres are the same.
        self.assertEqual([a == b for a, b in zip(self.bits("plain"), self.bits("whole"))],
                         [True, False, False])
        self.assertEqual(self.summary("whole")["bytes"], self.summary("plain")["bytes"])
        self.assertEqual([answer["state"]["drift"] for number in (1, 2, 3)
                          for answer in self.answers("whole", number)],
                         ["fresh"] * 3 + ["kept"] * 6)

    # ---- who takes part ----

    def test_sample(self):
        self.train("a", *self.sets(count=2), "--set", "train.eval_epochs=0")
        members = self.names("a")
        self.assertTrue(all(len(names) == 2 for names in members))
        self.train("b", *self.sets(count=2), "--set", "train.eval_epochs=0")
        self.assertEqual(self.bits("a"), self.bits("b"))
        rounds = {site["site"]: site["rounds"] for site in self.summary("a")["sites"]}
        self.assertEqual(rounds, {name: sum(name in names for names in members)
                                  for name in NAMES})

    def test_availability(self):
        trace = {name: {"active": [0], "inactive": [100], "finish_time": 100} for name in NAMES}
        trace["site-1"] = {"active": [0, 90], "inactive": [10, 100], "finish_time": 100}
        (self.dir / "trace.json").write_text(json.dumps(trace))
        self.train("a", *self.sets(availability="{trace: trace.json, seconds: 30}", rounds=4),
                   "--set", "train.eval_epochs=0")
        members = self.names("a")
        self.assertEqual(members, [NAMES, ["site-0", "site-2"], ["site-0", "site-2"], NAMES])
        # All three are needed: the clock goes on to 90 s, and the run says for whom it waits.
        self.train("b", *self.sets(availability="{trace: trace.json, seconds: 30}", rounds=2,
                                   take="{least: 3}"), "--set", "train.eval_epochs=0")
        self.assertEqual(self.names("b"), [NAMES, NAMES])
        missing = self.events("b", "missing")
        self.assertEqual([(line["round"], line["least"], line["sites"]) for line in missing],
                         [(2, 3, "site-1")])

    def test_late(self):
        """A round closes with those who are done, when its time is over."""
        slow = RUN[:RUN.index("sites:")].replace("boards: 2", "boards: 2, throttle: "
                                                 "{forward_ms: 4000, backward_ms: 4000}")
        self.run_file(slow, "slow.yaml")
        self.train("a", *self.sets(files="{site-2: slow.yaml}", take="{least: 2, wait: 8}",
                                   rounds=1, at_once=3), "--set", "train.eval_epochs=0")
        self.assertEqual([(site["site"], site["status"]) for site in self.members("a")[0]],
                         [("site-0", "finished"), ("site-1", "finished"), ("site-2", "late")])
        self.assertEqual([late["site"] for late in self.events("a", "late")], ["site-2"])
        self.assertEqual([site["late"] for site in self.summary("a")["sites"]], [0, 0, 1])
        # All three are needed: the run says who is missing, and waits.
        self.run_file(slow.replace("4000", "400"), "slow.yaml")
        self.train("b", *self.sets(files="{site-2: slow.yaml}", take="{least: 3, wait: 1}",
                                   rounds=1, at_once=3), "--set", "train.eval_epochs=0")
        missing = self.events("b", "missing")[0]
        self.assertEqual((missing["round"], missing["least"]), (1, 3))
        self.assertIn("site-2", missing["sites"])
        self.assertEqual([site["status"] for site in self.members("b")[0]], ["finished"] * 3)

    def test_site_away(self):
        """A site that fails again and again is named each time, and then left out."""
        process = self.start("train", self.file, "--out", "a", "--set", "train.eval_epochs=0",
                             *self.sets(take="{least: 2}", rounds=1))
        path = self.dir / "a/rounds/1/site-1/run/controller.json"
        killed = set()

        def kill():
            try:
                owner = json.loads(path.read_text())["pid"]
            except (OSError, ValueError):
                return self.events("a", "lost")
            if owner not in killed:
                killed.add(owner)
                os.kill(owner, signal.SIGKILL)
            return self.events("a", "lost")

        lost = self.wait_for("a site that is left out", kill, 120, process)
        self.assertEqual((lost[0]["site"], lost[0]["tries"]), ("site-1", 6))
        self.finish(process, seconds=100)
        self.assertEqual([line["site"] for line in self.events("a", "away")], ["site-1"] * 5)
        self.assertEqual([(site["site"], site["status"]) for site in self.members("a")[0]],
                         [("site-0", "finished"), ("site-1", "failed"), ("site-2", "finished")])
        self.assertEqual([site["failed"] for site in self.summary("a")["sites"]], [0, 1, 0])

    def test_least_not_met(self):
        """Too few sites are left: the run names the missing ones and ends; a resume asks again,
        and a site whose weights were damaged trains the round again."""
        self.train("whole", "--set", "train.eval_epochs=0", *self.sets(rounds=1))
        process = self.start("train", self.file, "--out", "a", "--set", "train.eval_epochs=0",
                             *self.sets(rounds=1))
        done = self.dir / "a/rounds/1/site-0/round.json"
        self.wait_for("a site that is done", done.exists, 120, process)
        # What a site has sent is no longer what its round.json tells.
        weights = self.dir / "a/rounds/1/site-0/weights.safetensors"
        raw = bytearray(weights.read_bytes())
        raw[-1] ^= 1
        process.send_signal(signal.SIGINT)
        self.finish(process, code=130, seconds=150)
        weights.write_bytes(raw)
        _, err = self.ringpipe("resume", "a", code=3, seconds=150)
        self.assertIn("missing: site-0", err)
        self.assertIn("site-0", self.events("a", "refused")[0]["site"])
        self.assertEqual(self.summary("a")["status"], "failed")
        self.assertFalse(done.exists())
        self.ringpipe("resume", "a", seconds=150)  # the site trains the round again
        self.assertEqual(self.bits("a"), self.bits("whole"))

    def test_validation_parts(self):
        """Each site scores the centre on its own samples, and the summary has the spread."""
        self.ringpipe("data", "split", "whole.yaml", "--sites", "3", "--validation", "0.25",
                      "--out", "split.json", "--yes")
        self.train("a", "--set", "train.eval_epochs=0", *self.sets(rounds=2))
        last = [site["before_accuracy"] for site in self.members("a")[1]]
        self.assertEqual(len(last), 3)
        spread = self.summary("a")["site_accuracy"]
        self.assertEqual(spread["sites"], 3)
        self.assertAlmostEqual(spread["mean"], sum(last) / 3, places=6)
        self.assertAlmostEqual(spread["worst_decile"], min(last), places=6)

    # ---- what is refused ----

    def test_dry_run(self):
        said, _ = self.train("a", "--dry-run")
        self.assertIn("3 of 3 in a round of 4 steps, rule fedavg", said)
        self.assertNotIn("steps over", said)
        said, _ = self.train("a", "--dry-run", "--format", "json", *self.sets(count=2))
        cost = json.loads(said)["round"]
        self.assertEqual((cost["sites"], cost["members"]), (3, 2))
        self.assertEqual(cost["up_bytes"], 2 * cost["site_bytes"])
        self.assertFalse((self.dir / "a").exists())
        self.assertIn("no site 'nobody'", self.refused("train", self.file, "--dry-run",
                                                       *self.sets(files="{nobody: run.yaml}")))

    def test_names_of_sites(self):
        """No file of a site is that of another, whatever their names are."""
        lines = "".join(f"{('a', 'a.next', 'a.yaml')[i % 3]}\n" for i in range(384))
        (self.dir / "ids.txt").write_text(lines)
        self.ringpipe("data", "split", "whole.yaml", "--by", "column:ids.txt", "--out",
                      "split.json", "--yes")
        words = (*self.sets(rule="elastic"), "--set", "train.eval_epochs=0")
        self.train("a", *words, *self.sets(rounds=2))
        self.train("b", *words, *self.sets(rounds=1))
        self.ringpipe("resume", "b", *self.sets(rounds=2), seconds=200)
        self.assertEqual(self.bits("a"), self.bits("b"))
        self.assertEqual(sorted(path.name for path in (self.dir / "a/sites").glob("*.safetensors")),
                         ["a.next.safetensors", "a.safetensors", "a.yaml.safetensors"])

    def test_a_refused_resume(self):
        """It changes nothing, so the same run goes on without the mistake."""
        self.train("a", *self.sets(rounds=1), "--set", "train.eval_epochs=0")
        before = (self.dir / "a/run.yaml").read_bytes()
        for change in ("sites.files={site-0: missing.yaml}", "sites.rule=median",
                       "optimizer.kind=none"):
            self.refused("resume", "a", "--set", change, *self.sets(rounds=2))
            self.assertEqual((self.dir / "a/run.yaml").read_bytes(), before, change)
        self.ringpipe("resume", "a", *self.sets(rounds=2), seconds=200)
        self.assertIn("has 2 rounds already", self.refused("resume", "a", *self.sets(rounds=1)))

    def test_other_files(self):
        """The centre and the rule's state must be those of the last round."""
        words = (*self.sets(rule="{kind: fedavgm, lr: 0.7}", rounds=1), "--set",
                 "train.eval_epochs=0")
        self.train("a", *words)
        self.train("b", *words, "--set", "train.seed=4")
        more = self.sets(rounds=2)
        center, state = self.dir / "a/center.safetensors", self.dir / "a/state.safetensors"
        kept = [center.read_bytes(), state.read_bytes()]
        center.write_bytes((self.dir / "b/center.safetensors").read_bytes())
        self.assertIn("expected that file", self.refused("resume", "a", *more))
        center.unlink()
        self.assertIn("center.safetensors: missing", self.refused("resume", "a", *more))
        center.write_bytes(kept[0])
        state.unlink()
        self.assertIn("expected the rule's state after round 1", self.refused("resume", "a", *more))
        state.write_bytes(kept[1])
        self.ringpipe("resume", "a", *more, seconds=200)

    def test_an_interrupted_evaluation(self):
        """The resume makes it."""
        process = self.start("train", self.file, "--out", "a", *self.sets(rounds=2))
        self.wait_for("an evaluation", (self.dir / "a/scores.json").exists, 120, process)
        process.send_signal(signal.SIGKILL)
        process.wait()
        self.ringpipe("resume", "a", seconds=200)
        self.assertEqual([line["step"] for line in self.events("a", "eval")], [1, 2])

    def test_wrong_inputs(self):
        wrong = {
            "sites.rule=gossip": "gossip is simulated only",
            "sites.rule={kind: fedavgm, lr: 0}": "above 0",
            "sites.rule={kind: fedavg, momentum: 0.9}": "momentum",
            "sites.rule={kind: trimmed-mean, trim: 0.5}": "below 0.5",
            "sites.rule={kind: elastic, alpha: 0.5}": "at most 0.333",
            "sites.rule={kind: fedyogi, variant: adam}": "paper",
            "sites.split=missing.json": "missing.json",
            "sites.epochs=1": "excludes",
            "sites.count=4": "has 3 sites",
            "sites.share=0": "above 0",
            "sites.take={least: 4}": "at most as many",
            "sites.availability={trace: t.json}": "seconds",
            "sites.availability=real": "real time",
            "sites.files={nobody: run.yaml}": "no site 'nobody'",
            "sites.deltas=int8": "deltas",
            "sites.rounds=0": "from 1",
            "sites.keep=fc9.*": "matches no tensor",
            "sites.drift=true": "weights: equal",
            "sites.clip=0": "above 0",
            "lanes={count: 2}": "remove `lanes`",
            "data.validation=0.2": "remove `data.validation`",
        }
        for change, part in wrong.items():
            with self.subTest(change=change):
                said = self.refused("train", self.file, "--out", "x", "--set", change)
                self.assertIn(part, said)
                self.assertFalse((self.dir / "x/federation.json").exists())
                shutil.rmtree(self.dir / "x", ignore_errors=True)
        said = self.refused("train", self.file, "--out", "x", "--set", "sites.rule=fednova",
                            "--set", "optimizer={kind: adam, lr: 0.01}")
        self.assertIn("fednova needs", said)
        said = self.refused("train", self.file, "--out", "x", "--set", "sites.rule=fednova",
                            "--set", "train.anchor=0.1")
        self.assertIn("momentum and train.anchor", said)
        said = self.refused("train", self.file, "--out", "x", "--set", "train.anchor={drift: true}",
                            "--set", "optimizer={kind: sgd, lr: 0.05}")
        self.assertIn("train.anchor has a drift", said)
        drift = ("--set", "optimizer={kind: sgd, lr: 0.05}", "--set", "sites.drift=true", "--set",
                 "sites.rule={kind: fedavg, weights: equal}")
        said = self.refused("train", self.file, "--out", "x", *drift, "--set", "sites.count=2")
        self.assertIn("2 of 3 sites", said)
        self.run_file(RUN[:RUN.index("sites:")].replace("0.05, momentum: 0.9", "0.1"), "fast.yaml")
        said = self.refused("train", self.file, "--out", "x", *drift, "--set",
                            "sites.files={site-1: fast.yaml}")
        self.assertIn("other learning rates", said)
        self.assertFalse((self.dir / "x").exists())
        self.ringpipe("train", "whole.yaml", "--set", "train.steps=1", "--out", "w")
        said = self.refused("eval", self.file, "--weights", "w/weights.safetensors")
        self.assertIn("remove the key", said)
        said = self.refused("round", self.file, "--in", "w/weights.safetensors", "--round", "1",
                            "--out", "r")
        self.assertIn("remove the key `sites`", said)

    def test_changed_between(self):
        """Another split file, or another rule, is not the same run."""
        self.train("a", *self.sets(rounds=1), "--set", "train.eval_epochs=0")
        said = self.refused("resume", "a", "--set", "sites.rule=median", "--set",
                            "sites.rounds=2")
        self.assertIn("expected the same", said)
        split = json.loads((self.dir / "split.json").read_text())
        split["seed"] += 1
        (self.dir / "split.json").write_text(json.dumps(split))
        said = self.refused("resume", "a", "--set", "sites.rounds=2")
        self.assertIn("digest", said)

    def test_reports(self):
        """Other verbs accept the folder."""
        self.train("runs/a", "--set", "train.eval_epochs=0")
        said, _ = self.ringpipe("ps", "runs")
        self.assertRegex(said, r"finished +round 3/3")
        said, _ = self.ringpipe("log", "runs/a")
        self.assertIn("finished: round 3 of 3", said)
        self.assertRegex(said, r"round 3  3 of 3 sites  loss \d")
        self.assertRegex(said, r"round 3: test loss \d")
        said, _ = self.ringpipe("view", "--text", "runs/a")
        self.assertIn("round 3 of 3", said)
        now = json.loads((self.dir / "runs/a/now.json").read_text())
        self.assertEqual((now["state"], now["step"], now["steps"]), ("ended", 3, 3))
        self.assertEqual([(site["site"], site["state"]) for site in now["sites"]],
                         [(name, "finished") for name in NAMES])

    def test_lab(self):
        """A comparison varies the rule."""
        self.run_file("base: run.yaml\nseeds: [1]\nbaseline: fedavg\nmethods:\n  fedavg: {}\n"
                      "  momentum: {sites.rule: {kind: fedavgm, lr: 0.7}}\n", "compare.yaml")
        self.ringpipe("lab", "compare.yaml", "--out", "lab", seconds=200)
        table = json.loads((self.dir / "lab/table.json").read_text())
        self.assertEqual(table["runs_finished"], 2)
        runs = [json.loads((path.parent / "summary.json").read_text())
                for path in (self.dir / "lab").rglob("federation.json")]
        self.assertEqual(sorted(run["rule"] for run in runs), ["fedavg", "fedavgm"])
        self.assertEqual(len({run["center"]["digest"] for run in runs}), 2)
        self.assertIn("momentum", (self.dir / "lab/table.md").read_text())

    def test_example(self):
        """The example of the room runs, for two of its rounds."""
        shutil.copy(program.SOURCE / "host/federation/glyphs.yaml", self.dir / "glyphs.yaml")
        self.ringpipe("data", "split", "glyphs.yaml", "--sites", "4", "--by", "dirichlet:0.3",
                      "--out", "four.json")
        said, _ = self.ringpipe("train", "glyphs.yaml", "--set", "sites.split=four.json", "--out",
                                "e", *self.sets(rounds=2), seconds=200)
        self.assertIn("finished: 4 sites, 2 rounds", said)


class Boards(test_lost_boards.Roster):
    """A site whose ring has boards of a roster."""

    def test_board_away(self):
        """A board of a site's ring that is away is named while the ring still waits for it."""
        whole = self.run_file(RUN[:RUN.index("sites:")], "whole.yaml")
        self.ringpipe("data", "split", whole, "--sites", "3", "--by", "iid", "--out", "split.json")
        self.run_file(RUN[:RUN.index("sites:")].replace("boards: 2", "roster: lab.yaml") +
                      "keys: controller\n", "ring.yaml")
        agent, address = self.boards["two"]
        agent.kill()
        agent.communicate()
        process = self.start("train", self.run_file(RUN), "--out", "a", "--set",
                             "train.eval_epochs=0", "--set", "sites.files={site-1: ring.yaml}",
                             "--set", "sites.rounds=1")

        def events(name):
            lines = (self.dir / "a/log.jsonl").read_text().splitlines(keepends=True)
            found = [json.loads(line) for line in lines if line.endswith("\n")]
            return [line for line in found if line.get("event") == name and
                    line["site"] == "site-1"]  # a slow machine's local boards may be named too

        self.wait_for("the log", (self.dir / "a/log.jsonl").exists, 60, process)
        waiting = self.wait_for("its name", lambda: events("unreached"), 60, process)
        self.assertEqual(waiting[0]["round"], 1)
        self.assertIn("two", waiting[0]["boards"])
        self.assertEqual(events("away"), [])  # the ring of the site has not given up
        self.agent("two", "--name", "two", listen=address)
        _, err = self.finish(process, seconds=200)
        self.assertIn("site site-1: its ring waits for", err)
        self.assertEqual(json.loads((self.dir / "a/summary.json").read_text())["status"],
                         "finished")


def expand(items):
    """The numbers of ["0-3", 7]."""
    found = []
    for item in items:
        first, _, last = str(item).partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


load_tests = program.few_when_short("Sites.test_same_bits", "Sites.test_host_killed",
                                    "Sites.test_wrong_inputs")

if __name__ == "__main__":
    unittest.main()
