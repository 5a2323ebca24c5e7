"""The result of waiting until a task has applied its sources, on a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from replicator.status import SourceStatus


def render_waited(
    task: str, seconds: float, sources: Sequence[SourceStatus], *, applied: bool
) -> Text:
    """Return a line with the result, and a line for each source."""
    what = "everything is applied" if applied else "not everything is applied"
    lines = [Text(f"task {task}: {what} after {seconds:.1f} s")]
    for source in sources:
        gtid = f" ({source.complete_gtid})" if source.complete_gtid else ""
        lines.append(Text(f"  {source.source}: up to {source.complete_position or '-'}{gtid}"))
    return Text("\n").join(lines)
