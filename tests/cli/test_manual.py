#!/usr/bin/env python3
"""The pages of files against the program: every key with its range, words and default; examples.

A list of keys follows a comment `keys: MAP KINDS`. MAP is where the keys are, KINDS are the kinds
of this map that have them; without any, all kinds have them."""
import concurrent.futures
import itertools
import json
import re
import shutil
import struct
import subprocess
import zlib
from pathlib import Path

import program

MAN = program.SOURCE / "host/cli/man"
PAGES = sorted(MAN.glob("*.5"))
ALL = sorted(MAN.glob("*.[157]"))
UNKNOWN = "qqqqqqqq"  # nothing that the program takes for a mistyped key or word
CHECKED_LEAST = 120  # values, so that a mistake in this file is not silent

SECTIONS = {
    "model": "net.yaml",
    "data": "{set: glyphs, train: 64, test: 16}",
    "ring": "{boards: 2}",
    "train": "{epochs: 1, batch: 16}",
    "optimizer": "{kind: sgd, lr: 0.05}",
    "schedule": "gpipe",
    "cut": "[conv2]",
}
NET = """\
input: data
layers:
  - {name: conv1, kind: conv2d, out: 2, kernel: 3}
  - {name: relu1, kind: relu}
  - {name: conv2, kind: conv2d, out: 2, kernel: 3}
  - {name: relu2, kind: relu}
  - {name: flat, kind: flatten}
  - {name: fc, kind: dense, out: classes}
"""
WORDS = """\
input: data
layers:
  - {name: emb, kind: embedding, count: tokens, out: 2}
  - {name: flat, kind: flatten}
  - {name: fc, kind: dense, out: classes}
"""
LETTERS = """\
input: data
layers:
  - {name: emb, kind: embedding, count: tokens, out: 2}
  - {name: fc, kind: linear, out: classes}
"""
FLAT = "input: data\nlayers:\n  - {name: fc, kind: dense, out: classes}\n"
ROWS = "id,width,length,note,species\n" + "1,1,2,x,rose\n2,3,4,y,iris\n" * 6

# What `list` calls the kinds of a map, and what a kind needs.
KINDS = {"data": "data", "optimizer": "optimizers", "lr_schedule": "lr-schedules",
         "schedule": "schedules", "layers": "layers", "faults": "faults"}
NEEDED = {
    ("data", "glyphs"): "train: 64, test: 16",
    ("data", "images"): "path: photos, size: 28",
    ("data", "npy"): "path: arrays", ("data", "idx"): "path: arrays",
    ("data", "mnist"): "path: arrays", ("data", "fashion-mnist"): "path: arrays",
    ("data", "cifar10"): "path: cifar", ("data", "cifar100"): "path: cifar",
    ("data", "table"): "path: flowers.csv, target: species, drop: note",
    ("data", "text"): "path: novel.txt, tokens: words, time: 4",
    ("data", "tsv"): "path: reviews.tsv, text: 0, label: 1, tokens: words, time: 4",
    ("data", "pairs"): "path: ., source: novel.txt, target: novel.txt, tokens: words, time: 40",
    ("lr_schedule", "step"): "step_size: 1",
    ("board.yaml:image", ""): "kernel: k, console: c",
    ("layers", "conv2d"): "out: 2, kernel: 3", ("layers", "dense"): "out: 2",
    ("layers", "maxpool"): "kernel: 2", ("layers", "avgpool"): "kernel: 2",
    ("layers", "adaptiveavgpool"): "out: 2",
    ("layers", "groupnorm"): "groups: 1", ("layers", "linear"): "out: 2",
    ("layers", "embedding"): "count: 3, out: 2", ("layers", "position"): "length: 3",
    ("layers", "lstm"): "hidden: 2", ("layers", "gru"): "hidden: 2",
    ("layers", "attention"): "heads: 2", ("layers", "swiglu"): "from: [data, data]",
    ("layers", "add"): "from: [data, data]", ("layers", "concat"): "from: [data, data]",
    ("layers", "additive"): "from: [data, data, data]",
    ("layers", "mul"): "from: [data, data]", ("layers", "droppath"): "p: 0.1",
    ("layers", "convtranspose2d"): "out: 2, kernel: 3",
    **{("layers", kind): "from: [data, data]" for kind in
       "sub div min max equal less greater and or matmul".split()},
    ("layers", "where"): "from: [data, data, data]", ("layers", "pow"): "exponent: 2",
    ("layers", "transpose"): "perm: [0, 1, 2]", ("layers", "reshape"): "shape: [2]",
    ("layers", "expand"): "shape: [2]", ("layers", "pad"): "pads: [0, 0]",
    ("layers", "gather"): "indices: [0]", ("layers", "parameter"): "shape: [2]",
    ("layers", "constant"): "shape: [2]",
}
# Models for sets that are not images.
MODELS = {"table": "flat.yaml", "text": "letters.yaml", "tsv": "words.yaml",
          "pairs": "gnmt-narrow"}
LOSSES = {"pairs": "{kind: cross-entropy, ignore: 0}"}
# Values with which a map is there, where it is not by itself.
MAPS = {
    "data.augment": "{crop: 1}",
    "data.augment.colour": "{hue: 0}",
    "data.augment.erasing": "{p: 0}",
    "lanes": "{count: 2}",
    "links.codec": "{gradients: f16}",
    "loss": "{kind: cross-entropy}",
    "ring.link": "{rate_mbit: 10}",
    "schedule": "{kind: async}",
    "sites": "{split: split.json, rounds: 1}",
    "sites.availability": "{trace: trace.json, seconds: 1}",
    "sites.delta": "{codec: topk}",
    "sites.take": "{least: 1}",
    "schedule.advance": "{max_staleness: 8}",
    "train.init": "{from: first.safetensors}",
}
# Values of keys that are not in a map of the run file, or not alone: a list, other keys.
WHOLE = {
    "ring.link.hops": "ring.link={{hops: [{{from: 0, {key}: {value}}}]}}",
    "ring.throttle.boards": "ring.throttle={{boards: {{0: {{{key}: {value}}}}}}}",
    "links.max_error": "links={{codec: auto, {key}: {value}}}",
}


# ---- pages --------------------------------------------------------------------------------------


def entries(page):
    """[(map, kinds, keys, facts, text)] of the lists of keys of a page."""
    found, lists, label = [], [], ()
    for line in page.read_text(encoding="utf-8").splitlines():
        marker = re.match(r'\.\\" keys: (\S+)(.*)', line)
        item = re.match(r'\.It Cm (.+?)(?: Pq "?(.*?)"?)?$', line)
        if marker:
            label = (marker[1], (label[1] if label else []) + marker[2].split())
        elif line.startswith(".Bl"):
            lists.append((label, []))
            label = ()
        elif line.startswith(".El"):
            lists.pop()
        elif item and lists and lists[-1][0]:
            found.append((*lists[-1][0], re.findall(r"[\w-]+", item[1]), item[2] or "", []))
            lists[-1][1][:] = [found[-1][4]]
        for _, texts in lists:
            for text in texts:
                text.append(line)
    return [(*entry[:4], "\n".join(entry[4])) for entry in found]


def examples(page):
    """The literal texts of a page."""
    text = page.read_text(encoding="utf-8")
    return re.findall(r"^\.Bd -literal.*?\n(.*?)^\.Ed$", text, re.M | re.S)


# ---- files --------------------------------------------------------------------------------------


def png(side):
    def chunk(kind, body):
        return (struct.pack(">I", len(body)) + kind + body +
                struct.pack(">I", zlib.crc32(kind + body)))

    head = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    rows = zlib.compress((b"\0" + bytes(3 * side)) * side)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def npy(shape, data):
    text = f"{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}, }}"
    text += " " * (-(11 + len(text)) % 64) + "\n"
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(text)) + text.encode() + data


def idx(shape, data):
    return bytes([0, 0, 8, len(shape)]) + struct.pack(f">{len(shape)}I", *shape) + data


def data_files():
    """{path: bytes} of a small set of every kind."""
    found, labels, pixels = {"flowers.csv": ROWS.encode()}, bytes([0, 1]), bytes(2 * 784)
    found["novel.txt"] = b"It was a dark and stormy night. " * 12
    found["train.en"] = found["train.de"] = b"a good film\na bad film\n" * 6
    found["reviews.tsv"] = b"a good film\t1\na bad film\t0\n" * 6
    found["bpe.json"] = (program.SOURCE / "tests/golden/bpe/learnt.json").read_bytes()
    for part, word in (("train", "train"), ("test", "t10k")):
        found.update((f"photos/{part}/{kind}/{name}.png", png(8))
                     for kind in ("cat", "dog") for name in "abc")
        found[f"arrays/x_{part}.npy"] = npy((2, 28, 28), pixels)
        found[f"arrays/y_{part}.npy"] = npy((2,), labels)
        found[f"arrays/{word}-images-idx3-ubyte"] = idx((2, 28, 28), pixels)
        found[f"arrays/{word}-labels-idx1-ubyte"] = idx((2,), labels)
        found[f"cifar/{part}.bin"] = bytes(2 * 3074)
    for name in [f"data_batch_{i}" for i in range(1, 6)] + ["test_batch"]:
        found[f"cifar/{name}.bin"] = bytes(2 * 3073)
    return found


class Manual(program.Case):
    def setUp(self):
        super().setUp()
        self.numbers = itertools.count()
        texts = {"net.yaml": NET, "flat.yaml": FLAT, "words.yaml": WORDS, "letters.yaml": LETTERS}
        for name, content in {**data_files(), **{n: t.encode() for n, t in texts.items()}}.items():
            (self.dir / name).parent.mkdir(parents=True, exist_ok=True)
            (self.dir / name).write_bytes(content)
        keys = {name: self.new_key(name) for name in ("left", "right", "east")}
        (self.dir / "lab.yaml").write_text("boards:\n" + "".join(
            f"  - {{name: {name}, address: tcp://10.0.0.{i}:7000, board: rk3588, key: {key}}}\n"
            for i, (name, key) in enumerate(keys.items(), 1)))
        self.key = keys["left"]
        self.run_file(self.run_text())
        self.ringpipe("data", "split", "run.yaml", "--sites", "2", "--out", "split.json")
        trace = {"active": [0], "inactive": [1], "finish_time": 1}
        (self.dir / "trace.json").write_text(json.dumps({"site-0": trace, "site-1": trace}))
        out, _ = self.ringpipe("list", "--format", "json")
        registries = json.loads(out)
        self.kinds = {where: [kind["name"] for kind in registries[name]]
                      for where, name in KINDS.items()}
        self.faults = {fault["name"]: fault for fault in registries["faults"]}

    def new_key(self, folder):
        self.ringpipe("keys", "new", "--dir", folder)
        out, _ = self.ringpipe("keys", "show", "--dir", folder)
        return re.search(r"\brpk1\w+", out)[0]

    def run_text(self, **sections):
        return "".join(f"{key}: {value}\n" for key, value in {**SECTIONS, **sections}.items())

    def new_file(self, text, name="file.yaml"):
        path = self.dir / str(next(self.numbers)) / name
        path.parent.mkdir()
        path.write_text(text)
        return path

    # ---- asking the program ----

    def command(self, where, kind, key, value):
        """The words of a command that reads this value of a key, and its options."""
        own = {"faults": self.of_fault, "layers": self.of_layer}.get(where)
        part = where.partition(":")[2]
        if own:
            return own(kind, key, value), {}
        if where.startswith("board.yaml"):
            given = {"name": "my-board"} if part else {"name": "my-board", key: value}
            text = flow(given)[1:-1].replace(", ", "\n") + "\n"
            more = [*filter(None, [NEEDED.get((where, kind))]), f"{key}: {value}"]
            text += f"{part}: {{{', '.join(more)}}}\n" if part else ""
            path = self.new_file(text, "board.yaml").parent
            words = ("doctor", "--board", path.name)
            return words, {"env": {"RINGPIPE_BOARDS": str(self.dir)}}
        if where.startswith("roster"):
            path = self.new_file(self.roster_of(part, key, value))
            words = ("--listen", "tcp://127.0.0.1:0", "--keys", "left", "--roster", path)
            if part == "hosts":
                return words, {"program": program.AGENT}
            return self.dry_run([f"ring={{roster: {path}}}"]), {}
        return self.dry_run(self.sets(where, kind) + [self.assignment(where, key, value)]), {}

    def dry_run(self, sets):
        return ("train", "run.yaml", "--dry-run", *assigned(sets))

    def assignment(self, where, key, value):
        form = WHOLE.get(f"{where}.{key}") or WHOLE.get(where)
        return form.format(key=key, value=value) if form else f"{where}.{key}={value}".lstrip(".")

    def sets(self, where, kind):
        """Assignments that make the run file have this map, of this kind."""
        parts = where.split(".")
        ways = [".".join(parts[:i]) for i in range(1, len(parts) + (not kind))]
        above = [f"{way}={MAPS[way]}" for way in ways if way in MAPS]
        if not kind:
            return above
        more = "lr: 0.1" if where == "optimizer" else NEEDED.get((where, kind), "")
        given = f"{'set' if where == 'data' else 'kind'}: {kind}" + (f", {more}" if more else "")
        model = MODELS.get(kind) if where == "data" else None
        model = [f"model={model}", "ring.boards=1", "cut=auto"] if model else []
        model += [f"loss={LOSSES[kind]}"] if where == "data" and kind in LOSSES else []
        return above + model + [f"{where}={{{given}}}"] + ["cut=auto"] * (where == "schedule")

    def of_layer(self, kind, key, value):
        given = f"name: a, kind: {kind}, " + NEEDED.get(("layers", kind), "")
        given = re.sub(rf"\b{key}: (\[.*?\]|[\w-]+)(, )?", "", given)
        path = self.new_file(f"input: data\nlayers:\n  - {{{given.rstrip(', ')}, "
                             f"{key}: {value}}}\n".replace("{, ", "{"))
        return self.dry_run([f"model={path}", "ring.boards=1", "cut=auto"])

    def of_fault(self, kind, key, value):
        facts = self.faults[kind]
        needed = ["kind", "at_s", *filter(None, facts["keys"].split(", "))]
        needed += ["amount"] if facts["unit"] else []
        given = {one: {"kind": kind, "to": 1}.get(one, 0) for one in needed}
        path = self.new_file(f"faults: [{flow({**given, key: value})}]\n")
        return ("sim", "run.yaml", "--executor", "digest", "--faults", path)

    def roster_of(self, part, key, value):
        if not part:
            return f"{key}: {value}\n"
        given = {"name": "a", "key": self.key, "address": "tcp://10.0.0.1:7000"}
        needed = {"boards": ("name", "key", "address"), "hosts": ("name", "key")}.get(part, ())
        one = flow({**{k: given[k] for k in needed}, key: value})
        boards = f"boards: [{flow(given)}]\n"
        return f"{boards}groups: {{g: {one}}}\n" if part == "groups" else f"{part}: [{one}]\n"

    def ask(self, question):
        words, options = self.command(*question)
        process = self.start(*words, **options)
        _, err = self.finish(process, code=None)
        return process.returncode, err

    def answers(self, questions):
        """[(question, exit code, message)]; several processes at a time."""
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            found = list(pool.map(self.ask, questions))
        return [(question, *answer) for question, answer in zip(questions, found)]

    def documented(self):
        """{(map, kind): {key: (page, facts, text)}}"""
        found = {}
        for page in PAGES:
            for where, kinds, keys, facts, text in entries(page):
                for kind in kinds or self.kinds.get(where, [""]):
                    known = found.setdefault((where, kind), {})
                    known.update((key, (page.name, facts, text)) for key in keys)
        throttle = found["ring.throttle", ""]
        found["ring.throttle.boards", ""] = {k: throttle[k] for k in throttle if k != "boards"}
        return found

    # ---- tests ----

    def test_keys(self):
        """The program reads the keys of the pages, and no other keys."""
        documented = self.documented()
        for where, kinds in self.kinds.items():
            self.assertEqual({kind for at, kind in documented if at == where}, set(kinds), where)
        questions = [(*place, UNKNOWN, "1") for place in documented]
        for (where, kind, _, _), code, said in self.answers(questions):
            with self.subTest(where, kind=kind):
                known = re.search(r"unknown key; known here: (.*)", said)
                self.assertTrue(known and code == 2, said)
                self.assertEqual(set(documented[where, kind]), set(known[1].split()))

    def test_values(self):
        """Ranges of numbers and words of choices are those of the program."""
        documented = self.documented()
        del documented["roster:hosts", ""]  # an agent would listen
        once = {}
        for (where, kind), keys in documented.items():
            for key, (name, facts, text) in keys.items():
                once.setdefault((name, where, key, text), ((where, kind, key, UNKNOWN), facts))
        asked = dict(once.values())
        checked = 0
        for question, _, said in self.answers(list(asked)):
            facts = asked[question]
            text = documented[question[:2]][question[2]][2]
            number = re.search(r"number (?:from (\S+) to (\S+?)|of at least (\S+?)),? found", said)
            words = re.search(r"expected one of: (.*?)[;,] found", said)
            with self.subTest(question):
                if number:
                    low, high = number[1] or number[3], number[2] or "inf"
                    ways = [f"{low} to {high}", f"{low} to the ", f"{low} or more"]
                    ways += [f"at least {low}"] if float(high) >= 1e6 else []
                    self.assertTrue(any(way in facts for way in ways), f"({facts}) {said}")
                elif words and words[1].split() != self.kinds.get(question[0]):
                    for word in words[1].split():
                        self.assertRegex(text, rf"(?<![\w-]){re.escape(word)}(?![\w-])", said)
                elif "expected true or false" in said:
                    self.assertIn("true or false", facts)
                else:
                    continue
                checked += 1
        self.assertGreater(checked, CHECKED_LEAST)

    def test_defaults(self):
        """A run folder's run.yaml has every default."""
        documented = self.documented()
        sections = ("schedule", "optimizer", "lr_schedule", "data")
        checked = 0
        for kinds in itertools.zip_longest(*(self.kinds[section] for section in sections)):
            given = {where: kind for where, kind in zip(sections, kinds) if kind}
            checked += self.check_defaults(documented, given)
        self.assertGreater(checked, CHECKED_LEAST)

    def check_defaults(self, documented, given):
        """How many defaults a run with these kinds has."""
        sets = [one for where, kind in given.items() for one in self.sets(where, kind)]
        said = set(re.findall(r"([\w-]+)[=:]", flow(SECTIONS) + " ".join(sets)))
        sets += [f"{where}={{}}" for where in ("links", "record", "plan", "checkpoint",
                                              "train.stop_after")] + ["train.microbatch=8"]
        folder = f"out{next(self.numbers)}"
        self.ringpipe("sim", "run.yaml", *assigned(sets), "--executor", "digest", "--out", folder)
        whole = dict(line.split(": ", 1) for line in
                     (self.dir / folder / "run.yaml").read_text().splitlines())
        whole = {key: unflow(value) for key, value in whole.items()}
        count = 0
        for (where, kind), keys in documented.items():
            found = whole
            for part in filter(None, where.split(".")):
                found = found.get(part) if isinstance(found, dict) else None
            if not isinstance(found, dict) or kind not in ("", given.get(where)):
                continue
            for key, (name, facts, _) in keys.items():
                default = re.search(r"default (\[.*\]|[^; ]+)$", facts)
                if default and key in found and key not in said:
                    own = found[key]["kind"] if isinstance(found[key], dict) else found[key]
                    with self.subTest(name, key=key, of=given):
                        self.assertIn(default[1], (own, "auto") if own[:1].isdigit() else (own,))
                    count += 1
        return count

    def test_examples(self):
        """Every run file, and every part of one, is accepted by a dry run."""
        self.ringpipe("sim", self.run_file(self.run_text(
            model="torchvision-resnet18", data="{set: images, path: photos, size: 64}",
            train="{steps: 1, batch: 2}", ring="{boards: 1}", cut="auto"), "first.yaml"),
            "--executor", "digest", "--out", "first")
        (self.dir / "first/weights.safetensors").rename(self.dir / "resnet18.safetensors")
        self.ringpipe("sim", "run.yaml", "--executor", "digest", "--out", "weights")
        (self.dir / "weights/weights.safetensors").rename(self.dir / "weights.safetensors")
        whole = 0
        for page in PAGES:
            for text in examples(page):
                with self.subTest(page.name, example=text):
                    whole += text.startswith("model:") and self.check_example(text)
                    if not text.startswith("model:"):
                        self.check_part(text)
        self.assertEqual(whole, 6, "the smallest run file and five recipes")

    def check_example(self, text):
        path = self.run_file(text, "example.yaml")
        words = ("--keys", "left") if "roster:" in text else ()
        out, _ = self.ringpipe("train", path, "--dry-run", *words)
        self.assertIn("checked: ", out)
        return True

    def check_part(self, text):
        """Sections in place of those of a run file."""
        parts = re.findall(r"^(\w+): ?((?:.*\n)(?:[ #].*\n|\n)*)", text, re.M)
        sections = dict(SECTIONS, cut="auto")
        if not parts or not set(dict(parts)) <= {*sections, "loss", "lr_schedule", "links", "lanes",
                                                 "sites", "plan", "checkpoint", "record",
                                                 "recompute", "offload"}:
            return  # another file's
        given = re.search(r"set: (\w+)", text)
        if given and given[1] in MODELS:
            sections.update(model=MODELS[given[1]], ring="{boards: 1}")
        self.check_example("".join(f"{key}: {value.rstrip()}\n"
                                   for key, value in {**sections, **dict(parts)}.items()))

    def test_other_examples(self):
        """Model files and lists of faults."""
        found = [text for page in PAGES for text in examples(page)]
        models = [text for text in found if text.startswith("input:")]
        faults = [text for text in found if text.startswith("faults:")]
        self.assertTrue(models and faults)
        for text in models:
            path = self.new_file(text)
            self.ringpipe(*self.dry_run([f"model={path}", "cut=auto"]))
        for text in faults:
            sets = ("--set", "ring.boards=4", "--set", "cut=auto")
            self.ringpipe("sim", "run.yaml", "--executor", "digest", *sets, "--faults",
                          self.new_file(text))

    def test_pages(self):
        """Pages refer to pages that exist, and the page of the run file names them all."""
        run = (MAN / "ringpipe-run.5").read_text()
        names = {path.stem for path in MAN.glob("*.[1-9]")}
        for page in PAGES:
            with self.subTest(page.name):
                referred = re.findall(r"^\.Xr (\S+) \d", page.read_text(), re.M)
                self.assertEqual(set(referred) - names, set())
                if page.stem != "ringpipe-run":
                    self.assertIn(f".Xr {page.stem} 5", run.split(".Sh SEE ALSO")[1])

    def test_lint(self):
        if not shutil.which("mandoc"):
            self.skipTest("no mandoc")
        for page in ALL:
            done = subprocess.run(["mandoc", "-T", "lint", str(page)], capture_output=True,
                                  text=True, check=False)
            lines = [line for line in done.stdout.splitlines()
                     if "referenced manual not found" not in line]  # they are not installed
            self.assertEqual(lines, [])


def assigned(sets):
    return [word for one in sets for word in ("--set", one)]


def flow(keys):
    return "{" + ", ".join(f"{key}: {value}" for key, value in keys.items()) + "}"


def unflow(text):
    """A map in one line of YAML, with texts as values; other values as text."""
    if not text.startswith("{"):
        return text
    tokens = re.sub(r'"|[^\s{}\[\],:"][^{}\[\],:"]*|\[[^]]*\]',
                    lambda token: "" if token[0] == '"' else json.dumps(token[0].strip()), text)
    return json.loads(tokens)


load_tests = program.few_when_short("Manual.test_keys", "Manual.test_examples", "Manual.test_pages",
                                    "Manual.test_lint")


if __name__ == "__main__":
    program.main()
