"""The ClientApp: a message of Flower becomes files, `ringpipe round` trains, its files become the
reply. An error of ringpipe is raised, which Flower sends as an error reply with its text."""
import flwr
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

from .guards import Refused, check_tensors, check_version
from .site import Site
from .tensors import cast, layout, read_weights, write_weights

check_version(flwr.__version__)


def open_site(message, context):
    """node-config: `site`, a folder; `program`, the path of ringpipe."""
    unknown = set(context.node_config) - {"site", "program"}
    if unknown or "site" not in context.node_config:
        raise Refused(f"node-config: {sorted(unknown) or 'site is missing'}: expected site and "
                      "program")
    return Site(context.node_config["site"], context.node_config.get("program", "ringpipe"),
                dict(message.content["config"]))


def arrays_of(message):
    """In the order of the message."""
    return {name: cast(array.numpy()) for name, array in message.content["arrays"].items()}


def reply(message, site, name, metrics, arrays=None):
    about = ConfigRecord({"site": name, "round": site.round})
    content = {"metrics": MetricRecord(metrics), "about": about}
    if arrays is not None:
        content["arrays"] = ArrayRecord({key: Array(array) for key, array in arrays.items()})
    return Message(RecordDict(content), reply_to=message)


def train(message, context):
    site = open_site(message, context)
    given = arrays_of(message)
    write_weights(site.given(), given)
    path, report = site.train()
    arrays = read_weights(path, list(given))
    check_tensors(report["site"], layout(given), layout(arrays))
    metrics = {"num-examples": report["held"], "steps": report["steps"],
               "samples": report["samples"]}
    if report["loss"] is not None:
        metrics["loss"] = report["loss"]
    return reply(message, site, report["site"], metrics, arrays)


def evaluate(message, context):
    site = open_site(message, context)
    path = site.weights_to_evaluate()
    write_weights(path, arrays_of(message))
    scores = site.evaluate(path, message.content["config"]["part"])
    return reply(message, site, site.name(), {"num-examples": scores.pop("samples"), **scores})


def make_app(mods=()):
    """A ClientApp with these mods of Flower around the training, the first one outermost."""
    made = ClientApp()
    made.train(mods=list(mods))(train)
    made.evaluate()(evaluate)
    return made


app = make_app()
