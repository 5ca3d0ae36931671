"""Links that become slow and fast again while a run goes on, with `advance: auto`: the host changes
how many minibatches are in flight (and an elastic average's replicas and alpha), and the numbers
are those of a simulation that is told at which steps it did."""
import json
import math
import re
import signal
import sys
import unittest
from pathlib import Path

from rings import few_when_short, read_safetensors
from test_golden import INPUTS, START, Adam, Chain, Momentum, order, simulate

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "cli"))
import doors  # noqa: E402
import test_keys  # noqa: E402

FAR_S = 0.06  # three times an op: advance 3, or 2 on a busy machine
NEAR = 1  # advance where links are fast: boards that are in an op answer a ping late
LOOKED_AT = 32  # steps before links are looked at for the first time
SETS = ("train.batch=1", "train.microbatch=1", "train.epochs=400", "train.eval_epochs=0",
        "train.init=start.safetensors", "ring.roster=lab.yaml",
        "ring.throttle={forward_ms: 20, backward_ms: 20}")


def target(x):
    """What the chain can not learn: there are gradients also at the end of a long run."""
    return 0.5 * x + 0.1 * math.sin(40 * x)


def replicas_of(advance):
    """METHODS 9: as many as are in flight on stage 0, up to 16."""
    return min(16, 3 * (1 + advance) + 1)


def elastic_of(replicas):
    """METHODS 9, behind the step; alpha is 0.9 / R."""
    def average(x, centre, g, _clock):
        x.step(g)
        e = 0.9 / replicas * (x.w - centre)
        x.w -= e
        return centre + e
    return average


def horizons(advance, step=70, steps=150):
    """SpecTrain's (METHODS 4), by direction and stage: own updates that are over when a minibatch's
    backward begins on stage 0, since its forward and since its backward. Every op is one unit long,
    links and updates take no time."""
    ops = [order(range(steps), (3 - k) * (1 + advance), steps) for k in range(4)]
    free, ends, updates, counted = [0] * 4, {}, [[] for _ in range(4)], {}
    while any(ops):
        for k in range(4):
            while ops[k]:
                kind, n = ops[k][0]
                source = (kind, k - 1 if kind == "F" else k + 1, n)
                outside = kind == "U" or source[1] in (-1, 4)
                if not outside and source not in ends:
                    break
                ops[k].pop(0)
                begin = max(free[k], 0 if outside else ends[source])
                if kind == "U":
                    updates[k].append(free[k])
                    continue
                counted[kind, k, n] = len(updates[k])
                free[k] = ends[kind, k, n] = begin + 1
    trip = ends["B", 0, step] - 1
    over = [sum(end < trip for end in of) for of in updates]
    return [[over[k] - counted[kind, k, step] for k in range(4)] for kind in "FB"]


class Links(Chain):
    new, agent = test_keys.Keys.new, test_keys.Keys.agent

    def setUp(self):
        super().setUp()
        rows = [f"{x:.17g},{target(x):.17g}\n" for x in INPUTS]
        (self.dir / "train.csv").write_text("# x, y\n" + 3 * "".join(rows))
        text = self.run_yaml.read_text().replace("boards: 4", "")
        self.run_yaml.write_text(text)
        host = self.new("host")
        boards = []
        for name in ("a", "b", "c", "d"):
            public = self.new(name)
            self.ringpipe("keys", "trust", "--dir", name, "host", host)
            _, address = self.agent(name)
            if name == "b":
                self.door = doors.Door(self, address)
                address = self.door.address
            boards.append(f"  - {{name: {name}, address: '{address}', key: '{public}'}}\n")
        (self.dir / "lab.yaml").write_text("boards:\n" + "".join(boards))

    def events(self):
        """[(step, advance)]: so many steps were trained before."""
        log = self.dir / "out" / "log.jsonl"
        lines = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
        said = [e for e in lines if e.get("event") == "advance"]
        return [(e["step"], e["advance"]) for e in said]

    def step(self):
        log = self.dir / "out" / "log.jsonl"
        steps = re.findall(r'"step": ?(\d+)', log.read_text()) if log.exists() else []
        return max(map(int, steps), default=0)

    def summary(self, status):
        summary = json.loads((self.dir / "out" / "summary.json").read_text())
        self.assertEqual(summary["status"], status)
        self.assertEqual((summary["ledger"]["lost"], summary["ledger"]["repeated"]), (0, 0))
        return summary

    def words(self, *sets):
        return ("train", self.run_yaml, "--keys", "host",
                *(w for s in (*SETS, *sets) for w in ("--set", s)))

    def trained(self, *sets, near=NEAR):
        """Slow links, fast links, Ctrl-C, and some steps more. `near`: the highest advance that
        counts as that of fast links."""
        process = self.start(*self.words(*sets), "--out", "out")
        self.wait_for("steps", lambda: self.step() > LOOKED_AT, process=process)
        self.door.delay = FAR_S
        self.wait_for("more ahead", lambda: self.events()[-1][1] > near, 300, process=process)
        slow = self.events()[-1][1]
        self.door.delay = 0
        try:
            self.wait_for("fewer ahead", lambda: self.events()[-1][1] < slow, 300, process=process)
        except AssertionError:
            print("".join(re.findall(r'.*"event": ?"(?:advance|plan|hint)".*\n',
                                     (self.dir / "out" / "log.jsonl").read_text())))
            raise
        process.send_signal(signal.SIGINT)
        self.finish(process, 130)
        self.interrupted = self.summary("interrupted")
        end = self.step() + 15
        self.ringpipe(*self.words(*sets, f"train.steps={end}"), "--resume", "out", seconds=120)
        self.assertEqual(self.summary("finished")["steps"], end)
        events = self.events()
        self.assertEqual(events[0][0], 0)
        return events, end

    def inputs(self, first, end):
        return [INPUTS[n % len(INPUTS)] for n in range(first, end)]

    def phases(self, events, end):
        ends = [step for step, _ in events[1:]] + [end]
        return [(first, last, advance) for (first, advance), last in zip(events, ends)]

    def weights(self, what):
        last = sorted((self.dir / "out" / "checkpoint").glob("step-*.safetensors"))[-1]
        got = read_safetensors(last)
        return [got[f"{what}d{k}.weight"][0] for k in range(4)]

    def compare(self, events, simulated, got):
        """Of the simulation that hears of the changes, and not of one that hears of them late (nor,
        where that does not matter, of one that does otherwise then)."""
        def close(wanted, within):
            return all(abs(a - b) <= within for x, y in zip(got, wanted) for a, b in zip(x, y))

        # the roundings of some hundred steps, which a prediction far ahead makes larger
        wanted = simulated(events)
        self.assertTrue(close(wanted, 1e-5), f"{got} is not {wanted}")
        late = [(step + (step > 0), advance) for step, advance in events]
        self.assertFalse(close(simulated(late), 1e-5), "it does not matter when")

    def alone(self, events, end, *, size=1, **how):
        """One model, trained in phases; how: by advance where it depends on that."""
        models, centre = [[Momentum(w)] for w in START], None
        for first, last, advance in self.phases(events, end):
            now = {key: value(advance) if callable(value) else value for key, value in how.items()}
            centre, _ = simulate(self.inputs(size * first, size * last), advance=advance,
                                 size=size, first=first, centre=centre, models=models,
                                 target=target, **now)
        return [centre]

    def replicas(self, more, centre, model, *sets):
        """centre: what its weights' names in a checkpoint begin with."""
        events, end = self.trained("schedule={kind: ea-pipe, advance: auto%s}" % more, *sets)
        most = max(replicas_of(advance) for _, advance in events)
        self.assertEqual(self.interrupted["stage"][0]["weight_versions_max"],
                         most + 1 + bool(centre))

        def simulated(events):
            middle, models = list(START), [[] for _ in START]
            for first, last, advance in self.phases(events, end):
                replicas = replicas_of(advance)
                for k in range(4):
                    new = [model(middle[k]) for _ in range(replicas)]
                    models[k] = models[k][:replicas] + new[len(models[k]):]
                middle, _ = simulate(self.inputs(first, last), average=elastic_of(replicas),
                                     replicas=replicas, advance=advance, first=first,
                                     centre=middle, models=models, target=target)
            return [middle, *([x.w for x in of] for of in zip(*models))]

        replicas = range(replicas_of(events[-1][1]))
        self.compare(events, simulated,
                     [self.weights(centre), *(self.weights(f"replica.{r}.") for r in replicas)])

    def test_replicas_come_and_go(self):
        self.replicas("", "", Momentum)

    def test_replicas_whose_centre_is_kept_apart(self):
        self.replicas(", evaluate: mean", "centre.", Adam, "optimizer={kind: adam, lr: 0.02}")

    def test_horizons_follow(self):
        self.assertEqual(horizons(0), [[3, 2, 2, 1], [0, 0, 1, 1]])  # as the paper has them
        events, end = self.trained("schedule={kind: spectrain, advance: auto}")
        self.compare(events, lambda events: self.alone(
            events, end, steps_open=10**6, ahead=horizons), [self.weights("")])

    def test_probes_that_wait(self):
        """For updates behind the drain: they are let go. XPipe with one microbatch a step."""
        events, end = self.trained("schedule={kind: xpipe, advance: auto, probe: 19}")
        ahead = (3, 2, 2, 2), (0, 0, 1, 1)  # METHODS 6, halves to even
        self.compare(events, lambda events: self.alone(
            events, end, steps_open=10**6, ahead=ahead), [self.weights("")])

    def test_two_versions(self):
        """2BW: what its next step still sees is there behind a drain."""
        # The default limit of staleness lets two versions be one minibatch ahead, and no more.
        events, end = self.trained("schedule={kind: pipedream-2bw, advance: auto}", "train.batch=4",
                                   near=0)
        self.compare(events, lambda of: self.alone(
            events, end, size=4, double=of is events, steps_open=2), [self.weights("")])

    def test_predictions_follow(self):
        """The host compares every probe's gap with the order's, and ends a run where it differs."""
        events, _ = self.trained("schedule={kind: pipeoptim, advance: auto, horizon: measured, "
                                 "probe: 1}")
        log = map(json.loads, (self.dir / "out" / "log.jsonl").read_text().splitlines())
        gaps = [(e["step"] - 1, e["gap"]) for e in log if e.get("stage") == 0 and "gap" in e]
        compared = 0
        *phases, last_phase = self.phases(events, 10**6)
        for first, last, advance in (*phases, last_phase):
            most = max(gap for step, gap in gaps if first <= step < last)
            whole = 3 * (1 + advance)
            self.assertLessEqual(most, whole)
            # One probe is under way at a time, so the second one may still come before the pipe is
            # filled. The last phase has an interruption in it.
            if (first, last) != last_phase[:2] and last - first > 3 * (whole + 1):
                self.assertEqual(most, whole)
                compared += 1
        self.assertGreater(compared, 0)


# Under a sanitizer, which makes a run slow: replicas, and trust in predictions.
load_tests = few_when_short("Links.test_replicas_come_and_go", "Links.test_predictions_follow")


if __name__ == "__main__":
    unittest.main()
