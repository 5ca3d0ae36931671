"""The prediction errors that a run logs are those of the golden chain, computed here in double.

||W^ - W_true|| and ||W_t - W_true|| by stage, where W_true are the weights that were predicted:
those that the backward finds (PipeOptim, METHODS 5.3) or those at the end of the round trip
(SpecTrain and XPipe, METHODS 4, 6). One scalar weight a stage, so the norm is an absolute value.
"""
import json
import unittest

from test_golden import INPUTS, START, Chain

STAGES = 4


def order(stage, count):
    """1F1B without a flush: D - 1 - k forwards to warm up, then pairs (METHODS 1)."""
    warm = min(STAGES - 1 - stage, count)
    ops = [("F", n) for n in range(warm)]
    for n in range(count - warm):
        ops += [("F", warm + n), ("B", n)]
    return ops + [("B", n) for n in range(count - warm, count)]


def past(stage, ahead):
    """Updates behind the backward at which the weights are those that were predicted."""
    return max(0, ahead[stage] - (STAGES - 1 - stage))


def simulate(inputs, lr, ahead, back):
    """SGD with momentum 0.9, forwards predicted by ahead[stage] updates, backwards by back[stage]:
    {(stage, minibatch): (error, stale error)}."""
    weights, momenta = list(START), [0.0] * STAGES
    versions = [[w] for w in START]
    ops = [order(k, len(inputs)) for k in range(STAGES)]
    out, grad, saved, seen = {}, {}, {}, {}
    while any(ops):
        for k in range(STAGES):
            while ops[k]:
                kind, n = ops[k][0]
                if kind == "F" and (k == 0 or (k - 1, n) in out):
                    x = inputs[n] if k == 0 else out[k - 1, n]
                    predicted = weights[k] - ahead[k] * lr * momenta[k]
                    saved[k, n], seen[k, n] = x, (predicted, weights[k])
                    out[k, n] = predicted * x
                elif kind == "B" and (k == STAGES - 1 or (k + 1, n) in grad):
                    dy = out[k, n] - 0.5 * inputs[n] if k == STAGES - 1 else grad[k + 1, n]
                    grad[k, n] = dy * (weights[k] - back[k] * lr * momenta[k])
                    momenta[k] = 0.9 * momenta[k] + dy * saved[k, n]
                    weights[k] -= lr * momenta[k]
                    versions[k].append(weights[k])
                else:
                    break
                ops[k].pop(0)
    return {(k, n): [abs(w - versions[k][n + past(k, ahead)]) for w in pair]
            for (k, n), pair in seen.items() if n + past(k, ahead) < len(versions[k])}


class Prediction(Chain):
    PROBE = ("train.batch=1", "train.microbatch=1", "train.epochs=15", "optimizer.lr=0.001")

    def logged(self, schedule):
        out, _ = self.run_schedule(schedule, *self.PROBE)
        lines = map(json.loads, (self.dir / out / "log.jsonl").read_text().splitlines())
        return {(e["stage"], e["step"] - 1): e for e in lines if e.get("event") == "prediction"}

    def compare_errors(self, schedule, ahead, back=(0,) * STAGES):
        # a line has the step of the backward or the update that it was measured at
        got = {(k, step - max(0, past(k, ahead) - 1)): line
               for (k, step), line in self.logged(schedule).items()}
        want = simulate(INPUTS * 15, 0.002, ahead, back)
        self.assertEqual(sorted(got), sorted(key for key in want if key[1] % STAGES == 0))
        for (stage, n), line in got.items():
            self.assertEqual(line["gap"], min(n, STAGES - 1 - stage))
            self.assertEqual(line["ahead"], ahead[stage])
            for name, value in zip(("error", "stale_error"), want[stage, n]):
                # weights are float32: their differences are good to a few units in the last place
                close = abs(line[name] - value) <= 5e-6
                self.assertTrue(close, f"{name} of stage {stage} at {n}: {line[name]}, not {value}")
        return got

    def gains(self, got, stages):
        """Stale over predicted distance, once the momenta are there."""
        sums = [[sum(line[name] for (k, n), line in got.items() if k == stage and n >= 4)
                 for name in ("stale_error", "error")] for stage in range(stages)]
        return [stale / error for stale, error in sums]

    def test_pipeoptim(self):
        got = self.compare_errors("{kind: pipeoptim, probe: 4}", (3, 2, 1, 0))
        self.assertGreater(min(self.gains(got, STAGES - 1)), 6)  # METHODS 5.3: 7 to 13

    def test_spectrain(self):
        got = self.compare_errors("{kind: spectrain, probe: 4}", (3, 2, 2, 1), (0, 0, 1, 1))
        self.assertGreater(min(self.gains(got, STAGES)), 5)  # the last stage predicts, too

    def test_xpipe(self):
        """Of one microbatch: SpecTrain, but for the halves that its formula rounds to even."""
        self.compare_errors("{kind: xpipe, probe: 4}", (3, 2, 2, 2), (0, 0, 1, 1))

    def test_async_predicts_nothing(self):
        got = self.compare_errors("{kind: async, probe: 4}", (0,) * STAGES)
        self.assertTrue(all(line["error"] == line["stale_error"] for line in got.values()))

    def test_runs_with_measured_gains_repeat_themselves_whatever_the_links_do(self):
        schedule = "{kind: pipeoptim, horizon: measured, probe: 4}"
        plain, _ = self.run_schedule(schedule, *self.PROBE)
        link = "ring.link={delay_ms: 2, jitter_ms: 3, loss: 0.02, control: true}"
        slow, _ = self.run_schedule(schedule, *self.PROBE, "train.steps=100", link)
        short, _ = self.run_schedule(schedule, *self.PROBE, "train.steps=100")
        events = [self.trust_gains(out) for out in (plain, slow, short)]
        self.assertEqual(events[1], events[2])
        self.assertEqual(events[0][:40], events[2][:40])
        self.assertGreater(len({gain for *_, gain, _ in events[0]}), 4)  # gains move
        for out in (slow, short):
            self.assertEqual((self.dir / out / "weights.safetensors").read_bytes(),
                             (self.dir / short / "weights.safetensors").read_bytes())

    def trust_gains(self, out):
        lines = map(json.loads, (self.dir / out / "log.jsonl").read_text().splitlines())
        return sorted((e["step"], e["stage"], e["gain"], e["fallen"]) for e in lines
                      if e.get("event") == "trust")


if __name__ == "__main__":
    unittest.main()
