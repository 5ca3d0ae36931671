#!/usr/bin/env python3
"""The rules of the house that a compiler does not check.

tidy.py [ROOT]   first proves on a small tree that each rule rings, then checks the tree at ROOT
"""
import collections
import re
import subprocess
import sys
import tempfile
from pathlib import Path

COLUMNS = 100
FUNCTION_LINES = 70
CARD_LINES = 40

ALLOCATION = r"malloc calloc realloc free aligned_alloc posix_memalign strdup strndup"
ANYWHERE = (
    "rand srand random srandom drand48 time sprintf vsprintf strcpy strcat atoi atol atof gets "
    "strtok system popen"
)
LEAVING = "exit quick_exit"  # _exit is what a forked child has to call
KERNEL = "printf double image1d_t image2d_t image3d_t half atomic_xchg atomic_cmpxchg atom_cmpxchg"
FLAGS = r"-ffast-math|-Ofast|-Wno-unused-result|-march=native"
HEADER_OWNERS = {"CL/": ("device",), "clblast": ("device",), "zmq.h": ("transport",)}
# From this file on, calls go down: to a room that the caller's room may use, and inside a room
# whose card lists its files from the top down, to a file further down. They lead to these rooms.
WALK_FROM = "host/cli/verbs_run.c"
WALK_ENDS = ("control", "link", "transport")
# Written with brackets so that this line is no finding.
MACHINE_PATH = re.compile(r"(?<![\w.$}])/(?:[w]ork|[h]ome|[r]oot|[U]sers)/\w")

# Phrasings that plain English replaces: headless comments, behind for after, anew for again,
# persons for programs, "is none" for invalid or missing, and vague words. A guide for reading: some
# are right where they stand, so comments and documents may have some in all. The number only goes
# down. Messages and the first page have none.
PHRASES_MAX = 61
PHRASES = {
    "head": r"^\s*/\*+\s*(?:Of (?!course)|The same\b|\.\. ?[a-z]|"
    r"That (?=[a-z]+ (?:is|are|has|have|was|were)\b))",
    "after": r"\b(?:behind|ahead of|besides?|in place of|in front of)\b",
    "again": r"\b(?:anew|lie[sn]?|lain|lay|begins? again|at work)\b",
    "who": r"\b(?:somebody|nobody|anybody|someone else|(?:board|agent|peer|run|lane|host|program|"
    r"file|process|client|server)s? who(?:se)?)\b",
    "none": r"\b(?:(?:is|are|was|were) (?:none|no (?:number|name|key|board|file|address|bundle|"
    r"image|list|map|text))|there (?:is|are) none|can not)\b",
    "vague": r"\b(?:another one|the others?|what comes|so (?:many|much|long)\b(?! as)|it is said|"
    r"is said so|are said)\b",
}
PHRASE = re.compile("|".join(f"(?P<{name}>{words})" for name, words in PHRASES.items()))
KEY = re.compile(r"\\\"\w+\\\"|\bbesides\.")  # of JSON, in a text
PROSE = re.compile(r"/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"", re.S)

ROOM = re.compile(r"rp_room\(\s*(\w+)(.*?)\)", re.S)
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^">]+)[">]', re.M)


class Tree:
    """The files of a source tree, and what is found wrong in them."""

    def __init__(self, root):
        self.root = Path(root)
        self.found = []
        self.texts = {}
        for name in list_files(self.root):
            path = self.root / name
            if path.is_symlink() or not path.is_file():
                continue
            data = path.read_bytes()
            if b"\0" not in data:
                self.texts[name] = data.decode("utf-8", "replace")
        self.rooms = self.find_rooms()

    def find_rooms(self):
        """{room: (folder, rooms that it may include)} from the rp_room() calls."""
        rooms = {}
        for name, text in self.texts.items():
            if not re.match(r"(firmware|host)/\w+/CMakeLists.txt\Z", name):
                continue
            for room, rest in ROOM.findall(re.sub(r"#.*", "", text)):
                words = rest.split()
                may = []
                if "MAY_USE" in words:
                    for word in words[words.index("MAY_USE") + 1 :]:
                        if word in ("SOURCES", "LIBS"):
                            break
                        may.append(word)
                rooms[room] = (name.rsplit("/", 1)[0], may)
        return rooms

    def code(self, *suffixes, under=("firmware/", "host/", "kernels/", "tests/")):
        return {
            name: text
            for name, text in self.texts.items()
            if name.startswith(under) and name.endswith(suffixes)
        }

    def report(self, rule, name, line, message):
        self.found.append((rule, name, line, message))


def list_files(root):
    """What git tracks or would track; every file when there is no git."""
    try:
        out = subprocess.run(
            ["git", "-C", str(root), "ls-files", "-co", "--exclude-standard", "-z"],
            capture_output=True,
            check=True,
        ).stdout.decode()
        return sorted(name for name in out.split("\0") if name)
    except (OSError, subprocess.CalledProcessError):
        skip = re.compile(r"(\.git|build[^/]*|runs|__pycache__)(/|\Z)")
        names = (str(p.relative_to(root)) for p in Path(root).rglob("*"))
        return sorted(name for name in names if not skip.match(name))


def blank(text):
    """Comments, strings and characters replaced by blanks of the same shape."""
    pattern = r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''
    return re.sub(pattern, lambda m: re.sub(r"[^\n]", " ", m.group()), text, flags=re.S)


def line_of(text, position):
    return text.count("\n", 0, position) + 1


def room_of(name):
    parts = name.split("/")
    return parts[1] if len(parts) > 2 and parts[0] in ("firmware", "host") else None


def check_includes(tree):
    for room, (folder, may) in tree.rooms.items():
        for other in may:
            home = tree.rooms.get(other, (None,))[0]
            if home is None:
                tree.report("rooms", folder + "/CMakeLists.txt", 1, f"no room '{other}'")
            elif folder.startswith("firmware/") and home.startswith("host/"):
                tree.report("rooms", folder + "/CMakeLists.txt", 1, f"firmware may not use {home}")
    for name, text in tree.code(".c", ".h", under=("firmware/", "host/")).items():
        room = room_of(name)
        if room not in tree.rooms:
            continue
        for found in INCLUDE.finditer(text):
            other = found.group(2).split("/")[0]
            if found.group(1) == '"' and "/" in found.group(2) and other in tree.rooms:
                if other != room and other not in tree.rooms[room][1]:
                    message = f"{room} may not include {found.group(2)} (MAY_USE)"
                    tree.report("rooms", name, line_of(text, found.start()), message)


def check_library_headers(tree):
    for name, text in tree.code(".c", ".h", under=("firmware/", "host/")).items():
        for found in INCLUDE.finditer(text):
            for prefix, owner in HEADER_OWNERS.items():
                if found.group(2).startswith(prefix) and room_of(name) not in owner:
                    message = f"only {owner[0]} includes {found.group(2)}"
                    tree.report("headers", name, line_of(text, found.start()), message)


def ban(tree, rule, name, text, words, what):
    pattern = r"(?<![\w.])(?<!->)(" + "|".join(words.split()) + r")\s*" + what
    for found in re.finditer(pattern, text):
        # A declaration (`void free(...)`) would be as wrong as a call.
        tree.report(rule, name, line_of(text, found.start()), f"{found.group(1)} is banned here")


def check_calls(tree):
    for name, text in tree.code(".c", ".h").items():
        text = blank(text)
        ban(tree, "calls", name, text, ANYWHERE, r"\(")
        if name.startswith("tests/"):
            continue
        if name != "firmware/base/arena.c":
            ban(tree, "memory", name, text, ALLOCATION, r"\(")
        if Path(name).name not in ("main.c", "cli.c"):
            ban(tree, "exit", name, text, LEAVING, r"\(")
    for name, text in tree.code(".cl", ".clh").items():
        ban(tree, "kernels", name, blank(text), KERNEL, r"\b")


def check_flags(tree):
    for name, text in tree.texts.items():
        if name.endswith((".cmake", "CMakeLists.txt")) or name.startswith(("boards/", ".ci/")):
            for found in re.finditer(FLAGS, text):
                message = found.group() + " is banned"
                tree.report("flags", name, line_of(text, found.start()), message)


def check_columns(tree):
    for name, text in tree.code(".c", ".h", ".cl", ".clh", ".py").items():
        for number, line in enumerate(text.split("\n"), 1):
            if len(line) > COLUMNS:
                tree.report("columns", name, number, f"{len(line)} columns, at most {COLUMNS}")


def functions(text):
    """(name, first line, lines) of each function with its braces where clang-format puts them."""
    start, head = None, ""
    for number, line in enumerate(blank(text).split("\n"), 1):
        if line.startswith("#"):
            continue
        if line == "}" and start:
            named = re.search(r"(\w+)\s*\(", re.sub(r"__attribute__\s*\(\(.*?\)\)", "", head))
            if named:
                yield named.group(1), start, number - start + 1
            start, head = None, ""
        elif line[:1].strip() and line[0] not in "{}":
            if not start or head.rstrip().endswith((";", "}")):
                start, head = number, ""
            head += line + "\n"
        elif line[:1] == "}":
            start, head = None, ""
        elif start and "{" not in head:
            head += line + "\n"


def check_functions(tree):
    for name, text in tree.code(".c", ".h", ".cl", ".clh").items():
        for function, line, lines in functions(text):
            if lines > FUNCTION_LINES:
                message = f"{function} has {lines} lines, at most {FUNCTION_LINES}"
                tree.report("length", name, line, message)


def phrases(name, text):
    """(line, words, whether it is in a message) of each phrasing that plain English replaces."""
    if name.endswith((".md", *(f".{section}" for section in "157"))):
        pieces = [(0, text)]
    else:
        pieces = [(found.start(), found.group()) for found in PROSE.finditer(text)]
    for start, piece in pieces:
        is_text = piece.startswith('"')
        piece = KEY.sub(lambda key: " " * len(key.group()), piece) if is_text else piece
        for found in PHRASE.finditer(piece):
            if not is_text or " " in piece:
                yield line_of(text, start + found.start()), found.group().strip(), is_text


def check_phrases(tree):
    places = []
    for name, text in tree.texts.items():
        prose = re.search(r"\.(?:c|h|cl|clh|md|[157])\Z", name)
        if prose and name.startswith(("firmware/", "host/", "kernels/", "packaging/", "README.md")):
            for line, words, is_message in phrases(name, text):
                places.append((name, line, words))
                if is_message or name == "README.md":
                    tree.report("phrases", name, line, f"'{words}': say it in plain English")
    for name, line, words in places if len(places) > PHRASES_MAX else ():
        message = f"'{words}': one of {len(places)} such phrasings, at most {PHRASES_MAX}"
        tree.report("phrases", name, line, message)


def check_machine_paths(tree):
    for name, text in tree.texts.items():
        for found in MACHINE_PATH.finditer(text):
            tree.report("paths", name, line_of(text, found.start()), "a path of one machine")


def check_cards(tree):
    for _, (folder, _) in sorted(tree.rooms.items()):
        card = tree.texts.get(folder + "/README.md")
        if card is None:
            tree.report("cards", folder, 0, "no README.md")
        elif len(card.splitlines()) > CARD_LINES:
            lines = len(card.splitlines())
            tree.report("cards", folder + "/README.md", lines, f"at most {CARD_LINES} lines")


def check_guards(tree):
    for name, text in tree.code(".h").items():
        parts = name.split("/")
        parts = parts if parts[0] in ("tests", "kernels") else parts[1:]
        guard = "RP_" + re.sub(r"\W", "_", "_".join(parts)).upper()
        code = blank(text).strip()
        head = f"#ifndef {guard}\n#define {guard}\n"
        if not code.startswith(head) or not code.endswith("#endif"):
            tree.report("guards", name, 1, f"no include guard {guard} round the whole file")


def find_circles(arrows):
    """Sorted lists of the files that lead to one another; arrows = {file: {files that it uses}}."""
    reached = {}
    for start in arrows:
        found, todo = set(), list(arrows[start])
        while todo:
            name = todo.pop()
            if name not in found:
                found.add(name)
                todo += arrows.get(name, ())
        reached[start] = found
    circles = set()
    for one in arrows:
        if one in reached[one]:
            circles.add(tuple(sorted(x for x in reached[one] if one in reached.get(x, ()))))
    return sorted(circles)


def include_arrows(room, texts):
    """Which of the room's files includes which; x.c, x.h and its private x_own.h are one."""
    arrows = {}
    for name, text in texts.items():
        stem = re.sub(r"_own\Z", "", Path(name).stem)
        used = arrows.setdefault(stem, set())
        for found in INCLUDE.finditer(text):
            other = re.match(room + r"/(\w+?)(_own)?\.h\Z", found.group(2))
            if other and other.group(1) != stem:
                used.add(other.group(1))
    return arrows


def call_arrows(texts):
    """Which of the room's .c files uses a function that another one defines; also by a macro."""
    macros = {}
    home = {}
    plain = {name: blank(text) for name, text in texts.items()}
    for name, text in plain.items():
        for macro, body in re.findall(r"^#define (rp_\w+)\([^)]*\)((?:.*\\\n)*.*)", text, re.M):
            macros.setdefault(macro, []).extend(re.findall(r"\brp_\w+(?=\()", body))
        if name.endswith(".c"):
            for function, _, _ in functions(text):
                if function.startswith("rp_"):
                    home[function] = Path(name).stem
    arrows = {}
    for name, text in plain.items():
        if name.endswith(".c"):
            stem = Path(name).stem
            words = set(re.findall(r"\brp_\w+", text))
            for macro in words & set(macros):
                words |= set(macros[macro])
            arrows[stem] = {home[w] for w in words if home.get(w, stem) != stem}
    return arrows


def check_circles(tree):
    for room, (folder, _) in tree.rooms.items():
        texts = tree.code(".c", ".h", under=(folder + "/",))
        for how, arrows in (
            ("includes", include_arrows(room, texts)),
            ("calls", call_arrows(texts)),
        ):
            for circle in find_circles(arrows):
                message = f"{', '.join(circle)} lead to one another by {how}"
                tree.report("circles", folder, 0, message)


def homes_of(texts):
    """Of functions and of tables: {name: .c file that defines it}."""
    calls, tables = {}, {}
    for name, text in texts.items():
        plain = blank(text)
        calls.update({f: name for f, _, _ in functions(plain) if f.startswith("rp_")})
        for found in re.finditer(r"^[a-z][\w ]*\b(rp_\w+)(?:\[\w*\])* = ", plain, re.M):
            tables[found.group(1)] = name
    return calls, tables


def card_order(tree, folder):
    """{file: place} where the card lists the room's files from the top down."""
    card = tree.texts.get(folder + "/README.md", "")
    found = re.search(r"^files, from the top down.*?(?=\n\n|\Z)", card, re.M | re.S)
    names = re.findall(r"`(\w+\.c)`", found.group()) if found else []
    return {f"{folder}/{name}": place for place, name in enumerate(names)}


def rooms_below(tree, room):
    """Those that a room uses, and those that they use."""
    found, todo = set(), [room]
    while todo:
        more = set(tree.rooms[todo.pop()][1]) & set(tree.rooms) - found
        found |= more
        todo += more
    return found


def climb_of(tree, order, caller, callee):
    """What is wrong with a call, or None."""
    above, below = room_of(caller), room_of(callee)
    if above == below:
        climbs = caller in order and order.get(callee, -1) < order[caller]
        return f"calls {callee}, which the card does not list below it" if climbs else None
    allowed = above not in tree.rooms or below in rooms_below(tree, above)
    return None if allowed else f"calls {callee}: room {below} is not below {above}"


def check_walk(tree):
    for circle in find_circles({room: set(may) for room, (_, may) in tree.rooms.items()}):
        tree.report("walk", tree.rooms[circle[0]][0], 0, f"{', '.join(circle)} use one another")
    texts = tree.code(".c", under=("firmware/", "host/"))
    calls, tables = homes_of(texts)
    order = {}
    for folder, _ in tree.rooms.values():
        order.update(card_order(tree, folder))
        missing = {n for n in texts if n.rsplit("/", 1)[0] == folder} - set(order)
        if any(name.startswith(folder + "/") for name in order):
            for name in sorted(missing):
                tree.report("walk", name, 0, "is not in the card's list of files")
    reached, todo = set(), [WALK_FROM] if WALK_FROM in texts else []
    while todo:
        caller = todo.pop()
        reached.add(caller)
        words = set(re.findall(r"\brp_\w+", blank(texts[caller])))
        for callee in {calls[w] for w in words if calls.get(w, caller) != caller}:
            message = climb_of(tree, order, caller, callee)
            if message:
                tree.report("walk", caller, 0, message)
        found = {calls.get(w) or tables.get(w) for w in words} - {None}
        todo += found - reached
    if WALK_FROM in texts:
        for room in set(WALK_ENDS) - {room_of(name) for name in reached}:
            tree.report("walk", WALK_FROM, 0, f"its calls do not lead to room {room}")


DECLARED = re.compile(r"^[a-z][\w \*]*?\b(rp_\w+)\([^;{]*\)[^;{]*;", re.M)


def check_unused(tree):
    """A function is mentioned where it is declared, where it is defined, and somewhere else."""
    mentions = collections.Counter()
    for text in tree.code(".c", ".h").values():
        mentions.update(re.findall(r"\brp_\w+", blank(text)))
    for name, text in tree.code(".h", under=("firmware/", "host/")).items():
        for found in DECLARED.finditer(blank(text)):
            if mentions[found.group(1)] < 3:
                message = f"nobody calls {found.group(1)}"
                tree.report("unused", name, line_of(text, found.start()), message)


def registered(tree):
    """{room: names of the tests that its registries add}."""
    found = collections.defaultdict(set)
    for name, text in tree.texts.items():
        if name.endswith("CMakeLists.txt"):
            for room, noun, kinds in re.findall(r"rp_registry\(\s*(\w+)\s+(\w+)([^)]*)\)", text):
                found[room] |= {f"test_{noun}_{k.replace('-', '_')}" for k in kinds.split()}
    return found


def check_doors(tree):
    """Every test is in CTest, or tests/steps.py names its file."""
    kinds = registered(tree)
    doors = tree.texts.get("tests/steps.py", "")
    top = tree.texts.get("tests/CMakeLists.txt", "")
    for name in tree.texts:
        found = re.match(r"tests/(\w+)/((?:test|fuzz)_\w+)\.(c|py)\Z", name)
        found = found or re.match(r"tests/(boards|cross)/(\w+)\.(py)\Z", name)
        if not found:
            continue
        room, stem, _ = found.groups()
        lists = re.sub(r"#.*", "", tree.texts.get(f"tests/{room}/CMakeLists.txt", ""))
        word = rf"\b({stem}|{stem.partition('_')[2] or stem})\b"
        in_ctest = stem in kinds[room] or re.search(word, lists)
        if not (in_ctest and re.search(rf"\b{room}\b", top)) and name not in doors:
            message = "no door runs it: it is neither in CMakeLists.txt nor in tests/steps.py"
            tree.report("doors", name, 1, message)


CHECKS = (
    check_doors,
    check_includes,
    check_unused,
    check_circles,
    check_walk,
    check_library_headers,
    check_calls,
    check_flags,
    check_columns,
    check_functions,
    check_phrases,
    check_machine_paths,
    check_cards,
    check_guards,
)


def check(root):
    tree = Tree(root)
    for one in CHECKS:
        one(tree)
    return sorted(set(tree.found), key=lambda f: (f[1], f[2], f[0], f[3]))


# ---- the canary: a clean tree is silent, and each wrong file rings its own rule only ----------

CLEAN = {
    "firmware/base/CMakeLists.txt": "rp_room(base SOURCES arena.c LIBS m)\n",
    "firmware/base/README.md": "# base\n",
    "firmware/base/arena.c": "void *take(void) {\n    return malloc(1);\n}\n",
    "firmware/base/err.h": "#ifndef RP_BASE_ERR_H\n#define RP_BASE_ERR_H\n"
    "int rp_rng(void);\n#endif\n",
    "firmware/base/rng.h": "#ifndef RP_BASE_RNG_H\n#define RP_BASE_RNG_H\n"
    '#include "base/err.h"\n#define rp_seed_now() \\\n    rp_seed()\n#endif\n',
    "firmware/base/rng_own.h": "#ifndef RP_BASE_RNG_OWN_H\n#define RP_BASE_RNG_OWN_H\n"
    '#include "base/rng.h"\n#endif\n',
    "firmware/base/rng.c": '#include "base/rng_own.h"\nint rp_rng(void) {\n    return 1;\n}\n',
    "firmware/base/seed.c": "int rp_seed(void) {\n    return rp_rng();\n}\n",
    "firmware/wire/CMakeLists.txt": "rp_room(wire MAY_USE base SOURCES frame.c)\n",
    "firmware/wire/README.md": "# wire\n",
    "firmware/wire/frame.c": '#include "base/err.h"\n/* free(x) */ char *s = "exit(1)";\n'
    "int spent(int time);\nint y = wall_time(1) + op->free(2);\n",
    "host/data/CMakeLists.txt": "rp_room(data MAY_USE base SOURCES data.c)\n",
    "host/data/README.md": "# data\n",
    "tests/CMakeLists.txt": "foreach(room wire)\n",
    "tests/wire/CMakeLists.txt": "rp_tests(wire ROOMS wire NAMES test_frame test_a)\n",
    "tests/wire/test_frame.c": "int main(void) {\n    exit(77);\n}\n",
    "host/cli/verbs_run.c": "int rp_verb_train(void) {\n    return rp_control_open();\n}\n",
    "host/control/CMakeLists.txt": "rp_room(control MAY_USE link SOURCES open.c ring.c)\n",
    "host/control/README.md": "# control\n\nfiles, from the top down\n- `open.c` `ring.c`\n",
    "host/control/open.c": "int rp_control_open(void) {\n    return rp_ring_step();\n}\n",
    "host/control/ring.c": "int rp_ring_step(void) {\n    return rp_link_table[0]();\n}\n",
    "firmware/link/CMakeLists.txt": "rp_room(link MAY_USE transport SOURCES link.c)\n",
    "firmware/link/README.md": "# link\n",
    "firmware/link/link.c": "const step rp_link_table[1] = {rp_transport_send};\n",
    "firmware/transport/CMakeLists.txt": "rp_room(transport SOURCES send.c)\n",
    "firmware/transport/README.md": "# transport\n",
    "firmware/transport/send.c": "int rp_transport_send(void) {\n    return 1;\n}\n",
    "README.md": "An image's files: image/root/x, ./home/x, ${image}/home/x, $image/root/x.\n",
}
LONG = "int f(int a,\n      int b) {\n" + "    a++;\n" * 68 + "}\n"
EXACT = "int f(int a,\n      int b) {\n" + "    a++;\n" * 67 + "}\n"
WRONG = (
    ("rooms", "firmware/base/err.c", '#include "wire/frame.h"\n'),
    ("rooms", "firmware/wire/CMakeLists.txt", "rp_room(wire MAY_USE base data SOURCES f.c)\n"),
    ("rooms", "host/data/CMakeLists.txt", "rp_room(data MAY_USE base wier SOURCES d.c)\n"),
    ("circles", "firmware/base/err.c", '#include "base/rng.h"\n'),
    ("circles", "firmware/base/rng.c", "int rp_rng(void) {\n    return rp_seed();\n}\n"),
    ("circles", "firmware/base/rng.c", "int rp_rng(void) {\n    return rp_seed_now();\n}\n"),
    ("walk", "host/control/README.md", "files, from the top down\n- `ring.c` `open.c`\n"),
    ("walk", "host/control/feed.c", "int x;\n"),
    ("walk", "host/control/ring.c", "int rp_ring_step(void) {\n    return 1;\n}\n"),
    (
        "walk",
        "firmware/transport/send.c",
        "int rp_transport_send(void) {\n    return rp_ring_step();\n}\n",
    ),
    ("walk", "firmware/transport/CMakeLists.txt", "rp_room(transport MAY_USE link SOURCES s.c)\n"),
    ("headers", "firmware/wire/cl.c", "#include <CL/cl.h>\n"),
    ("headers", "host/data/blas.c", "#include <clblast_c.h>\n"),
    ("headers", "firmware/wire/socket.c", "#include <zmq.h>\n"),
    ("memory", "firmware/wire/a.c", "void f(void) {\n    free(0);\n}\n"),
    ("memory", "host/data/a.c", "void *p(void) {\n    return  calloc (1, 2);\n}\n"),
    ("exit", "host/data/b.c", "void f(void) {\n    exit(0);\n}\n"),
    ("calls", "tests/wire/test_a.c", "int f(void) {\n    return rand();\n}\n"),
    ("calls", "host/data/c.c", "void f(char *s) {\n    strcpy(s, s);\n}\n"),
    ("calls", "host/data/d.c", "long f(void) {\n    return time(0);\n}\n"),
    ("kernels", "kernels/a.cl", "__kernel void f(__global double *x) {\n}\n"),
    ("flags", "firmware/wire/x.cmake", "add_compile_options(-ffast" + "-math)\n"),
    ("columns", "kernels/b.cl", "/* " + "x" * 96 + " */\n"),
    ("length", "firmware/wire/long.c", LONG),
    ("length", "kernels/long.cl", "__kernel void f(\n    int b)\n{\n" + "    ;\n" * 67 + "}\n"),
    ("paths", "host/data/e.c", 'char *s = "/' + 'home/me/x";\n'),
    ("paths", "tests/wire/run.sh", "cd /" + "root/x\n"),
    ("phrases", "README.md", "The agent begins anew.\n"),
    ("phrases", "host/data/g.c", 'char *s = "the key is none";\n'),
    ("cards", "firmware/wire/README.md", "line\n" * 41),
    ("cards", "firmware/base/README.md", None),
    ("doors", "tests/wire/test_lost.c", "int main(void) {\n    return 0;\n}\n"),
    ("doors", "tests/boards/cut.py", "print(1)\n"),
    ("guards", "firmware/wire/frame.h", "#ifndef FRAME_H\n#define FRAME_H\n#endif\n"),
    ("guards", "firmware/wire/open.h", "int x;\n"),
    (
        "unused",
        "firmware/base/err.h",
        "#ifndef RP_BASE_ERR_H\n#define RP_BASE_ERR_H\nint rp_err_old(int x,\n"
        "               int y) RP_MUST_CHECK;\n#endif\n",
    ),
)
SILENT = (("firmware/wire/exact.c", EXACT), ("kernels/wide.cl", "/* " + "x" * 94 + " */\n"))


def rules_rung(files):
    with tempfile.TemporaryDirectory() as root:
        for name, text in files.items():
            if text is not None:
                path = Path(root) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
        return check(root)


def canary():
    """Messages about rules that do not ring, or ring for nothing."""
    faults = [f"rings on a clean tree: {f}" for f in rules_rung({**CLEAN, **dict(SILENT)})]
    for rule, name, text in WRONG:
        rung = {f[0] for f in rules_rung({**CLEAN, name: text})}
        if rung != {rule}:
            faults.append(f"{name}: wanted '{rule}' to ring, got {sorted(rung) or 'silence'}")
    return faults


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent
    faults = canary()
    for fault in faults:
        print("canary:", fault)
    found = check(root)
    for rule, name, line, message in found:
        print(f"{name}:{line}: {message} [{rule}]")
    print(f"tidy: {len(found)} findings; canary: {len(WRONG)} rules rung, {len(faults)} faults")
    return 1 if found or faults else 0


if __name__ == "__main__":
    sys.exit(main())
