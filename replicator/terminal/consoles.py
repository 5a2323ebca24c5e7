"""The terminal of the command line. Only commands print (held by ``tests/unit/test_layout.py``)."""

from __future__ import annotations

from rich.console import Console

out = Console()
"""What a command was asked for."""
err = Console(stderr=True)
"""What went wrong."""
