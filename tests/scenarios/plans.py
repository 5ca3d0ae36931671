"""Plans and profiles that scenarios run by."""
import json
import sys
from pathlib import Path

from expect import check_keys

sys.path.append(str(Path(__file__).resolve().parent.parent / "cli"))
from edit_plan import move, recut  # pylint: disable=wrong-import-position
from spread import spread  # pylint: disable=wrong-import-position

PASSES = {"forward": 1, "backward": 2, "backward_input": 1, "backward_weight": 1}


def write_plan(source, target, change):
    """`cut`, `order` of the boards, `window` of every edge, `shares` of the boards of each stage,
    `sizes` of each stage; `set`: settings that the plan was made with."""
    check_keys("plan", change, {"set", "cut", "order", "window", "shares", "sizes"})
    plan = json.loads(source.read_text(encoding="utf-8"))
    if "cut" in change:
        recut(plan, change["cut"])
    if "order" in change:
        move(plan, change["order"])
    for edge in plan["edges"]:
        edge["window"] = change.get("window", edge["window"])
    for stage, sizes in zip(plan["stages"], change.get("sizes", [])):
        stage["forward"], stage["backward"] = sizes
    plan = spread(plan, change["shares"]) if "shares" in change else plan
    target.write_text(json.dumps(plan), encoding="utf-8")


def points(op_s, sample_s):
    return [{"samples": n, "seconds": op_s + sample_s * n, "spread": 0} for n in (1, 4, 16)]


def write_profile(target, what):
    """Seconds of a sample by board, forward in each layer: one number, or one for each; `op`: of
    an op in each layer, whatever its size. `digest` is the model's, which the message names that
    refuses another one."""
    check_keys("profile", what, {"digest", "layers", "boards", "op"})
    boards = []
    for name, seconds in what["boards"].items():
        costs = seconds if isinstance(seconds, list) else [seconds] * len(what["layers"])
        layers = [{"name": layer, "update_s": 0,
                   **{kind: points(what.get("op", 0), cost * times)
                      for kind, times in PASSES.items()}}
                  for layer, cost in zip(what["layers"], costs)]
        boards.append({"name": str(name), "device": "simulated", "like": str(name),
                       "memory_bytes": 1 << 32, "device_memory": 2, "layers": layers})
    layers = [{"name": layer, "forward_s": 0, "backward_s": 0} for layer in what["layers"]]
    target.write_text(json.dumps({"version": 2, "model_digest": what["digest"], "microbatch": 1,
                                  "layers": layers, "boards": boards}), encoding="utf-8")
