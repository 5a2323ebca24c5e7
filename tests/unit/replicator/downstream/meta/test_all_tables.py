"""Every meta table is created, removed and documented."""

from __future__ import annotations

import pkgutil
import re
from importlib import import_module
from pathlib import Path

import replicator.downstream
from config.models import Task
from replicator.downstream.meta.all_tables import META_TABLES
from replicator.downstream.meta_table import MetaTable
from replicator.downstream.scratch_names import scratch_table
from scripts.meta_tables_reference import MEANINGS, page

ROOT = Path(__file__).parents[5]
PAGE = ROOT / "docs" / "reference" / "meta-tables.md"
REMOVING = (ROOT / "docs" / "how-to" / "move-backup-remove.md").read_text(encoding="utf-8")
LONGEST = "n" * 49
"""The longest name of a task that the task file takes; names of tables have 64 characters."""


def declared() -> set[MetaTable]:
    """The tables that the modules of `replicator.downstream` declare."""
    modules = pkgutil.walk_packages(replicator.downstream.__path__, "replicator.downstream.")
    return {
        value
        for module in modules
        for value in vars(import_module(module.name)).values()
        if isinstance(value, MetaTable)
    }


def test_every_table_that_is_declared_is_created_and_removed() -> None:
    assert set(META_TABLES) == declared()
    assert len({table.suffix for table in META_TABLES}) == len(META_TABLES)


def test_the_page_is_made_from_the_declarations() -> None:
    assert sorted(MEANINGS) == sorted(table.suffix for table in META_TABLES), (
        "say in scripts/meta_tables_reference.py what each table holds"
    )
    assert PAGE.read_text(encoding="utf-8") == page(), (
        "run: python -m scripts.meta_tables_reference > docs/reference/meta-tables.md"
    )


def test_the_page_drops_every_table_of_a_task_that_is_removed() -> None:
    section = REMOVING.split("## Remove a task\n")[1]
    dropped = re.findall(r"`dm_meta`\.`merge-orders_(\w+)`", section)
    assert sorted(dropped) == sorted(table.suffix for table in META_TABLES)


def test_every_table_of_the_longest_name_has_a_name_that_servers_take() -> None:
    pattern = Task.model_json_schema()["properties"]["name"]["pattern"]
    assert re.fullmatch(pattern, LONGEST)
    assert not re.fullmatch(pattern, LONGEST + "n")
    tables = [f"{LONGEST}_{table.suffix}" for table in META_TABLES]
    assert max(map(len, [*tables, scratch_table("dm_meta", LONGEST).table])) == 64


def test_a_name_with_a_backquote_is_one_name() -> None:
    table = MetaTable("x", "a INT")
    assert table.qualified("m`.`eta", "task") == "`m``.``eta`.`task_x`"


def test_the_columns_of_a_meta_table_are_told_from_its_definition() -> None:
    table = MetaTable(
        "x", "source VARCHAR(64) NOT NULL PRIMARY KEY, at_b TIMESTAMP NOT NULL, PRIMARY KEY (a, b)"
    )
    assert table.columns == {"source", "at_b"}
    for table in META_TABLES:
        assert len(table.columns) > 1, table.suffix
        assert all(re.search(rf"\b{name} [A-Z]", table.definition) for name in table.columns)
