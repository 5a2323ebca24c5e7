"""docs/warnings.md gives for each warning in the code the reason why no row is lost by it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "warnings.md").read_text(encoding="utf-8")
LOGGING = [ROOT / "cli.py", *(p for top in ("actors", "replicator", "config")
                              for p in (ROOT / top).rglob("*.py"))]  # fmt: skip
CHECKS = sorted((ROOT / "replicator" / "checks").rglob("*.py"))


def names_in(argument: ast.expr) -> Iterator[str]:
    """The texts that the first argument of a call can be."""
    if isinstance(argument, ast.IfExp):
        yield from names_in(argument.body)
        yield from names_in(argument.orelse)
    else:
        assert isinstance(argument, ast.Constant), f"line {argument.lineno}: a constant, please"
        yield str(argument.value)


def calls(files: list[Path]) -> Iterator[tuple[ast.Call, Path]]:
    for file in files:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                yield node, file


def logged() -> set[str]:
    """The events that are logged as warnings."""
    return {
        name
        for call, _ in calls(LOGGING)
        if ast.unparse(call.func).endswith(("log.warning", "get_logger().warning"))
        for name in names_in(call.args[0])
    }


def of_checks() -> set[str]:
    """The names of the checks that can end in a warning."""
    found: set[str] = set()
    for file in CHECKS:
        text = file.read_text(encoding="utf-8")
        aliased = "= _PLACE.failed if" in text
        for call, _ in calls([file]):
            made = ast.unparse(call.func)
            if made.endswith(("lace.warning", "PLACE.warning", "CheckedPart('task').warning")):
                found |= set(names_in(call.args[0]))
        if aliased:
            found |= set(re.findall(r'\bmake\(\s*"(\w+)"', text))
    return found


def documented(heading: str) -> list[str]:
    section = PAGE.split(f"## {heading}\n")[1].split("\n## ")[0]
    return re.findall(r"^\| `([\w.-]+)` \| .+ \|$", section, re.MULTILINE)


def test_every_warning_of_the_log_has_its_reason() -> None:
    assert {"source.lost", "rows.missing"} <= logged()
    assert documented("In the log") == sorted(set(documented("In the log")), key=place_in_logs)
    assert set(documented("In the log")) == logged()


def place_in_logs(event: str) -> int:
    """The order is that of docs/logs.md."""
    return (ROOT / "docs" / "logs.md").read_text(encoding="utf-8").index(f"`{event}`")


def test_every_check_that_warns_has_its_reason() -> None:
    found = of_checks()
    assert {"server_id", "schema_of_shard_tables"} <= found
    assert set(documented("Checks")) == found
    assert len(documented("Checks")) == len(found)


def test_what_the_log_calls_a_warning_is_one() -> None:
    page = (ROOT / "docs" / "logs.md").read_text(encoding="utf-8")
    told = set(re.findall(r"^\| `([\w.-]+)` \| warning \|", page, re.MULTILINE))
    assert told == logged()
