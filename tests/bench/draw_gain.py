#!/usr/bin/env python3
"""The figure of host/planners/RESULTS.md: what unequal sizes gain against how uneven stages are.

    build/bin/bench_sizes points | tests/bench/draw_gain.py > host/planners/gain.svg

Reads lines of two numbers: the standard deviation over the stages of log10(a/c), and the gain over
the best even size in %. The line joins the medians of ten groups of as many points each.
"""
import statistics
import sys

WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 640, 400, 60, 50, 20


def main():
    points = sorted(tuple(map(float, line.split())) for line in sys.stdin if line.strip())
    if len(points) < 20 or any(len(p) != 2 for p in points):
        sys.exit("draw_gain.py: expected 20 lines or more of two numbers")
    x_max = max(x for x, _ in points) * 1.05
    y_max = max(y for _, y in points) * 1.05

    def place(x, y):
        across = LEFT + x / x_max * (WIDTH - LEFT - 20)
        return across, HEIGHT - BOTTOM - y / y_max * (HEIGHT - BOTTOM - TOP)

    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
    ]
    for tick in range(0, int(y_max) + 1, 5):
        x, y = place(0, tick)
        out.append(f'<path d="M{x:.0f} {y:.1f}H{WIDTH - 20}" stroke="#ddd"/>')
        out.append(f'<text x="{x - 8:.0f}" y="{y + 4:.1f}" text-anchor="end">{tick}</text>')
    for tick in range(int(x_max / 0.2) + 1):
        x, y = place(tick * 0.2, 0)
        at = f'x="{x:.1f}" y="{y + 18:.0f}" text-anchor="middle"'
        out.append(f"<text {at}>{tick * 0.2:.1f}</text>")
    for point in points:
        x, y = place(*point)
        out.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="1.6" fill="#36c" fill-opacity="0.5"/>')
    middles = []
    for group in range(10):
        part = points[group * len(points) // 10 : (group + 1) * len(points) // 10]
        middle = place(statistics.median(p[0] for p in part), statistics.median(p[1] for p in part))
        middles.append("{:.1f} {:.1f}".format(*middle))
    out.append(f'<path d="M{"L".join(middles)}" fill="none" stroke="#c33" stroke-width="2"/>')
    out.append(
        f'<text x="{WIDTH / 2:.0f}" y="{HEIGHT - 10}" text-anchor="middle">'
        "spread of log10(a/c) over the stages</text>"
    )
    out.append(
        f'<text x="16" y="{HEIGHT / 2:.0f}" text-anchor="middle" '
        f'transform="rotate(-90 16 {HEIGHT / 2:.0f})">gain over the best even size, %</text>'
    )
    out.append("</svg>")
    print("\n".join(out))


if __name__ == "__main__":
    main()
