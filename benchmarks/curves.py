"""Pictures of how figures change with a number: ``python -m benchmarks.curves benchmark.json``.

Each is an SVG file (https://www.w3.org/TR/SVG11/) of one curve for each of the rows in it.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import typer
from rich.console import Console

WIDTH, HEIGHT = 480, 300
LEFT, RIGHT, TOP, BOTTOM = 78, 18, 40, 52
COLOURS = ("#1f5fa8", "#c2571a")
GREY = "#666"
TICKS = 4
FOLDER = Path("docs/inside/curves")


@dataclass(frozen=True, slots=True)
class Curve:
    """Points from left to right; ``name`` is empty where the picture has no other."""

    name: str
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Picture:
    """A file ``name``.svg: what it shows of which rows, by their points.

    ``value`` gives the height of a point from what `CatchUp` says of it.
    """

    name: str
    title: str
    across: str
    up: str
    rows: tuple[tuple[str, str], ...]
    value: Callable[[Mapping[str, Any]], float]


def _rate(point: Mapping[str, Any]) -> float:
    return float(point["rate"])


def _memory(point: Mapping[str, Any]) -> float:
    return float(point["memory"]) / 2**20


PICTURES = (
    Picture("targets", "One task, more targets", "targets", "rows/s", (("targets", ""),), _rate),
    Picture(
        "sources",
        "One task, more sources",
        "sources",
        "rows/s",
        (("sources", "100-row inserts"), ("sources-small", "small transactions")),
        _rate,
    ),
    Picture("members", "One target, more members", "members", "rows/s", (("members", ""),), _rate),
    Picture(
        "backlog",
        "Memory while a backlog is caught up with",
        "rows of the backlog",
        "peak of all processes, MiB",
        (("long-backlog", ""),),
        _memory,
    ),
)


def curves_of(picture: Picture, rows: Mapping[str, Any]) -> list[Curve]:
    """The medians of the runs, point by point, of the picture's rows that were measured."""
    found = []
    for row, name in picture.rows:
        if row in rows:
            runs = [run["raw"]["points"] for run in rows[row]["runs"]]
            points = (
                (float(count), median(picture.value(run[count]) for run in runs))
                for count in runs[0]
            )
            found.append(Curve(name, tuple(points)))
    return found


def drawn(picture: Picture, curves: Sequence[Curve]) -> str:
    """The picture: counts on a logarithmic axis, heights from 0 on."""
    counts = sorted({x for curve in curves for x, _ in curve.points})
    top = _rounded_up(max(y for curve in curves for _, y in curve.points))
    low, high = math.log(counts[0]), math.log(counts[-1])

    def across(count: float) -> float:
        share = (math.log(count) - low) / (high - low) if high > low else 0.5
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    def up(value: float) -> float:
        return HEIGHT - BOTTOM - value / top * (HEIGHT - TOP - BOTTOM)

    parts = [_text(LEFT, 20, picture.title, size=14)]
    for tick in range(TICKS + 1):
        value = top * tick / TICKS
        parts.append(_line(LEFT, up(value), WIDTH - RIGHT, up(value), "#ddd"))
        parts.append(_text(LEFT - 6, up(value) + 4, f"{value:,.0f}", anchor="end"))
    parts += [_text(across(n), HEIGHT - BOTTOM + 18, f"{n:,.0f}", anchor="middle") for n in counts]
    parts.append(_text((LEFT + WIDTH) / 2, HEIGHT - 12, picture.across, anchor="middle"))
    parts.append(_text(LEFT, TOP - 6, picture.up, colour=GREY))
    for number, curve in enumerate(curves):
        places = [(across(x), up(y)) for x, y in curve.points]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        colour = COLOURS[number]
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"/>' for x, y in places]
        x, y = places[-1]
        parts.append(_text(x, y - 10, curve.name, anchor="end", colour=colour))
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}"'
    style = 'width="480" font-family="sans-serif"><rect width="100%" height="100%" fill="#fff"/>'
    return "\n".join([f"{head} {style}", *parts, "</svg>"]) + "\n"


def _rounded_up(value: float) -> float:
    """The next number of one or two digits, and zeros, that is not below the value."""
    unit = 10.0 ** math.floor(math.log10(value)) / 2
    return math.ceil(value / unit) * unit


def _text(
    x: float, y: float, text: str, *, size: int = 11, anchor: str = "start", colour: str = "#222"
) -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" fill="{colour}"'
    return f"<text {place}>{escape(text)}</text>"


def _line(x1: float, y1: float, x2: float, y2: float, colour: str) -> str:
    place = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    return f'<line {place} stroke="{colour}"/>'


def main(
    file: Annotated[Path, typer.Argument(help="What `make bench` has written.")],
    folder: Annotated[Path, typer.Argument(help="Where the pictures go.")] = Path(
        "docs/inside/curves"
    ),
) -> None:
    """Draw a picture of each growth that a file of figures holds."""
    try:
        rows = json.loads(file.read_text())["rows"]
    except (OSError, ValueError, KeyError) as error:
        Console(stderr=True).print(f"{file} can't be read: {error}")
        sys.exit(1)
    folder.mkdir(parents=True, exist_ok=True)
    for picture in PICTURES:
        curves = curves_of(picture, rows)
        if curves:
            (folder / f"{picture.name}.svg").write_text(drawn(picture, curves))


if __name__ == "__main__":
    typer.run(main)
