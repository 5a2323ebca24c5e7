"""The command `demo`, which shows a merge on private servers."""

from __future__ import annotations

from typing import Annotated

import typer

from replicator.terminal.consoles import out


def demo(
    seconds: Annotated[int, typer.Option(min=1, help="How long to write to the shards.")] = 30,
    keep: Annotated[
        bool, typer.Option("--keep", help="Leave everything running at the end, to look around.")
    ] = False,
) -> None:
    """Start private databases, merge their shards while rows change, and prove the result."""
    # Imported here so that the other commands need not wait for this import.
    from replicator.demo.show import play

    raise typer.Exit(play(out, run_seconds=seconds, keep=keep))
