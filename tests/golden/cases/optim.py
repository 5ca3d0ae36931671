import torch

from golden import double, values


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


def cases(f):
    """w = values(<case>/w), gradient of step t = values(<case>/g<t>), lr = 0.05 (1 + t / 10).
    Results: w after 1, 2 and 10 steps, the states after 10, and `moved`, the last step / lr, where
    only the gradient moved the weights (no AdamW decay)."""
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
