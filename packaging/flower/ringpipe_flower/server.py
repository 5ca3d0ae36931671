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
TTL_SECONDS = 60  # by which a message outlives its round's deadline, for clocks that differ
REASON_MAX = 600  # characters of an error in a row


@app.main()
def main(grid, context):
    settings = read_settings(dict(context.run_config))
    record = Record(settings)
    rule = Rule(settings["rule"], settings["settings"])
    done, weights, state = record.open()
    rule.restore(state)
    check_finite("start", weights)
    check_size(sum(array.nbytes for array in weights.values()))
    known = {}
    for number in range(done + 1, settings["rounds"] + 1):
        results, failed = train(grid, settings, number, weights, known)
        weights = rule.next(number, weights, [(one["held"], one["arrays"]) for one in results])
        check_finite(f"round {number}", weights)
        rows = [row_of(number, one) for one in results] + failed
        rows.append(row_of_round(number, results))
        if settings["evaluate"] != "none":
            rows += evaluate(grid, settings, number, weights, known)
        record.add_rows(rows)
        record.close_round(number, weights, rule.state())


def train(grid, settings, number, weights, known):
    """([{site, held, steps, samples, loss, arrays}], sorted by site; rows of sites that failed)."""
    config = config_of(settings, number)
    replies, failed = ask(grid, settings, MessageType.TRAIN, weights, config, known)
    return [{"site": name, **numbers_of(name, reply), "arrays": arrays_of(name, reply, weights)}
            for name, reply in replies], failed


def evaluate(grid, settings, number, weights, known):
    """Rows of the evaluations of the new weights."""
    config = {**config_of(settings, number), "part": settings["evaluate"]}
    replies, rows = ask(grid, settings, MessageType.EVALUATE, weights, config, known)
    for name, reply in replies:
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
    """([(site, reply)] sorted by site, rows of sites that failed). At least `least` sites answered.
    `known`: {node: site} of all replies so far."""
    number, wait = config["server-round"], settings["wait"]
    nodes = wait_for_nodes(grid, settings, known)
    content = RecordDict({"arrays": record_of(weights), "config": ConfigRecord(config)})
    messages = [Message(content=content, message_type=kind, dst_node_id=node,
                        ttl=wait + TTL_SECONDS) for node in nodes]
    found, failed = {}, {}
    for reply in grid.send_and_receive(messages, timeout=wait):
        node = reply.metadata.src_node_id
        if reply.has_error():
            failed[node] = str(reply.error.reason)
            continue
        name = take_name(reply, number)
        if name in found:
            raise Refused(f"site {name} is at two nodes: expected a site of its own for each")
        found[name], known[node] = reply, name
    if len(found) < settings["least"]:
        raise Refused(f"round {number}: {describe_loss(settings, found, failed, known)}")
    return sorted(found.items()), [
        {"round": number, "site": known.get(node), "failed": reason[-REASON_MAX:]}
        for node, reason in sorted(failed.items(), key=lambda one: known.get(one[0], ""))]


def take_name(reply, number):
    """The site of a reply. A reply to another round is not one: it would count twice."""
    about = reply.content.get("about") or {}
    name = check_name("site", about.get("site"))
    if about.get("round") != number:
        raise Refused(f"site {name}: a reply to round {about.get('round')}: expected one to round "
                      f"{number}")
    return name


def describe_loss(settings, found, failed, known):
    """Why a round has too few sites."""
    if failed:
        return "; ".join(f"node {node}: {reason}" for node, reason in sorted(failed.items()))
    away = set(known.values()) - set(found)
    return (f"{len(found)} of {settings['sites']} sites answered within {settings['wait']:g} s: "
            f"expected {settings['least']}{missing(away)}")


def wait_for_nodes(grid, settings, known):
    least, count, seconds = settings["least"], settings["sites"], settings["wait"]
    end = time.monotonic() + seconds
    while True:
        nodes = sorted(grid.get_node_ids())
        if least <= len(nodes) <= count:
            return nodes
        if time.monotonic() > end:
            raise Refused(f"{len(nodes)} nodes are connected after {seconds:g} s: expected {count}"
                          f" sites{missing(set(known.values())) if len(nodes) < least else ''}")
        time.sleep(POLL_SECONDS)


def missing(names):
    return "; some of these are away: " + ", ".join(sorted(names)) if names else ""


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
