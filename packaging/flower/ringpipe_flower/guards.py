"""What this package refuses, each with its reason. Standard library only.

source  flwr 1.42.0, its own classes run on vectors of which the papers' results are known
"""
import math
import re

# Rules of flwr 1.42, by the name of their class in lower case, and the settings that they take.
# FedAvg, FedAvgM, FedAdam and FedYogi equal those of the section `sites` in a run file.
RULES = {
    "fedavg": (),
    "fedavgm": ("lr", "momentum"),
    "fedadam": ("lr", "beta1", "beta2", "tau"),
    "fedyogi": ("lr", "beta1", "beta2", "tau"),
    "fedadagrad": ("lr", "tau"),
    "fedmedian": (),
    "fedtrimmedavg": ("trim",),
}
SETTINGS = {"lr": (0, 1000), "momentum": (0, 1), "beta1": (0, 1), "beta2": (0, 1), "tau": (0, 1),
            "trim": (0, 0.5)}

DISTANCES = ("distances are computed in float32 from weights, not from differences, so that they "
             "are noise when sites are close to each other")
PRIVACY = ("a site whose weights did not change ends the run with a division by zero; an app of yours "
           "may use it, see ringpipe-flower(7)")
REFUSED = {
    "krum": DISTANCES,
    "multikrum": DISTANCES,
    "bulyan": DISTANCES + ", and it takes one ranking of Krum where the paper takes one for each "
                          "choice",
    "fedprox": "it averages as fedavg; give `anchor` with fedavg, which adds the gradient of the "
               "squared distance",
    "qfedavg": "it was not compared with its paper",
    "dpadaptive": "the clipping norm moves with the wrong sign and grows without limit",
    "dpfixed": PRIVACY,
}

MESSAGE_BYTES_MAX = 2**31 - 2**24  # messages of Flower end below 2 GiB
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}\Z")


class Refused(ValueError):
    """An input that is invalid or not supported; the text says what was expected."""


def check_version(version):
    """flwr: its rules and messages change between versions, and only 1.42 was compared."""
    if not re.match(r"1\.42\.\d+\Z", version):
        raise Refused(f"flwr {version}: expected 1.42, the version whose rules were compared")


def check_rule(name, settings):
    """A name of RULES, and {setting: number} that it takes; each number is in its range."""
    if name in REFUSED:
        raise Refused(f"rule '{name}' of flwr 1.42: {REFUSED[name]}")
    if name not in RULES:
        raise Refused(f"rule '{name}': expected {', '.join(RULES)}")
    for key, value in settings.items():
        low, high = SETTINGS[key]
        if key not in RULES[name]:
            raise Refused(f"{key}: the rule {name} has no such setting")
        if not low <= value < high:
            raise Refused(f"{key}: {value}: expected a number from {low} to below {high}")


def check_name(what, name):
    """Of a site or a run: it becomes the name of a folder."""
    if not isinstance(name, str) or not NAME.match(name):
        raise Refused(f"{what} {name!r}: expected 1 to 64 letters, digits, '.', '_' and '-', the "
                      "first one not '.' or '-'")
    return name


def check_whole(what, value, low, high):
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise Refused(f"{what}: {value!r}: expected a whole number from {low} to {high}")
    return value


def check_real(what, value, low, high):
    """NaN is in no range."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= high:
        raise Refused(f"{what}: {value!r}: expected a number from {low} to {high}")
    return float(value)


def check_finite_number(site, what, value):
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise Refused(f"site {site}: {what}: {value!r}: expected a finite number")
    return float(value)


def check_tensors(site, given, got):
    """[(name, type, shape)] of a reply and of the message: rules pair tensors by position, so
    another order would average different tensors without an error."""
    if len(got) != len(given):
        raise Refused(f"site {site}: {len(got)} tensors: expected {len(given)}")
    for number, (want, have) in enumerate(zip(given, got)):
        if want != have:
            raise Refused(f"site {site}: tensor {number} is {describe(have)}: expected "
                          f"{describe(want)}")


def describe(tensor):
    name, kind, shape = tensor
    return f"'{name}' {kind} {list(shape)}"


def check_size(count_bytes):
    if count_bytes > MESSAGE_BYTES_MAX:
        raise Refused(f"the weights have {count_bytes} bytes: expected at most "
                      f"{MESSAGE_BYTES_MAX}, because messages of Flower end below 2 GiB")


def check_report(report, number):
    """What a reply has of the object that `ringpipe round --format json` printed."""
    report = report if isinstance(report, dict) else {}
    loss = report.get("loss")
    loss = loss.get("mean") if isinstance(loss, dict) else None
    if report.get("version") != 1 or report.get("round") != number:
        raise Refused(f"ringpipe round: expected the result of round {number} in version 1")
    if report.get("status") not in ("finished", "partial"):
        raise Refused("ringpipe round: key 'status': expected finished or partial")
    if loss is not None and not (isinstance(loss, (int, float)) and math.isfinite(loss)):
        raise Refused("ringpipe round: key 'loss.mean': expected a finite number or null")
    return {"site": check_name("ringpipe round: key 'site':", report.get("site")),
            "status": report["status"], "loss": loss,
            "held": check_whole("ringpipe round: key 'held'", report.get("held"), 1, 2**53),
            "steps": check_whole("ringpipe round: key 'steps'", report.get("steps"), 0, 2**53),
            "samples": check_whole("ringpipe round: key 'samples'", report.get("samples"), 0,
                                   2**53)}
