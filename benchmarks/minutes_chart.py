"""A chart of score against minutes of training, from records of runs (`benchmarks.voc_record`).

    python -m benchmarks.minutes_chart --title TITLE --out docs/images/minutes-cifar10.svg --level "the paper=94.21" \
        "DMT=benchmarks/results/cifar10_4k_controls.json:controls-2:dmt"

A dot is the end of a stage: the test score of its EMA copy, after the training time of all stages up to it.
"""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

from dmt import files

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 760, 430, 50, 190, 34, 44
COLORS = ("#c2410c", "#1d4ed8", "#15803d", "#7e22ce", "#0e7490", "#be185d")

Line = list[tuple[float, float]]
"""Minutes and scores."""


def read(source: str) -> Line:
    """Return a run's line, given as RECORD:RUN:METHOD."""
    record, run, method = source.rsplit(":", 2)
    jobs = files.read_json(Path(record))["jobs"]
    (job,) = (each for each in jobs if (each["run"], each["method"]) == (run, method))
    line, seconds = [], 0.0
    for stage in job["stages"]:
        seconds += stage["seconds"]
        line.append((seconds / 60, stage["scores"]["test"]["ema"]["score"]))
    return line


def chart(lines: Mapping[str, Line], levels: Mapping[str, float], title: str) -> str:
    """Return the chart as SVG with a white background; levels are horizontal lines."""
    scores = [score for line in lines.values() for _, score in line] + list(levels.values())
    low, high = int(min(scores)), int(max(scores)) + 1
    longest = max(minutes for line in lines.values() for minutes, _ in line)

    def x(minutes: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * minutes / longest

    def y(score: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (score - low) / (high - low)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}"',
        ' font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
        f'<text x="10" y="20" font-size="14" font-weight="bold">{escape(title)}</text>',
    ]
    for tick in range(low, high + 1):
        parts.append(f'<line x1="{LEFT}" y1="{y(tick):.1f}" x2="{x(longest):.1f}" y2="{y(tick):.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y(tick) + 4:.1f}" text-anchor="end" fill="#555">{tick}</text>')
    parts += [
        f'<text x="{x(tick):.1f}" y="{HEIGHT - 26}" text-anchor="middle" fill="#555">{tick}</text>'
        for tick in range(0, int(longest) + 1, 2)
    ]
    under = "minutes of training; dots: test score in % of the EMA copy after each stage"
    parts.append(f'<text x="{LEFT}" y="{HEIGHT - 8}" fill="#555">{under}</text>')
    for score in levels.values():
        ends = f'x1="{LEFT}" x2="{x(longest):.1f}" y1="{y(score):.1f}" y2="{y(score):.1f}"'
        parts.append(f'<line {ends} stroke="#555" stroke-dasharray="5 4"/>')
    for color, line in zip(COLORS, lines.values(), strict=False):
        points = " ".join(f"{x(minutes):.1f},{y(score):.1f}" for minutes, score in line)
        parts.append(f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="2" opacity="0.7"/>')
        parts += [
            f'<circle cx="{x(minutes):.1f}" cy="{y(score):.1f}" r="4" fill="{color}"><title>{minutes:.1f} minutes, '
            f"{score:.2f} %</title></circle>"
            for minutes, score in line
        ]
    last = {name: line[-1][1] for name, line in lines.items()} | dict(levels)
    colors = dict(zip(lines, COLORS, strict=False)) | dict.fromkeys(levels, "#555")
    below = 0.0
    for name, score in sorted(last.items(), key=lambda each: -each[1]):  # names beside the ends, none over another
        below = max(below + 18, y(score) + 4)
        place = f'x="{WIDTH - RIGHT + 12}" y="{below:.1f}" fill="{colors[name]}"'
        parts.append(f"<text {place}>{score:.2f} {escape(name)}</text>")
    return "\n".join([*parts, "</svg>", ""])


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lines", nargs="+", metavar="NAME=RECORD:RUN:METHOD", help=f"{len(COLORS)} at most")
    parser.add_argument("--level", action="append", default=[], metavar="NAME=SCORE", help="a horizontal line")
    parser.add_argument("--title", default="")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args(arguments)
    if len(given.lines) > len(COLORS):
        parser.error(f"{len(given.lines)} lines; there are {len(COLORS)} colors")
    lines = {name: read(source) for name, source in (each.split("=", 1) for each in given.lines)}
    levels = {name: float(score) for name, score in (each.split("=", 1) for each in given.level)}
    files.write(given.out, chart(lines, levels, given.title).encode())


if __name__ == "__main__":
    main()
