"""The command that shows it all on private servers: demo."""

from __future__ import annotations

from typing import Annotated

import typer

from replicator.terminal.consoles import out


def demo(
    seconds: Annotated[int, typer.Option(min=1, help="How long the shards are written to.")] = 30,
    keep: Annotated[
        bool, typer.Option("--keep", help="Leave all running at the end, to look around.")
    ] = False,
) -> None:
    """Start private databases, merge their shards while they are written to, and prove it."""
    # Here, not above: so that the other commands need not wait for the import.
    from replicator.demo.show import play

    raise typer.Exit(play(out, run_seconds=seconds, keep=keep))
