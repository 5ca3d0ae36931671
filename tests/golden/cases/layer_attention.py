import math

import torch

REL = 5e-5  # as for other kinds with a softmax or a norm
PADDING = 7


def turn(x, first, base=10000.0, interleaved=False):
    """Rotary positions first, first + 1, ... of x [n, heads, T, D]."""
    size = x.shape[-1]
    rate = base ** (-torch.arange(0, size, 2, dtype=torch.float64) / size)
    angle = (first + torch.arange(x.shape[2], dtype=torch.float64))[:, None] * rate
    if interleaved:
        a, b = x[..., 0::2], x[..., 1::2]
    else:
        a, b = x.chunk(2, -1)
    turned = (a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin())
    return torch.stack(turned, -1).flatten(-2) if interleaved else torch.cat(turned, -1)


def attend(q, k, v, keys, ids):
    """q [n, T, heads D], k and v [n, S, kv_heads D] -> y [n, T, heads Dv]."""
    heads = keys["heads"]
    kv_heads = keys.get("kv_heads", heads)
    n, t, s = q.shape[0], q.shape[1], k.shape[1]
    q = q.reshape(n, t, heads, -1).transpose(1, 2)
    k, v = (x.reshape(n, s, kv_heads, -1).transpose(1, 2).repeat_interleave(heads // kv_heads, 1)
            for x in (k, v))
    if "rotary" in keys:
        q, k = turn(q, s - t, **keys["rotary"]), turn(k, 0, **keys["rotary"])
    scores = q @ k.transpose(-1, -2) * keys.get("scale", 1 / math.sqrt(q.shape[-1]))
    seen = torch.ones(t, s, dtype=torch.bool)
    if keys.get("causal"):
        seen = seen.tril(s - t)
    seen = seen.expand(n, 1, t, s)
    if ids is not None:
        seen = seen & (ids != keys["padding"])[:, None, None, :]
    # A large negative number instead of -inf, so that a row without any key is no NaN.
    weights = torch.softmax(scores.masked_fill(~seen, -1e30), -1)
    y = weights.masked_fill(~seen, 0.0) @ v
    return y.transpose(1, 2).reshape(n, t, -1)


def run_of(keys, packed, has_ids):
    def run(xs, _):
        ids = xs[-1] if has_ids else None
        if not packed:
            return attend(*xs[:3], keys, ids)
        kv_heads = keys.get("kv_heads", keys["heads"])
        size = xs[0].shape[-1] // (keys["heads"] + 2 * kv_heads)
        parts = xs[0].split([keys["heads"] * size, kv_heads * size, kv_heads * size], -1)
        return attend(*parts, keys, ids)
    return run


def draw_ids(n, count):
    """The first sample is only padding, the others end in more or less of it."""
    ids = torch.arange(n * count).reshape(n, count) % 5
    for i in range(n):
        ids[i, min(count, i * 3):] = PADDING
    return ids.numpy()


CAUSAL = {"causal": True}
PACKED = (  # n, T, heads, D, keys, ids
    (1, 1, 1, 1, {}, False), (2, 5, 1, 5, {}, False), (3, 31, 1, 31, CAUSAL, False),
    (2, 32, 2, 32, {}, False), (2, 33, 1, 33, CAUSAL, False), (1, 65, 3, 5, {}, False),
    (2, 65, 1, 65, CAUSAL, False), (3, 1, 5, 8, CAUSAL, False),
    (1, 200, 2, 6, CAUSAL, False), (1, 200, 1, 4, {"scale": 2.0}, False),
    (2, 6, 4, 8, {"kv_heads": 2}, False), (1, 70, 6, 3, {"kv_heads": 2, **CAUSAL}, False),
    (2, 33, 3, 2, {"kv_heads": 1}, False),
    (5, 9, 2, 4, {}, True), (3, 37, 2, 5, CAUSAL, True), (14, 34, 1, 3, CAUSAL, True),
    (2, 5, 2, 8, {"rotary": {}}, False),
    (1, 65, 2, 6, {"rotary": {"base": 100.0}, **CAUSAL}, False),
    (2, 33, 4, 18, {"rotary": {"interleaved": True}, "kv_heads": 2, **CAUSAL}, False),
)
SEPARATE = (  # n, T, S, heads, kv_heads, D, Dv, keys, ids
    (2, 1, 33, 2, 2, 5, 5, {}, False), (2, 31, 2, 1, 1, 4, 4, {}, False), (2, 33, 65, 2, 1, 7, 31, {}, False),
    (2, 5, 33, 2, 2, 8, 3, CAUSAL, False), (2, 65, 31, 2, 2, 5, 33, CAUSAL, False),
    (1, 70, 3, 1, 1, 3, 5, CAUSAL, False), (3, 7, 40, 4, 2, 5, 6, {}, True),
    (4, 40, 8, 2, 2, 5, 6, CAUSAL, True), (2, 3, 37, 2, 2, 4, 4, {"rotary": {}}, False),
    (1, 37, 5, 2, 1, 6, 4, {"rotary": {"interleaved": True}, **CAUSAL}, False),
)


def name_of(sizes, keys, ids):
    words = [w for w in ("causal", "rotary", "scale") if w in keys] + ["padding"] * ids
    return "_".join(["x".join(map(str, sizes)), *words])


def cases(f):
    for n, t, heads, size, keys, ids in PACKED:
        keys = {"heads": heads, **keys, **({"padding": PADDING} if ids else {})}
        columns = (heads + 2 * keys.get("kv_heads", heads)) * size
        f.layer("packed_" + name_of((n, t, heads, size), keys, ids), "attention", keys, n,
                [(t, columns)] + [(t,)] * ids, run_of(keys, True, ids),
                ids={1: draw_ids(n, t)} if ids else None, rel=REL)
    for n, t, s, heads, kv_heads, size, v_size, keys, ids in SEPARATE:
        keys = {"heads": heads, "kv_heads": kv_heads, **keys,
                **({"padding": PADDING} if ids else {})}
        f.layer("three_" + name_of((n, t, s, heads, size, v_size), keys, ids), "attention", keys,
                n, [(t, heads * size), (s, kv_heads * size), (s, kv_heads * v_size)] + [(s,)] * ids,
                run_of(keys, False, ids), ids={3: draw_ids(n, s)} if ids else None, rel=REL)
