"""A page as one file without external resources, for light and dark themes, phones and print."""

import base64
import functools
import hashlib
from importlib import resources

from dmt.pages import html
from dmt.pages.html import Child, Safe, tag
from dmt.version import VERSION


def document(title: str, *sections: Child, subtitle: Child = "", refresh: int | None = None) -> str:
    """Return the HTML text of a page.

    Args:
        title: the page's title.
        sections: made by `section`.
        subtitle: a line under the title.
        refresh: seconds after which the browser reloads the page; None for never.
    """
    style, script = _asset("page.css"), _asset("page.js")
    # even if escaping failed somewhere, only these two may run as style and script, and nothing can be fetched
    policy = (
        f"default-src 'none'; img-src data:; style-src {_digest(style)}; script-src {_digest(script)}; "
        "base-uri 'none'; form-action 'none'"
    )
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="generator", content=f"dmt {VERSION}"),
        None if refresh is None else tag("meta", http_equiv="refresh", content=refresh),
        tag("title", title),
        tag("style", Safe(style)),
    )
    switch = tag("button", "light / dark", type="button", id="theme", title="switch between light and dark")
    header = tag("header", tag("div", tag("h1", title), tag("p", subtitle)), switch)
    body = tag("body", header, tag("main", *sections), tag("script", Safe(script)))
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"


def section(title: Child, *children: Child, id: str | None = None, note: Child = None) -> Safe:
    """Return a section of the page with a heading and, optionally, a note below it."""
    lead = None if note is None else html.paragraph(note, class_="note")
    return tag("section", tag("h2", title), lead, *children, id=id)


@functools.cache
def _asset(name: str) -> str:
    return resources.files("dmt.pages").joinpath(name).read_text(encoding="utf-8")


def _digest(content: str) -> str:
    """Return the hash source of a style or script for the page's Content-Security-Policy."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"
