"""The open locks of a task, for a terminal and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from rich.console import Group, RenderableType
from rich.text import Text

from replicator.printable_text import shown_json, shown_line
from replicator.status import BinlogDistance, DifferingTarget, LockClaim, LockSource, LockStatus
from replicator.status_json import plain
from replicator.terminal.figures import counted, number, seconds, size, some_by_source, some_of
from replicator.terminal.remedies import Framed, remedies_list

_BORDER = {"conflict": "red", "waiting": "yellow", "resolving": "green"}


MOST_SHARDS = 5
"""Maximum number of shards, and of sources, that are listed for a lock."""


def render_locks(
    locks: Sequence[LockStatus],
    differing: Sequence[DifferingTarget] = (),
    *,
    everything: bool = False,
) -> RenderableType:
    """Return a panel for each lock, and a list for each target whose shards differ.

    ``everything``: list all sources and shards, however many they are.
    """
    none = () if locks else (Text("no open locks"),)
    panels = (lock_panel(lock, everything=everything) for lock in locks)
    return Group(*none, *panels, *map(differences_list, differing))


def differences_list(differing: DifferingTarget) -> Text:
    """Return the differences of a target's shards, with the shards' names, and the notices."""
    lines = [Text.assemble(("shards of ", ""), (shown_line(differing.target), "bold"), " differ")]
    lines += [
        Text(f"  {shown_line(text)}: {some_of(shards)}")
        for text, shards in differing.by_difference.items()
    ]
    lines += [Text(f"  notice: {shown_line(notice)}", style="dim") for notice in differing.notices]
    return Text("\n").join(lines)


def locks_json(
    task: str, locks: Sequence[LockStatus], differing: Sequence[DifferingTarget] = ()
) -> str:
    """Return the documented JSON text: ``task``, ``locks``, ``differing``, as in the status."""
    values = {
        "task": task,
        "locks": plain(tuple(locks)),
        "differing": plain(tuple(differing)),
    }
    return shown_json(values, indent=2)


def lock_panel(lock: LockStatus, elsewhere: str = "", *, everything: bool = False) -> Framed:
    """Return a panel about one lock: the statement, its shards, the waiting rows, and the remedies.

    ``elsewhere`` has the same meaning as in `replicator.terminal.remedies.Remedies`, and
    ``everything`` the same as in `render_locks`.
    """
    title = Text.assemble(("lock ", ""), (lock.id, "bold"), f"  {lock.state}")
    ways = remedies_list(lock.remedies, elsewhere) if lock.remedies else None
    return Framed(title, Text("\n").join(_lines(lock, everything)), _BORDER[lock.state], ways)


def lock_line(lock: LockStatus) -> Text:
    """Return a line about a lock, cut at the terminal's width."""
    return Text.assemble(
        (f"lock {lock.id}  {lock.state}{_age(lock)}: ", f"bold {_BORDER[lock.state]}"),
        shown_line(lock.ddl),
        no_wrap=True,
        overflow="ellipsis",
    )


def _age(lock: LockStatus) -> str:
    if lock.since is None:
        return ""
    return f" for {seconds(max(0.0, (datetime.now(UTC) - lock.since).total_seconds()))}"


def _lines(lock: LockStatus, everything: bool) -> Iterator[Text]:
    yield Text(lock.ddl)
    held = f"{counted(lock.rows_held, 'row event')} held"
    if lock.reason:
        age = f"open{_age(lock)}; " if lock.since else ""
        yield Text(f"{age}{held}{', those of this shard only' * bool(lock.rows_held)}", style="dim")
    else:
        yield Text(
            f"item {lock.version} of {lock.target}, owner {lock.owner or '(none yet)'},{_age(lock)}"
            f"{',' * bool(lock.since)} {held}",
            style="dim",
        )
    if lock.reason:
        yield Text(lock.reason)
    told = [source for source in lock.sources if not (lock.reason and source.ready)]
    lacking = {source.source: source.missing for source in told if not source.ready}
    missing = sum(map(len, lacking.values()))
    if everything or (len(told) <= MOST_SHARDS and missing <= MOST_SHARDS):
        for source in told:
            yield _source(source, reads=not lock.reason)
    else:
        if missing:
            yield Text(f"missing {some_by_source(lacking, MOST_SHARDS)}")
        ready = sum(source.ready for source in lock.sources)
        yield Text(
            f"{number(ready)} of {counted(len(lock.sources), 'source')} ready; show-ddl-locks --all"
            " has all sources and shards",
            style="dim",
        )
    if lock.conflict is not None:
        yield Text(f"conflict on item {lock.conflict.version}:", style="bold red")
        yield _claim(lock.conflict.ours)
        yield _claim(lock.conflict.theirs)


def _source(source: LockSource, *, reads: bool) -> Text:
    state = "reading; " if reads else ""
    if source.ready:
        state = "ready; "
    elif source.missing:
        state = f"missing {', '.join(source.missing)}; "
    saved = f"saved at {source.saved_position or '-'}{distance_text(source.distance)}"
    return Text(f"source {source.source}: {state}{saved}")


def distance_text(distance: BinlogDistance | None) -> str:
    """Return the distances of a position from both ends of its binlog, to append.

    The result is empty for None.
    """
    if distance is None:
        return ""
    return (
        f", {distance.files_behind} files and {size(distance.bytes_behind)} before the end,"
        f" {distance.files_left or 'no'} older files kept"
    )


def _claim(claim: LockClaim) -> Text:
    return Text(f"  {claim.source}, {claim.member}: {'; then '.join(claim.statements)}")
