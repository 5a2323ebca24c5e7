"""A message in a frame, and below it what can be done about it."""

from __future__ import annotations

from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.panel import Panel
from rich.text import Text


@dataclass(frozen=True, slots=True)
class Framed:
    """A body in a frame with a title. Elsewhere than on a terminal there is no frame.

    ``below`` stands behind it, without a frame: so a command there can be copied as it is.
    """

    title: Text
    body: RenderableType
    border_style: str = ""
    below: RenderableType | None = None

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if console.is_terminal:
            yield Panel(
                self.body, title=self.title, title_align="left", border_style=self.border_style
            )
        else:
            yield self.title
            yield self.body
        if self.below is not None:
            yield self.below
