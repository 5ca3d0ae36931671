#!/usr/bin/env python3
"""PROTOCOL.md says what the sources say: kinds and fields, dtypes, limits, kinds in the sequences.

With --write the generated blocks are written anew.
"""
import pathlib
import re
import sys
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
WIRE = SOURCE / "firmware/wire"
PAGE = WIRE / "PROTOCOL.md"
WAYS = {
    "HOST": "host to board",
    "BOARD": "board to host",
    "RING": "board to board",
    "ANY": "either",
}
UNITS = {"ns": 1, "ms": 10**6, "s": 10**9, "KiB": 2**10, "MiB": 2**20, "": 1}


def read_options():
    """Bound of a field, by message.field."""
    text = (WIRE / "ringpipe.options").read_text()
    return {n: int(b) for n, b in re.findall(r"rp_(\S+) max_(?:size|count):(\d+)", text)}


def read_messages():
    """Comment and fields (type, name, number, remark) of each message; numbers of the kinds."""
    text = (WIRE / "ringpipe.proto").read_text()
    messages = {}
    for comment, name, body in re.findall(
        r"((?://[^\n]*\n)*)message rp_(\w+) \{\n(.*?)^\}", text, re.S | re.M
    ):
        body = re.sub(r"  oneof body \{.*?\n  \}\n", "", body, flags=re.S)
        fields = re.findall(r"^ *((?:repeated )?\w+) (\w+) = (\d+);(?: *// *(.*))?$", body, re.M)
        numbers = {int(number) for _, _, number, _ in fields}
        assert len(numbers) == len(re.findall(r";(?:\n|  *//)", body)), f"a field of {name}"
        remark = " ".join(line.lstrip("/ ") for line in comment.splitlines())
        messages[name] = (remark, fields)
    members = re.search(r"oneof body \{(.*?)\n  \}", text, re.S).group(1)
    tags = {m: int(n) for m, n in re.findall(r"rp_\w+ (\w+) = (\d+);", members)}
    return messages, tags


def read_kinds():
    text = (WIRE / "kinds.h").read_text()
    rows = re.findall(r"^    X\(([^)]*)\)", text, re.M)
    return [[cell.strip() for cell in row.split(",")] for row in rows]


def describe_field(message, field, options):
    kind, name, number, remark = field
    bound = options.get(f"{message}.{name}")
    if bound and kind == "string":
        kind += f" up to {bound - 1}"
    elif bound:
        kind += f" up to {bound}"
    line = f"    {number:>2} {name:<17}{kind.replace('rp_', ''):<23} {remark}"
    return line.rstrip()


def describe_parts(least, most, rule):
    if most == "0":
        return "no parts"
    names = {"SAMPLES": "tensors of the parcel's samples", "TENSOR": "a tensor"}
    what = names.get(rule, rule.lower())
    count = most if least == most else f"{least} to {most}"
    return f"parts: {count} of {what}"


def kinds_block():
    messages, tags = read_messages()
    options = read_options()
    lines = []
    for name, member, message, way, of_class, least, most, rule in sorted(
        read_kinds(), key=lambda row: tags[row[1]]
    ):
        remark, fields = messages[message]
        lines.append(
            f"{tags[member]:>2} {name:<17}{of_class.lower()}, {WAYS[way]}; "
            f"{describe_parts(least, most, rule)}"
        )
        lines += [f"   {remark}"] if remark else []
        lines += [describe_field(message, field, options) for field in fields] + [""]
    return "\n".join(lines[:-1])


def frame_block():
    messages, _ = read_messages()
    options = read_options()
    lines = []
    for message in ("Frame", "Part", "LinkUse"):
        remark, fields = messages[message]
        lines += [message] + ([f"   {remark}"] if remark else [])
        lines += [describe_field(message, field, options) for field in fields] + [""]
    return "\n".join(lines[:-1])


def read_rules():
    """States of a board, and by kind in which of them it takes one (messages.c)."""
    text = (SOURCE / "firmware/agent/messages.c").read_text()
    names = re.search(r"names\[RP_AGENT_STATES\] = \{(.*?)\}", text, re.S).group(1)
    states = re.findall(r'"(\w+)"', names)
    masks = {state.upper(): {state} for state in states}
    for name, sum_of in re.findall(r"^    (\w+) = ([A-Z]+(?: \| [A-Z]+)+)", text, re.M):
        masks[name] = set().union(*(masks[part] for part in sum_of.split(" | ")))
    rules = re.findall(r"^    \{RP_KIND_(\w+), ([A-Z |]+), \w+\},$", text, re.M)
    taken = {k: set().union(*(masks[part] for part in m.split(" | "))) for k, m in rules}
    return states, taken


def states_block():
    states, taken = read_rules()
    lines = [" " * 17 + " ".join(f"{state:<9}" for state in states).rstrip()]
    for kind, where in taken.items():
        marks = " ".join(f"{'x' if state in where else '.':<9}" for state in states)
        lines.append(f"{kind:<17}{marks}".rstrip())
    return "\n".join(lines)


BLOCKS = {"frame": frame_block, "kinds": kinds_block, "states of a board": states_block}


def generate(page):
    for name, block in BLOCKS.items():
        mark = re.compile(rf"(<!-- generated: {name} -->\n```\n).*?(```\n)", re.S)
        assert mark.search(page), f"PROTOCOL.md has no block for {name}"
        text = block()
        page = mark.sub(lambda found, text=text: f"{found[1]}{text}\n{found[2]}", page)
    return page


def read_sources():
    paths = [p for top in ("firmware", "host") for p in (SOURCE / top).rglob("*.[ch]")]
    return "\n".join(path.read_text() for path in paths)


def value_of(expression):
    """An integer expression of C: numbers, times, shifts."""
    text = expression.replace("RP_NS_PER_S", str(10**9)).replace("RP_NS_PER_MS", str(10**6))
    text = re.sub(r"U?INT64_C\((\d+)\)", r"\1", text)
    assert re.fullmatch(r"[\d\s*+<>()-]+", text), f"{expression!r} is not understood"
    return eval(text)  # digits and operators only


def definitions(sources, name):
    found = re.findall(rf"\b{name}\s*=\s*([^,;}}/]+?)\s*(?=[,;}}/])", sources)
    found += re.findall(rf"#define {name} +(.+?) *(?:/\*.*)?$", sources, re.M)
    return {value_of(expression) for expression in found}


class Protocol(unittest.TestCase):
    page = PAGE.read_text()

    def test_generated(self):
        wanted = generate(self.page)
        self.assertEqual(self.page, wanted, "write it anew: tests/wire/test_protocol.py --write")

    def test_every_message_is_read(self):
        _, tags = read_messages()
        kinds = read_kinds()
        self.assertEqual(set(tags), {row[1] for row in kinds})
        self.assertGreater(len(kinds), 30)

    def test_every_rule_is_read(self):
        """A kind that the host sends on a control link is taken somewhere, and no other is.
        ENROLLED comes on a link of its own, before there is a control link."""
        states, taken = read_rules()
        wanted = {r[0] for r in read_kinds() if r[4] == "CONTROL" and r[3] in ("HOST", "ANY")}
        wanted -= {"ENROLLED"}
        self.assertEqual(set(taken), wanted)
        self.assertGreater(len(states), 5)

    def test_dtypes(self):
        proto = (WIRE / "ringpipe.proto").read_text()
        wanted = {n: int(i) for n, i in re.findall(r"RP_DTYPE_(\w+) = (\d+);", proto)}
        rows = re.findall(r"^\| (\d+) \| (\w+) \| ", self.page, re.M)
        self.assertEqual({name: int(number) for number, name in rows}, wanted)

    def test_limits(self):
        sources = read_sources()
        rows = re.findall(r"^\| `(\w+)` \| (\d+) ?(\w*) \| ", self.page, re.M)
        self.assertGreater(len(rows), 15)
        for name, number, unit in rows:
            with self.subTest(name):
                self.assertEqual(definitions(sources, name), {int(number) * UNITS[unit]})

    def test_sequences(self):
        """They use kinds that exist, and every kind but the link's own is in one."""
        text = "\n".join(re.findall(r"## Sequences.*?(?=\n## )", self.page, re.S))
        used = set(re.findall(r"\b[A-Z]{2,}(?:_[A-Z]+)*\b", text))
        kinds = {row[0]: row[4] for row in read_kinds()}
        self.assertEqual(used - set(kinds), set())
        self.assertEqual({k for k, c in kinds.items() if c != "LINK"} - used, set())

    def test_canary(self):
        """The checks ring: a kind without a line, a changed bound."""
        other = self.page.replace("22 NORMS ", "22 NORM  ")
        self.assertNotEqual(other, generate(other))
        sources = "enum { A_MAX = 4 << 20 };\n#define B_NS (2 * RP_NS_PER_S) /* x */\n"
        self.assertEqual(definitions(sources, "A_MAX"), {4 << 20})
        self.assertEqual(definitions(sources, "B_NS"), {2 * 10**9})


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        PAGE.write_text(generate(PAGE.read_text()))
    else:
        unittest.main()
