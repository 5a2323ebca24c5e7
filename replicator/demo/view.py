"""What the demo shows while it runs: a live picture on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Self

from rich import box
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from replicator.demo.proof import MergeProof
from replicator.demo.tables import ENTITIES, SCHEMAS, SOURCES, Entity
from replicator.status import TaskStatus
from replicator.terminal.figures import number, seconds
from replicator.terminal.remedies import Framed

LINE_SECONDS = 2.0
"""Time between two plain lines."""
AROUND_SECONDS = 40
"""What starting, catching up and comparing take, roughly."""
_FINGERPRINT_LETTERS = 8

INTRODUCTION = """\
Two MariaDB servers play the shops [bold]shop-east[/] and [bold]shop-west[/]. Their orders, \
users and events are split over {shards} tables. An application writes to all of them: rows come \
in bulk and one by one, are changed, deleted, get new keys, and move from shard to shard.

Meanwhile [bold]replicator[/] follows both binlogs and merges the shards into three tables of a \
third server. At the end every row is compared.

All servers are private to this demo, and removed afterwards. It takes about {duration}."""


@dataclass(frozen=True)
class Moment:
    """One look at everything: seconds since the start, counts as (in the shards, in the target)."""

    doing: str
    elapsed: float
    changes: int
    transactions: int
    status: TaskStatus
    counts: tuple[tuple[Entity, int, int], ...]

    @property
    def lag(self) -> float | None:
        """Seconds that the slowest source is behind; None when not known."""
        known = [s.lag_seconds for s in self.status.sources if s.lag_seconds is not None]
        return max(known, default=None)

    @property
    def merged_per_second(self) -> int:
        """Rows per second written to all targets together."""
        return round(sum(target.rows_per_second for target in self.status.targets))


class DemoScreen:
    """Shows one moment after the other."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = Live(console=console, auto_refresh=False, transient=True)
        self._next_line = 0.0

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def show(self, moment: Moment) -> None:
        """Draw the moment; a plain line only every `LINE_SECONDS`."""
        if self._console.is_terminal:
            self._live.update(picture(moment), refresh=True)
        elif time.monotonic() >= self._next_line:
            self._next_line = time.monotonic() + LINE_SECONDS
            self._console.print(plain_line(moment), soft_wrap=True)


def introduction(run_seconds: int) -> Framed:
    """What is about to happen."""
    minutes = max(1, round((run_seconds + AROUND_SECONDS) / 60))
    duration = "a minute" if minutes == 1 else f"{minutes} minutes"
    text = INTRODUCTION.format(shards=shard_count(), duration=duration)
    return Framed(Text("replicator demo", "bold"), Text.from_markup(text), "cyan")


def shard_count(entity: Entity | None = None) -> int:
    """How many shards there are, of one entity or of all."""
    entities = ENTITIES if entity is None else (entity,)
    return sum(one.shards for one in entities) * len(SCHEMAS) * len(SOURCES)


def picture(moment: Moment) -> RenderableType:
    """The moment as a table with two lines of figures below."""
    table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False)
    for column in ("table", "shards", "rows in shards", "rows in target", "behind"):
        table.add_column(column, justify="left" if column == "table" else "right")
    for entity, in_shards, in_target in moment.counts:
        behind = in_shards - in_target
        table.add_row(
            entity.name,
            number(shard_count(entity)),
            number(in_shards),
            number(in_target),
            Text(number(behind), style="yellow" if behind else "green"),
        )
    writer = moment.status.writer
    figures = Text.assemble(
        ("application  ", "dim"),
        f"{number(moment.changes)} rows changed in {number(moment.transactions)} transactions\n",
        ("replicator   ", "dim"),
        (f"{number(moment.merged_per_second)} rows/s", "bold"),
        f", lag {seconds(moment.lag)}, {number(writer.batches)} batches, "
        f"last batch {seconds(writer.last_batch_seconds)}",
    )
    title = f"{moment.doing}  {moment.elapsed:.0f} s"
    return Panel(Group(table, figures), title=title, title_align="left", border_style="cyan")


def plain_line(moment: Moment) -> Text:
    """The moment in a line."""
    counts = ", ".join(
        f"{entity.name} {number(in_target)}/{number(in_shards)}"
        for entity, in_shards, in_target in moment.counts
    )
    return Text(
        f"{moment.elapsed:4.0f} s  {moment.doing}: {number(moment.changes)} rows changed, "
        f"{number(moment.merged_per_second)} rows/s merged, "
        f"lag {seconds(moment.lag)}; in target/shards: {counts}"
    )


def verdict_table(verdicts: list[MergeProof]) -> Table:
    """The proof, entity by entity."""
    table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False)
    for column in ("table", "shards", "rows in shards", "rows in target"):
        table.add_column(column, justify="left" if column == "table" else "right")
    for column in ("all shards", "target", "verdict"):
        table.add_column(column, no_wrap=True, min_width=_FINGERPRINT_LETTERS)
    for verdict in verdicts:
        table.add_row(
            verdict.entity.name,
            number(verdict.shards),
            number(verdict.shard_rows),
            number(verdict.target_rows),
            verdict.shard_fingerprint[:_FINGERPRINT_LETTERS],
            verdict.target_fingerprint[:_FINGERPRINT_LETTERS],
            Text("equal", style="bold green") if verdict.equal else Text("DIFFERS", "bold red"),
        )
    return table
