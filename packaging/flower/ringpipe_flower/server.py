"""The ServerApp: rounds of sites by a rule of Flower.

It does not use Strategy.start(), which waits without end for a site that is away, adds replies in
the order of their arrival, and begins at round 1 after a restart.
"""
import time

import flwr
from flwr.app import ConfigRecord, Message, MessageType, RecordDict
from flwr.serverapp import ServerApp

from .guards import (Refused, check_finite_number, check_name, check_size, check_tensors,
                     check_version, check_whole)
from .record import Record
from .rules import Rule, record_of
from .settings import read_settings
from .tensors import check_finite, layout

check_version(flwr.__version__)
app = ServerApp()
POLL_SECONDS = 1


@app.main()
def main(grid, context):
    settings = read_settings(dict(context.run_config))
    record = Record(settings)
    rule = Rule(settings["rule"], settings["settings"])
    done, weights, state = record.open()
    rule.restore(state)
    check_finite("start", weights)
    check_size(sum(array.nbytes for array in weights.values()))
    known = set()
    for number in range(done + 1, settings["rounds"] + 1):
        results = train(grid, settings, number, weights, known)
        weights = rule.next(number, weights, [(one["held"], one["arrays"]) for one in results])
        check_finite(f"round {number}", weights)
        rows = [row_of(number, one) for one in results] + [row_of_round(number, results)]
        if settings["evaluate"] != "none":
            rows += evaluate(grid, settings, number, weights, known)
        record.add_rows(rows)
        record.close_round(number, weights, rule.state())


def train(grid, settings, number, weights, known):
    """[{site, held, steps, samples, loss, arrays}] of all sites, sorted by their names."""
    config = config_of(settings, number)
    replies = ask(grid, settings, MessageType.TRAIN, weights, config, known)
    return [{"site": name, **numbers_of(name, reply), "arrays": arrays_of(name, reply, weights)}
            for name, reply in replies]


def evaluate(grid, settings, number, weights, known):
    """Rows of the evaluations of the new weights by all sites."""
    config = {**config_of(settings, number), "part": settings["evaluate"]}
    rows = []
    for name, reply in ask(grid, settings, MessageType.EVALUATE, weights, config, known):
        metrics = reply.content["metrics"]
        scores = {key: check_finite_number(name, key, metrics[key])
                  for key in ("loss", "accuracy") if key in metrics}
        rows.append({"round": number, "site": name, "evaluated": settings["evaluate"],
                     "samples": metrics["num-examples"], **scores})
    return rows


def config_of(settings, number):
    """What the sites are asked for. Each of the two tries of a command has half of the time."""
    return {"name": settings["name"], "server-round": number, "steps": settings["steps"],
            "epochs": settings["epochs"], "anchor": settings["anchor"],
            "seconds": settings["wait"] / 2}


# ---- messages -----------------------------------------------------------------------------------


def ask(grid, settings, kind, weights, config, known):
    """[(site, reply)] sorted by site. Every site has to answer; `known` gets their names."""
    content = RecordDict({"arrays": record_of(weights), "config": ConfigRecord(config)})
    nodes = wait_for_nodes(grid, settings["sites"], settings["wait"], known)
    messages = [Message(content=content, message_type=kind, dst_node_id=node) for node in nodes]
    found = {}
    for reply in grid.send_and_receive(messages, timeout=settings["wait"]):
        if reply.has_error():
            raise Refused(f"round {config['server-round']}: node {reply.metadata.src_node_id}: "
                          f"{reply.error.reason}")
        name = check_name("site", (reply.content.get("about") or {}).get("site"))
        if name in found:
            raise Refused(f"site {name} is at two nodes: expected a site of its own for each")
        found[name] = reply
    known |= set(found)
    if len(found) < settings["sites"]:
        raise Refused(f"round {config['server-round']}: {len(found)} of {settings['sites']} sites "
                      f"answered within {settings['wait']:g} s{missing(known - set(found))}")
    return sorted(found.items())


def wait_for_nodes(grid, count, seconds, known):
    end = time.monotonic() + seconds
    while True:
        nodes = sorted(grid.get_node_ids())
        if len(nodes) == count:
            return nodes
        if time.monotonic() > end:
            raise Refused(f"{len(nodes)} nodes are connected after {seconds:g} s: expected {count}"
                          f" sites{missing(known) if len(nodes) < count else ''}")
        time.sleep(POLL_SECONDS)


def missing(names):
    return ": some of " + ", ".join(sorted(names)) if names else ""


def numbers_of(name, reply):
    metrics = reply.content["metrics"]
    loss = check_finite_number(name, "loss", metrics["loss"]) if "loss" in metrics else None
    return {"held": check_whole(f"site {name}: num-examples", metrics["num-examples"], 1, 2**53),
            "steps": check_whole(f"site {name}: steps", metrics["steps"], 0, 2**53),
            "samples": check_whole(f"site {name}: samples", metrics["samples"], 0, 2**53),
            "loss": loss}


def arrays_of(name, reply, weights):
    arrays = {key: array.numpy() for key, array in reply.content["arrays"].items()}
    check_tensors(name, layout(weights), layout(arrays))
    check_finite(f"site {name}", arrays)
    return arrays


# ---- rows ---------------------------------------------------------------------------------------


def row_of(number, result):
    return {"round": number, **{key: value for key, value in result.items() if key != "arrays"}}


def row_of_round(number, results):
    """Loss: mean over the sites that did a step, weighted by the samples that they hold."""
    pairs = [(one["held"], one["loss"]) for one in results if one["loss"] is not None]
    weight = sum(held for held, _ in pairs)
    loss = sum(held * loss for held, loss in pairs) / weight if weight else None
    return {"round": number, "sites": len(results), "loss": loss}
