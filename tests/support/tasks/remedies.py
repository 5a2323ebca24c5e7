"""Which tests execute which remedies of faults.

A test that produces a fault, does what one of its remedies says, and sees the task go on with the
rows of the shards, has the mark ``@pytest.mark.remedy("ddl.refused", "skip")``: the fault's event,
and the remedies that it executes.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

WAYS = {
    "skip": r"`(?:replicator )?(?:binlog )?skip`",
    "replace": r"`(?:replicator )?binlog replace`",
    "inject": r"`(?:replicator )?binlog inject`",
    "schema set": r"`(?:replicator )?schema set`",
    "run": r"`(?:replicator )?run\b",
    "reload": r"`(?:replicator )?reload\b",
    "start behind": r"(?<!a )start (?:after|behind)",
    "copy anew": r"cop(?:y|ied) (?:\w+ )?(?:again|anew)",
    "recopy": r"`replicator recopy\b",
    "resume": r"\bresume\b",
}
"""The names of remedies, and how the runbook (`docs/runbook/faults.md`) writes of them."""

BY_HAND = "by hand"
"""The remedy of a fault for which the table names none of these."""


def named(remedies: str) -> set[str]:
    """The remedies that the text of a fault's section names."""
    found = {way for way, words in WAYS.items() if re.search(words, remedies, re.IGNORECASE)}
    return found or {BY_HAND}


def executed(folder: Path) -> dict[str, set[str]]:
    """The remedies of each fault that the tests below a folder execute, by their marks."""
    found: dict[str, set[str]] = {}
    for path in sorted(folder.rglob("test_*.py")):
        text = path.read_text(encoding="utf-8")
        if "mark.remedy(" not in text:
            continue
        for call in ast.walk(ast.parse(text)):
            if isinstance(call, ast.Call) and ast.unparse(call.func) == "pytest.mark.remedy":
                event, *ways = (ast.literal_eval(argument) for argument in call.args)
                assert ways, f"{path}:{call.lineno}: which remedy of {event}?"
                found.setdefault(event, set()).update(ways)
    return found
