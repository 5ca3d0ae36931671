#!/usr/bin/python3
"""Training steps a second of one agent against PyTorch's best mode, same net, batch and threads.

    ./bootstrap build && tests/bench/bench_train.py [--threads N ..] [--batch N ..] [--rounds N]
        [--steps N] [--modes MODE ..] [--size N] [--history FILE.jsonl] [NET ..]

Needs a Python with torch, numpy and yaml, such as /usr/bin/python3 with Debian's python3-torch. The
mode `compile` needs PyTorch 2 and a C++ compiler; a mode that this PyTorch lacks is left out. Each
round runs ringpipe, then PyTorch in every mode, each in a process of its own; a figure is the
median over rounds of the median step after the first few. Images are of 32 x 32 unless told; texts
are random. Dropout is as in the model file.

ratio: ringpipe's samples/s over those of PyTorch's fastest mode: above 1 ringpipe is faster. MB:
peak of resident memory; of ringpipe the host's and the agent's from their start on, of PyTorch's
fastest mode from its third step on, without what compiling took.

`--history host/lab/speed.jsonl` appends a line for each row of the table, and warns if the net is
slower than in the last line about the same device, net, batch, threads, boards and size.
"""
import argparse
import json
import os
import platform
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

SOURCE = Path(__file__).resolve().parents[2]
MODES = ("eager", "channels-last", "compile", "both")
FIRST = 3  # steps that do not count
SCATTER = 0.1  # by which runs of the same program differ on a machine without other work
TEXT, CLASSES, PAIRS = "text", "classes", "pairs"
# What a net of texts reads: kind of data set, tokens of a sample, words there are.
TEXTS = {"char-rnn": (TEXT, 64, 65), "gpt-nano": (TEXT, 64, 65), "gpt-micro": (TEXT, 128, 65),
         "gpt-micro-tied": (TEXT, 128, 65), "gpt-mini": (TEXT, 256, 65),
         "residual-lstm": (CLASSES, 56, 10_000), "gnmt-narrow": (PAIRS, 40, 8_000)}
DEFAULT = ["cnn-small", "vgg16", "resnet18", "mobilenet-small", "vit-tiny-narrow", "gpt-micro",
           "residual-lstm", "gnmt-narrow"]


# ---- PyTorch, in a child process -------------------------------------------------------------


def torch_batch(args):
    """A batch, number of classes, number of tokens."""
    import torch

    kind, length, words = TEXTS.get(args.net, (None, 0, 0))
    if kind is None:
        x = torch.randn(args.batch, args.channels, args.size, args.size)
        return x, torch.randint(0, 10, (args.batch,)), 10, 0
    if kind == CLASSES:
        return (torch.randint(4, words, (args.batch, length)),
                torch.randint(0, 2, (args.batch,)), 2, words)
    if kind == PAIRS:
        return (torch.randint(4, words, (args.batch, 2 * length)),
                torch.randint(4, words, (args.batch, length)), words, words)
    return (torch.randint(0, words, (args.batch, length)),
            torch.randint(0, words, (args.batch, length)), words, words)


def vm_peak(process):
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return 1024 * int(line.split()[1])
    return 0


def torch_child(args):
    """Prints samples a second and the peak of memory."""
    import torch
    from torch_net import Net

    torch.manual_seed(1)
    torch.set_num_threads(args.threads)
    torch.backends.cudnn.allow_tf32 = False  # PyTorch's default on a GPU rounds to TF32
    wait = torch.cuda.synchronize if args.torch_device == "cuda" else lambda: None
    x, y, classes, tokens = torch_batch(args)
    net = Net(SOURCE / "host" / "models" / f"{args.net}.yaml", x, classes, tokens)
    net, x, y = net.to(args.torch_device), x.to(args.torch_device), y.to(args.torch_device)
    if args.mode in ("channels-last", "both"):
        net, x = net.to(memory_format=torch.channels_last), x.contiguous(
            memory_format=torch.channels_last)
    run = torch.compile(net) if args.mode in ("compile", "both") else net
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    times = []
    for step in range(args.steps + FIRST):
        if step == FIRST:
            Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here on
        wait()
        start = time.perf_counter()
        optimizer.zero_grad()
        out = run(x)
        torch.nn.functional.cross_entropy(out.flatten(0, -2), y.flatten()).backward()
        optimizer.step()
        wait()
        times.append(time.perf_counter() - start)
    print(json.dumps({"rate": args.batch / statistics.median(times[FIRST:]),
                      "bytes": vm_peak("self")}))


def torch_rate(args, net, batch, threads, mode):
    """None if PyTorch lacks the mode, and the reason on standard error."""
    words = [sys.executable, __file__, net, "--child", mode, "--batch", str(batch), "--threads",
             str(threads), "--steps", str(args.steps), "--size", str(args.size),
             "--torch-device", args.torch_device]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != 0:
        print(f"{net}, {mode}: {done.stderr.strip().splitlines()[-1][:200]}", file=sys.stderr)
        return None
    return json.loads(done.stdout.strip().splitlines()[-1])


# ---- ringpipe ----------------------------------------------------------------------------------


def write_text_data(net, folder, count):
    """`count` random samples; returns the run file's data section."""
    kind, length, words = TEXTS[net]
    draw = random.Random(1)
    if kind == TEXT:
        letters = [chr(33 + at) for at in range(words)]
        text = "".join(letters) + "".join(draw.choices(letters, k=(count + 20) * (length + 1)))
        (folder / "train.txt").write_text(text)
        (folder / "test.txt").write_text(text[:4 * length + 1])
        return f"{{set: text, path: {folder}, tokens: chars, time: {length}}}"
    names = [f"w{at}" for at in range(words - 4)]

    def sentence(size):
        return " ".join(draw.choices(names, k=size))

    every = " ".join(names)  # the first sample, which is cut: all words are in the training part
    if kind == CLASSES:
        lines = [f"0\t{every}"] + [f"{at % 2}\t{sentence(length)}" for at in range(count)]
        (folder / "train.tsv").write_text("\n".join(lines) + "\n")
        (folder / "test.tsv").write_text("\n".join(lines[-4:]) + "\n")
        return (f"{{set: tsv, path: {folder}, text: 1, label: 0, tokens: words, vocab: {words}, "
                f"time: {length}}}")
    for side in ("source", "target"):
        lines = [every] + [sentence(length - 1) for _ in range(count)]
        (folder / side).write_text("\n".join(lines) + "\n")
        (folder / f"test_{side}").write_text("\n".join(lines[-4:]) + "\n")
    return (f"{{set: pairs, path: {folder}, source: source, target: target, test_source: "
            f"test_source, test_target: test_target, tokens: words, vocab: {words}, "
            f"time: {length}}}")


def peaks_of(process, peaks):
    """The peak of each process below this one, kept after it has ended."""
    parents = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        parents[int(entry.name)] = int(fields[1])
    below = {process}
    for _ in range(4):
        below |= {child for child, parent in parents.items() if parent in below}
    for one in below:
        try:
            peaks[one] = max(peaks.get(one, 0), vm_peak(one))
        except OSError:
            pass


def write_run(folder, net, batch, threads, steps, boards, size):
    """A run file and its data in the folder."""
    data = write_text_data(net, folder, batch * steps) if net in TEXTS else \
        f"{{set: glyphs, size: {size}, train: {batch * steps}, test: 16}}"
    loss = "{kind: cross-entropy, ignore: 0}" if TEXTS.get(net, ("",))[0] == PAIRS else \
        "cross-entropy"
    run = folder / "run.yaml"
    run.write_text(f"""\
model: {net}
data: {data}
ring: {{boards: {boards}, threads: {threads}}}
train: {{steps: {steps}, batch: {batch}, seed: 1, eval_epochs: 0}}
loss: {loss}
optimizer: {{kind: sgd, lr: 0.01, momentum: 0.9}}
schedule: gpipe
""")
    return run


def ring_rate(args, net, batch, threads):
    steps = args.steps + FIRST + 1
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run = write_run(folder, net, batch, threads, steps, args.boards, args.size)
        program = os.environ.get("RINGPIPE", SOURCE / "build" / "bin" / "ringpipe")
        peaks = {}
        with open(folder / "said", "wb") as said, subprocess.Popen(
                [program, "train", run, "--out", folder / "out"], stdout=said, stderr=said) as ring:
            while ring.poll() is None:
                peaks_of(ring.pid, peaks)
                time.sleep(0.2)
        if ring.returncode != 0:
            raise SystemExit(f"{net}: {(folder / 'said').read_text()}")
        lines = [json.loads(line) for line in open(folder / "out" / "log.jsonl")]
        times = [line["time_s"] for line in lines if "loss" in line and "event" not in line]
        gaps = [b - a for a, b in zip(times, times[1:])]
        return {"rate": batch / statistics.median(gaps[FIRST:]), "bytes": sum(peaks.values())}


# ---- history -----------------------------------------------------------------------------------


def device_name(torch_device):
    """The processor, or the GPU that PyTorch sees."""
    if torch_device == "cuda":
        done = subprocess.run(["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"],
                              capture_output=True, text=True)
        return done.stdout.strip().splitlines()[0] if done.stdout.strip() else "cuda"
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def commit_name():
    done = subprocess.run(["git", "-C", SOURCE, "describe", "--always", "--dirty=+"],
                          capture_output=True, text=True)
    return done.stdout.strip() or "unknown"


# Entries that are alike in these were measured on the same work.
SAME = ("device", "net", "batch", "threads", "boards", "size")


def read_entry(path, number, line):
    try:
        entry = json.loads(line)
    except json.JSONDecodeError:
        entry = None
    if not isinstance(entry, dict):
        raise SystemExit(f"{path}:{number}: expected a JSON object")
    return entry


def last_entry(path, entry):
    """The last entry of the file about the same work on the same device, or None."""
    lines = path.read_text().splitlines() if path.exists() else []
    known = [read_entry(path, number, line) for number, line in enumerate(lines, 1)]
    alike = [one for one in known if all(one.get(key) == entry[key] for key in SAME)]
    return alike[-1] if alike else None


def slowdown(before, entry):
    """A warning if the net has become slower by more than runs differ; otherwise None."""
    if before is None or entry["rate"] >= (1 - SCATTER) * before["rate"]:
        return None
    return (f"warning: {entry['net']}, batch {entry['batch']}, {entry['threads']} threads: "
            f"{entry['rate']:.1f} samples/s (load {entry['load']:.1f}), before "
            f"{before['rate']:.1f} (load {before['load']:.1f}) on {before['date']} at "
            f"{before['commit']}")


def keep_entry(path, entry):
    """Appends the entry, and prints a warning if the net has become slower."""
    warning = slowdown(last_entry(path, entry), entry)
    with open(path, "a") as history:
        history.write(json.dumps(entry) + "\n")
    if warning:
        print(warning, file=sys.stderr, flush=True)


# ---- both --------------------------------------------------------------------------------------


def median_of(results, key):
    return statistics.median(result[key] for result in results)


def measure(args, net, batch, threads):
    """A row of the table."""
    ours, theirs = [], {mode: [] for mode in args.modes}
    for _ in range(args.rounds):
        ours.append(ring_rate(args, net, batch, threads))
        for mode in list(theirs):
            result = torch_rate(args, net, batch, threads, mode)
            if result is None:
                del theirs[mode]
            else:
                theirs[mode].append(result)
    if not theirs:
        raise SystemExit(f"{net}: PyTorch ran in no mode")
    rates = {mode: median_of(results, "rate") for mode, results in theirs.items()}
    best = max(rates, key=rates.get)
    rate = median_of(ours, "rate")
    cells = " | ".join(f"{rates[mode]:.1f}" if mode in rates else "" for mode in args.modes)
    print(f"| {net} | {batch} | {threads} | {rate:.1f} | {cells} | {rate / rates[best]:.2f} | "
          f"{median_of(ours, 'bytes') / 1e6:.0f} | {median_of(theirs[best], 'bytes') / 1e6:.0f} |",
          flush=True)
    if args.history:
        keep_entry(args.history, {
            "date": time.strftime("%Y-%m-%d"), "commit": commit_name(),
            "device": device_name(args.torch_device), "load": os.getloadavg()[0], "net": net,
            "batch": batch, "threads": threads, "boards": args.boards, "size": args.size,
            "rounds": args.rounds, "steps": args.steps, "rate": rate, "best": best,
            "best_rate": rates[best], "bytes": median_of(ours, "bytes"),
            "best_bytes": median_of(theirs[best], "bytes")})


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, nargs="+", default=[os.cpu_count()])
    parser.add_argument("--batch", type=int, nargs="+", default=[64])
    parser.add_argument("--steps", type=int, default=12, help="that count, in each process")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--modes", nargs="+", choices=MODES, default=list(MODES))
    parser.add_argument("--size", type=int, default=32, help="of the images")
    parser.add_argument("--boards", type=int, default=1)
    parser.add_argument("--torch-device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--history", type=Path, metavar="FILE.jsonl")
    parser.add_argument("--child", choices=MODES, help=argparse.SUPPRESS)
    parser.add_argument("nets", nargs="*", default=DEFAULT)
    args = parser.parse_args()
    if args.steps < 4:
        parser.error("--steps: at least 4")
    if args.child:
        args.net, args.mode, args.channels = args.nets[0], args.child, 1
        args.batch, args.threads = args.batch[0], args.threads[0]
        torch_child(args)
        return
    print(f"| net | batch | threads | ringpipe | {' | '.join(args.modes)} | ratio | MB | "
          f"PyTorch's MB |\n|---|---:|---:|---:|{'---:|' * len(args.modes)}---:|---:|---:|")
    for net in args.nets:
        for batch in args.batch:
            for threads in args.threads:
                measure(args, net, batch, threads)


if __name__ == "__main__":
    sys.exit(main())
