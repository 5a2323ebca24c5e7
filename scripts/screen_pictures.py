"""Draws what `status --watch` shows of an invented task, for the pages.

Use: ``python -m scripts.screen_pictures`` writes ``docs/assets/watch-*.svg``. ``--show`` writes the
screens to the terminal instead, in its own colours.
"""

from __future__ import annotations

import io
import re
import sys
from datetime import datetime, timedelta
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import DIMMED_MONOKAI, TerminalTheme

from replicator.status import (
    BlockedPart,
    Fault,
    HeldAtSource,
    LockSource,
    LockStatus,
    SourceStatus,
    TargetStatus,
    TaskStatus,
    WriterStatus,
    now,
)
from replicator.terminal.watch import View, WatchScreen

FOLDER = Path(__file__).parents[1] / "docs" / "assets"
SIZE = (80, 24)

_AT = "mysql-bin.000123:{}"
VIEWS = {"task": View(), "lock": View("lock", "shop.customers:4", opened=True)}


def _fault(since: datetime) -> BlockedPart:
    fault = Fault(
        "rows.duplicate",
        "a row of shop.orders_07 has a key that a row of another shard has on the target",
        f"source eu-02, target shop.orders, position {_AT.format(90_211)}",
        (
            "change the row on one of the shards, then"
            " `replicator resume orders --target shop.orders`",
        ),
        since,
    )
    held = HeldAtSource("eu-02", 17, _AT.format(90_002))
    return BlockedPart("target", "shop.orders", since, fault, held=(held,))


def _lock(since: datetime) -> LockStatus:
    missing = ("shop.customers_03", "shop.customers_04")
    return LockStatus(
        "shop.customers:4",
        "shop.customers",
        4,
        "ALTER TABLE `shop`.`customers` ADD COLUMN delivered_at DATETIME(6)",
        "eu-01",
        "waiting",
        since,
        120,
        (
            LockSource("eu-01", True, (), _AT.format(104_857)),
            LockSource("eu-02", False, missing, _AT.format(98_001)),
        ),
        remedies=("run the statement on the shards that lack it",),
    )


def task() -> TaskStatus:
    """A task with a fault and a lock, both three hours old."""
    since = now() - timedelta(hours=3, minutes=5, seconds=30)
    read, saved = _AT.format(104_857), _AT.format(104_001)
    return TaskStatus(
        "orders",
        "running",
        since,
        4711,
        sources=tuple(
            SourceStatus(f"eu-0{n}", "reading", read, saved_position=saved, lag_seconds=0.4)
            for n in (1, 2)
        ),
        targets=tuple(
            TargetStatus(f"shop.{name}", 16, 3, rows, rows // 9, rows_per_second=rows / 400)
            for name, rows in (("orders", 910_000), ("customers", 41_300), ("invoices", 730_000))
        ),
        writer=WriterStatus("applying", 5120, 1_870_000, 4200.0, 0.18, 81_000, 0.9),
        locks=(_lock(since),),
        blocked=(_fault(since),),
    )


_LIGHT = TerminalTheme(
    (255, 255, 255),
    (40, 40, 40),
    [(0, 0, 0), (176, 0, 0), (0, 110, 0), (140, 100, 0), (0, 0, 170), (140, 0, 140), (0, 110, 120)],
)
THEMES = {"light": _LIGHT, "dark": DIMMED_MONOKAI}
# Rich's own format loads its letters from a network.
_FORMAT = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font: {char_height}px/{line_height}px monospace; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


def picture(name: str, theme: str) -> str:
    """The text of an SVG: a view in a colour scheme. Times of day in it are always the same."""
    columns, lines = SIZE
    console = Console(
        width=columns, height=lines, file=io.StringIO(), record=True, force_terminal=True
    )
    console.print(WatchScreen(task(), VIEWS[name]))
    drawn = console.export_svg(
        title="replicator status orders --watch",
        theme=THEMES[theme],
        code_format=_FORMAT,
        unique_id=f"watch-{name}-{theme}",
    )
    return re.sub(r"\d{4}-\d\d-\d\d&#160;\d\d:\d\d:\d\d", "2026-11-20&#160;22:14:03", drawn)


def main() -> None:
    """Write all of them, or show the screens."""
    for name, view in VIEWS.items():
        if "--show" in sys.argv[1:]:
            Console().print(WatchScreen(task(), view))
            continue
        for theme in THEMES:
            (FOLDER / f"watch-{name}-{theme}.svg").write_text(picture(name, theme))


if __name__ == "__main__":
    main()
