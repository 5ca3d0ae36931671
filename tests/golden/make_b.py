#!/usr/bin/env python3
"""Writes the golden files of the layers that work element by element or normalise, of the losses,
the optimisers and the learning-rate schedules: python3 tests/golden/make_b.py
The results are committed; run it only to add a case."""
import numpy as np
import torch
import torch.nn.functional as F

from golden import File, double, values

SIZES = ((1, (1,)), (3, (31,)), (2, (32,)), (1, (33,)), (5, (65,)), (2, (3, 5, 7)))


def activations():
    for kind, keys, run in (
            ("relu", {}, F.relu),
            ("leaky_relu", {"slope": 0.3}, lambda x: F.leaky_relu(x, 0.3)),
            ("tanh", {}, torch.tanh),
            ("sigmoid", {}, torch.sigmoid),
            ("gelu", {}, F.gelu),
            ("silu", {}, F.silu)):
        f = File(kind)
        for n, shape in SIZES:
            case = f"n{n}_" + "x".join(map(str, shape))
            f.layer(case, kind, keys, n, [shape], lambda xs, ps: run(xs[0]))
            if shape == (1,):
                continue  # saturated and alone, 1 - y^2 has no digits to compare
            wide = values(case + "_wide", (n, *shape)) * np.float32(12)
            f.layer(case + "_wide", kind, keys, n, [shape], lambda xs, ps: run(xs[0]),
                    special={"x0": wide})
        if kind == "leaky_relu":
            f.layer("default", kind, {}, 2, [(33,)], lambda xs, ps: F.leaky_relu(xs[0]))
        f.write()


# n, sample shape, keys, training, offset added to x
NORMS = ((1, (31, 1, 1), {}, False, 0), (3, (1,), {}, True, 0), (33, (31,), {}, True, 0),
         (65, (33,), {}, True, 3), (5, (65,), {}, False, 0), (2, (32, 1, 1), {}, True, 0),
         (1, (3, 5, 7), {}, True, 0), (2, (31, 4, 4), {}, True, 0), (3, (33, 7, 7), {}, True, 0),
         (5, (2, 8, 8), {"eps": 0.1}, True, 0), (2, (3, 31, 33), {}, True, 100),
         (1, (2, 65, 65), {}, True, 0), (65, (1, 9, 9), {"momentum": 0.5}, True, 0),
         (2, (3, 9, 5), {"eps": 0.01}, False, 0), (1, (1, 70, 70), {}, False, 0))


def batchnorm():
    f = File("batchnorm")
    for n, shape, keys, training, offset in NORMS:
        case = f"n{n}_" + "x".join(map(str, shape)) + ("" if training else "_eval")
        case += f"_from{offset}" if offset else ""
        channels = shape[0]
        after = {}

        def norm(xs, ps):
            mean = ps["running_mean"].detach().clone()
            var = ps["running_var"].detach().clone()
            y = F.batch_norm(xs[0], mean, var, ps["weight"], ps["bias"], training,
                             keys.get("momentum", 0.1), keys.get("eps", 1e-5))
            after.update(mean=mean, var=var)
            return y

        special = {"running_var": values(case + "/var", (channels,)) + np.float32(1.5)}
        if offset:
            special["x0"] = values(case + "/x0", (n, *shape)) + np.float32(offset)
        f.layer(case, "batchnorm", keys, n, [shape], norm,
                {k: (channels,) for k in ("weight", "bias", "running_mean", "running_var")},
                training, special)
        f.tensor(f"{case}/after_mean", after["mean"])
        f.tensor(f"{case}/after_var", after["var"])
    f.write()


def losses():
    """<case>/y, target, loss (one a sample), dy; the gradient is of the mean."""
    f = File("loss")
    for n, k in ((1, 1), (3, 2), (2, 10), (5, 31), (2, 32), (3, 33), (33, 65), (2, 1000)):
        case = f"cross-entropy_n{n}_k{k}"
        y = double(values(case + "/y", (n, k)) * np.float32(20)).requires_grad_()
        target = (torch.arange(n) * 7 + 3) % k
        loss = F.cross_entropy(y, target, reduction="none")
        loss.mean().backward()
        case_out(f, case, n, k, y, target.float(), loss)
    for n, k in ((1, 1), (3, 31), (2, 32), (5, 33), (33, 65), (2, 1000)):
        case = f"mse_n{n}_k{k}"
        y = double(values(case + "/y", (n, k)) * np.float32(3)).requires_grad_()
        target = double(values(case + "/t", (n, k)))
        F.mse_loss(y, target).backward()
        case_out(f, case, n, k, y, target, ((y - target) ** 2).mean(1))
    f.write()


def case_out(f, case, n, k, y, target, loss):
    f.describe(case, {"n": n, "outputs": k, "loss": case.split("_")[0]})
    for what, tensor in (("y", y), ("target", target), ("loss", loss), ("dy", y.grad)):
        f.tensor(f"{case}/{what}", tensor.detach().numpy())


def options():
    for decay in (0.0, 0.1):
        for momentum, dampening, nesterov in ((0.0, 0.0, False), (0.9, 0.0, False),
                                              (0.9, 0.5, False), (0.9, 0.0, True),
                                              (0.5, 1.0, False)):
            yield "sgd", {"momentum": momentum, "dampening": dampening, "nesterov": nesterov,
                          "weight_decay": decay}
        for kind in ("adam", "adamw"):
            for betas, eps in (((0.9, 0.999), 1e-8), ((0.5, 0.9), 1e-3), ((0.0, 0.99), 1e-8)):
                yield kind, {"betas": betas, "eps": eps, "weight_decay": decay}
        for alpha, eps in ((0.99, 1e-8), (0.5, 1e-2)):
            for momentum in (0.0, 0.9):
                for centered in (False, True):
                    yield "rmsprop", {"alpha": alpha, "eps": eps, "momentum": momentum,
                                      "centered": centered, "weight_decay": decay}
    for kind in ("sgd", "adam", "adamw", "rmsprop"):
        yield kind, {}


CLASSES = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam, "adamw": torch.optim.AdamW,
           "rmsprop": torch.optim.RMSprop}
STEPS = 10


def optimizers():
    """w = values(<case>/w), gradient of step t = values(<case>/g<t>), lr = 0.05 (1 + t / 10).
    Results: w after 1, 2 and 10 steps, the states after 10, and `moved`, the last step / lr, where
    only the gradient moved the weights (no AdamW decay)."""
    f = File("optim")
    for number, (kind, keys) in enumerate(options()):
        case = f"{kind}{number}"
        count = (1, 31, 32, 33, 65)[number % 5]
        f.describe(case, {"count": count, "steps": STEPS,
                          "optimizer": {"kind": kind, "lr": 0.05, **keys}})
        w = double(values(case + "/w", (count,))).requires_grad_()
        optim = CLASSES[kind]([w], lr=0.05, **keys)
        for t in range(STEPS):
            lr = 0.05 * (1 + t / 10)
            optim.param_groups[0]["lr"] = lr
            w.grad = double(values(f"{case}/g{t}", (count,)))
            before = w.detach().clone()
            optim.step()
            if t in (0, 1, STEPS - 1):
                f.tensor(f"{case}/w{t + 1}", w.detach().numpy())
        if kind == "adamw":
            before *= 1 - lr * optim.param_groups[0]["weight_decay"]
        f.tensor(f"{case}/moved", ((before - w) / lr).detach().numpy())
        for name, state in optim.state[w].items():
            if name != "step" and state is not None:
                f.tensor(f"{case}/{name}", state.numpy())
    f.write()


def schedules():
    """Rates of every step; lr 0.4, 3 steps an epoch."""
    f = File("lr")
    steps = 24
    lr = torch.optim.lr_scheduler
    for case, keys, make in (
            ("constant", {"kind": "constant"}, lambda o: lr.LambdaLR(o, lambda t: 1.0)),
            ("cosine", {"kind": "cosine"}, lambda o: lr.CosineAnnealingLR(o, steps)),
            ("cosine_min", {"kind": "cosine", "min_lr": 0.01},
             lambda o: lr.CosineAnnealingLR(o, steps, 0.01)),
            ("poly", {"kind": "poly"}, lambda o: lr.PolynomialLR(o, steps)),
            ("poly2", {"kind": "poly", "power": 2.0}, lambda o: lr.PolynomialLR(o, steps, 2.0)),
            ("warm", {"kind": "constant", "warmup_steps": 5},
             lambda o: lr.LinearLR(o, 1 / 5, 1.0, 4)),
            ("warm_cosine", {"kind": "cosine", "warmup_steps": 4},
             lambda o: lr.SequentialLR(o, [lr.LinearLR(o, 1 / 4, 1.0, 3),
                                           lr.CosineAnnealingLR(o, steps - 4)], [4])),
            ("step", {"kind": "step", "step_size": 2, "gamma": 0.5},
             lambda o: lr.StepLR(o, 2, 0.5))):
        optim = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.4)
        schedule = make(optim)
        rates = []
        for t in range(steps):
            rates.append(optim.param_groups[0]["lr"])
            optim.step()
            if case != "step" or t % 3 == 2:
                schedule.step()
        f.describe(case, {"steps": steps, "epoch": 3, "lr_schedule": keys})
        f.tensor(f"{case}/lr", rates)
    f.write()


if __name__ == "__main__":
    torch.manual_seed(0)
    activations()
    batchnorm()
    losses()
    optimizers()
    schedules()
