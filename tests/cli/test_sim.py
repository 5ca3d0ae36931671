"""`ringpipe sim`: one seed, many seeds with faults; the same seed gives the same events."""
import json
import re
import shlex
import unittest

from program import Case, few_when_short

RUN = """\
model: mlp
data: {set: glyphs, train: 64, test: 16}
ring: {boards: 4}
train: {epochs: 13, steps: 50, batch: 16, microbatch: 4, seed: 1}
loss: cross-entropy
optimizer: {kind: sgd, lr: 0.05, momentum: 0.9}
schedule: 1f1b
cut: [relu1, fc2, relu2]
"""

# Seeds for each method; bootstrap's step `sim` runs many more.
SEEDS = "1..6"


class Sim(Case):
    def sim(self, *words, run=RUN, code=0, seconds=120):
        return self.ringpipe("sim", self.run_file(run), *words, code=code, seconds=seconds)

    def test_a_run_without_faults_prints_what_train_prints(self):
        out, _ = self.sim("--out", self.dir / "out", "--format", "json")
        summary = json.loads(out)
        self.assertEqual(summary["status"], "finished")
        self.assertEqual(summary["steps"], 50)
        ledger = summary["ledger"]
        self.assertRegex(ledger.pop("digest"), "^[0-9a-f]{16}$")
        self.assertEqual(ledger, {"microbatches": 200, "lost": 0, "repeated": 0,
                                  "samples": summary["samples"]})
        self.assertEqual(summary["executor"], "digest")
        self.assertIsNone(summary["train"]["loss"])
        for name in ("run.yaml", "plan.json", "log.jsonl", "trace.json", "summary.json",
                     "weights.safetensors"):
            self.assertTrue((self.dir / "out" / name).exists(), name)

    def test_every_method_ends_with_its_digests_whatever_happens(self):
        faults = 0
        for schedule in ("gpipe", "umpipe", "1f1b", "zb-h1", "pipedream", "pipedream-2bw",
                         "spectrain", "pipeoptim", "xpipe", "ea-pipe", "avgpipe"):
            out, _ = self.sim("--set", f"schedule={schedule}", "--faults", "all", "--seeds", SEEDS,
                              "--jobs", "2", "--format", "json")
            tally = json.loads(out)
            self.assertEqual(tally["runs"], 6, schedule)
            self.assertEqual(tally["finished"] + tally["stopped_resumable"], 6, (schedule, tally))
            self.assertEqual((tally["hung"], tally["wrong"]), (0, 0), (schedule, tally))
            self.assertIsNone(tally["first_bad_seed"])
            faults += tally["faults"]
        self.assertGreaterEqual(faults, 11 * 6 * 3)

    def test_a_bad_seed_is_said_with_the_command_that_repeats_it(self):
        """An op takes longer than 300 s, which is no fault that a simulation knows of."""
        out, said = self.sim("--set", "ring.throttle={gflops: 1.0e-6}", "--set", "model='mlp'",
                             "--seeds", "1..2", code=3)
        self.assertIn("seed 1: wrong", said)
        command = shlex.split(re.search("first bad seed 1; .*: ringpipe (sim .*)", out)[1])
        self.assertIn("ring.throttle={gflops: 1.0e-6}", command)
        out, said = self.ringpipe(*command, code=3, seconds=120)
        self.assertIn("seed 1: wrong", said)
        self.assertIn("verdict: the run has stopped, and no fault was there", out)

    def test_runs_with_codecs_end_with_their_digests(self):
        """The feed encodes the inputs; what boards hash of them is what the definition says. A
        sample of int4 has any number of bytes, also in the checkpoint of what is in flight."""
        links = "links={codec: [int8, f16, {gradients: bf16}], inputs: int8}"
        for schedule, links in (("1f1b", links), ("pipeoptim", links),
                                ("pipedream", "links={codec: int4}")):
            out, _ = self.sim("--set", links, "--set", f"schedule={schedule}", "--faults", "all",
                              "--set", "train.microbatch=1", "--seeds", "1..4", "--format", "json")
            tally = json.loads(out)
            self.assertEqual(tally["finished"] + tally["stopped_resumable"], 4, (schedule, tally))
            self.assertEqual((tally["hung"], tally["wrong"]), (0, 0), (schedule, tally))

    def test_parcels_have_to_fit(self):
        """A simulated board has the memory that the run allows it, for its parcels, too. Its stages
        are digests, so the plan must not count what they would take of a device."""
        words = ("--set", "train.batch=512", "--set", "train.microbatch=128", "--set",
                 "data.train=512", "--set", "recompute=none", "--set")
        _, err = self.sim(*words, "ring.memory_mib=2", code=3)
        self.assertRegex(err, r"board \d: needs 2\.\d MiB of memory, but the limit is 2\.0 .*: its "
                              r"stages need 0\.\d, and parcels on its links 2\.\d; most of that, "
                              r"1\.0, is for 8 parcels with \w+ from board \d")
        self.sim(*words, "ring.memory_mib=3")

    def test_evaluations_within_an_epoch_change_no_digest(self):
        for schedule in ("1f1b", "pipedream", "ea-pipe"):
            self.sim("--set", f"schedule={schedule}", "--set", "train.eval_steps=3", "--out",
                     self.dir / schedule)  # exit code 0: with the digests of the definition
            events = map(json.loads, (self.dir / schedule / "log.jsonl").read_text().splitlines())
            steps = [event["step"] for event in events if event.get("event") == "eval"]
            self.assertEqual(set(steps), {50, *range(3, 50, 3), *range(4, 50, 4)}, schedule)

    def test_the_same_seed_prints_the_same_events(self):
        first, _ = self.sim("--seed", "5", "--faults", "all", "--trace")
        second, _ = self.sim("--seed", "5", "--faults", "all", "--trace")
        other, _ = self.sim("--seed", "6", "--faults", "all", "--trace")
        self.assertIn("fault: begins", first)
        self.assertEqual(first, second)
        self.assertNotEqual(first, other)

    def test_each_wire_is_as_it_is_described(self):
        """Virtual seconds: the same description gives the same ones, another one others."""
        def seconds(link):
            words = ("--format", "json", "--set", "train.steps=4", "--set", "ring.link=" + link)
            return json.loads(self.sim(*words)[0])["seconds"]

        jitter = "{jitter_ms: 20, delay_ms: 20, loss: 0.05, outage: [at 0.1s for 2s]}"
        self.assertEqual(seconds(jitter), seconds(jitter))
        self.assertGreater(seconds(jitter), 2)
        there = seconds("{hops: [{from: 0, to: 1, delay_ms: 100}]}")
        back = seconds("{hops: [{from: 1, to: 0, delay_ms: 100}]}")
        both = seconds("{hops: [{between: [0, 1], delay_ms: 100}]}")
        other = seconds("{hops: [{between: [0, 2], delay_ms: 100}]}") # no neighbours
        self.assertGreater(there, other + 0.4) # once a step at least, on its one way
        self.assertGreater(back, other + 0.4)
        self.assertGreater(both, max(there, back) + 0.3)
        self.assertEqual(other, seconds("{}"))
        (self.dir / "air.csv").write_text("0,100,1\n0.01,0,1\n2.01,100,1\n60,100,1\n")
        self.assertGreater(seconds("{trace: %s}" % (self.dir / "air.csv")), 2)
        self.assertLess(seconds("ethernet"), seconds("lte"))
        slow = "{rate_mbit: 20, shared: %s}"  # one sends at a time
        self.assertEqual(seconds(slow % "air"), seconds(slow % "air"))
        self.assertGreater(seconds(slow % "air"), 1.1 * seconds(slow % "none"))
        self.assertGreater(seconds("{hops: [{from: host, delay_ms: 300}]}"), other + 0.3)

    def test_the_summary_has_a_row_for_every_wire(self):
        out, _ = self.sim("--format", "json", "--set", "train.steps=10", "--set",
                          "ring.link={rate_mbit: 10, hops: [{from: 0, to: 1, rate_mbit: 2}]}")
        rows = {(w["kind"], w["from"], w["to"]): w for w in json.loads(out)["wire"]}
        hops = {("hop", a, b) for a, b in ((0, 1), (1, 2), (2, 3), (1, 0), (2, 1), (3, 2))}
        feed = {("feed", *ends) for k in (0, 3) for ends in (("host", k), (k, "host"))}
        control = {("control", *ends) for k in range(4) for ends in (("host", k), (k, "host"))}
        self.assertEqual(set(rows), hops | feed | control)
        for ends, row in rows.items():
            self.assertGreater(row["bytes"], 0, ends)
            if ends[0] != "control":  # measured is what was described
                rate = 2 if ends == ("hop", 0, 1) else 10
                self.assertAlmostEqual(row["rate_mbit"], rate, delta=0.05 * rate)
                busy_s = 8e-6 * row["bytes"] / row["rate_mbit"]  # a rate of late
                self.assertAlmostEqual(row["busy_s"], busy_s, delta=0.02 * busy_s)
        inputs = rows["feed", "host", 0]
        self.assertGreater(inputs["delay_p50_ms"], 8 * 4 * 784 / 10e3)  # a microbatch of bytes
        self.assertGreaterEqual(inputs["delay_p95_ms"], inputs["delay_p50_ms"])
        self.assertEqual(rows["hop", 0, 1]["codec"], "f32")

    def test_faults_of_a_file_happen_when_it_says(self):
        path = self.dir / "faults.yaml"
        path.write_text("faults:\n  - {kind: crash, node: 2, at_s: 0.2, for_s: 0.1}\n")
        out, _ = self.sim("--faults", path, "--trace")
        self.assertIn("[    0.200000000] fault: begins: crash node 2", out)
        self.assertIn("board2: begins life 2", out)
        self.assertNotIn("host: begins life 2", out)
        self.assertIn("host: ends: success", out)
        out, _ = self.sim("--faults", path, "--trace", "--set", "ring.wait=0")
        self.assertIn("host: begins life 2, resumes", out)
        self.assertIn("host: ends: success", out)

    def listening(self, boards=4):
        """A roster of boards that listen."""
        entry = "  - {name: b%d, address: 'tcp://b%d.example:7000', key: '%s%d'}\n"
        roster = self.dir / "roster.yaml"
        roster.write_text("boards:\n" + "".join(entry % (i, i, "a" * 39, i)
                                                for i in range(boards)))
        return roster

    def test_a_spare_may_have_faults(self):
        """A board of the ring is lost for good, and the spare that takes its place falls, too."""
        roster = self.listening(5)
        path = self.dir / "faults.yaml"
        path.write_text("faults:\n  - {kind: gone, node: 2, at_s: 0.1, for_s: 0.1}\n"
                        "  - {kind: crash, node: 4, at_s: 4, for_s: 0.1}\n")
        ring = f"ring={{roster: {roster}, spare: [b4], wait: 1}}"
        out, _ = self.sim("--faults", path, "--trace", "--set", ring, "--set",
                          "train.epochs=400", "--set", "train.steps=1600")
        self.assertIn("b4: begins life 2", out)
        self.assertIn("host: ends: success", out)

    def dialling(self):
        """Words for a ring of four boards, of which the second and the last dial."""
        entry = "  - {name: b%d, address: %s, key: '%s%d'}\n"
        roster = self.dir / "roster.yaml"
        roster.write_text("boards:\n" + "".join(
            entry % (i, "dials" if i % 2 else f"'tcp://b{i}.example:7000'", "a" * 39, i)
            for i in range(4)))
        return "--set", f"ring={{roster: {roster}, listen: 'tcp://host.example:7100'}}"

    def test_two_boards_with_one_identity(self):
        """One that dials beside the other is kept out; one that answers at its address is a board
        that has begun anew."""
        path = self.dir / "faults.yaml"
        long = ("--set", "train.epochs=400", "--set", "train.steps=1600")
        path.write_text("faults:\n  - {kind: twin, node: 1, at_s: 0.5, for_s: 6}\n")
        out, _ = self.sim("--faults", path, "--trace", "--out", self.dir / "out", *self.dialling(),
                          *long)
        self.assertIn("b1-twin: begins life", out)
        self.assertRegex((self.dir / "out" / "log.jsonl").read_text(),
                         r"the key of board b1: the one at inproc:\d+ is in the ring, the one at "
                         r"inproc:\d+ is kept out")
        self.assertNotIn("host: fault in", out)
        self.assertNotIn("b1-twin: ready", out)
        self.assertIn("host: ends: success", out)
        path.write_text("faults:\n  - {kind: twin, node: 2, at_s: 0.12, for_s: 0.1}\n")
        out, _ = self.sim("--faults", path, "--trace", *self.dialling())
        self.assertIn("b2-twin: ready", out)  # its turn
        self.assertGreaterEqual(out.count("host: fault in"), 2)  # and that of the first again
        self.assertNotIn("host: begins life 2", out)
        self.assertIn("host: ends: success", out)

    def test_a_board_that_finds_its_port_taken_begins_later(self):
        """A board makes another key and is refused, the run stops, and a person gives it its key
        again while a twin with the other key has its port."""
        path = self.dir / "faults.yaml"
        path.write_text("faults:\n  - {kind: empty-disk, node: 1, at_s: 0.05, for_s: 0.1}\n"
                        "  - {kind: twin, node: 1, at_s: 0.3, for_s: 7}\n")
        out, _ = self.sim("--faults", path, "--trace", "--set",
                          f"ring={{roster: {self.listening()}, wait: 5}}")
        self.assertIn("b1: cannot start: link control: cannot bind", out)
        self.assertIn("host: begins life 2, resumes", out)
        self.assertNotIn("host: begins life 3", out)
        self.assertIn("host: ends: success", out)

    def test_chunks(self):
        out, _ = self.sim("--format", "json", "--set", "ring.boards=2", "--set",
                          "schedule={kind: interleaved-1f1b, chunks: 2}")
        self.assertEqual(json.loads(out)["status"], "finished")

    def test_a_full_disk_stops_no_run(self):
        """Not while it is full in any state, and not where a board is lost meanwhile."""
        path = self.dir / "faults.yaml"
        for state in ("train", "save", "evaluate", "hello", "assign"):
            for seconds in (0.3, 8):
                path.write_text("faults:\n  - {kind: disk-full, at_s: 0.05, "
                                f"for_s: {seconds}, in: {state}}}\n"
                                "  - {kind: crash, node: 1, at_s: 0.1, for_s: 1}\n")
                out, _ = self.sim("--faults", path, "--seeds", "1..2", "--format", "json", "--set",
                                  "train.checkpoint_steps=2")
                tally = json.loads(out)
                self.assertEqual((tally["finished"], tally["faults"]), (2, 4), (state, tally))

    def test_the_only_checkpoint_is_damaged_and_copied(self):
        """Nobody has anything whole then: the run may stop, and somebody begins it again."""
        path = self.dir / "faults.yaml"
        path.write_text("faults:\n  - {kind: rotten, at_s: 0.05, for_s: 0.01}\n"
                        "  - {kind: fsync-lied, at_s: 0.06, for_s: 0.001}\n"
                        "  - {kind: reset, node: 0, at_s: 0.07, for_s: 0.1, amount: 4}\n")
        out, _ = self.sim("--faults", path, "--trace", "--set",
                          f"ring={{roster: {self.listening()}}}")
        self.assertRegex(out, "(?s)disk: damages .* disk: has lost what it was given since.*"
                              "disk: no checkpoint is complete: the user removes them")
        self.assertIn("host: ends: success", out)

    def test_nobody_is_lost_where_all_are_slow_and_the_controller_sleeps(self):
        """30 s an op, and twice 60 s without a controller."""
        path = self.dir / "faults.yaml"
        path.write_text("faults:\n  - {kind: host-suspend, at_s: 45, for_s: 60}\n"
                        "  - {kind: host-suspend, at_s: 400, for_s: 60}\n")
        throttle = "throttle: {forward_ms: 30000, backward_ms: 30000}"
        for boards in ("boards: 4", f"roster: {self.listening()}"):
            out, _ = self.sim("--executor", "timed", "--faults", path, "--trace", "--set",
                              f"ring={{{boards}, {throttle}}}", "--set", "train.steps=5")
            self.assertEqual(out.count("fault: ends: host-suspend"), 2)
            self.assertNotIn("host: fault in", out)
            self.assertNotIn("host: begins life 2", out)
            self.assertIn("host: ends: success", out)

    def test_a_large_parcel_is_no_death(self):
        """1 MiB over 0.1 Mbit/s, which takes as long as 1 GiB over 100 Mbit/s: 84 s."""
        (self.dir / "wide.yaml").write_text(
            "input: data\nlayers:\n  - {name: flat, kind: flatten}\n"
            "  - {name: fc1, kind: dense, out: 4096}\n  - {name: relu1, kind: relu}\n"
            "  - {name: fc2, kind: dense, out: classes}\n")
        run = RUN.replace("model: mlp", "model: wide.yaml").replace(
            "cut: [relu1, fc2, relu2]", "cut: [fc2]").replace("boards: 4", "boards: 2").replace(
            "batch: 16, microbatch: 4", "batch: 64, microbatch: 64")
        out, _ = self.sim("--trace", "--set", "train.steps=2", "--set",
                          "ring.link={rate_mbit: 0.1, delay_ms: 20}", "--set", "links.inputs=int4",
                          run=run, seconds=60)
        self.assertNotIn("host: fault in", out)
        seconds = float(re.search(r"\[ *([\d.]+)\] host: ends: success", out)[1])
        self.assertGreater(seconds, 4 * 84)  # there and back, twice

    def test_a_hop_that_is_cut_stops_the_run_in_time(self):
        """It is named, and the run goes on from its checkpoint when the hop is there again, by
        itself or when it is resumed."""
        path = self.dir / "faults.yaml"
        path.write_text("faults:\n"
                        "  - {kind: partition, from: 0, to: 1, at_s: 0.05, for_s: 50}\n"
                        "  - {kind: partition, from: 1, to: 0, at_s: 0.05, for_s: 50}\n")
        out, err = self.sim("--faults", path, "--trace")
        self.assertRegex(err, r"board [01]: hop 0 -> 1: no answer from board [01] ")
        self.assertNotIn("host: begins life 2", out)
        self.assertIn("host: ends: success", out)
        out, err = self.sim("--faults", path, "--trace", "--set", "ring.wait=0")
        self.assertRegex(err, r"board [01]: hop 0 -> 1: no answer from board [01] ")
        stops = re.findall(r"\[ *([\d.]+)\] host: ends: the ring failed", out)
        self.assertTrue(10 < float(stops[0]) < 16, stops)
        self.assertIn("host: begins life 2, resumes", out)
        self.assertIn("host: ends: success", out)

    def test_a_person_sees_no_losses_and_no_messages_of_faults(self):
        out, err = self.sim("--out", self.dir / "out")
        self.assertIn("simulated with the executor digest", out)
        self.assertNotIn("loss ", out + err)
        self.assertIn("everything is in", out)
        out, _ = self.sim()
        self.assertNotIn("everything is in", out)
        _, err = self.sim("--faults", "all", "--seeds", "1..4")
        self.assertEqual(err, "")
        _, err = self.sim("--out", self.dir / "out", code=2)
        self.assertIn("exists; name a folder that does not", err)

    def test_mistakes_are_refused(self):
        for words, text in (
                (("--executor", "opencl"), "--executor: expected digest|timed"),
                (("--executor", "timed"), "--executor timed needs --profile"),
                (("--seeds", "5..2"), "--seeds: expected A..B"),
                (("--faults", self.dir / "none.yaml"), "none.yaml"),
                (("--seeds", "1..2", "--once"), "--once is for one run"),
                (("--seeds", "1..2", "--resume", "out"), "--resume is for one run"),
                (("--out", "a", "--resume", "b"), "--out and --resume exclude each other"),
                (("--set", "model=resnet-narrow", "--set", "cut=auto", "--set",
                  "schedule=ea-pipe"), "train.recalibrate: no reference"),
                (("--seeds", "1..2", "--out", self.dir / "out"), "--out is for one run")):
            _, err = self.sim(*words, code=2)
            self.assertIn(text, err)

    def test_a_clock_may_jump_more_than_once(self):
        path = self.dir / "faults.yaml"
        path.write_text("faults:\n"
                        "  - {kind: clock, node: 1, at_s: 0.01, amount: 1.0e9}\n"
                        "  - {kind: clock, node: 1, at_s: 0.05, amount: 9.0e8}\n"
                        "  - {kind: clock, node: 1, at_s: 0.09, amount: 1.0e9}\n")
        out, err = self.sim("--faults", path, "--trace")
        self.assertIn("host: ends: success", out)
        self.assertNotIn("which is out of range", err)

    def test_timed_takes_its_times_from_a_throttle(self):
        out, _ = self.sim("--executor", "timed", "--set",
                          "ring.throttle={forward_ms: 10, backward_ms: 20}", "--format", "json")
        # 50 steps of 4 microbatches on 4 boards: at least (4 + 3) x 30 ms each
        self.assertGreater(json.loads(out)["seconds"], 50 * 7 * 0.030)

    def test_timed_follows_the_slowest_board(self):
        def seconds(throttle):
            out, _ = self.sim("--executor", "timed", "--set", f"ring.throttle={throttle}",
                              "--format", "json")
            return json.loads(out)["seconds"]
        # As above with one slow board: 4 microbatches of 30 ms there, 3 x 3 ms elsewhere, a step
        alike = seconds("{forward_ms: 1, backward_ms: 2}")
        uneven = seconds("{forward_ms: 1, backward_ms: 2, "
                         "boards: {2: {forward_ms: 10, backward_ms: 20}}}")
        self.assertGreater(uneven, 50 * (4 * 0.030 + 3 * 0.003))
        self.assertLess(uneven, 50 * (4 * 0.030 + 3 * 0.003) + alike)
        # 5 ms for every op and 25 ms an update: 7 x 10 ms and the slowest update, a step
        fixed = seconds("{forward_op_ms: 5, backward_op_ms: 5, boards: {1: {update_ms: 25}}}")
        self.assertGreater(fixed, 50 * (7 * 0.010 + 0.0))
        self.assertGreater(fixed, seconds("{forward_op_ms: 5, backward_op_ms: 5}") + 49 * 0.010)

    def test_every_kind_of_fault_is_read_from_a_file(self):
        out, _ = self.ringpipe("list", "faults", "--format", "json")
        path = self.dir / "faults.yaml"
        for kind in json.loads(out)["faults"]:
            keys = {"kind": kind["name"], "at_s": 0.1, "for_s": 0.1}
            ends = [key for key in kind["keys"].split(", ") if key]
            keys.update({key: i for i, key in enumerate(ends)})
            if kind["unit"]:
                keys["amount"] = min(0.5, kind["most"])
            path.write_text(json.dumps({"faults": [keys]}))
            out, _ = self.sim("--faults", path, "--trace")
            self.assertIn(f"fault: begins: {kind['name']}", out)


# Methods with faults have a step of ./bootstrap test to themselves (tests/sim/seeds.py).
load_tests = few_when_short("Sim.test_a_run_without_faults_prints_what_train_prints",
                            "Sim.test_parcels_have_to_fit",
                            "Sim.test_the_same_seed_prints_the_same_events",
                            "Sim.test_each_wire_is_as_it_is_described",
                            "Sim.test_faults_of_a_file_happen_when_it_says",
                            "Sim.test_two_boards_with_one_identity",
                            "Sim.test_the_only_checkpoint_is_damaged_and_copied",
                            "Sim.test_a_hop_that_is_cut_stops_the_run_in_time",
                            "Sim.test_mistakes_are_refused",
                            "Sim.test_timed_follows_the_slowest_board")


if __name__ == "__main__":
    unittest.main(verbosity=2)
