"""Makes plain HTML pages from elements, never from text, so all text from servers is escaped.

The pages load nothing and run no script. They are light or dark as the browser is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from xml.etree import ElementTree as ET  # nosec B405: it makes a document, and reads none

from replicator.printable_text import printable_text
from replicator.terminal.remedies import parts_of

_STYLE = """
:root { color-scheme: light dark; --line: #d0d7de; --dim: #59636e; --bad: #cf222e; --warn: #9a6700;
  --good: #1a7f37; --box: #f6f8fa; --curve: #0969da; }
@media (prefers-color-scheme: dark) { :root { --line: #3d444d; --dim: #9198a1; --bad: #ff7b72;
  --warn: #e3b341; --good: #3fb950; --box: #161b22; --curve: #58a6ff; }
  body { background: #0d1117; color: #e6edf3; } }
body { font: 15px/1.45 system-ui, sans-serif; max-width: 72rem; margin: 1.2rem auto;
  padding: 0 1rem; }
h1 { font-size: 1.3rem; margin: 0 0 .2rem; } h2 { font-size: 1rem; margin: 0 0 .3rem; }
h3 { font-size: 1rem; margin: 1.4rem 0 .3rem; }
.dim { color: var(--dim); } .good { color: var(--good); } .bad { color: var(--bad); }
.warn { color: var(--warn); }
section { border: 1px solid var(--line); border-left: .3rem solid var(--bad); border-radius: .3rem;
  background: var(--box); padding: .6rem .9rem; margin: .8rem 0; overflow-wrap: anywhere; }
section.lock { border-left-color: var(--warn); } section.ended { border-left-color: var(--line); }
section p { margin: .2rem 0; } code { font-family: ui-monospace, monospace; font-size: .93em; }
.scroll { overflow-x: auto; margin: 1rem 0; } table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .2rem .9rem .2rem 0; border-bottom: 1px solid var(--line);
  vertical-align: top; } th { color: var(--dim); font-weight: normal; }
.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
figure { display: inline-block; margin: .6rem 2rem .2rem 0; } figcaption { color: var(--dim); }
svg { display: block; } polyline { fill: none; stroke: var(--curve); stroke-width: 1.5; }
.plot { display: block; margin-right: 0; } .plot svg { width: 100%; height: auto; }
.plot polyline { stroke-linecap: round; } .plot line { stroke: var(--line); stroke-width: 1; }
.plot text { fill: var(--dim); font-size: 12px; } .plot rect { fill: var(--dim); opacity: .2; }
.plot rect.fault { fill: var(--bad); }
.strip { display: flex; height: 22px; margin: .8rem 0; gap: 1px; } .strip i { flex: 1 1 0; }
.strip .equal { background: var(--good); } .strip .differs { background: var(--bad); }
.strip .held { background: var(--warn); } .strip .unsettled { background: var(--dim); }
"""


def empty_page(title: str, *, refresh_seconds: int = 0) -> tuple[ET.Element, ET.Element]:
    """Return an empty page and its body. Browsers reload it after ``refresh_seconds``, if set."""
    html = ET.Element("html", lang="en")
    head = ET.SubElement(html, "head")
    ET.SubElement(head, "meta", charset="utf-8")
    if refresh_seconds:
        ET.SubElement(head, "meta", {"http-equiv": "refresh", "content": str(refresh_seconds)})
    ET.SubElement(head, "meta", name="viewport", content="width=device-width, initial-scale=1")
    add_text(head, "title", title)
    # This style must not contain text from servers, because it is not escaped.
    ET.SubElement(head, "style").text = _STYLE
    return html, ET.SubElement(html, "body")


def as_document(html: ET.Element) -> str:
    """Return the page as text."""
    return "<!DOCTYPE html>\n" + ET.tostring(html, encoding="unicode", method="html") + "\n"


def add_text(parent: ET.Element, tag: str, text: str, kind: str = "") -> ET.Element:
    """Add an element with a text; ``kind`` is its CSS class."""
    made = ET.SubElement(parent, tag, {"class": kind} if kind else {})
    made.text = printable_text(text)
    return made


def add_remedies(box: ET.Element, remedies: Sequence[str]) -> None:
    """Add the remedies as a list; commands are separate from prose."""
    if not remedies:
        return
    items = ET.SubElement(box, "ul")
    for remedy in remedies:
        item = ET.SubElement(items, "li")
        for part in parts_of(remedy):
            add_text(item, "code" if part.command else "span", f"{part.text} ")


def add_table(body: ET.Element, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Add a table, if it has a row; columns of figures have a ``#`` at the end of their heading."""
    cells = list(rows)
    if not cells:
        return
    kinds = ["n" if head.endswith("#") else "" for head in heads]
    frame = ET.SubElement(body, "div", {"class": "scroll"})
    table = ET.SubElement(frame, "table")
    row = ET.SubElement(table, "tr")
    for head, kind in zip(heads, kinds, strict=True):
        add_text(row, "th", head.removesuffix("#"), kind)
    for values in cells:
        row = ET.SubElement(table, "tr")
        for value, kind in zip(values, kinds, strict=True):
            add_text(row, "td", value, kind)


def clock(moment: datetime) -> str:
    """Return a moment in the form that pages show."""
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
