import numpy as np
import torch.nn.functional as F

from golden import values

# n, sample shape, keys, training, offset added to x
NORMS = ((1, (31, 1, 1), {}, False, 0), (3, (1,), {}, True, 0), (33, (31,), {}, True, 0),
         (65, (33,), {}, True, 3), (5, (65,), {}, False, 0), (2, (32, 1, 1), {}, True, 0),
         (1, (3, 5, 7), {}, True, 0), (2, (31, 4, 4), {}, True, 0), (3, (33, 7, 7), {}, True, 0),
         (5, (2, 8, 8), {"eps": 0.1}, True, 0), (2, (3, 31, 33), {}, True, 100),
         (1, (2, 65, 65), {}, True, 0), (65, (1, 9, 9), {"momentum": 0.5}, True, 0),
         (2, (3, 9, 5), {"eps": 0.01}, False, 0), (1, (1, 70, 70), {}, False, 0))


def cases(f):
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
