"""Rules of Flower 1.42 over arrays, and their state between rounds.

A rule's class computes the average, here in double; this file gives it replies in a fixed order
and takes care of what it does not: types, running statistics, tensors of integers.
"""
import numpy as np
from flwr.app import Array, ArrayRecord, MetricRecord, RecordDict
from flwr.serverapp import strategy

from .guards import check_rule
from .tensors import STATISTICS, cast, is_float

MOMENTS = ("fedadam", "fedyogi", "fedadagrad")
# Setting here: argument there.
FLOWER = {
    "fedavg": (strategy.FedAvg, {}),
    "fedavgm": (strategy.FedAvgM, {"lr": "server_learning_rate", "momentum": "server_momentum"}),
    "fedadam": (strategy.FedAdam, {"lr": "eta", "beta1": "beta_1", "beta2": "beta_2",
                                   "tau": "tau"}),
    "fedyogi": (strategy.FedYogi, {"lr": "eta", "beta1": "beta_1", "beta2": "beta_2",
                                   "tau": "tau"}),
    "fedadagrad": (strategy.FedAdagrad, {"lr": "eta", "tau": "tau"}),
    "fedmedian": (strategy.FedMedian, {}),
    "fedtrimmedavg": (strategy.FedTrimmedAvg, {"trim": "beta"}),
}


class Rule:
    """name, settings: as of check_rule()."""

    def __init__(self, name, settings):
        check_rule(name, settings)
        kind, arguments = FLOWER[name]
        self.name = name
        self.flower = kind(**{arguments[key]: value for key, value in settings.items()})
        self.mean = strategy.FedAvg()

    def next(self, number, given, sites):
        """The next weights {name: array}, in the order of `given`.

        number  of the round, from 1; FedAdam's correction depends on it
        given   {name: array}, float32 or integers
        sites   [(weight, {name: array})], in the order of the sums
        """
        trained = [name for name in given if is_float(given[name])]
        means = [name for name in trained if self.has_state() and name.endswith(STATISTICS)]
        ruled = [name for name in trained if name not in means]
        found = {**given, **self.average(self.mean, number, means, given, sites),
                 **self.average(self.flower, number, ruled, given, sites)}
        return {name: cast(found[name]) for name in given}

    def average(self, flower, number, names, given, sites):
        if not names:
            return {}
        current = wide(given, names)
        flower.current_arrays = record_of(current) if self.name == "fedavgm" else current
        replies = [Reply(weight, wide(arrays, names)) for weight, arrays in sites]
        arrays, _ = flower.aggregate_train(number, replies)
        return {name: arrays[name].numpy() for name in names}

    def has_state(self):
        return self.name == "fedavgm" or self.name in MOMENTS

    def state(self):
        """{name: array} of what the rule keeps from one round to the next."""
        if self.name == "fedavgm":
            vector = self.flower.momentum_vector or []
            return {f"momentum/{i:06}": np.asarray(array) for i, array in enumerate(vector)}
        if self.name not in MOMENTS:
            return {}
        return {f"{part}/{name}": np.asarray(array) for part in ("m_t", "v_t")
                for name, array in (getattr(self.flower, part) or {}).items()}

    def restore(self, state):
        """state: as of state(), in any order."""
        if self.name == "fedavgm":
            vector = [state[key] for key in sorted(state) if key.startswith("momentum/")]
            self.flower.momentum_vector = vector or None
        for part in ("m_t", "v_t") if self.name in MOMENTS else ():
            kept = {key.partition("/")[2]: array for key, array in state.items()
                    if key.startswith(part + "/")}
            setattr(self.flower, part, kept or None)


def wide(arrays, names):
    """In double: moments divide by small roots, which would show the rounding of the sums."""
    return {name: arrays[name].astype(np.float64) for name in names}


def record_of(arrays):
    return ArrayRecord({name: Array(array) for name, array in arrays.items()})


class Reply:
    """What a rule reads of a reply."""

    def __init__(self, weight, arrays):
        self.content = RecordDict({"arrays": record_of(arrays),
                                   "metrics": MetricRecord({"num-examples": weight})})

    def has_error(self):
        return False
