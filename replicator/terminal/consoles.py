"""The terminal of the command line. Only commands print (held by ``tests/unit/test_layout.py``)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime

from rich.console import Console
from rich.text import Text

from replicator.terminal.ways_out import ways_out_list

out = Console()
"""What a command was asked for."""
err = Console(stderr=True)
"""What went wrong."""


def complain(message: str, *, where: str = "", ways_out: Sequence[str] = ()) -> None:
    """Tell why a command fails; where nobody has a terminal as a line of JSON, as the log is.

    ``where`` names source, target and position as far as known.
    """
    if not err.is_terminal:
        record = {
            "event": "command.failed",
            "level": "error",
            "error": message,
            "where": where,
            "ways_out": list(ways_out),
            "timestamp": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%fZ}",
        }
        line = json.dumps(record, ensure_ascii=False)
        err.print(line, markup=False, highlight=False, soft_wrap=True)
        return
    err.print(Text.assemble(("error: ", "bold red"), message), soft_wrap=True)
    if where:
        err.print(Text(f"where: {where}", style="dim"), soft_wrap=True)
    if ways_out:
        err.print(ways_out_list(ways_out))
