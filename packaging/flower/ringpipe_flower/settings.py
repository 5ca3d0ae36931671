"""The run-config of the server, read and checked. Standard library only."""
from pathlib import Path

from .guards import RULES, SETTINGS, Refused, check_name, check_real, check_rule, check_whole

# Those of ringpipe-sites(5).
DEFAULTS = {
    "fedavgm": {"lr": 1.0, "momentum": 0.9},
    "fedadam": {"lr": 0.1, "beta1": 0.9, "beta2": 0.99, "tau": 0.001},
    "fedyogi": {"lr": 0.01, "beta1": 0.9, "beta2": 0.99, "tau": 0.001},
    "fedadagrad": {"lr": 0.1, "tau": 0.001},
    "fedtrimmedavg": {"trim": 0.1},
}
PARTS = ("none", "test", "validation")
KEYS = {"name", "start", "out", "rounds", "sites", "least", "steps", "epochs", "anchor", "rule",
        "evaluate", "wait", *SETTINGS}
# May change when a run goes on.
CHANGING = ("start", "out", "rounds", "least", "evaluate", "wait")


def read_settings(config):
    """{key: value} with every key of KEYS but those of SETTINGS, which are in `settings`."""
    unknown = set(config) - KEYS
    if unknown:
        raise Refused(f"run-config: unknown key {sorted(unknown)[0]!r}: expected one of "
                      f"{', '.join(sorted(KEYS))}")
    found = {"name": check_name("name", config.get("name", "flower")),
             "start": check_path("start", config.get("start")),
             "out": check_path("out", config.get("out")),
             "rounds": check_whole("rounds", config.get("rounds", 3), 1, 1000000),
             "sites": check_whole("sites", config.get("sites", 2), 1, 1024),
             "least": check_whole("least", config.get("least", 0), 0, 1024),
             "steps": check_whole("steps", config.get("steps", 0), 0, 2**24),
             "epochs": check_whole("epochs", config.get("epochs", 0), 0, 2**24),
             "anchor": check_real("anchor", config.get("anchor", 0.0), 0, 1e6),
             "rule": config.get("rule", "fedavg"),
             "evaluate": config.get("evaluate", "none"),
             "wait": check_real("wait", config.get("wait", 3600.0), 1, 1000000)}
    if found["steps"] and found["epochs"]:
        raise Refused("steps, epochs: expected only one of them")
    if not found["steps"] and not found["epochs"]:
        found["epochs"] = 1
    if found["least"] > found["sites"]:
        raise Refused(f"least: {found['least']}: expected at most the {found['sites']} sites")
    found["least"] = found["least"] or found["sites"]
    if found["evaluate"] not in PARTS:
        raise Refused(f"evaluate: {found['evaluate']!r}: expected {', '.join(PARTS)}")
    found["settings"] = read_rule(found["rule"], config)
    return found


def read_rule(name, config):
    given = {key: check_real(key, config[key], *SETTINGS[key])
             for key in SETTINGS if config.get(key, "") != ""}
    check_rule(name, given)
    settings = {**DEFAULTS.get(name, {}), **given}
    if set(settings) != set(RULES[name]):
        raise AssertionError(f"defaults of {name}")
    return settings


def check_path(what, path):
    """Absolute, because Flower chooses the working directory of its programs."""
    if not isinstance(path, str) or not Path(path).is_absolute():
        raise Refused(f"{what}: {path!r}: expected an absolute path")
    return path


def check_same(before, now):
    """The settings of a run that goes on."""
    for key, value in before.items():
        if key not in CHANGING and now.get(key) != value:
            raise Refused(f"{key}: the run in {now['out']} has {value!r}, and {now.get(key)!r} was "
                          "given: expected the same, or another folder")
