import torch


def cases(f):
    """Rates of every step; lr 0.4, 3 steps an epoch."""
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
