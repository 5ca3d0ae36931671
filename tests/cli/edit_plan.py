"""Changes to the JSON of a plan: stages that begin elsewhere, stages on other nodes."""


def recut(plan, cut):
    """The same layers, stages that begin elsewhere."""
    layers = [layer for stage in plan["stages"] for layer in stage["layers"]]
    first = 0
    for stage, end in zip(plan["stages"], [layers.index(name) for name in cut] + [len(layers)]):
        stage["layers"] = layers[first:end]
        first = end
    plan["cut"] = cut
    for edge in plan["edges"]:
        made_by = {"activation": edge["stage"] - 1, "gradient": edge["stage"]}
        if edge["carries"] in made_by:
            edge["tensors"] = [plan["stages"][made_by[edge["carries"]]]["layers"][-1]]


def move(plan, order):
    """Stage k goes to node order[k]."""
    name = [node["name"] for node in plan["nodes"]]
    names = {name[k]: name[order[k]] for k in range(len(order))}
    for edge in plan["edges"]:
        for end in ("from", "to"):
            edge[end] = names.get(edge[end], edge[end])
    holds = [node["holds"] for node in plan["nodes"]]
    for k, node in enumerate(order):
        plan["nodes"][node]["holds"] = holds[k]
