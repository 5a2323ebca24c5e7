"""Later versions keep what a release has published, and start from what it has saved."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

import config
from replicator.downstream.meta.all_tables import ADDED_COLUMNS, ADDED_TABLES, META_TABLES
from tests.releases.published import published
from tests.releases.save import version

ROOT = Path(__file__).parents[5]
FOLDERS = {
    path.name: path for path in (ROOT / "tests/releases").iterdir() if path.name[0].isdigit()
}
OF_EACH = pytest.mark.parametrize("release", FOLDERS)
ANEW = "python -m tests.releases.save (until the version is released; it needs JAVA_HOME)"
SAVED_FIRST = ("lease", "watermark", "chunk")
"""What a start reads before it adds anything."""


def of(release: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDERS[release] / "published.json").read_text())
    return found


def test_this_version_is_saved() -> None:
    assert version() in FOLDERS, f"save what it leaves behind: {ANEW}"
    now = {table.suffix: [*table.parts] for table in META_TABLES}
    assert of(version())["meta tables"] == now, f"meta tables have changed: {ANEW}"


@OF_EACH
def test_a_start_can_make_the_meta_tables_of_a_release_those_of_this_version(release: str) -> None:
    saved: dict[str, list[str]] = of(release)["meta tables"]
    now = {table.suffix: table.parts for table in META_TABLES}
    assert saved.keys() - now.keys() == set(), "meta tables of a release stay"
    assert now.keys() - saved.keys() <= ADDED_TABLES, "name new tables in ADDED_TABLES"
    for suffix, parts in saved.items():
        assert set(parts) - set(now[suffix]) == set(), f"columns of {suffix} stay as they are"
        added = set(now[suffix]) - set(parts)
        assert added <= {*ADDED_COLUMNS.get(suffix, ())}, f"name them in ADDED_COLUMNS[{suffix!r}]"


def test_what_is_added_has_values_for_the_rows_that_are_there() -> None:
    assert ADDED_COLUMNS.keys() & set(SAVED_FIRST) == set()
    assert ADDED_TABLES & set(SAVED_FIRST) == set()
    bare = [
        column
        for columns in ADDED_COLUMNS.values()
        for column in columns
        if "NOT NULL" in column and "DEFAULT" not in column
    ]
    assert bare == []


@OF_EACH
def test_the_names_that_a_release_has_published_stay(release: str) -> None:
    then, now = of(release), published()
    for kind in ("log events", "commands", "json"):
        gone = {
            name: sorted(set(parts) - set(now[kind].get(name, ())))
            for name, parts in then[kind].items()
            if set(parts) - set(now[kind].get(name, ())) or name not in now[kind]
        }
        assert gone == {}, f"{kind}: others rely on these names (docs/how-to/upgrade.md)"
    assert set(then["checks"]) - set(now["checks"]) == set()


@OF_EACH
def test_json_that_a_release_has_printed_has_no_other_keys_than_it_published(release: str) -> None:
    for command in ("status", "show-ddl-locks"):
        text = json.loads((FOLDERS[release] / f"{command}.json").read_text())
        assert set(text) <= set(of(release)["json"][command])
    assert json.loads((FOLDERS[release] / "show-ddl-locks.json").read_text())["locks"]


@OF_EACH
def test_task_files_of_a_release_load(
    release: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TARGET_PASSWORD", "a")
    monkeypatch.setenv("SHARD_PASSWORD", "b")
    files = sorted(FOLDERS[release].glob("*.yaml"))
    assert len(files) > 3
    for file in files:
        values = yaml.safe_load(file.read_text())
        copy = tmp_path / file.name
        copy.write_text(file.read_text())
        assert config.load_task(copy).name == values["name"]
