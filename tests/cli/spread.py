"""A plan whose stages are spread over several boards, made from the plan of a row of boards."""
import copy


def holders(plan, shares):
    """(node, stage, [first, end)) of every board, stage after stage."""
    found = []
    for stage, bounds in enumerate(shares):
        for share in zip(bounds, bounds[1:]):
            found.append((str(len(found)), stage, share))
    return found


def meet(a, b):
    return a[0] < b[1] and b[0] < a[1]


def spread(plan, shares, window=16):
    """Stage k goes to as many boards as shares[k] has gaps: [0, 0.5, 1] is two halves.

    Every edge gets the same window; a plan with slots of its own is not needed.
    """
    out = copy.deepcopy(plan)
    held = holders(plan, shares)
    last = len(shares) - 1
    tensors = [stage["layers"][-1] for stage in plan["stages"]]
    inputs = next(edge["codec"] for edge in plan["edges"] if edge["carries"] == "input")
    slots = -(-plan["batch"] // plan["microbatch"])
    out["nodes"] = [
        {"name": node, "executor": "opencl", "memory_bytes": 0,
         "holds": [{"stage": stage, "role": "both", "samples": list(share), "slots": slots}]}
        for node, stage, share in held]
    out["edges"] = []

    def add(source, target, stage, carries, names=()):
        out["edges"].append({"from": source, "to": target, "stage": stage, "carries": carries,
                             "tensors": list(names),
                             "codec": inputs if carries == "input" else "f32",
                             "window": 2 if carries == "input" else window})

    for stage in range(last + 1):
        here = [h for h in held if h[1] == stage]
        below = [h for h in held if h[1] == stage - 1 and stage > 0]
        above = [h for h in held if h[1] == stage + 1]
        for node, _, share in here:
            if stage == 0:
                add("host", node, stage, "input")
            for other, _, its in below:
                if meet(its, share):
                    add(other, node, stage, "activation", [tensors[stage - 1]])
            if stage == last:
                add("host", node, stage, "label")
            for other, _, its in above:
                if meet(its, share):
                    add(other, node, stage, "gradient", [tensors[stage]])
            for other, _, _ in here:
                if other != node:
                    add(other, node, stage, "weight_gradient")
        tied = {s for pair in plan.get("ties", ()) if stage in pair for s in pair} - {stage}
        for node, other, _ in held:  # the first board of the stage sends its row of gradients
            if other in tied:
                add(here[0][0], node, stage, "tied_gradient")
    return out
