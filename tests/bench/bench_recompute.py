#!/usr/bin/env python3
"""What recomputation saves and costs, here and in PyTorch, on the same net and order of ops.

bench_recompute.py BUILD [STEPS] [PYTHON]: a batch of 64 in microbatches of 8, all forwards and
then all backwards (gpipe on one board), of 12 convolutions with batch normalisation; everything
kept, one group, and groups of four, three and two blocks. PyTorch runs as PYTHON
(/usr/bin/python3) with checkpoint_sequential, in a process each; its memory is the most resident
bytes beyond those before the first step, ours what the board counts of its device. One thread
each. Seconds are of the processor, a step: ours two epochs more divided by their steps (an
evaluation of 8 samples is in it), theirs the least. PyTorch keeps all of its last group, so with
one group it keeps everything."""
import json
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

BATCH, MICRO, WIDTH, SIZE, BLOCKS = 64, 8, 32, 32, 12
SEGMENTS = (0, 1, 3, 4, 6)  # groups; 0: everything is kept


def model():
    lines = ["input: data", "layers:"]
    for i in range(BLOCKS):
        lines += [f"  - {{name: c{i}, kind: conv2d, out: {WIDTH}, kernel: 3, pad: 1}}",
                  f"  - {{name: b{i}, kind: batchnorm}}", f"  - {{name: r{i}, kind: relu}}"]
    lines += ["  - {name: mean, kind: globalavgpool}", "  - {name: flat, kind: flatten}",
              "  - {name: fc, kind: dense, out: classes}"]
    return "\n".join(lines) + "\n"


def groups_of(segments):
    return [f"c{i * BLOCKS // segments}" for i in range(segments)]


def ours(build, folder, segments, steps):
    (folder / "net.yaml").write_text(model())
    recompute = "none" if segments == 0 else f"[{', '.join(groups_of(segments))}]"
    (folder / "run.yaml").write_text(
        f"model: net.yaml\ndata: {{set: glyphs, train: {BATCH * steps}, test: 8, size: {SIZE}}}\n"
        "ring: {boards: 1, threads: 1}\n"
        f"train: {{epochs: 1, batch: {BATCH}, microbatch: {MICRO}}}\n"
        "loss: cross-entropy\noptimizer: {kind: sgd, lr: 0.01}\nschedule: gpipe\n"
        f"recompute: {recompute}\n")
    out = folder / f"out{segments}"
    spent = []
    for epochs in (1, 3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        text = subprocess.run([build / "bin" / "ringpipe", "train", folder / "run.yaml", "--out",
                               f"{out}-{epochs}", "--set", f"train.epochs={epochs}", "--format",
                               "json"], check=True, capture_output=True, text=True).stdout
        spent.append(resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before)
    step = (spent[1] - spent[0]) / (2 * steps)
    weights = folder / f"out{segments}-3" / "weights.safetensors"
    return json.loads(text)["stage"][0]["device_bytes_max"], step, weights


def theirs(segments, steps):
    import torch  # only in the child
    from torch.utils.checkpoint import checkpoint_sequential
    torch.set_num_threads(1)
    blocks = [torch.nn.Sequential(torch.nn.Conv2d(1 if i == 0 else WIDTH, WIDTH, 3, padding=1),
                                  torch.nn.BatchNorm2d(WIDTH), torch.nn.ReLU(inplace=True))
              for i in range(BLOCKS)]
    body = torch.nn.Sequential(*blocks)
    head = torch.nn.Linear(WIDTH, 10)
    optimiser = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.01)
    x = torch.randn(BATCH, 1, SIZE, SIZE, requires_grad=True)
    y = torch.randint(10, (BATCH,))
    body(x[:1]).sum().backward()
    optimiser.zero_grad(set_to_none=False)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    best = float("inf")
    for _ in range(steps):
        start = time.process_time()
        losses = []
        for part, labels in zip(x.split(MICRO), y.split(MICRO)):
            hidden = checkpoint_sequential(body, segments, part) if segments else body(part)
            logits = head(hidden.mean((2, 3)))
            loss = torch.nn.functional.cross_entropy(logits, labels, reduction="sum")
            losses.append(loss / BATCH)
        for loss in losses:
            loss.backward()
        optimiser.step()
        optimiser.zero_grad(set_to_none=False)
        best = min(best, time.process_time() - start)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps([1024 * (peak - before), best]))


def main():
    if sys.argv[1] == "--torch":
        return theirs(int(sys.argv[2]), int(sys.argv[3]))
    build = pathlib.Path(sys.argv[1]).resolve()
    steps = int(sys.argv[2]) if len(sys.argv) > 2 else 6
    python = sys.argv[3] if len(sys.argv) > 3 else "/usr/bin/python3"
    rows = []
    with tempfile.TemporaryDirectory() as name:
        same = set()
        for segments in SEGMENTS:
            used, step, weights = ours(build, pathlib.Path(name), segments, steps)
            same.add(weights.read_bytes())
            child = [python, __file__, "--torch", str(segments), str(steps)]
            text = subprocess.run(child, check=True, capture_output=True, text=True).stdout
            rows.append((segments, used, step, *json.loads(text)))
    print("groups  ours: MiB  of none  s/step  of none  PyTorch: MiB  of none  s/step  of none")
    for segments, used, step, torch_used, torch_step in rows:
        mib = [each / 2**20 for each in (used, torch_used)]
        of = [used / rows[0][1], step / rows[0][2], torch_used / rows[0][3],
              torch_step / rows[0][4]]
        print(f"{segments or 'none':>6}  {mib[0]:9.1f}  {of[0]:7.2f}  {step:6.3f}  {of[1]:7.2f}  "
              f"{mib[1]:12.1f}  {of[2]:7.2f}  {torch_step:6.3f}  {of[3]:7.2f}")
    print("our weights: the same bits in all" if len(same) == 1 else "OUR WEIGHTS DIFFER")
    return len(same) != 1


if __name__ == "__main__":
    sys.exit(main())
