"""Golden vectors of all methods (METHODS 17): four scalar stages, computed elsewhere in double, or
here for the methods that section 17 has no vector of.

y_k = w_k y_{k-1}, loss (y_4 - t)^2 / 2, so half the learning rate with `loss: mse` (not with Adam,
whose step does not depend on the scale of the loss); 12 samples, one fill and one drain. GPipe,
Flush and 2BW take the mean over 4 microbatches, so 3 updates in all; the others update after every
sample.
"""
import json
import math
import subprocess
import unittest

from rings import BUILD, RingCase, read_safetensors, write_safetensors

START = [1.0, 0.9, 1.1, 1.05]
INPUTS = [1 + 0.1 * math.sin(n) for n in range(12)]
FLUSHED = [0.941382287340, 0.834743322829, 1.046786569188, 0.994216009059]
SEQUENTIAL = [0.733982724060, 0.603237396344, 0.858913543539, 0.797067167230]
ASYNC = [0.678391585382, 0.527815255562, 0.788232571210, 0.717204315415]
PIPEDREAM = [0.662256682820, 0.522767548096, 0.788825860228, 0.717863335399]
SPECTRAIN = [0.738653562924, 0.601395720187, 0.847886593703, 0.781586985668]
PIPEOPTIM = [0.716520675464, 0.575095517367, 0.828887143956, 0.763607866576]
RELEASED = [0.757358937387, 0.623179233779, 0.870091602792, 0.810176079879]
PIPEOPTIM_ADAM = [0.813401870261, 0.713087123919, 0.913987640959, 0.864157833014]
DOUBLE = [0.936818084767, 0.829765913144, 1.042581143615, 0.989837560357]
CENTRE = [0.976994579397, 0.874390570720, 1.079114738302, 1.028106237068]
REPLICAS_OF_STAGE_0 = [0.975732151925, 0.974944565108, 0.974535495777, 0.973902959858]
PIPEFB = [0.558344905171, 0.407735648779, 0.693830910856, 0.611709445625]
PIPEFB_PUBLISH_3 = [0.512796627049, 0.356894835684, 0.652376217286, 0.569761518959]
TOLERANCE = 1e-6
SAMPLE_BY_SAMPLE = ("train.batch=1", "train.microbatch=1")


class Momentum:
    """One weight and its optimiser: the run file's sgd."""

    def __init__(self, weight):
        self.w, self.m, self.v, self.t = weight, 0.0, 0.0, 0
        self.past = [weight]  # by updates

    def step(self, g):
        self.m = 0.9 * self.m + g
        self.w -= 0.01 * self.m

    def ahead(self, s):
        return self.w - s * 0.01 * self.m


class Adam(Momentum):
    """lr 0.02; predicts as XPipe does, corrected by 1 - beta (METHODS 6)."""

    def step(self, g):
        self.t += 1
        self.m = 0.9 * self.m + 0.1 * g
        self.v = 0.999 * self.v + 0.001 * g * g
        mean, square = self.m / (1 - 0.9 ** self.t), self.v / (1 - 0.999 ** self.t)
        self.w -= 0.02 * mean / (math.sqrt(square) + 1e-8)

    def ahead(self, s):
        mean, square = self.m / (1 - 0.9), self.v / (1 - 0.999)
        return self.w - s * 0.02 * mean / (math.sqrt(square) + 1e-8)


def alone(x, _centre, g, _clock):
    """One model; every rule of averaging steps x and gives the centre (here: the model)."""
    x.step(g)
    return x.w


def elastic(x, centre, g, _clock):
    """METHODS 9, alpha 0.225, behind the step."""
    x.step(g)
    e = 0.225 * (x.w - centre)
    x.w -= e
    return centre + e


def elastic_before(x, centre, g, clock):
    """EASGD, algorithm 1 (METHODS 7): alpha 0.3, period 2; `clock`: the steps of x until now."""
    e = 0.3 * (x.w - centre) if clock % 2 == 0 else 0.0
    x.step(g)
    x.w -= e
    return centre + e


def reference(x, centre, g, _clock):
    """AvgPipe (METHODS 8) with P = 2."""
    before = x.w
    x.step(g)
    moved = x.w - before
    x.w = 0.5 * x.w + 0.5 * centre
    return centre + moved / 2


def order(micros, warm, steps_open):
    """METHODS 1: a warm-up, then forward, backward, and an update behind a step's last backward. No
    forward of a step whose replica waits for its update. micros: the step of each microbatch."""
    ops, f = [], 0
    for n, step in enumerate(micros):
        while f < len(micros) and f <= n + warm and micros[f] - step < steps_open:
            ops.append(("F", f))
            f += 1
        ops.append(("B", n))
        if n + 1 == len(micros) or micros[n + 1] != step:
            ops.append(("U", n))
    return ops


def half(x):
    return 0.5 * x


def split(ahead, publish=1, start=START):
    """METHODS 12, minibatch after minibatch: forward and backward of n on stage k see what
    max(0, n - ahead + 1) updates have made, as far as it is published; the newest is updated."""
    w = [Momentum(x) for x in start]
    for n, x in enumerate(INPUTS):
        seen = [one.past[max(0, n - a + 1) // publish * publish] for one, a in zip(w, ahead)]
        through = [x]
        for weight in seen:
            through.append(weight * through[-1])
        dy = 2 * (through[-1] - half(x))
        for k in (3, 2, 1, 0):
            w[k].step(dy * through[k])
            w[k].past.append(w[k].w)
            dy *= seen[k]
    return [one.w for one in w]


def simulate(inputs, model=Momentum, average=alone, replicas=1, *, size=1, advance=0,
             steps_open=None, ahead=((0,) * 4,) * 2, double=False, first=0, centre=None,
             models=None, target=half):
    """Trains the chain, `size` microbatches of one sample a step. A step's first microbatch looks
    `ahead` (by direction and stage), the others see what it saw. `double`: step b sees what b - 1
    updates have made (METHODS 2, 2BW). Gives centre and replicas by stage. It may go on behind
    step `first` from the `centre` and the `models` that were then."""
    micros = [first + n // size for n in range(len(inputs))]
    models = models or [[model(w) for _ in range(replicas)] for w in START]
    centre, grads = centre or list(START), [0.0] * 4
    ops = [order(micros, (3 - k) * (1 + advance), steps_open or replicas) for k in range(4)]
    out, back, seen = {}, {}, {}

    def weight(k, n, direction):
        if n % size == 0:
            x, s = models[k][micros[n] % replicas], ahead[direction][k]
            late = x.past[max(micros[n] - 1, 0)] if double else x.w
            seen[k, direction] = x.ahead(s) if s else late
        return seen[k, direction]

    while any(ops):
        for k in range(4):
            while ops[k]:
                kind, n = ops[k][0]
                x = inputs[n] if k == 0 else out.get((k - 1, n))
                if kind == "F" and x is not None:
                    out[k, n] = weight(k, n, 0) * x
                elif kind == "B" and (k == 3 or (k + 1, n) in back):
                    dy = 2 * (out[3, n] - target(inputs[n])) / size if k == 3 else back[k + 1, n]
                    back[k, n] = dy * weight(k, n, 1)
                    grads[k] += dy * x
                elif kind == "U":
                    of = models[k][micros[n] % replicas]
                    centre[k] = average(of, centre[k], grads[k], micros[n] // replicas)
                    of.past.append(of.w)
                    grads[k] = 0.0
                else:
                    break
                ops[k].pop(0)
    return centre, [[x.w for x in xs] for xs in models]


class Chain(RingCase):
    """The run file of the four scalar stages."""

    def setUp(self):
        super().setUp()
        rows = "".join(f"{x:.17g},{0.5 * x:.17g}\n" for x in INPUTS)
        (self.dir / "train.csv").write_text("# x, y\n" + rows)
        layers = "".join(
            f"  - {{name: d{i}, kind: dense, out: 1, bias: false}}\n" for i in range(4))
        (self.dir / "chain.yaml").write_text("input: [1]\nlayers:\n" + layers)
        write_safetensors(self.dir / "start.safetensors",
                          {f"d{i}.weight": ([1, 1], [w]) for i, w in enumerate(START)})
        self.run_yaml = self.run_file(f"""\
model: {self.dir}/chain.yaml
data: {{set: table, path: {self.dir}, shuffle: false}}
ring: {{boards: 4}}
train: {{epochs: 1, batch: 4, microbatch: 1, init: {self.dir}/start.safetensors}}
loss: mse
optimizer: {{kind: sgd, lr: 0.01, momentum: 0.9}}
schedule: gpipe
cut: [d1, d2, d3]
""")

    def run_schedule(self, schedule, *sets):
        self.runs = getattr(self, "runs", 0) + 1
        out = f"run-{self.runs}"
        summary = self.train(self.run_yaml, out, f"schedule={schedule}", *sets)
        self.assertEqual(summary["ledger"]["lost"], 0)
        return out, summary

    def compare(self, got, names, want, what):
        for name, value in zip(names, want):
            close = abs(got[name][0] - value) <= TOLERANCE
            self.assertTrue(close, f"{what}: {name} is {got[name][0]}, not {value}")

    def check(self, want, schedule, *sets):
        out, summary = self.run_schedule(schedule, *sets)
        got = read_safetensors(self.dir / out / "weights.safetensors")
        self.compare(got, [f"d{i}.weight" for i in range(4)], want, f"{schedule} {sets}")
        return out, summary

    def check_replicas(self, out, stage, want):
        last = sorted((self.dir / out / "checkpoint").glob("step-*.safetensors"))[-1]
        names = [f"replica.{r}.d{stage}.weight" for r in range(len(want))]
        self.compare(read_safetensors(last), names, want, f"replicas of stage {stage}")


class Golden(Chain):
    """The vectors."""

    def test_gpipe(self):
        self.check(FLUSHED, "gpipe")

    def test_1f1b(self):
        self.check(FLUSHED, "1f1b")

    def test_zero_bubble(self):
        self.check(FLUSHED, "zb-h1")

    def test_two_stages_and_one(self):
        self.check(FLUSHED, "gpipe", "ring.boards=2", "cut=[d2]")
        self.check(FLUSHED, "1f1b", "ring.boards=1", "cut=[]")

    def test_sequential_is_any_method_on_one_stage(self):
        one = (*SAMPLE_BY_SAMPLE, "ring.boards=1", "cut=[]")
        for schedule in ("gpipe", "async", "pipedream", "{kind: pipedream, vertical_sync: true}",
                         "spectrain", "pipeoptim"):
            self.check(SEQUENTIAL, schedule, *one)

    def test_async(self):
        out, _ = self.check(ASYNC, "async", *SAMPLE_BY_SAMPLE)
        lines = map(json.loads, (self.dir / out / "log.jsonl").read_text().splitlines())
        hint, = [e for e in lines if e.get("kind") == "hint_momentum"]
        self.assertEqual((hint["staleness"], hint["momentum_key"]), (3, "momentum"))
        self.assertAlmostEqual(hint["momentum"], 0.9, 6)

    def test_pipedream(self):
        self.check(PIPEDREAM, "pipedream", *SAMPLE_BY_SAMPLE)

    def test_spectrain(self):
        self.check(SPECTRAIN, "spectrain", *SAMPLE_BY_SAMPLE)

    def test_pipeoptim(self):
        self.check(PIPEOPTIM, "pipeoptim", *SAMPLE_BY_SAMPLE)

    def test_pipeoptim_released_code(self):
        self.check(RELEASED, "{kind: pipeoptim, horizon: released}", *SAMPLE_BY_SAMPLE)

    def test_pipeoptim_adam(self):
        self.check(PIPEOPTIM_ADAM, "pipeoptim", *SAMPLE_BY_SAMPLE,
                   "optimizer={kind: adam, lr: 0.02}")

    def test_pipedream_2bw(self):
        self.check(DOUBLE, "pipedream-2bw")

    def test_ea_pipe(self):
        out, _ = self.check(CENTRE, "{kind: ea-pipe, replicas: 4, alpha: 0.225, period: 1}",
                            *SAMPLE_BY_SAMPLE, "optimizer={kind: sgd, lr: 0.01}")
        self.check_replicas(out, 0, REPLICAS_OF_STAGE_0)

    def test_the_simulation_knows_the_vectors(self):
        class Plain(Momentum):
            def step(self, g):
                self.w -= 0.01 * g

        for want, got in ((SEQUENTIAL, [split((1, 1, 1, 1))]),
                          (PIPEDREAM, [split((4, 3, 2, 1))]),
                          (PIPEFB, [split((8, 6, 4, 2))]),
                          (PIPEFB_PUBLISH_3, [split((8, 6, 4, 2), 3)]),
                          (SEQUENTIAL, simulate(INPUTS, steps_open=1)),
                          (ASYNC, simulate(INPUTS, steps_open=12)),
                          (FLUSHED, simulate(INPUTS, size=4, steps_open=1)),
                          (CENTRE, simulate(INPUTS, Plain, elastic, 4))):
            for a, b in zip(got[0], want):
                self.assertTrue(abs(a - b) <= 1e-11, f"{got[0]} is not {want}")

    def test_xpipe(self):
        # METHODS 6, D = 4, T = 2: 2, 2, 1.5, 1.25 and 0.5, 0.5, 1, 1, halves to even
        want, _ = simulate(INPUTS, Adam, size=2, steps_open=12,
                           ahead=((2, 2, 2, 1), (0, 0, 1, 1)))
        self.check(want, "xpipe", "train.batch=2", "train.microbatch=1",
                   "optimizer={kind: adam, lr: 0.02}")

    def test_pipefb(self):
        self.check(PIPEFB, "pipefb", *SAMPLE_BY_SAMPLE, "ring.boards=8")
        self.check(PIPEFB_PUBLISH_3, "{kind: pipefb, publish: 3}", *SAMPLE_BY_SAMPLE,
                   "ring.boards=8")

    def test_pipefb_replayed(self):
        """Other numbers of `ahead`, in the explicit-version replay. It starts from weights of its
        own, which a rate too small to change anything shows."""
        def replayed(schedule, rate):
            sets = [f"schedule={schedule}", "ring.boards=8", "train.init=none", *SAMPLE_BY_SAMPLE,
                    f"optimizer={{kind: sgd, lr: {rate}, momentum: 0.9}}"]
            words = [w for s in sets for w in ("--set", s)]
            out = self.dir / "replayed.safetensors"
            subprocess.run([BUILD / "tests" / "replay", self.run_yaml, out, *words], check=True,
                           timeout=240)
            got = read_safetensors(out)
            return [got[f"d{i}.weight"][0] for i in range(4)]

        start = replayed("pipefb", 1e-30)
        for keys, ahead, publish in (("", (8, 6, 4, 2), 1), (", publish: 3", (8, 6, 4, 2), 3),
                                     (", ahead: [5, 5, 2, 1], publish: 2", (5, 5, 2, 1), 2)):
            got = replayed(f"{{kind: pipefb{keys}}}", 0.01)
            want = split(ahead, publish, start)
            for a, b in zip(got, want):
                self.assertTrue(abs(a - b) <= TOLERANCE, f"{keys}: {got} is not {want}")
            self.assertTrue(any(abs(a - b) > 10 * TOLERANCE for a, b in
                                zip(got, split((4, 3, 2, 1), 1, start))), f"{keys}: as pipedream")

    def test_avgpipe(self):
        want, replicas = simulate(INPUTS, Momentum, reference, 2, advance=1)
        out, _ = self.check(want, "avgpipe", *SAMPLE_BY_SAMPLE)
        for stage in range(4):
            self.check_replicas(out, stage, replicas[stage])

    def test_ea_pipe_before_the_step_every_second(self):
        want, replicas = simulate(INPUTS, Momentum, elastic_before, 2)
        out, _ = self.check(
            want, "{kind: ea-pipe, replicas: 2, alpha: 0.3, period: 2, order: before}",
            *SAMPLE_BY_SAMPLE)
        for stage in range(4):
            self.check_replicas(out, stage, replicas[stage])


def times(a, b):
    """The matrix a b."""
    return [[sum(x * y for x, y in zip(row, column)) for column in zip(*b)] for row in a]


def turned(a):
    return [list(column) for column in zip(*a)]


def matrix(seed, rows, columns):
    return [[0.8 * (i == j) + 0.3 * math.sin(seed + 2.1 * i + 1.3 * j) for j in range(columns)]
            for i in range(rows)]


class StageRates(RingCase):
    """METHODS 11 on four linear layers without bias, out = D C B A x: 24 samples in batches of 4,
    once through; every stage's weights are stepped by its own norm and its own rate."""

    LAYERS = "abcd"
    BATCH, STEPS, LR, MU = 4, 6, 0.3, 0.5
    clipped = 0  # updates

    def setUp(self):
        super().setUp()
        self.x = [[math.sin(1 + 3 * n + 1.7 * i) for i in range(3)]
                  for n in range(self.BATCH * self.STEPS)]
        self.t = [[0.5 * row[0] - row[1], row[2]] for row in self.x]
        lines = [",".join(f"{v:.17g}" for v in x + t) for x, t in zip(self.x, self.t)]
        (self.dir / "train.csv").write_text("# x, y\n" + "\n".join(lines) + "\n")
        out = dict.fromkeys("abc", 3) | {"d": 2}
        layers = "".join(f"  - {{name: {n}, kind: dense, out: {out[n]}, bias: false}}\n"
                         + ("  - {name: flat, kind: flatten}\n" if n == "b" else "")
                         for n in self.LAYERS)
        (self.dir / "linear.yaml").write_text("input: [3]\nlayers:\n" + layers)
        self.initial = {n: matrix(i, out[n], 3) for i, n in enumerate(self.LAYERS)}
        write_safetensors(self.dir / "start.safetensors",
                          {f"{n}.weight": ([out[n], 3], sum(w, []))
                           for n, w in self.initial.items()})
        self.run_yaml = self.run_file(f"""\
model: {self.dir}/linear.yaml
data: {{set: table, path: {self.dir}, shuffle: false}}
ring: {{boards: 3}}
train: {{epochs: 1, batch: {self.BATCH}, microbatch: 2, init: {self.dir}/start.safetensors}}
loss: mse
optimizer: {{kind: sgd, lr: {self.LR}, momentum: {self.MU}}}
schedule: async
cut: [b, d]
""")

    def equation(self, stages, micro, power, clip, advance, steps_open, per_stage=0):
        """Weights by layer. The order is order()'s; a stage's staleness is the mean, over a step's
        microbatches, of its own updates between forward and backward in the steady state, or what
        `per_stage` makes of it."""
        per_step = self.BATCH // micro
        steps = [m // per_step for m in range(self.STEPS * per_step)]
        w = {n: [list(row) for row in v] for n, v in self.initial.items()}
        v = {n: [[0.0] * 3 for _ in m] for n, m in w.items()}
        g = {n: [[0.0] * 3 for _ in m] for n, m in w.items()}
        seen, back, ops, rate = {}, {}, [], []
        for k in range(len(stages)):
            warm = (len(stages) - 1 - k) * (1 + advance)
            ops.append(order(steps, warm, steps_open))
            endless = order([m // per_step for m in range(80 * per_step)], warm,
                            steps_open)
            at = [endless.index((kind, 40 * per_step + m)) for m in range(per_step)
                  for kind in "FB"]
            stale = sum(kind == "U" for m in range(per_step)
                        for kind, _ in endless[at[2 * m]:at[2 * m + 1]]) / per_step
            stale = per_stage * (len(stages) - 1 - k) if per_stage else stale
            rate.append(self.LR * (1 + stale) ** -power)

        def forward(k, m):
            rows = turned(self.x[m * micro:(m + 1) * micro]) if k == 0 else seen[k - 1, m][-1]
            through = [rows]
            for n in stages[k]:
                through.append(times(w[n], through[-1]))
            seen[k, m] = through

        def backward(k, m):
            if k + 1 == len(stages):
                target = turned(self.t[m * micro:(m + 1) * micro])
                dy = [[2 * (a - b) / (2 * self.BATCH) for a, b in zip(*rows)]
                      for rows in zip(seen[k, m][-1], target)]
            else:
                dy = back[k + 1, m]
            for i, n in reversed(list(enumerate(stages[k]))):
                more = times(dy, turned(seen[k, m][i]))
                g[n] = [[a + b for a, b in zip(*rows)] for rows in zip(g[n], more)]
                dy = times(turned(w[n]), dy)
            back[k, m] = dy

        def update(k):
            norm = math.sqrt(sum(e * e for n in stages[k] for row in g[n] for e in row))
            scale = min(1.0, clip / (norm + 1e-6)) if clip else 1.0
            self.clipped += scale < 1
            for n in stages[k]:
                v[n] = [[self.MU * a + scale * b for a, b in zip(*rows)]
                        for rows in zip(v[n], g[n])]
                w[n] = [[a - rate[k] * b for a, b in zip(*rows)] for rows in zip(w[n], v[n])]
                g[n] = [[0.0] * 3 for _ in g[n]]

        while any(ops):
            for k, own in enumerate(ops):
                while own:
                    kind, m = own[0]
                    if kind == "F" and (k == 0 or (k - 1, m) in seen):
                        forward(k, m)
                    elif kind == "B" and (k + 1 == len(stages) or (k + 1, m) in back):
                        backward(k, m)
                    elif kind == "U":
                        update(k)
                    else:
                        break
                    own.pop(0)
        return w

    def trained(self, *sets):
        self.runs = getattr(self, "runs", 0) + 1
        self.train(self.run_yaml, f"run-{self.runs}", *sets)
        return read_safetensors(self.dir / f"run-{self.runs}" / "weights.safetensors")

    def check(self, stages, micro, power, clip, advance, *sets, steps_open=99, per_stage=0):
        plain = self.equation(stages, micro, 0, 0, advance, steps_open)
        self.clipped = 0
        want = self.equation(stages, micro, power, clip, advance, steps_open, per_stage)
        keys = f"optimizer={{kind: sgd, lr: {self.LR}, momentum: {self.MU}, " \
               f"staleness_power: {power}, staleness_per_stage: {per_stage}, " \
               f"clip_norm_stage: {clip}}}"
        got = self.trained(keys, f"train.microbatch={micro}", *sets)
        moved = 0.0
        for n in self.LAYERS:
            for a, b, c in zip(got[f"{n}.weight"], sum(want[n], []), sum(plain[n], [])):
                self.assertTrue(abs(a - b) <= 2e-6, f"{sets} {keys}: {n}.weight: {a} is not {b}")
                moved = max(moved, abs(b - c))
        self.assertTrue(moved > 1e-3, f"{sets} {keys}: the same weights without these keys")
        self.assertEqual(self.clipped > 0, clip > 0)

    def test_the_equation(self):
        three = ("a", "bc", "d")
        self.check(three, 2, 1, 0, 0)  # 1, 1/2 and 0 updates between forward and backward
        self.check(three, 4, 0.75, 0, 0)  # 2, 1, 0
        self.check(three, 4, 1, 0, 1, "schedule={kind: async, advance: 1}")  # 4, 2, 0
        self.check(three, 2, 0, 0.3, 0)
        self.check(three, 4, 1, 0.3, 0)

    def test_flushed_schedules_clip_by_stages_and_have_no_staleness(self):
        for schedule in ("gpipe", "1f1b", "zb-h1"):
            self.check(("a", "bc", "d"), 2, 1, 0.3, 0, f"schedule={schedule}", steps_open=1)
        plain = self.trained("schedule=1f1b")
        rate = f"optimizer={{kind: sgd, lr: {self.LR}, momentum: {self.MU}, staleness_power: 1}}"
        self.assertEqual(plain, self.trained("schedule=1f1b", rate))

    def test_a_flushed_schedule_with_the_rates_of_another(self):
        self.check(("a", "bc", "d"), 2, 1, 0, 0, "schedule=1f1b", steps_open=1, per_stage=5)
        self.check(("a", "bc", "d"), 4, 0.75, 0.3, 0, "schedule=gpipe", steps_open=1, per_stage=2)

    def test_cuts_of_the_same_staleness_give_the_same_numbers(self):
        keys = f"optimizer={{kind: sgd, lr: {self.LR}, staleness_power: 1}}"
        one = self.trained(keys, "ring.boards=2", "cut=[flat]")
        self.assertEqual(one, self.trained(keys, "ring.boards=2", "cut=[c]"))
        # a stage between that only passes on: 2 updates for a and b, as with advance: 1
        self.assertEqual(self.trained(keys, "cut=[flat, c]"),
                         self.trained(keys, "ring.boards=2", "cut=[c]",
                                      "schedule={kind: async, advance: 1}"))
        self.assertNotEqual(one, self.trained(keys, "cut=[flat, c]"))


class Invariants(Chain):
    """What must hold whatever the numbers are (METHODS 17)."""

    def weights(self, schedule, *sets):
        out, _ = self.run_schedule(schedule, *SAMPLE_BY_SAMPLE, *sets)
        return self.weights_of(self.dir / out / "weights.safetensors")

    def weights_of(self, path):
        got = read_safetensors(path)
        return [got[f"d{i}.weight"][0] for i in range(4)]

    def test_alpha_0_is_independent_replicas(self):
        out, _ = self.run_schedule("{kind: ea-pipe, alpha: 0}", *SAMPLE_BY_SAMPLE)
        self.assertEqual(self.weights_of(self.dir / out / "weights.safetensors"),
                         self.weights_of(self.dir / "start.safetensors"))
        streams = [simulate(INPUTS[r::4], steps_open=1)[0] for r in range(4)]
        for stage in range(4):
            self.check_replicas(out, stage, [stream[stage] for stream in streams])

    def test_one_replica_half_way_is_half_the_learning_rate(self):
        # R = 1, alpha = 1/2 behind the step: centre and replica meet in the middle
        half = self.weights("{kind: ea-pipe, replicas: 1, alpha: 0.5}",
                            "optimizer={kind: sgd, lr: 0.01}")
        want = self.weights("gpipe", "optimizer={kind: sgd, lr: 0.005}")
        for a, b in zip(half, want):
            self.assertTrue(abs(a - b) <= TOLERANCE, f"{a} is not {b}")

    def test_a_poisoned_sample_is_left_out_by_every_stage(self):
        rows = [f"{x:.17g},{0.5 * x:.17g}\n" for x in INPUTS]
        rows[5] = "1e30,0\n"  # the loss overflows, and with it every gradient
        (self.dir / "train.csv").write_text("".join(rows))
        for schedule in ("async", "pipedream", "{kind: pipeoptim, horizon: released}", "ea-pipe"):
            out, summary = self.run_schedule(schedule, *SAMPLE_BY_SAMPLE)
            lines = map(json.loads, (self.dir / out / "log.jsonl").read_text().splitlines())
            skipped = [e["step"] for e in lines if e.get("event") == "skipped"]
            self.assertEqual((summary["steps"], skipped), (12, [6] * 4), schedule)
            got = read_safetensors(self.dir / out / "weights.safetensors")
            self.assertTrue(all(abs(got[f"d{i}.weight"][0]) < 2 for i in range(4)), schedule)

    def test_a_run_full_of_skipped_steps_is_not_finished(self):
        # squares of these gradients overflow, the loss does not
        (self.dir / "train.csv").write_text("1e15,0\n" * 12)
        for schedule, steps in (("async", "train.batch=1"), ("gpipe", "train.batch=1")):
            out = f"skips-{schedule}"
            _, said = self.ringpipe("train", self.run_yaml, "--out", self.dir / out, "--set",
                                    f"schedule={schedule}", "--set", steps, "--set",
                                    "train.microbatch=1", code=3)
            self.assertIn("the gradient has not been finite since step 1,", said)
            self.assertIn("train.stop_after.non_finite", said)


if __name__ == "__main__":
    unittest.main()
