#!/usr/bin/env python3
"""Lists in the documents, written from the registries of the built program.

generate.py            writes them
generate.py --check    changes nothing; says which differ, exit 1

A list stands between two comments, `generated: NAME` and `end`. What is not in a list is written
by hand. RP_BUILD_DIR: where bin/ringpipe is (default: build)."""
import json
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent
BUILD = Path(os.environ.get("RP_BUILD_DIR", SOURCE / "build"))
COLUMNS = 100


def registries():
    """{list: [{"name": ..., "about": ...}]}, the names of the lists among them."""
    words = [str(BUILD / "bin" / "ringpipe"), "list", "--format", "json"]
    lists = json.loads(subprocess.run(words, check=True, capture_output=True).stdout)
    del lists["version"]
    lists["lists"] = [{"name": name} for name in lists]
    return lists


def names(entries):
    return [entry["name"] for entry in entries]


# ---- manual pages -------------------------------------------------------------------------------


def man_names(entries, macro="Cm", end=" ,"):
    """`.Cm a , b No or Cm c`: in a sentence."""
    *some, last = names(entries)
    return [f".{macro} {' , '.join(some)} No or {macro} {last}{end}"]


def man_keys(entries):
    """A kind and its keys; kinds with the same keys follow each other on one line."""
    lines = []
    for i, entry in enumerate(entries):
        keys = entry.get("keys", "")
        if i > 0 and keys == entries[i - 1].get("keys", ""):
            lines[-2] += f" , {entry['name']}"
            continue
        lines += [f".It Cm {entry['name']}", ".Cm " + keys.replace(", ", " , ") if keys else "none"]
    return lines


def man_about(entries):
    lines = []
    for entry in entries:
        lines += [f".It Cm {entry['name']}", entry["about"] + "."]
    return lines


def man_links(entries):
    return [".Bl -tag -width wifi-walking-away -compact"] + man_about(entries) + [".El"]


def man_faults(entries):
    lines = []
    for entry in entries:
        keys = [key for key in entry["keys"].split(", ") if key]
        if entry["unit"]:
            keys.append("amount")
        lines.append(" ".join([f".It Cm {entry['name']}"] + (["Pq"] + keys if keys else [])))
        lines.append(entry["about"] + (f"; amount: {entry['unit']}, at most {entry['most']:g}."
                                       if entry["unit"] else "."))
    return lines


def man_list(entries):
    return [".Pq " + " ".join(names(entries))]


def man_glossary(lists):
    """The first table of GLOSSARY.md: a word, what it means, the source where it has one."""
    del lists
    text = (SOURCE / "firmware/GLOSSARY.md").read_text(encoding="utf-8")
    lines = []
    for row in text.split("\n\n")[2].split("\n")[2:]:
        cells = row.replace("`", "").strip("|").split("|")
        word, meaning, source = (cell.strip() for cell in cells)
        lines += [f".It {word}", meaning + (f" [{source}]" if source else "")]
    return lines


# ---- completion ---------------------------------------------------------------------------------


def bash_options(lists):
    lines = []
    for verb in lists["verbs"]:
        if verb["options"]:
            options = " ".join("--" + option for option in verb["options"])
            lines.append(f"    {verb['name']}) echo {options} ;;")
    return lines


def bash_names(lists):
    lines = []
    for name in ("verbs", "schedules", "fetch", "lists"):
        words = textwrap.wrap("echo " + " ".join(names(lists[name])), COLUMNS - 14)
        lines += [f"    {name})", "        " + " \\\n            ".join(words), "        ;;"]
    return lines


def zsh_options(lists):
    lines = []
    for verb in lists["verbs"]:
        if verb["options"]:
            options = " ".join("--" + option for option in verb["options"])
            words = textwrap.wrap(f"reply=({options})", COLUMNS - 14)
            lines += [f"    {verb['name']})", "        " + "\n            ".join(words),
                      "        ;;"]
    return lines


def zsh_names(lists):
    lines = []
    for name in ("verbs", "schedules", "fetch", "lists"):
        words = textwrap.wrap("reply=(" + " ".join(names(lists[name])) + ")", COLUMNS - 14)
        lines += [f"    {name})", "        " + "\n            ".join(words), "        ;;"]
    return lines


def fish_verbs(lists):
    verbs = " ".join(names(lists["verbs"]))
    return [f"complete -c ringpipe -n __ringpipe_no_verb -a '{verbs}'"]


def fish_options(lists):
    """What follows an option is its value, but for those that have none."""
    bare = {"confusion", "dry-run", "help", "lane", "quiet", "trace", "verbose", "whole", "yes",
            "system", "ask", "token", "open", "new-key", "no-wait", "overlay", "all", "follow",
            "force"}
    values = {"format": "text json svg", "split": "test validation train",
              "board": "(__ringpipe_boards)", "keys": "(__fish_complete_directories)"}
    lines = []
    for verb in lists["verbs"]:
        for option in verb["options"] + ["help"]:
            value = "" if option in bare else " -r"
            value = f" -x -a '{values[option]}'" if option in values else value
            lines.append(f"complete -c ringpipe -n '__ringpipe_verb_is {verb['name']}' "
                         f"-l {option}{value}")
    return lines


def fish_names(lists):
    conditions = {"schedules": "__ringpipe_verb_is draw", "lists": "__ringpipe_verb_is list",
                  "fetch": "__ringpipe_verb_is data; and __ringpipe_before_is fetch"}
    return [f"complete -c ringpipe -n '{condition}' -a '{' '.join(names(lists[name]))}'"
            for name, condition in conditions.items()]


# ---- METHODS ------------------------------------------------------------------------------------


def methods_table(lists):
    lines = ["| kind | steps | weights | average | source |", "|---|---|---|---|---|"]
    for kind in lists["schedules"]:
        steps = "flushed" if kind["flushed"] else "overlap"
        lines.append(f"| `{kind['name']}` | {steps} | {kind['weights']} | {kind['average']} | "
                     f"{kind['source']} |")
    return lines


# ---- README -------------------------------------------------------------------------------------


def boards_table(lists):
    lines = ["| profile | board | OpenCL by | tier | console | how it gets there |",
             "|---|---|---|---|---|---|"]
    for board in sorted(lists["boards"], key=lambda board: board["tier"]):
        what = [board["about"].removeprefix("any ")]
        what += [board[key] for key in ("soc", "memory", "network") if board[key] != "any"]
        packages = " ".join(f"`{package}`" for package in board["packages"].split())
        opencl = f"{board['opencl']} ({packages})" if packages else board["opencl"]
        lines.append(f"| `{board['name']}` | {'; '.join(what)} | {opencl} | {board['tier']}, "
                     f"{board['checked']} | {board['console']} | {board['flash']} |")
    return lines


FILES = {
    "README.md": {"boards": boards_table},
    "host/cli/man/ringpipe.1": {"lists": lambda all: man_names(all["lists"], end=" .")},
    "host/cli/man/ringpipe-run.5": {
        "models": lambda all: man_list(all["models"]),
        "data": lambda all: man_about(all["data"]),
        "losses": lambda all: man_about(all["losses"]),
        "optimizers": lambda all: man_keys(all["optimizers"]),
        "lr-schedules": lambda all: man_names(all["lr-schedules"]),
        "schedules": lambda all: man_about(all["schedules"]),
        "weights": lambda all: man_names(all["weights"], end=""),
        "faults": lambda all: man_faults(all["faults"]),
        "links": lambda all: man_links(all["links"]),
    },
    "host/cli/man/ringpipe-model.5": {"layers": lambda all: man_keys(all["layers"])},
    "host/cli/man/ringpipe-glossary.7": {"glossary": man_glossary},
    "host/cli/completion/ringpipe.bash": {"options": bash_options, "names": bash_names},
    "host/cli/completion/_ringpipe": {"options": zsh_options, "names": zsh_names},
    "host/cli/completion/ringpipe.fish": {
        "verbs": fish_verbs, "options": fish_options, "names": fish_names},
    "firmware/sched/METHODS.md": {"schedules": methods_table},
}
BLOCK = re.compile(r"^([^\n]*generated: ([\w-]+)[^\n]*\n)(.*?)(^[^\n\w]*end\W*$)", re.M | re.S)


def regenerate(text, writers, lists):
    """The text with its lists as they should be; a list that is missing or unknown is an error."""
    found = [match.group(2) for match in BLOCK.finditer(text)]
    if sorted(found) != sorted(writers):
        raise ValueError(f"has the lists {sorted(found)}, expected {sorted(writers)}")

    def write(match):
        return match.group(1) + "\n".join(writers[match.group(2)](lists)) + "\n" + match.group(4)

    return BLOCK.sub(write, text)


def prove_check():
    """A wrong list is seen, and so is one that nobody writes."""
    writers = {"x": lambda all: names(all["x"])}
    text = "# generated: x\na\n# end\n"
    assert regenerate(text, writers, {"x": [{"name": "a"}]}) == text
    assert regenerate(text, writers, {"x": [{"name": "a"}, {"name": "b"}]}) != text
    for wrong in ("no list", text + text.replace("x", "y")):
        try:
            regenerate(wrong, writers, {"x": []})
        except ValueError:
            continue
        raise AssertionError(wrong)


def main():
    check = sys.argv[1:] == ["--check"]
    if sys.argv[1:] and not check:
        sys.exit(__doc__)
    prove_check()
    lists = registries()
    differ = 0
    for name, writers in FILES.items():
        path = SOURCE / name
        old = path.read_text(encoding="utf-8")
        new = regenerate(old, writers, lists)
        if new != old:
            differ += 1
            print(f"{name} {'is not as the registries are' if check else 'is written'}")
            if not check:
                path.write_text(new, encoding="utf-8")
    if check and differ:
        print("run: cmake --build build --target generate")
    return 1 if check and differ else 0


if __name__ == "__main__":
    sys.exit(main())
