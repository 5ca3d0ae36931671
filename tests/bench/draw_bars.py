#!/usr/bin/env python3
"""Draws a row or a column of a Markdown table as bars of text.

    draw_bars.py FILE AFTER column NAME NUMBER
    draw_bars.py FILE AFTER row NAME NUMBER

The table is the first one after the line that begins with AFTER. NUMBER, from 1, says which number
of a cell is drawn; cells with fewer numbers are left out.
"""
import re
import sys
from pathlib import Path

BAR = 40  # characters of the longest bar


def read_table(path, after):
    """The cells of a table, its head first."""
    lines = Path(path).read_text(encoding="utf-8").split("\n")
    rest = next((lines[i:] for i, line in enumerate(lines) if line.startswith(after)), [])
    while rest and not rest[0].startswith("|"):
        rest = rest[1:]
    end = next((i for i, line in enumerate(rest) if not line.startswith("|")), len(rest))
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in rest[:end]]
    if len(rows) < 3:
        sys.exit(f"{path}: no table after a line that begins with '{after}'")
    return rows[:1] + rows[2:]


def pick_cells(table, kind, name):
    """[(label, cell)] of the column, or of the row, with this name."""
    head = table[0]
    if kind == "column" and name in head:
        return [(row[0], row[head.index(name)]) for row in table[1:]]
    rows = [row for row in table[1:] if row[0] == name]
    if kind == "row" and rows:
        return list(zip(head[1:], rows[0][1:]))
    sys.exit(f"no {kind} is called '{name}'")


def main():
    if len(sys.argv) != 6 or sys.argv[3] not in ("row", "column"):
        sys.exit(__doc__)
    path, after, kind, name, number = sys.argv[1:]
    bars = []
    for label, cell in pick_cells(read_table(path, after), kind, name):
        found = re.findall(r"\d[\d,]*(?:\.\d+)?", cell)
        if len(found) >= int(number):
            bars.append((label, found[int(number) - 1]))
    most = max(float(value.replace(",", "")) for _, value in bars)
    wide = max(len(label) for label, _ in bars)
    for label, value in bars:
        length = round(BAR * float(value.replace(",", "")) / most)
        print(f"{label:{wide}} {'█' * length} {value}")


if __name__ == "__main__":
    main()
