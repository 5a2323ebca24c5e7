"""Every meta table is created, removed and documented."""

from __future__ import annotations

import pkgutil
import re
from importlib import import_module
from pathlib import Path

import replicator.downstream
from replicator.downstream.meta_table import MetaTable
from replicator.downstream.meta_tables import META_TABLES, scratch_table

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
SCRATCH = scratch_table("dm_meta", "merge-orders").table.removeprefix("merge-orders_")


def declared() -> set[MetaTable]:
    """The tables that the modules of `replicator.downstream` declare."""
    modules = pkgutil.iter_modules(replicator.downstream.__path__, "replicator.downstream.")
    return {
        value
        for module in modules
        for value in vars(import_module(module.name)).values()
        if isinstance(value, MetaTable)
    }


def test_every_table_that_is_declared_is_created_and_removed() -> None:
    assert set(META_TABLES) == declared()
    assert len({table.suffix for table in META_TABLES}) == len(META_TABLES)


def test_the_page_names_every_table() -> None:
    section = PAGE.split("## Meta tables\n")[1].split("\n## ")[0]
    documented = re.findall(r"^\| `<task>_(\w+)` \|", section, re.MULTILINE)
    assert sorted(documented) == sorted([*(table.suffix for table in META_TABLES), SCRATCH])


def test_the_page_drops_every_table_of_a_task_that_is_removed() -> None:
    section = PAGE.split("## Removing a task\n")[1]
    dropped = re.findall(r"`dm_meta`\.`merge-orders_(\w+)`", section)
    assert sorted(dropped) == sorted(table.suffix for table in META_TABLES)


def test_a_name_with_a_backquote_is_one_name() -> None:
    table = MetaTable("x", "a INT")
    assert table.qualified("m`.`eta", "task") == "`m``.``eta`.`task_x`"
