"""The outcome of a comparison as an HTML page: one file that needs no network."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from xml.etree import ElementTree as ET  # nosec B405: it makes a document, and reads none

from replicator.monitoring.page_elements import (
    add_table,
    add_text,
    as_document,
    clock,
    empty_page,
)
from replicator.pipeline.compare.findings import ComparedRange, TargetComparison
from replicator.terminal.comparison import remarks, verdict
from replicator.terminal.figures import number

CELLS = 400
"""Maximum number of cells of a strip; several ranges share a cell if there are more ranges."""

_KINDS = {"differs": "differing", "unsettled": "unsettled", "held": "held"}
"""The counts of a `ComparedRange` that make the range unequal, the most serious first."""
_COUNTS = ("missing", "extra", "different", "held", "unsettled")
_WORDS = {"equal": "good", "differs": "bad"}
"""The style of each definite verdict."""


def comparison_page(task: str, results: Sequence[TargetComparison], made_at: datetime) -> str:
    """Return the page; names and values from servers are escaped in it."""
    html, body = empty_page(f"Comparison of {task}")
    add_text(body, "h1", f"Comparison of {task}")
    kinds = ", ".join(("equal", *_KINDS))
    legend = "Each strip is a target in the order of its key, a cell a range of rows"
    add_text(body, "p", f"{clock(made_at)}. {legend}: {kinds}", "dim")
    for result in results:
        _section(ET.SubElement(body, "section", {"class": "ended"}), result)
    return as_document(html)


def _section(box: ET.Element, result: TargetComparison) -> None:
    word = verdict(result)
    add_text(add_text(box, "h2", f"{result.target} "), "span", word, _WORDS.get(word, "warn"))
    counts = (
        ("rows", result.rows),
        ("shards", len(result.by_shard)),
        ("ranges", len(result.ranges)),
    )
    figures = ", ".join(f"{number(count)} {what}" for what, count in counts)
    speed = f"{result.seconds:,.1f} s, {result.rows_per_second:,.0f} rows/s"
    add_text(box, "p", f"{figures}; {speed}", "dim")
    if result.ranges:
        strip = ET.SubElement(box, "div", {"class": "strip"})
        size = -(-len(result.ranges) // CELLS)
        for at in range(0, len(result.ranges), size):
            _cell(strip, at, result.ranges[at : at + size])
    add_table(
        box,
        [f"{name}#" for name in _COUNTS],
        [[number(getattr(result, name)) for name in _COUNTS]],
    )
    for remark in remarks(result):
        add_text(box, "p", remark, "warn")
    if result.examples:
        differing = number(result.differing + result.unowned)
        shown = f"{number(len(result.examples))} of {differing} rows that differ"
        heads = ("", "key", "shard", "column", "in the shard", "on the target")
        add_table(_details(box, shown, opened=True), heads, _examples(result))
    if result.by_shard:
        rows = ((name, number(count)) for name, count in sorted(result.by_shard.items()))
        add_table(_details(box, "rows of each shard"), ("shard", "rows#"), rows)


def _cell(strip: ET.Element, start: int, some: Sequence[ComparedRange]) -> None:
    found = {kind: sum(getattr(each, name) for each in some) for kind, name in _KINDS.items()}
    kind = next((kind for kind, count in found.items() if count), "equal")
    which = f"range {start + 1}" if len(some) == 1 else f"ranges {start + 1} to {start + len(some)}"
    more = "".join(f", {number(count)} {kind}" for kind, count in found.items() if count)
    title = f"{which}: {number(sum(each.rows for each in some))} rows{more}"
    ET.SubElement(strip, "i", {"class": kind, "title": title})


def _examples(result: TargetComparison) -> Iterator[tuple[str, ...]]:
    for example in result.examples:
        head: tuple[str, ...] = (example.kind, example.key, example.shard)
        for column in example.columns:
            yield (*head, column.column, column.in_shard, column.on_target)
            head = ("", "", "")
        if not example.columns:
            yield (*head, "", "", "")


def _details(box: ET.Element, summary: str, *, opened: bool = False) -> ET.Element:
    details = ET.SubElement(box, "details", {"open": ""} if opened else {})
    add_text(details, "summary", summary)
    return details
