#!/usr/bin/env python3
"""Drawings in files are seen by programs that know less than a browser: here by librsvg."""
import collections
import shutil
import struct
import subprocess
import unittest
import zlib

import lab
import program

RENDERER = shutil.which("rsvg-convert")


def pixels(png):
    """(width, height, rows of (red, green, blue)) of 8-bit RGB or RGBA, not interlaced."""
    at, data, head = 8, b"", None
    while at < len(png):
        size, kind = struct.unpack(">I4s", png[at : at + 8])
        if kind == b"IHDR":
            head = struct.unpack(">IIBBBBB", png[at + 8 : at + 21])
        if kind == b"IDAT":
            data += png[at + 8 : at + 8 + size]
        at += 12 + size
    width, height, depth, colour, _, _, interlace = head
    if depth != 8 or colour not in (2, 6) or interlace:
        raise ValueError(f"another kind of PNG: {head}")
    deep = 3 if colour == 2 else 4
    raw, above, rows = zlib.decompress(data), bytes(deep * width), []
    for y in range(height):
        start = y * (deep * width + 1)
        line = bytearray(raw[start + 1 : start + 1 + deep * width])
        for i in range(deep * width):
            left = line[i - deep] if i >= deep else 0
            corner = above[i - deep] if i >= deep else 0
            line[i] = (line[i] + predicted(raw[start], left, above[i], corner)) & 255
        rows.append([tuple(line[i : i + 3]) for i in range(0, deep * width, deep)])
        above = bytes(line)
    return width, height, rows


def predicted(kind, left, above, corner):
    if kind == 4:  # Paeth
        near = left + above - corner
        return min((left, above, corner), key=lambda v: abs(near - v))
    return (0, left, above, (left + above) // 2)[kind]


@unittest.skipUnless(RENDERER, "no rsvg-convert (librsvg2-bin)")
class Svg(lab.Case):
    def render(self, path):
        words = [RENDERER, str(path)]
        png = subprocess.run(words, check=True, capture_output=True).stdout
        width, height, rows = pixels(png)
        return rows[height - 2][width - 3], collections.Counter(p for row in rows for p in row)

    def check(self, path, *colours):
        """On white paper, little that is black, and what is drawn has its colours."""
        paper, count = self.render(path)
        whole = sum(count.values())
        self.assertEqual(paper, (255, 255, 255), path)
        self.assertGreater(count[255, 255, 255], 0.4 * whole, path)
        dark = sum(n for colour, n in count.items() if max(colour) < 16)
        self.assertLess(dark, 0.01 * whole, path)
        for colour in colours:
            wanted = tuple(int(colour[i : i + 2], 16) for i in (0, 2, 4))
            self.assertGreater(count[wanted], 20, f"{path}: no {colour}")

    def test_curves(self):
        self.lab(self.lab_file())
        drawings = sorted((self.dir / "out/curves").iterdir())
        self.assertGreaterEqual(len(drawings), 7)
        for path in drawings:
            with self.subTest(path.name):
                colours = () if "difference" in path.name else ("0b64b4", "d9541e")
                self.check(path, *colours)
                self.assertNotIn("var(", path.read_text(encoding="utf-8"))

    def test_draw(self):
        path = self.dir / "draw.svg"
        for words in (("1f1b",), ("pipeoptim",), ("interleaved-1f1b", "--chunks", "2")):
            with self.subTest(words[0]):
                out, _ = self.ringpipe("draw", *words, "--format", "svg")
                path.write_text(out, encoding="utf-8")
                self.check(path, "2f6db3", "f2a33a")


if __name__ == "__main__":
    program.main()
