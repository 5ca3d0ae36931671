#!/usr/bin/env python3
"""Histograms of the weights in the TensorBoard events, against the checkpoints themselves."""
import bisect
import json
import math
import struct
import sys

from program import Case, main, read_safetensors

ASYNC = ("--set", "schedule=async", "--set", "train={epochs: 2, batch: 64, seed: 1}")


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def fields(data):
    """(number, value) of each field of a protobuf message; 64 bits as bytes."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        else:
            size = {1: 8, 5: 4}.get(key & 7)
            if size is None:
                size, at = varint(data, at)
            value, at = data[at : at + size], at + size
        yield key >> 3, value


def doubles(data):
    return list(struct.unpack(f"<{len(data) // 8}d", data))


def events(path):
    """(step, tag, value) of each point; of a histogram the value is its fields."""
    data, at, found = path.read_bytes(), 0, []
    while at < len(data):
        (size,) = struct.unpack_from("<Q", data, at)
        event = dict(fields(data[at + 12 : at + 12 + size]))
        at += size + 16
        if 5 not in event:
            continue
        point = dict(fields(dict(fields(event[5]))[1]))
        if 5 in point:
            value = {number: doubles(raw) for number, raw in fields(point[5])}
        else:
            (value,) = struct.unpack("<f", point.get(2, bytes(4)))
        found.append((event.get(2, 0), point[1].decode(), value))
    return found


def limits():
    side, value = [], 1e-12
    while value < 1e20:
        side.append(value)
        value *= 1.1
    side.append(sys.float_info.max)
    return [-v for v in reversed(side)] + [0.0] + side


class Histograms(Case):
    def points(self, out, of="weights/"):
        found = events(self.dir / out / "events.out.tfevents.ringpipe")
        return [(step, tag, value) for step, tag, value in found if tag.startswith(of)]

    def expect_of(self, tensors, step, points):
        """The histograms of a step say of every tensor what its values say."""
        mine = {tag.removeprefix("weights/"): value for at, tag, value in points if at == step}
        self.assertEqual(set(mine), set(tensors))
        edges = limits()
        for name, (_, values) in tensors.items():
            histogram = mine[name]
            one = {number: value[0] for number, value in histogram.items() if number < 6}
            self.assertEqual(one.get(1, 0.0), min(values), name)
            self.assertEqual(one.get(2, 0.0), max(values), name)
            self.assertEqual(one[3], len(values), name)
            scale = math.fsum(map(abs, values))
            self.assertLess(abs(one.get(4, 0.0) - math.fsum(values)), 1e-12 * scale + 1e-300)
            squares = math.fsum(v * v for v in values)
            self.assertLessEqual(abs(one.get(5, 0.0) - squares), 1e-12 * squares)
            want = {}
            for value in values:
                edge = edges[bisect.bisect_right(edges, value)]
                want[edge] = want.get(edge, 0) + 1
            self.assertEqual(histogram[6], sorted(histogram[6]), name)
            got = {edge: count for edge, count in zip(histogram[6], histogram[7]) if count}
            self.assertEqual(got, want, name)
            # The bucket in front of a filled one ends where that begins.
            for k, edge in enumerate(histogram[6]):
                if histogram[7][k] and edge != edges[0]:
                    self.assertEqual(histogram[6][k - 1], edges[edges.index(edge) - 1], name)

    def test_they_are_of_the_checkpoints(self):
        for words in (("--set", "train.epochs=2"), ASYNC,
                      (*ASYNC, "--set", "schedule={kind: ea-pipe, replicas: 2}")):
            with self.subTest(words):
                out = self.dir / f"out{len(list(self.dir.iterdir()))}"
                self.ringpipe("train", self.run_file(), "--out", out, *words,
                              "--set", "record.histograms=3")
                points = self.points(out)
                self.assertEqual(sorted({step for step, _, _ in points}), [2, 3, 5, 7])
                final = read_safetensors(out / "weights.safetensors")
                for step in (5, 7):  # the last two are kept; a run has 8
                    saved = out / "checkpoint" / f"step-{step + 1:010}.safetensors"
                    tensors = read_safetensors(saved)
                    self.expect_of({name: tensors[name] for name in final}, step, points)
                self.expect_of(final, 7, points)

    def test_nothing_else_changes(self):
        words = (*ASYNC, "--set", "train.checkpoint_steps=3", "--set", "cut=[fc2]")
        for out, more in (("without", ()), ("with", ("--set", "record={histograms: checkpoints}"))):
            self.ringpipe("train", self.run_file(), "--out", out, *words, *more)
        self.assertEqual(*((self.dir / out / "weights.safetensors").read_bytes()
                           for out in ("without", "with")))
        self.assertEqual(self.points("without"), [])
        self.assertEqual(sorted({step for step, _, _ in self.points("with")}), [2, 3, 5, 7])

    def test_a_resumed_run_has_each_once(self):
        words = ("--set", "record.histograms=3", "--set", "train.epochs=2")
        self.ringpipe("train", self.run_file(), "--out", "whole", *words)
        self.ringpipe("train", self.run_file(), "--out", "half", *words, "--set", "train.epochs=1")
        self.ringpipe("resume", "half", "--set", "train.epochs=2")
        self.assertEqual(self.points("half"), self.points("whole"))
        (self.dir / "half" / "weights.safetensors").unlink()
        self.ringpipe("resume", "half")  # saved once more
        self.assertEqual(self.points("half"), self.points("whole"))

    def test_what_is_not_finite_is_counted_and_said(self):
        words = ("--set", "train.guard=false", "--set", "optimizer={kind: sgd, lr: 1.0e+30}",
                 "--set", "record.histograms=1", "--set", "train.stop_after.non_finite=0")
        self.ringpipe("train", self.run_file(), "--out", "out", *words)
        sizes = {name: len(values) for name, (_, values) in
                 read_safetensors(self.dir / "out" / "weights.safetensors").items()}
        inside = {(step, tag.removeprefix("weights/")): value[3][0]
                  for step, tag, value in self.points("out")}
        outside = {}
        for kind in ("nan/", "infinite/"):
            for step, tag, value in self.points("out", kind):
                key = step, tag.removeprefix(kind)
                outside[key] = outside.get(key, 0) + value
        self.assertTrue(outside)
        for step in range(4):
            for name, size in sizes.items():
                key = step, name
                self.assertEqual(inside.get(key, 0) + outside.get(key, 0), size, key)
        for step, _, value in self.points("out"):
            numbers = [number for field in value.values() for number in field]
            self.assertTrue(all(map(math.isfinite, numbers)), step)
        lines = map(json.loads, (self.dir / "out" / "log.jsonl").read_text().splitlines())
        said = [line for line in lines if line.get("event") == "not_finite"]
        self.assertEqual([line["step"] for line in said], sorted({step + 1 for step, _ in outside}))
        self.assertGreater(said[-1]["nan"] + said[-1]["infinite"], 0)
        self.assertEqual(said[-1]["values"], sizes[said[-1]["tensor"]])


if __name__ == "__main__":
    main()
