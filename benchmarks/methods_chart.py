"""Charts of every method's score at equal cost, from the records of `benchmarks.methods`.

Methods are sorted from best to worst. A large dot is the mean over seeds, a line one standard deviation to either side,
and small dots are single seeds. The numbers beside the names are thousands of forward-backward passes.

    python -m benchmarks.methods_chart benchmarks/results/methods_digits.json --out docs/images/methods-digits.svg
"""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from dmt import files

WIDTH, ROW, LEFT, RIGHT, TOP, BOTTOM = 760, 20, 230, 20, 34, 40
OWN = ("DMT", "DMT-Naive", "DMT-Flip", "DST")
"""Methods of the paper, which are drawn in another color."""


def chart(rows: Mapping[str, Any], title: str) -> str:
    """Return the chart as SVG, readable on light and dark pages."""
    best_first = sorted(rows.items(), key=lambda each: -each[1]["mean"]["shipped"])
    every: list[float] = [score for row in rows.values() for score in row["shipped"]]
    low, high = 5 * (min(every) // 5), min(100.0, 5 * (max(every) // 5 + 1))
    height = TOP + ROW * len(best_first) + BOTTOM

    def x(score: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * (min(max(score, low), high) - low) / (high - low)

    step = 5 if high - low <= 50 else 10
    ticks = [low + step * at for at in range(int((high - low) // step) + 1)]
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}"',
        ' font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>',
        f'<text x="10" y="20" font-size="14" font-weight="bold">{escape(title)}</text>',
    ]
    bottom = height - BOTTOM
    for tick in ticks:
        parts.append(f'<line x1="{x(tick):.1f}" y1="{TOP}" x2="{x(tick):.1f}" y2="{bottom}" stroke="#ddd"/>')
        parts.append(f'<text x="{x(tick):.1f}" y="{bottom + 16}" text-anchor="middle" fill="#555">{tick:g}</text>')
    for at, (name, row) in enumerate(best_first):
        y = TOP + ROW * (at + 0.5)
        color = "#c2410c" if name in OWN else "#111" if name.startswith("Baseline") else "#1d4ed8"
        mean, deviation = row["mean"]["shipped"], row["deviation"]["shipped"]
        parts.append(f'<text x="10" y="{y + 4:.1f}" fill="{color}">{escape(name)}</text>')
        passes = f"{row['passes'] / 1000:.0f}k"
        parts.append(f'<text x="{LEFT - 14}" y="{y + 4:.1f}" text-anchor="end" fill="#777">{passes}</text>')
        ends = f'x1="{x(mean - deviation):.1f}" x2="{x(mean + deviation):.1f}" y1="{y:.1f}" y2="{y:.1f}"'
        parts.append(f'<line {ends} stroke="{color}" stroke-width="2" opacity="0.5"/>')
        parts += [f'<circle cx="{x(s):.1f}" cy="{y:.1f}" r="2" fill="{color}" opacity="0.5"/>' for s in row["shipped"]]
        parts.append(f'<circle cx="{x(mean):.1f}" cy="{y:.1f}" r="4.5" fill="{color}"/>')
    parts.append(f'<text x="{WIDTH - RIGHT}" y="{height - 8}" text-anchor="end" fill="#555">test score, %</text>')
    return "\n".join([*parts, "</svg>", ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("record", type=Path)
    parser.add_argument("--title", default="")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    files.write(given.out, chart(files.read_json(given.record)["rows"], given.title).encode())


if __name__ == "__main__":
    main()
