"""Ways in which files get damaged, drawn from a seed: flipped bits, missing ends, and JSON that means nothing."""

import copy
import json
import random
from collections.abc import Iterator
from typing import Any

HUGE = 10**400
VALUES: tuple[Any, ...] = (None, True, -1, 3.5, HUGE, float("inf"), "", "../../x", [], {}, [[]], {"a": None}, [None])


def of_bytes(content: bytes, rng: random.Random) -> bytes:
    """One flipped bit, one piece of zeros, or a missing end."""
    kind = rng.choice(("flip", "flip", "flip", "zeros", "cut"))
    place = rng.randrange(max(1, len(content)))
    if kind == "cut":
        return content[:place]
    changed = bytearray(content)
    if kind == "zeros":
        changed[place : place + 16] = bytes(len(changed[place : place + 16]))
    elif changed:
        changed[place] ^= 1 << rng.randrange(8)
    return bytes(changed)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where something stands in a JSON value."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in items:
        yield from places(each, (*path, key))


def of_json(text: str, rng: random.Random) -> str:
    """One value replaced by another kind of value, or left out; of JSON lines in one of them."""
    lines = text.splitlines() if text.count("\n{") else [text]
    number = rng.randrange(len(lines))
    value = json.loads(lines[number])
    depths: dict[int, list[tuple[Any, ...]]] = {}
    for path in places(value):
        depths.setdefault(len(path), []).append(path)
    chosen = rng.choice(depths[rng.choice(list(depths))])
    lines[number] = json.dumps(_changed(value, chosen, rng))
    return "\n".join(lines) + "\n"


def _changed(value: Any, path: tuple[Any, ...], rng: random.Random) -> Any:
    if not path:
        return rng.choice(VALUES)
    changed = copy.deepcopy(value)
    holder = changed
    for key in path[:-1]:
        holder = holder[key]
    if rng.random() < 0.25:
        del holder[path[-1]]
    else:
        holder[path[-1]] = rng.choice(VALUES)
    return changed
