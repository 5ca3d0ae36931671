"""The half of test_flower.py that needs flwr; it runs in a Python that has it. What it is asked
comes as JSON on standard input, the answer leaves on standard output."""
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "packaging/flower"))

import numpy as np  # noqa: E402
from flwr.serverapp import strategy  # noqa: E402

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

    def __init__(self, name, error=""):
        self.metadata = type("Metadata", (), {"src_node_id": 5})
        self.error = type("Error", (), {"reason": error})
        self.content = {"about": {"site": name}, "metrics": {}}

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


def messages(_):
    """What a round says to nodes that are away, twice there, failed or late; and the order."""
    from flwr.supercore.task_identity import TaskIdentity
    TaskIdentity.run_id = TaskIdentity.node_id = TaskIdentity.task_id = 1  # for new messages
    weights = {"w": np.zeros(2, np.float32)}
    settings = {"sites": 2, "wait": 0.01}
    found = []
    for replies in ([Reply("b"), Reply("a")], [Reply("a")], [Reply("a"), Reply("a")],
                    [Reply("a"), Reply("b", "exit code 2: no tensor")],
                    [Reply("../a"), Reply("b")]):
        try:
            some = ask(Grid(2, replies), settings, "train", weights, {"server-round": 3}, {"c"})
            found.append([name for name, _ in some])
        except Refused as error:
            found.append(str(error))
    for nodes in (1, 3):
        try:
            wait_for_nodes(Grid(nodes, []), 2, 0, {"a"})
        except Refused as error:
            found.append(str(error))
    return found


def client(question):
    """Order, types, values and site of the reply to a message, by a stub of ringpipe that gives
    the weights back, in another order, plus 1."""
    from types import SimpleNamespace

    from flwr.app import ArrayRecord, ConfigRecord, Message, RecordDict
    from flwr.supercore.task_identity import TaskIdentity
    from ringpipe_flower.client import train
    TaskIdentity.run_id = TaskIdentity.node_id = TaskIdentity.task_id = 1
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
            "metrics": dict(reply.content["metrics"]), "site": reply.content["about"]["site"]}


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
              "client": client, "record": record}
    print(json.dumps(answer[asked["do"]](asked)))
