"""The half of test_flower.py that needs flwr; it runs in a Python that has it. What it is asked
comes as JSON on standard input, the answer leaves on standard output."""
import copy
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "packaging/flower"))

import numpy as np  # noqa: E402
from flwr.app import ArrayRecord, ConfigRecord, Error, Message, RecordDict  # noqa: E402
from flwr.serverapp import strategy  # noqa: E402

from ringpipe_flower.client import make_app, train  # noqa: E402
from ringpipe_flower.guards import Refused  # noqa: E402
from ringpipe_flower.rules import Rule, record_of  # noqa: E402
from ringpipe_flower.server import ask, wait_for_nodes  # noqa: E402

# Three sites with the loss 0.5 sum a (x - b)^2, two weights, and their exact gradients.
A = np.array([[1.0, 0.5], [0.2, 2.0], [0.6, 1.0]])
B = np.array([[3.0, 0.0], [-1.0, 1.0], [0.5, -3.0]])
HELD = (10, 30, 60)
STEPS = (2, 5, 3)


def site(i, x):
    for _ in range(STEPS[i]):
        x = x - 0.1 * A[i] * (x - B[i])
    return x


def with_others(x):
    """The two weights in two tensors, of which the second comes first by name; statistics; a
    count."""
    return {"w": np.float32(x[1:]), "b": np.float32(x[:1]), "bn.running_var": np.float32(x),
            "bn.num_batches_tracked": np.array(7, np.int64)}


def rounds(question):
    """The two weights after each round, and the types, order and statistics at the end."""
    rule = Rule(question["rule"], question["settings"])
    weights, found = with_others(np.array([1.0, -2.0])), []
    for number in range(1, question["rounds"] + 1):
        if question["restored"]:
            state = dict(reversed(rule.state().items()))
            rule = Rule(question["rule"], question["settings"])
            rule.restore(state)
        x = np.array([weights["b"][0], weights["w"][0]], float)
        sites = [(HELD[i], with_others(site(i, x))) for i in range(3)]
        mean = sum(n / 100 * one["bn.running_var"].astype(float) for n, one in sites)
        weights = rule.next(number, weights, sites)
        found.append([float(weights["b"][0]), float(weights["w"][0])])
    return {"x": found, "order": list(weights), "types": [str(a.dtype) for a in weights.values()],
            "statistics": (weights["bn.running_var"] - mean).tolist(),
            "count": int(weights["bn.num_batches_tracked"])}


def krum(_):
    """Flower's squared distances between weights that differ by 1e-4 in each of 2e5 values."""
    from flwr.serverapp.strategy.multikrum import compute_distances
    x = np.random.default_rng(1).standard_normal(200000).astype(np.float32)
    sites = [record_of({"w": x + np.float32(1e-4 * i)}) for i in range(3)]
    return np.asarray(compute_distances(sites)).tolist()


def adaptive(_):
    """Flower's clipping norm, from 1, when all updates were longer than it."""
    from flwr.supercore.differential_privacy import adaptive_clip_inputs_inplace
    rule = strategy.DifferentialPrivacyServerSideAdaptiveClipping(
        strategy.FedAvg(), noise_multiplier=0.01, num_sampled_clients=2, initial_clipping_norm=1.0)
    rule._geometric_update(float(adaptive_clip_inputs_inplace([np.full(2, 100.0)], 1.0)))
    return rule.clipping_norm


class Reply:
    """Of a node, as a message of Flower has it."""

    def __init__(self, name, error="", number=3, node=5):
        self.metadata = type("Metadata", (), {"src_node_id": node})
        self.error = type("Error", (), {"reason": error})
        self.content = {"about": {"site": name, "round": number}, "metrics": {}}

    def has_error(self):
        return bool(self.error.reason)


class Grid:
    def __init__(self, nodes, replies):
        self.nodes, self.replies = nodes, replies

    def get_node_ids(self):
        return range(self.nodes)

    def send_and_receive(self, messages, timeout):
        assert len(list(messages)) == self.nodes and timeout > 0
        return self.replies


def name_task():
    """Without it a message cannot be made."""
    from flwr.supercore.task_identity import TaskIdentity
    TaskIdentity.run_id = TaskIdentity.node_id = TaskIdentity.task_id = 1


def messages(question):
    """What a round of `least` of `sites` sites says to each list of replies [name, error, round]:
    [names that count, rows of those that failed], or why it ends."""
    name_task()
    settings = {"sites": question["sites"], "least": question["least"], "wait": 0.01}
    found = []
    for replies in question["replies"]:
        grid = Grid(question["sites"], [Reply(*one, node=i) for i, one in enumerate(replies)])
        known = {question["sites"] - 1: "c"}  # the last node was heard before
        try:
            some, failed = ask(grid, settings, "train", {"w": np.zeros(2, np.float32)},
                               {"server-round": 3}, known)
            found.append([[name for name, _ in some], failed])
        except Refused as error:
            found.append(str(error))
    return found


def nodes(question):
    """How many nodes a round asks, or why it ends, by the number of nodes that are connected."""
    settings = {"sites": question["sites"], "least": question["least"], "wait": 0}
    found = []
    for count in question["connected"]:
        try:
            found.append(len(wait_for_nodes(Grid(count, []), settings, {5: "a"})))
        except Refused as error:
            found.append(str(error))
    return found


# ---- mods of Flower around the ClientApp ---------------------------------------------------------


class Apps:
    """A grid whose nodes are ClientApps in this process, each with its own context. Nodes in
    `silent` never answer a message with weights."""

    def __init__(self, app, folders, program, silent=()):
        from flwr.app import Context
        from types import SimpleNamespace
        self.app, self.silent, self.seen = app, silent, []
        self.run = SimpleNamespace(run_id=1)
        self.contexts = {i: Context(run_id=1, node_id=i, state=RecordDict(), run_config={},
                                    node_config={"site": folder, "program": program})
                         for i, folder in enumerate(folders, 1)}

    def get_node_ids(self):
        return list(self.contexts)

    def send_and_receive(self, messages, timeout=None):
        replies = []
        for message in messages:
            node = message.metadata.dst_node_id
            if node in self.silent and len(message.content.array_records) > 0:
                continue
            try:
                reply = self.app(copy.deepcopy(message), self.contexts[node])  # as after a wire
            except Exception as error:  # as a node does
                reply = Message(Error(code=0, reason=repr(error)), reply_to=message)
            self.seen.append(reply)
            replies.append(reply)
        return replies


CONFIG = {"name": "x", "steps": 4, "epochs": 0, "anchor": 0.0, "seconds": 60.0}


def start_arrays():
    return {"w": np.arange(6, dtype=np.float32).reshape(2, 3), "a": np.float32([1, 2, 3])}


def privacy(question):
    """The difference of the weights from the start after one round by a strategy of Flower around
    FedAvg, and the errors of sites. kind: the clipping, and where it is done."""
    from flwr.clientapp.mod import LocalDpMod, fixedclipping_mod
    name_task()
    count, kind = len(question["folders"]), question["kind"]
    mean = strategy.FedAvg(min_available_nodes=count, fraction_evaluate=0.0)
    numbers = {"noise_multiplier": question["noise"], "clipping_norm": question["norm"],
               "num_sampled_clients": count}
    if kind == "server":
        flower, mods = strategy.DifferentialPrivacyServerSideFixedClipping(mean, **numbers), []
    elif kind == "client":
        flower = strategy.DifferentialPrivacyClientSideFixedClipping(mean, **numbers)
        mods = [fixedclipping_mod]
    else:
        flower, mods = mean, [LocalDpMod(question["norm"], question["norm"], epsilon=1e9,
                                         delta=1e-5)]
    grid = Apps(make_app(mods), question["folders"], question["program"])
    np.random.seed(1)
    given = start_arrays()
    if question["large"]:
        given["w"] = np.zeros((100, 200), np.float32)
    try:
        result = flower.start(grid, record_of(given), num_rounds=1,
                              train_config=ConfigRecord(CONFIG))
    except ZeroDivisionError as error:
        return {"ended": str(error)}
    errors = [reply.error.reason for reply in grid.seen if reply.has_error()]
    if not result.arrays:
        return {"errors": errors, "moved": None}
    moved = {name: result.arrays[name].numpy() - array for name, array in given.items()}
    whole = np.concatenate([array.ravel() for array in moved.values()])
    return {"errors": errors, "names": list(result.arrays), "moved": whole[-9:].tolist(),
            "norm": float(np.linalg.norm(whole)), "deviation": float(whole.std())}


def secure(question):
    """The weights after a round by Flower's SecAgg+, with the weights that each site trained; and
    what the server saw of single sites."""
    from flwr.app import Context
    from flwr.client.mod import secaggplus_mod
    from flwr.common import ndarrays_to_parameters
    from flwr.server import LegacyContext, ServerConfig
    from flwr.server.strategy import FedAvg
    from flwr.server.workflow import DefaultWorkflow, SecAggPlusWorkflow
    from ringpipe_flower.mods import legacy_mod
    name_task()
    given, count = start_arrays(), len(question["folders"])
    config = {**CONFIG, "names": json.dumps(list(given))}
    grid = Apps(make_app([secaggplus_mod, legacy_mod]), question["folders"], question["program"],
                question["silent"])
    context = LegacyContext(
        Context(run_id=1, node_id=1, node_config={}, state=RecordDict(), run_config={}),
        config=ServerConfig(num_rounds=1),
        strategy=FedAvg(
            min_fit_clients=count, min_available_clients=count, fraction_evaluate=0.0,
            initial_parameters=ndarrays_to_parameters(list(given.values())),
            on_fit_config_fn=lambda number: {**config, "server-round": number}))
    DefaultWorkflow(fit_workflow=SecAggPlusWorkflow(
        num_shares=count, reconstruction_threshold=2, max_weight=1000.0, timeout=1.0))(
            grid, context)
    arrays = context.state.array_records["parameters"].to_numpy_ndarrays()
    seen = [array.size for reply in grid.seen if not reply.has_error()
            for record in reply.content.array_records.values()
            for array in record.to_numpy_ndarrays()]
    errors = [reply.error.reason for reply in grid.seen if reply.has_error()]
    return {"arrays": [array.tolist() for array in arrays], "seen": seen, "errors": errors}


def client(question):
    """Order, types, values and site of the reply to a message, by a stub of ringpipe that gives
    the weights back, in another order, plus 1."""
    from types import SimpleNamespace
    name_task()
    arrays = {"w": np.arange(6.0).reshape(2, 3), "a": np.float16([1, 2]), "n": np.array(7)}
    content = RecordDict({"arrays": record_of(arrays), "config": ConfigRecord({
        "name": "x", "server-round": 2, "steps": 4, "epochs": 0, "anchor": 0.0, "seconds": 60.0})})
    context = SimpleNamespace(node_config=question["node"])
    try:
        reply = train(Message(content, dst_node_id=5, message_type="train"), context)
    except (Refused, RuntimeError) as error:
        return str(error)
    found = {key: array.numpy() for key, array in reply.content["arrays"].items()}
    assert isinstance(reply.content["arrays"], ArrayRecord)
    return {"arrays": [[key, str(a.dtype), a.tolist()] for key, a in found.items()],
            "metrics": dict(reply.content["metrics"]), "about": dict(reply.content["about"])}


def record(question):
    """The folder of a run, killed after the rows of round 2 and before its state."""
    from ringpipe_flower.record import Record
    from ringpipe_flower.settings import read_settings
    from ringpipe_flower.tensors import write_weights
    folder = Path(question["folder"])
    start, out = str(folder / "start.safetensors"), str(folder / "out")
    first = {"w": np.float32([1, 2]), "a": np.float32([3]), "n": np.array(7)}
    write_weights(start, first)
    settings = read_settings({"start": start, "out": out})
    one = Record(settings)
    done, weights, state = one.open()
    assert (done, sorted(weights), state) == (0, sorted(first), {})
    one.add_rows([{"round": 1, "loss": 2.0}])
    one.close_round(1, {"w": np.float32([5, 6]), "n": np.array(7)}, {"m/1": np.float64([0.5])})
    one.add_rows([{"round": 2, "loss": 1.0}])
    with open(one.rows, "a", encoding="utf-8") as file:
        file.write('{"round": 2, "lo')
    done, weights, state = Record({**settings, "rounds": 9}).open()
    found = {"done": done, "weights": {key: array.tolist() for key, array in weights.items()},
             "state": [[key, str(a.dtype), a.tolist()] for key, a in state.items()],
             "rows": one.rows.read_text(encoding="utf-8"), "refused": []}
    (folder / "other.safetensors").write_bytes((folder / "out/weights.safetensors").read_bytes())
    for change in ({"rule": "fedavgm"}, {"start": str(folder / "other.safetensors")}):
        try:
            Record(read_settings({"start": start, "out": out, **change})).open()
        except Refused as error:
            found["refused"].append(str(error))
    return found


if __name__ == "__main__":
    asked = json.loads(sys.stdin.read())
    answer = {"rounds": rounds, "krum": krum, "adaptive": adaptive, "messages": messages,
              "nodes": nodes, "client": client, "record": record, "privacy": privacy,
              "secure": secure}
    print(json.dumps(answer[asked["do"]](asked)))
