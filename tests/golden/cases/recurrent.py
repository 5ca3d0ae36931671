"""What lstm and gru share."""
import numpy as np
import torch

from golden import values

SUFFIXES = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
PADDING = 3

# n, T, I, H, keys, lengths of the samples (None: the key is not given)
CASES = (
    (1, 1, 1, 1, {}, None),
    (3, 1, 31, 33, {}, None),
    (5, 3, 32, 31, {}, None),
    (2, 33, 1, 32, {}, None),
    (4, 2, 33, 65, {}, None),
    (9, 5, 3, 17, {}, None),
    (3, 6, 5, 31, {"reverse": True}, None),
    (5, 4, 31, 15, {"bidirectional": True}, None),
    (1, 9, 4, 18, {"bidirectional": True}, None),
    (3, 5, 7, 16, {"output": "last"}, None),
    (3, 5, 7, 18, {"output": "last", "reverse": True}, None),
    (5, 6, 3, 17, {"output": "last", "bidirectional": True}, None),
    (6, 7, 5, 33, {}, (3, 7, 1, 0, 5, 7)),
    (6, 7, 5, 17, {"reverse": True}, (7, 3, 1, 0, 5, 2)),
    (5, 8, 3, 17, {"bidirectional": True}, (1, 8, 4, 0, 6)),
    (7, 5, 4, 10, {"bidirectional": True, "output": "last"}, (0, 5, 1, 4, 2, 3, 5)),
    (2, 1, 4, 5, {"output": "last"}, (1, 0)),
)


def flip(x, lengths):
    """Every sample the other way round, up to its length."""
    return torch.stack([torch.cat((s[:n].flip(0), s[n:])) for s, n in zip(x, lengths)])


def one_direction(function, x, weights, lengths, states):
    """h [n, T, H] of a packed sequence, 0 after a sample's length, and h of its last step. PyTorch
    does not take samples of length 0, whose outputs are 0 here."""
    n, steps, _ = x.shape
    alive = [max(length, 1) for length in lengths]
    packed = torch.nn.utils.rnn.pack_padded_sequence(x, alive, batch_first=True,
                                                     enforce_sorted=False)
    zero = torch.zeros(1, n, weights[1].shape[1], dtype=torch.float64)
    state = (zero,) * states if states > 1 else zero
    found = function(packed.data, packed.batch_sizes, state, weights, True, 1, 0.0, True, False)
    packed = torch.nn.utils.rnn.PackedSequence(found[0], packed.batch_sizes, packed.sorted_indices,
                                               packed.unsorted_indices)
    y, _ = torch.nn.utils.rnn.pad_packed_sequence(packed, batch_first=True, total_length=steps)
    last = found[1][0].index_select(0, packed.unsorted_indices)
    mask = torch.tensor([length > 0 for length in lengths], dtype=torch.float64)[:, None]
    return y * mask[:, :, None], last * mask


def run_recurrent(function, states, xs, ps, keys, lengths):
    x = xs[0]
    lengths = lengths or [x.shape[1]] * x.shape[0]
    weights = [ps[k] for k in SUFFIXES]
    parts = []
    if not keys.get("reverse"):
        parts.append(one_direction(function, x, weights, lengths, states))
    else:
        y, last = one_direction(function, flip(x, lengths), weights, lengths, states)
        parts.append((flip(y, lengths), last))
    if keys.get("bidirectional"):
        weights = [ps[k + "_reverse"] for k in SUFFIXES]
        y, last = one_direction(function, flip(x, lengths), weights, lengths, states)
        parts.append((flip(y, lengths), last))
    what = 1 if keys.get("output") == "last" else 0
    return torch.cat([part[what] for part in parts], -1)


def token_ids(n, steps, lengths):
    """Ids whose padding at the end leaves `lengths`; there is some inside of the longer ones."""
    ids = np.ones((n, steps), dtype=np.int64)
    for sample, length in zip(ids, lengths):
        sample[length:] = PADDING
        if length > 2:
            sample[:length - 1:2] = PADDING
    return ids


def recurrent(f, kind, gates, states, function):
    for n, steps, wide, hidden, keys, lengths in CASES:
        case = f"n{n}_t{steps}_in{wide}_h{hidden}"
        case += "".join(f"_{value if key == 'output' else key}" for key, value in keys.items())
        case += "_lengths" if lengths else ""
        rows = gates * hidden
        shapes = ((rows, wide), (rows, hidden), (rows,), (rows,))
        params = dict(zip(SUFFIXES, shapes))
        if keys.get("bidirectional"):
            params.update({k + "_reverse": params[k] for k in SUFFIXES})
        # Weights of h in [-1, 1) would make a long sequence chaotic; these are as large as at the
        # start.
        scale = np.float32(1 / np.sqrt(hidden))
        special = {k: values(f"{case}/{k}", params[k]) * scale for k in params
                   if "weight_hh" in k and steps > 3}
        f.layer(case, kind, {"hidden": hidden, **keys,
                             **({"lengths": True, "padding": PADDING} if lengths else {})}, n,
                [(steps, wide)] + ([(steps,)] if lengths else []),
                lambda xs, ps: run_recurrent(function, states, xs, ps, keys, lengths), params,
                special=special, rel=5e-5,
                ids={1: token_ids(n, steps, lengths)} if lengths else None)
