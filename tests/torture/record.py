"""The record of a torture: counts by kind, and where and how it was made."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from dmt.runs import environment
from dmt.runs.progress import duration
from tests.torture.parts import Part
from tests.torture.schedule import Found, repeat


def write(out: Path, content: dict[str, Any]) -> None:
    """As JSON, and as Markdown beside it."""
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")
    out.with_suffix(".md").write_text(markdown(content))


def summary(found: Sequence[Found], parts: Sequence[Part], command: str, seed: int, seconds: float) -> dict[str, Any]:
    """Plain values. The command is given without paths, which are nobody's business."""
    made = environment.describe(torch.device("cpu"))
    kept = {key: made[key] for key in ("dmt", "python", "torch", "numpy", "hardware", "git")}
    return {
        "command": command,
        "seed": seed,
        "seconds": round(seconds, 1),
        "environment": kept,
        "parts": {part.name: _of_part(part, [each for each in found if each.part == part.name]) for part in parts},
        "failures": [
            {"part": each.part, "case": each.case, "failure": each.failure, "repeat": repeat(each, seed)}
            for each in found
            if each.failure is not None
        ],
    }


def _of_part(part: Part, found: Sequence[Found]) -> dict[str, Any]:
    kinds: Counter[str] = Counter()
    figures: dict[str, float] = {}
    for each in found:
        if each.failure is None:
            kinds[each.kind] += each.count
        for name, value in each.figures.items():
            figures[name] = max(value, figures.get(name, value))
    content: dict[str, Any] = {
        "about": part.about,
        "cases": len(found),
        "failed": sum(each.failure is not None for each in found),
        "counts": dict(sorted(kinds.items())),
    }
    return content | ({"figures": {name: round(value, 3) for name, value in figures.items()}} if figures else {})


def markdown(content: dict[str, Any]) -> str:
    """For people."""
    about = content["environment"]
    hardware = ", ".join(f"{key} {value}" for key, value in about["hardware"].items())
    commit = about["git"]["commit"][:12] if about["git"] else "unknown"
    lines = [
        "# Torture",
        "",
        "Written by `make torture`; [the numbers as JSON](torture.json). What each part does is in `tests/torture/`.",
        "",
        f"`{content['command']}`, seed {content['seed']}: {duration(content['seconds'])}. dmt {about['dmt']} "
        f"({commit}), Python {about['python']}, torch {about['torch']}, NumPy {about['numpy']}; {hardware}.",
        "",
        f"**{len(content['failures'])} failures.**",
    ]
    for name, part in content["parts"].items():
        lines += ["", f"## {name}", "", part["about"], "", "| what | count |", "|---|---|"]
        lines += [f"| {kind} | {count:,} |" for kind, count in part["counts"].items()]
        lines.append(f"| **cases, of which failed** | {part['cases']:,}, {part['failed']} |")
        for figure, value in part.get("figures", {}).items():
            lines.append(f"| {figure} | {value:g} |")
    if content["failures"]:
        lines += ["", "## Failures", ""]
        lines += [f"- `{each['repeat']}`: {str(each['failure']).splitlines()[-1]}" for each in content["failures"]]
    return "\n".join(lines) + "\n"
