"""The text of a proposed task file."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from actors.proposing.proposals import propose
from actors.proposing.task_text import task_text
from actors.proposing.variables import SHARDS_PASSWORD, TARGET_PASSWORD
from config import load_task
from replicator.mysql.connection.address import DatabaseAddress
from replicator.mysql.names import TableName

HINT = re.compile(r"^    # (extract-.*)$", re.MULTILINE)


@pytest.mark.parametrize(
    ("tables", "parts"),
    [
        ({"a": ["s.t_1", "s.t_2"]}, ["table"]),
        ({"a": ["s_1.t", "s_2.t"]}, ["schema"]),
        ({"a": ["s.t"], "b": ["s.t"]}, ["source"]),
        ({"a": ["s.t_1", "s.t_2"], "b": ["s.t_1", "s.t_2"]}, ["table", "source"]),
    ],
    ids=str,
)
def test_the_hint_about_equal_keys_can_be_used_as_it_is(
    tables: dict[str, list[str]], parts: list[str], tmp_path: Path
) -> None:
    named = {source: [TableName(*n.split(".")) for n in of] for source, of in tables.items()}
    address = DatabaseAddress("127.0.0.1", 3306, "root")
    text = task_text("merge", dict.fromkeys(tables, address), address, propose(named))
    file = tmp_path / "merge.yaml"
    file.write_text(HINT.sub(r"    \1", text))
    task = load_task(file, {SHARDS_PASSWORD: "x", TARGET_PASSWORD: "x"})
    [route] = task.routes.values()
    given = {"table": route.extract_table, "schema": route.extract_schema}
    given["source"] = route.extract_source  # type: ignore[assignment]
    assert sorted(part for part, rule in given.items() if rule) == sorted(parts)
    assert len(HINT.findall(text)) == len(parts)
