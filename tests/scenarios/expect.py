"""What a scenario expects of a run: each key is one comparison."""
import json
import re

EXPECT_KEYS = {"exit", "said", "unsaid", "log", "never", "counts", "summary", "plan", "run",
               "trace", "untraced", "undisturbed", "steps", "predicted"}
BOUNDS = {"at_least": lambda found, bound: found >= bound,
          "at_most": lambda found, bound: found <= bound}


def check_keys(where, found, known):
    """A key that nothing reads is a mistake of who wrote it."""
    if not isinstance(found, dict):
        raise ValueError(f"{where}: expected a map, found {found!r}")
    unknown = set(found) - known
    if unknown:
        raise ValueError(f"{where}: unknown keys {sorted(unknown)}; known are {sorted(known)}")


def find(root, path):
    """The value at a dotted path; `*` stands for each element of a list, a number for one."""
    key, _, rest = path.partition(".")
    if not key:
        return root
    if key == "*":
        return [find(one, rest) for one in root]
    if isinstance(root, list):
        position = int(key)
        return find(root[position], rest) if -len(root) <= position < len(root) else None
    return find(root[key], rest) if isinstance(root, dict) and key in root else None


def fits(found, wanted):
    """A text is a regular expression; a map has bounds; all else has to be equal."""
    if isinstance(wanted, str):
        return found is not None and re.search(wanted, str(found)) is not None
    if isinstance(wanted, dict):
        check_keys("bounds", wanted, set(BOUNDS))
        is_number = isinstance(found, (int, float)) and not isinstance(found, bool)
        return is_number and all(BOUNDS[key](found, bound) for key, bound in wanted.items())
    return type(found) is type(wanted) and found == wanted


def check_fields(name, root, wanted):
    return [f"{name}: {path} is {find(root, path)!r}, expected {value!r}"
            for path, value in wanted.items() if not fits(find(root, path), value)]


def is_like(line, wanted):
    return all(fits(line.get(key), value) for key, value in wanted.items())


def check_log(lines, expected):
    """`log`: events in this order, others may lie between; `never`: none is like these."""
    wrong, at = [], 0
    for wanted in expected.get("log", []):
        later = [i for i in range(at, len(lines)) if is_like(lines[i], wanted)]
        if not later:
            wrong.append(f"log: no {wanted} after the first {at} lines")
            break
        at = later[0] + 1
    wrong += [f"log: there is {line}, like {wanted}" for wanted in expected.get("never", [])
              for line in lines if is_like(line, wanted)]
    for event, count in expected.get("counts", {}).items():
        found = sum(line.get("event") == event for line in lines)
        if not fits(found, count):
            wrong.append(f"log: {found} events {event}, expected {count}")
    return wrong


def check_texts(name, found, wanted, unwanted):
    """Regular expressions in order, and some that nothing fits."""
    wrong, at = [], 0
    for pattern in wanted:
        match = re.compile(pattern).search(found, at)
        if not match:
            wrong.append(f"{name}: no /{pattern}/ in the rest of it")
            break
        at = match.end()
    return wrong + [f"{name}: there is /{pattern}/" for pattern in unwanted
                    if re.search(pattern, found)]


def check_steps(lines, last):
    steps = [line["step"] for line in lines if "loss" in line and "event" not in line]
    wanted = list(range(1, len(steps) + 1 if last is True else last + 1))
    return [] if steps == wanted and steps else [f"steps: not 1 to {len(wanted)} in order: {steps}"]


def check_prediction(summary, within):
    found = summary.get("prediction", {})
    step_s, measured_s = found.get("step_s", 0), found.get("measured_step_s", 0)
    if step_s > 0 and abs(measured_s / step_s - 1) <= within:
        return []
    return [f"a step took {measured_s} s, {step_s} s were predicted, expected within {within}"]


def read_json(path):
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def check_part(expected, folder, done, whole):
    """What is wrong, a line each. `done`: the process; `whole`: weights to compare, or None."""
    check_keys("expect", expected, EXPECT_KEYS)
    wrong = []
    if done.returncode != expected.get("exit", 0):
        wrong.append(f"exit code {done.returncode}, expected {expected.get('exit', 0)}")
    log = folder / "log.jsonl"
    text = log.read_text(encoding="utf-8") if log.exists() else ""
    lines = [json.loads(line) for line in text.splitlines()]
    wrong += check_log(lines, expected)
    wrong += check_texts("said", done.stderr, expected.get("said", []), expected.get("unsaid", []))
    wrong += check_texts("trace", done.stdout, expected.get("trace", []),
                         expected.get("untraced", []))
    for name in ("summary", "plan"):
        wrong += check_fields(name, read_json(folder / f"{name}.json"), expected.get(name, {}))
    run = folder / "run.yaml"
    wrong += check_texts("run.yaml", run.read_text(encoding="utf-8") if run.exists() else "",
                         expected.get("run", []), [])
    if "predicted" in expected:
        wrong += check_prediction(read_json(folder / "summary.json"), expected["predicted"])
    if "steps" in expected:
        wrong += check_steps(lines, expected["steps"])
    if whole is not None and (folder / "weights.safetensors").read_bytes() != whole:
        wrong.append("other weights than those of the undisturbed run")
    return wrong
