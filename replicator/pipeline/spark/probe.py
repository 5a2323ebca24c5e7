"""What an executor lacks of the things that it needs; runs there, on the standard library alone."""

from __future__ import annotations

import importlib
import socket
from collections.abc import Iterator

NEEDED = ("pyarrow", "numpy", "numba", "pymysql", "pymysqlreplication")
"""The modules that executors must have installed; `docs/how-to/cluster.md` names the packages."""

OURS = "replicator.pipeline.apply.job"


def look_around() -> tuple[str, ...]:
    """Try the modules; what is not there, each with the host."""
    host = socket.gethostname()
    return tuple(f"on {host}: {lack}" for lack in _missing_modules())


def _missing_modules() -> Iterator[str]:
    missing = False
    for name in (*NEEDED, OURS):
        try:
            importlib.import_module(name)
        except ImportError as error:
            # Ours can't be imported without the others: that says nothing new.
            if name != OURS or not missing:
                yield str(error)
            missing = True
