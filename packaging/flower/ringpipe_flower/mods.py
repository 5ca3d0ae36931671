"""Mods between Flower and the ClientApp. An app of yours takes them: make_app([...])."""
import json

import flwr.compat.common.recorddict_compat as compat
from flwr.app import ConfigRecord, Message, MessageType, RecordDict
from flwr.common import Code, FitRes, Status, ndarrays_to_parameters, parameters_to_ndarrays

from .guards import Refused
from .rules import record_of
from .tensors import cast

NAMES = "names"  # key of config: the tensors' names as a JSON list


def legacy_mod(message, context, call_next):
    """FitIns and FitRes, the messages of Flower's workflows, become those of the ClientApp and
    back. They have tensors by position, so that config has the names. SecAgg+ needs it, because in
    Flower 1.42 it is a workflow only: make_app([secaggplus_mod, legacy_mod])."""
    if message.metadata.message_type != MessageType.TRAIN:
        return call_next(message, context)
    given = compat.recorddict_to_fitins(message.content, keep_input=True)
    config = dict(given.config)
    arrays = parameters_to_ndarrays(given.parameters)
    names = read_names(config.pop(NAMES, None), len(arrays))
    message.content = RecordDict({
        "arrays": record_of({name: cast(array) for name, array in zip(names, arrays)}),
        "config": ConfigRecord(config)})
    reply = call_next(message, context)
    if reply.has_error():
        return reply
    metrics = dict(reply.content["metrics"])
    trained = [reply.content["arrays"][name].numpy() for name in names]
    result = FitRes(Status(Code.OK, ""), ndarrays_to_parameters(trained),
                    metrics.pop("num-examples"), {**metrics, **reply.content["about"]})
    return Message(compat.fitres_to_recorddict(result, keep_input=False), reply_to=message)


def read_names(text, count):
    try:
        names = json.loads(text)
    except (TypeError, ValueError):
        names = None
    if (not isinstance(names, list) or len(names) != count or len(set(map(str, names))) != count
            or not all(isinstance(name, str) for name in names)):
        raise Refused(f"config: key '{NAMES}': expected a JSON list of {count} different names")
    return names
