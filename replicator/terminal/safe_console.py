"""A console for text that may come from anywhere."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from replicator.shown_text import shown_text


class SafeConsole(Console):
    """A console that writes text as it is, and control characters in it as escapes.

    Names and values of servers and files come into nearly all that is shown: they are no markup,
    and give the terminal no orders. Also into a pipe, since somebody may look at what comes out.
    """

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, markup=False, emoji=False)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """The pieces of something to be shown."""
        for segment in super().render(renderable, options):
            if segment.control:
                yield segment
            else:
                yield Segment(shown_text(segment.text), segment.style)
