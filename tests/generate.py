#!/usr/bin/env python3
"""Lists in the documents, written from the registries of the built program.

generate.py            writes them
generate.py --check    changes nothing; says which differ, exit 1

A list stands between two comments, `generated: NAME` and `end`. What is not in a list is written
by hand. RP_BUILD_DIR: where bin/ringpipe is (default: build)."""
import itertools
import json
import os
import re
import subprocess
import sys
import textwrap
from functools import partial
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent
BUILD = Path(os.environ.get("RP_BUILD_DIR", SOURCE / "build"))
COLUMNS = 100
MAN_COLUMNS = 78


def registries():
    """{list: [{"name": ..., "about": ...}]}, the names of the lists among them."""
    words = [str(BUILD / "bin" / "ringpipe"), "list", "--format", "json"]
    lists = json.loads(subprocess.run(words, check=True, capture_output=True).stdout)
    del lists["version"]
    lists["lists"] = [{"name": name} for name in lists]
    lists["groups"] = [verb for verb in lists["verbs"] if not verb["options"]]
    lists["agent"] = agent_options()
    return lists


def agent_options():
    """As those of a verb; the agent has no lists, so that they are read from its help text."""
    words = [str(BUILD / "bin" / "ringpipe-agent"), "--help"]
    text = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    row = re.compile(r"^ {2}(?:-(\w),| {3}) --([\w-]+)(?: (\S+))?\s((?:.*\n {30}.*)*.*)", re.M)
    return [{"name": name, "value": value, "letter": letter, "about": " ".join(about.split())}
            for letter, name, value, about in row.findall(text)]


def names(entries):
    return [entry["name"] for entry in entries]


# ---- manual pages -------------------------------------------------------------------------------


def man_names(entries, macro="Cm", end=" ,"):
    """`.Cm a , b No or Cm c`: in a sentence."""
    *some, last = names(entries)
    return [f".{macro} {' , '.join(some)} No or {macro} {last}{end}"]


def man_text(text):
    """Text lines, which `mandoc -T lint` wants to be short."""
    return textwrap.wrap(text, MAN_COLUMNS, break_on_hyphens=False, break_long_words=False)


def man_keys(entries):
    """A kind and its keys; kinds with the same keys follow each other on one line. After some of
    them there is an empty line."""
    rows = []
    for i, entry in enumerate(entries):
        keys = entry.get("keys", "")
        if i > 0 and keys == entries[i - 1].get("keys", ""):
            rows[-1][0] += f" , {entry['name']}"
        else:
            rows.append([f".It Cm {entry['name']}",
                         ".Cm " + keys.replace(", ", " , ") if keys else "none"])
    lines = []
    for i, row in enumerate(rows):
        lines += [".El", ".Pp", ".Bl -tag -width Ds -compact"] * (i > 0 and i % 10 == 0) + row
    return lines


def man_about(entries):
    lines = []
    for entry in entries:
        lines += [f".It Cm {entry['name']}"] + man_text(entry["about"] + ".")
    return lines


def man_events(entries):
    """A kind, its event and its facts."""
    lines = []
    for entry in entries:
        lines.append(f".It Cm {entry['name']} Pq Cm {entry['about']}")
        lines.append(".Cm " + entry["keys"].replace(" ", " , ") if entry["keys"] else "none")
    return lines


def man_facts(lists):
    """Facts that some event has."""
    used = set(" ".join(entry["keys"] for entry in lists["events"]).split())
    return man_about([fact for fact in lists["facts"] if fact["name"] in used])


def man_links(entries):
    return [".Bl -tag -width wifi-walking-away -compact"] + man_about(entries) + [".El"]


def man_faults(entries):
    lines = []
    for entry in entries:
        keys = [key for key in entry["keys"].split(", ") if key]
        if entry["unit"]:
            keys.append("amount")
        lines.append(" ".join([f".It Cm {entry['name']}"] + (["Pq"] + keys if keys else [])))
        lines += man_text(entry["about"] + (f"; amount: {entry['unit']}, at most "
                                            f"{entry['most']:g}." if entry["unit"] else "."))
    return lines


def man_list(entries):
    return man_text(", ".join(names(entries)) + ".")


def man_glossary(lists):
    """The first table of GLOSSARY.md: a word, what it means, the source where it has one."""
    del lists
    text = (SOURCE / "firmware/GLOSSARY.md").read_text(encoding="utf-8")
    lines = []
    for row in text.split("\n\n")[2].split("\n")[2:]:
        cells = row.replace("`", "").strip("|").split("|")
        word, meaning, source = (cell.strip() for cell in cells)
        meaning = meaning.removesuffix(".") + (f" [{source}]." if source else ".")
        lines += [f".It {word}"]
        for sentence in re.split(r"(?<=[.?]) ", meaning):
            lines += textwrap.wrap(sentence, 80, break_on_hyphens=False)
    return lines


def man_words(text):
    """`[NAME [ADDRESS]]`, words of a verb: the optional ones stand at the end."""
    needed, _, rest = text.replace("...", " ...").replace("|", " | ").partition("[")
    lines = [f".Ar {needed.strip()}"] if needed.strip() else []
    optional = rest.replace("[", "Op Ar ").replace("]", "").strip()
    return lines + ([f".Op Ar {optional}"] if optional else [])


def man_value(option):
    """The value of an option in a line of macros."""
    words = option.get("value", "").split("|")
    return " Ns | Ns ".join(f"{'Cm' if word.islower() and '://' not in word else 'Ar'} {word}"
                            for word in words if word)


def man_option(option):
    return f"Fl Fl {option['name']} {man_value(option)}".strip()


# A page describes the verb of its name and the verbs of its group; this one also two others.
MAN = "host/cli/man"
SLOTS = ("slots", "validate", "revert")
# ringpipe(1) lists every verb under one of these.
PURPOSES = {
    "verbs-train": ("train", "resume", "eval", "predict", "round", "ps", "log", "view",
                    "stop"),
    "verbs-compare": ("plan", "profile", "sim", "lab", "draw"),
    "verbs-boards": ("boards", "doctor", "tune", "keys", "image", "flash"),
    "verbs-update": ("bundle", "push", "slots", "validate", "revert"),
    "verbs-files": ("import", "export", "data", "inspect", "list"),
}


def page_of(verb):
    """The manual page that describes a verb: `boards list` is in ringpipe-boards(1)."""
    name = verb["name"].split()[0]
    return f"ringpipe-{SLOTS[0] if name in SLOTS else name}"


def verbs_of(lists, page):
    return [verb for verb in lists["verbs"] if verb["options"] and page_of(verb) == page]


def man_synopsis(lists, page):
    """Options that exclude each other stand in one pair of brackets."""
    lines = []
    for verb in verbs_of(lists, page):
        lines += [".Pp"] if lines else []
        lines += [f".Nm ringpipe {verb['name']}"] + man_words(verb["words"])
        own = [option for option in verb["options"] if option["name"] not in COMMON]
        for _, some in itertools.groupby(own, lambda one: one["group"] or one["name"]):
            some = list(some)
            macro = "." if some[0]["required"] else ".Op "
            lines.append(macro + " | ".join(man_option(option) for option in some))
    return lines


def man_options(lists, page):
    """Each option once; in a group, with the verbs that have it if others lack it. The name of an
    option may have several meanings."""
    rows = {}
    verbs = verbs_of(lists, page)
    for verb in verbs:
        for option in verb["options"]:
            letter = f"Fl {option['letter']} , " if "letter" in option else ""
            key = (option["name"], letter + man_option(option), option["about"])
            rows.setdefault(key, []).append(verb["name"].split()[-1])
    lines = []
    for (name, head, about), some in sorted(rows.items()):
        if name not in COMMON:
            lines += [f".It {head}"] + man_text(about + ".")
            lines += [".Pq Cm " + " , ".join(some)] if len(some) < len(verbs) else []
    return lines


def man_verbs(group):
    """Rows of ringpipe(1): the verbs of a group of purposes, in the order of their table."""
    def write(lists):
        rows = {}
        for verb in lists["verbs"]:
            name = verb["name"].split()[0]
            about = verb["about"] + "."
            if name in PURPOSES[group]:
                rows.setdefault(name, "\n".join([f".It Xr {page_of(verb)} 1"] + man_text(about)))
        return [line for name in PURPOSES[group] for line in rows[name].split("\n")]
    return write


# ---- completion ---------------------------------------------------------------------------------

COMMON = ("quiet", "verbose", "help")
# What a value of this word may be: words, or files with this ending.
VALUES = {"tcp://HOST:PORT": "tcp://", "KEY.PATH=VALUE":
          "model= data. ring. train. loss= optimizer. schedule= cut=",
          "ADDRESS": "https:// http:// file://"}


def value_kind(option):
    """("none", ""), ("words", "a b"), ("files", "yaml"), ("dirs", ""), ("boards", "") or
    ("any", ""): what may be completed after this option; a flag has none."""
    value = option.get("value") or ""
    some = " ".join(word for word in value.split("|") if word.islower())
    kinds = {"": "none", "DIR": "dirs", "BOARD": "boards", "FILE": "files"}
    if value in kinds:
        return kinds[value], "*" if value == "FILE" else ""
    if value in VALUES or (some and "://" not in some):
        return "words", VALUES.get(value, some)
    ending = re.search(r"\w\.(\w+)$", value)
    return ("files", ending[1]) if ending else ("any", "")


def option_values(lists):
    """{option: {kind: [verbs]}}; a kind of most verbs stands last."""
    found = {}
    for verb in lists["verbs"] + [{"name": "ringpipe-agent", "options": lists["agent"]}]:
        for option in verb["options"]:
            kinds = found.setdefault(option["name"], {})
            kinds.setdefault(value_kind(option), []).append(verb["name"])
    return {name: dict(sorted(kinds.items(), key=lambda one: len(one[1])))
            for name, kinds in sorted(found.items()) if set(kinds) != {("none", "")}}


def shell_values(lists, commands):
    """Branches of a case over "VERB --OPTION" in bash and zsh."""
    lines = []
    for name, kinds in option_values(lists).items():
        for i, ((kind, what), verbs) in enumerate(kinds.items()):
            last = i + 1 == len(kinds)
            heads = [f'*" --{name}"'] if last else [f'"{verb} --{name}"' for verb in verbs]
            lines.append(f"    {' | '.join(heads)}) {commands[kind].format(what)} ;;")
    return lines


def bash_values(lists):
    return shell_values(lists, {
        "none": "return 1", "any": ":", "words": '_ringpipe_words "{}" "$3"',
        "files": '_ringpipe_files "{}" "$3"', "dirs": '_ringpipe_dirs "$3"',
        "boards": '_ringpipe_words "$(_ringpipe_names boards "")" "$3"'})


def zsh_values(lists):
    return shell_values(lists, {
        "none": "return 1", "any": "", "words": "compadd -S '' -- {}",
        "files": "_files -g '*.{}'", "dirs": "_files -/",
        "boards": "_ringpipe_boards && compadd -- $reply"})


def all_verbs(lists):
    """[(name, ["--option", ...])], the agent among them."""
    verbs = lists["verbs"] + [{"name": "ringpipe-agent", "options": lists["agent"]}]
    return [(verb["name"], ["--" + option["name"] for option in verb["options"]])
            for verb in verbs if verb["options"]]


def name_lists(lists):
    """{name: its words}; those of a group of verbs are its verbs."""
    found = {"verbs": [name for name in names(lists["verbs"]) if " " not in name]}
    found.update((name, names(lists[name])) for name in ("schedules", "fetch", "lists"))
    for group in names(lists["groups"]):
        found[group] = [verb.partition(" ")[2] for verb in names(lists["verbs"])
                        if verb.startswith(group + " ")]
    return found


def bash_options(lists):
    return [f"    \"{name}\") echo {' '.join(options)} ;;" for name, options in all_verbs(lists)]


def bash_names(lists):
    lines = []
    for name, known in name_lists(lists).items():
        words = textwrap.wrap("echo " + " ".join(known), COLUMNS - 14)
        lines += [f"    {name})", "        " + " \\\n            ".join(words), "        ;;"]
    return lines


def zsh_options(lists):
    lines = []
    for name, options in all_verbs(lists):
        words = textwrap.wrap(f"reply=({' '.join(options)})", COLUMNS - 14,
                              break_on_hyphens=False)
        lines += [f"    \"{name}\")", "        " + "\n            ".join(words), "        ;;"]
    return lines


def zsh_names(lists):
    lines = []
    for name, known in name_lists(lists).items():
        words = textwrap.wrap(f"reply=({' '.join(known)})", COLUMNS - 14)
        lines += [f"    {name})", "        " + "\n            ".join(words), "        ;;"]
    return lines


def fish_verbs(lists):
    known = name_lists(lists)
    groups = names(lists["groups"])
    lines = [f"set -g __ringpipe_groups {' '.join(groups)}",
             f"complete -c ringpipe -n __ringpipe_no_verb -a '{' '.join(known['verbs'])}'"]
    return lines + [f"complete -c ringpipe -n '__ringpipe_verb_is {group}' "
                    f"-a '{' '.join(known[group])}'" for group in groups]


def fish_option(option):
    kind, what = value_kind(option)
    about = option["about"].replace("\\", "\\\\").replace("'", "\\'")
    values = {"none": "", "any": " -x", "words": f" -x -a '{what}'",
              "files": f" -r -k -a '(__fish_complete_suffix .{what})'" if what != "*" else " -r -F",
              "dirs": " -x -a '(__fish_complete_directories)'",
              "boards": " -x -a '(__ringpipe_boards)'"}
    letter = f" -s {option['letter']}" if option.get("letter") else ""
    return f"-l {option['name']}{letter}{values[kind]} -d '{about}'"


def fish_options(lists):
    """What follows an option is its value, but for those that have none."""
    lines = [f"complete -c ringpipe -n '__ringpipe_verb_is \"{verb['name']}\"' "
             f"{fish_option(option)}" for verb in lists["verbs"] for option in verb["options"]]
    return lines + [f"complete -c ringpipe-agent {fish_option(option)}"
                    for option in lists["agent"]]


def fish_names(lists):
    conditions = {"schedules": "draw", "lists": "list", "fetch": '"data fetch"'}
    return [f"complete -c ringpipe -n '__ringpipe_verb_is {condition}' "
            f"-a '{' '.join(names(lists[name]))}'" for name, condition in conditions.items()]


# ---- METHODS ------------------------------------------------------------------------------------


def methods_table(lists):
    lines = ["| kind | steps | weights | average | source |", "|---|---|---|---|---|"]
    for kind in lists["schedules"]:
        steps = "flushed" if kind["flushed"] else "overlap"
        lines.append(f"| `{kind['name']}` | {steps} | {kind['weights']} | {kind['average']} | "
                     f"{kind['source']} |")
    return lines


# ---- BOARDS -------------------------------------------------------------------------------------


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
    "packaging/BOARDS.md": {"boards": boards_table},
    f"{MAN}/ringpipe.1": {group: man_verbs(group) for group in PURPOSES},
    "host/cli/man/ringpipe-data.5": {"data": lambda all: man_about(all["data"])},
    "host/cli/man/ringpipe-links.5": {"links": lambda all: man_links(all["links"])},
    "host/cli/man/ringpipe-model.5": {
        "models": lambda all: man_list(all["models"]),
        "layers": lambda all: man_keys(all["layers"]),
    },
    "host/cli/man/ringpipe-optimizer.5": {
        "losses": lambda all: man_about(all["losses"]),
        "optimizers": lambda all: man_names(all["optimizers"], end=" ."),
        "lr-schedules": lambda all: man_names(all["lr-schedules"]),
    },
    "host/cli/man/ringpipe-schedule.5": {
        "schedules": lambda all: man_about(all["schedules"]),
        "weights": lambda all: man_names(all["weights"], end=" ,"),
    },
    "host/cli/man/ringpipe-sim-faults.5": {"faults": lambda all: man_faults(all["faults"])},
    "host/cli/man/ringpipe-folder.5": {
        "events": lambda all: man_events(all["events"]), "facts": man_facts},
    "host/cli/man/ringpipe-glossary.7": {"glossary": man_glossary},
    "host/cli/completion/ringpipe.bash": {
        "options": bash_options, "names": bash_names, "values": bash_values},
    "host/cli/completion/_ringpipe": {
        "options": zsh_options, "names": zsh_names, "values": zsh_values},
    "host/cli/completion/ringpipe.fish": {
        "verbs": fish_verbs, "options": fish_options, "names": fish_names},
    "firmware/sched/METHODS.md": {"schedules": methods_table},
}
for verb in itertools.chain(*PURPOSES.values()):
    if verb not in SLOTS[1:]:
        FILES[f"{MAN}/ringpipe-{verb}.1"] = {
            "synopsis": partial(man_synopsis, page=f"ringpipe-{verb}"),
            "options": partial(man_options, page=f"ringpipe-{verb}"),
        }
FILES[f"{MAN}/ringpipe-list.1"]["lists"] = lambda all: man_names(all["lists"], end=" .")
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
