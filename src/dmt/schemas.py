"""Schemas of the JSON files that dmt reads, which may be damaged, written by hand, or from an untrusted source."""

from typing import Any

from dmt.json_checks import (
    Check,
    anything,
    both,
    by_name,
    count,
    either,
    flag,
    listed,
    maybe,
    name,
    named,
    number,
    positive,
    record,
    same_length,
    square,
    text,
    whole,
)

# --- a run ---

_scalar = maybe(either(flag, number, text))
_option = either(_scalar, listed(either(_scalar, listed(_scalar))))

STARTS = by_name(record({"name": text, "digest": text}))

_stage = record(
    {
        "name": text,
        "lines?": listed(text),
        "round": count,
        "place": name,
        "identity?": text,
        "steps?": count,
        "start?": maybe(text),
        "labels?": maybe(
            record(
                {
                    "by": text,
                    "line?": text,
                    "fraction?": number,
                    "copy?": text,
                    "per_class?": flag,
                    "also?": listed(text),
                }
            )
        ),
        "objective?": record({"weighting?": text}),
        "schedule?": record({"epochs?": number, "rate?": number, "descent?": record({"rate": number})}),
    }
)

_job = record(
    {"method": text, "seed": whole, "stages": listed(_stage), "results": listed(text), "keep?": text}, closed=True
)

RUN = record(
    {
        "data": text,
        "folder?": maybe(text),
        "config": by_name(_option),
        "images": text,
        "starts?": both(STARTS, record({"A": record({}), "B": record({})})),
        "threads": positive,
        "warnings?": maybe(listed(text)),
        "search?": record({"lines": listed(text), "helps?": flag, "method?": text}),
        "shortened?": text,
        "pool?": record({"unlike": number, "images": listed(text)}),
        "jobs": listed(_job),
    }
)

SPLIT = record({"labeled": listed(text), "unlabeled?": listed(text), "validation?": listed(text)})

STATE = record(
    {
        "done": flag,
        "step": count,
        "steps": count,
        "device": text,
        "engine?": text,
        "checkpoint": name,
        "digests?": by_name(text),
        "ledger": record({"count": count, "sums": by_name(number)}),
        "seconds": number,
    }
)

_coverage = both(record({"predicted": listed(count), "kept": listed(count)}), same_length("predicted", "kept"))

PSEUDO = record({"round?": count, "fraction?": number})

PSEUDO_OF_PIXELS = record({"images": count, "kept": count, "of": count, "coverage": _coverage, "bytes?": count})

_counted = maybe(either(number, listed(maybe(number)), by_name(maybe(either(number, listed(maybe(number)))))))

AUDIT = by_name(_counted)

SCORE = both(
    record(
        {
            "accuracy": maybe(number),
            "fine_grained?": maybe(number),
            "mean_iou?": maybe(number),
            "count?": count,
            "per_class?": listed(maybe(number)),
            "iou?": listed(maybe(number)),
            "confusion?": square,
            "calibration?": listed(listed(maybe(number))),
            "calibration_error?": maybe(number),
            "absent?": listed(count),
        }
    ),
    same_length("per_class", "iou", "confusion"),
)

_by_copy = by_name(SCORE)

PAIR = record({"scores": _by_copy, "error": maybe(number)})

# --- lines of journals, by kind ---

_finding = record({"kind": text, "where": text, "text": text, "remedy": text, "about?": text}, closed=True)

LINES: dict[str, Check] = {
    "session": record({"dmt?": text}),
    "interval": record({"step": count, "seconds?": number}, also=maybe(number)),
    "labels": record({"kept": count, "of": count, "coverage": _coverage, "labeled?": listed(count)}),
    "round": record(
        {
            "scores": by_name(either(by_name(_by_copy), _by_copy)),
            "audit": maybe(AUDIT),
            "cost": record({"seconds?": number, "images?": number}, also=maybe(number)),
        }
    ),
    "guard": record({"findings": listed(_finding)}),
}


def line(value: Any, where: str) -> None:
    """Check one line of a journal by its kind; kinds that this release does not know are accepted."""
    record({"kind": text})(value, where)
    check = LINES.get(value["kind"], anything)
    check({key: each for key, each in value.items() if key != "kind"}, where)


# --- caches ---

SQUARES = record({"digests": listed(maybe(text)), "skipped": listed(text)})

# --- outputs of other commands: dmt tune, dmt audit, dmt pack, dmt export ---

TUNING = record(
    {
        "data": text,
        "method": text,
        "start": by_name(text),
        "config": by_name(_option),
        "seeds?": listed(whole),
        "trials": listed(record({"name": text, "failed?": maybe(text)})),
    }
)

AUDITED = record({"run": text, "method": text, "seed": whole, "folds": count})

PACK = record({"run": name, "sha256": text, "parts": both(by_name(text), named), "files?": listed(text)})

_net = record(
    {
        "name": text,
        "classes": positive,
        "shape": listed(positive, 3),
        "pixels": flag,
        "normalization": record({"mean": listed(number), "std": listed(number)}),
    }
)

CARD = record(
    {
        "spec": _net,
        "second?": maybe(_net),
        "name": text,
        "longest": maybe(positive),
        "sha256": text,
        "classes": listed(text),
        "palette": listed(listed(count, 3)),
    }
)
