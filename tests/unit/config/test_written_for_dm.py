"""What DM prints and what its users write: it means what it means to DM, or is warned about."""

from __future__ import annotations

from pathlib import Path

import pytest

from config.processing import Mydumper
from tests.unit.config.test_loading import TASK, load


@pytest.mark.parametrize("duration", ["60s", "0s", "10m", "1h0m0s"])
def test_safe_mode_for_a_time_is_warned_about(tmp_path: Path, duration: str) -> None:
    (warning,) = load(tmp_path, f"{TASK}    syncer: {{safe-mode-duration: {duration}}}\n").warnings
    assert ":9: mysql-instances[0].syncer.safe-mode-duration: has no effect: rows and" in warning


def test_a_relay_log_without_a_folder_is_warned_about(tmp_path: Path) -> None:
    text = TASK.replace("    from:", "    enable-relay: true\n    from:")
    (warning,) = load(tmp_path, text).warnings
    assert ":6: sources[0].enable-relay: has no effect: without `relay-dir` the task" in warning
    assert load(tmp_path, text.replace("relay: true", "relay: false")).warnings == ()
    relay = "relay: true\n    relay-dir: /r\n    purge: {expires: 24}"
    task = load(tmp_path, text.replace("relay: true", relay))
    assert task.warnings == ()
    assert task.sources[0].purge.expires == 24


@pytest.mark.parametrize(
    "meta",
    [
        "{binlog-name: mysql-bin, binlog-pos: 4}",
        "{binlog-pos: 4}",
        "{binlog-name: b.000001, binlog-pos: -1}",
        "{binlog-gtid: no-set-at-all}",
        "{binlog-nam: b.000001}",
        "{binlog-name: [b], binlog-pos: {}}",
        "mysql-bin.000001",
        "[b.000001, 4]",
    ],
)
@pytest.mark.parametrize(("mode", "why"), [("all", "the full copy began"), ("full", "not follow")])
def test_a_start_that_has_no_effect_is_ignored_whatever_it_says(
    tmp_path: Path, mode: str, why: str, meta: str
) -> None:
    text = TASK.replace("incremental", mode) + f"    meta: {meta}\n"
    task = load(tmp_path, text)
    assert task.mysql_instances[0].meta is None
    (warning,) = task.warnings
    assert ":9: mysql-instances[0].meta: has no effect:" in warning
    assert why in warning


def test_an_empty_start_is_not_worth_a_line(tmp_path: Path) -> None:
    task = load(tmp_path, TASK.replace("incremental", "all") + "    meta: {}\n")
    assert task.warnings == ()


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("truncate", "truncate table"),
        ("Truncate Table", "truncate table"),
        ("alter schema", "alter database"),
        ("split table partition", "split table partition"),
    ],
)
def test_events_have_all_names_that_dm_takes(tmp_path: Path, written: str, meant: str) -> None:
    rule = f"{{schema-pattern: '*', events: [{written}], action: Ignore}}"
    text = f"{TASK}    filter-rules: [r]\nfilters: {{r: {rule}}}\n"
    assert load(tmp_path, text).filters["r"].events == (meant,)


def test_what_dm_prints_where_nothing_is_given(tmp_path: Path) -> None:
    task = load(
        tmp_path,
        TASK.replace("secret-a}", "secret-a, session: {}, max-allowed-packet: null}")
        + "    black-white-list: ''\n    block-allow-list: l\n    meta: null\n    mydumper: null\n"
        "    mydumper-thread: 0\n    loader-config-name: l\n    loader-thread: 0\n"
        "    syncer-config-name: s\n    syncer-thread: 0\n    expression-filters: []\n"
        "    validator-config-name: ''\nblack-white-list: {}\n"
        "block-allow-list: {l: {do-dbs: [a]}}\n"
        "loaders: {l: {on-duplicate: '', on-duplicate-logical: replace, pd-addr: '',"
        " disk-quota-physical: 0}}\n"
        "syncers: {s: {meta-file: '', max-retry: 0, safe-mode-duration: ''}}\n"
        "timezone: ''\nshadow-table-rules: []\ntrash-table-rules: []\nonline-ddl-scheme: ''\n"
        "experimental: {}\ncolumn-mappings: {}\n",
    )
    assert task.timezone is None
    assert task.shadow_table_rules == (r"^_(.+)_(?:new|gho)$",)
    assert task.trash_table_rules == (r"^_(.+)_(?:ghc|del|old)$",)
    assert task.allow_list_of(task.mysql_instances[0]).do_dbs == ("a",)
    assert task.loader_of(task.mysql_instances[0]).on_duplicate_logical == "replace"
    assert [warning.split(": ")[1] for warning in task.warnings] == ["loaders"]


def test_an_old_spelling_counts_where_the_new_one_is_empty(tmp_path: Path) -> None:
    text = "    loader: {on-duplicate: ignore, on-duplicate-logical: ''}\n"
    task = load(tmp_path, TASK.replace("incremental", "all") + text)
    assert task.loader_of(task.mysql_instances[0]).on_duplicate_logical == "ignore"
    text = "    loader: {on-duplicate: '', on-duplicate-logical: ''}\n"
    task = load(tmp_path, TASK.replace("incremental", "all") + text)
    assert task.loader_of(task.mysql_instances[0]).on_duplicate_logical == "error"


def test_threads_of_an_instance_count_before_those_of_its_parts(tmp_path: Path) -> None:
    text = (
        "    mydumper: {threads: 2, rows: 5}\n    mydumper-thread: 7\n"
        "    loader-config-name: l\n    loader-thread: 9\nloaders: {l: {pool-size: 3}}\n"
    )
    task = load(tmp_path, TASK.replace("incremental", "all") + text)
    assert task.mydumper_of(task.mysql_instances[0]) == Mydumper(threads=7, rows=5)
    assert task.pool_size == 9
    assert task.warnings == ()


@pytest.mark.parametrize("written", ["0", "'0'", '"64"'])
def test_a_chunk_size_of_zero_is_the_default(tmp_path: Path, written: str) -> None:
    text = f"    mydumper: {{chunk-filesize: {written}}}\n"
    task = load(tmp_path, TASK.replace("incremental", "all") + text)
    assert task.mydumper_of(task.mysql_instances[0]).chunk_filesize == 64 << 20


@pytest.mark.parametrize("written", ["*****", "abcdefghijklmnopqrstuvwx", "Zm9v", "@", "p\u00e4ss"])
def test_passwords_that_only_resemble_what_dm_prints(tmp_path: Path, written: str) -> None:
    task = load(tmp_path, TASK.replace("secret-t", f"'{written}'"))
    assert task.target_database.password.get_secret_value() == written


def test_a_password_from_the_environment_may_look_like_anything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REPLICATOR_TEST_PASSWORD", "Up8156jArvIPymkVC+5LxkAT6rek")
    task = load(tmp_path, TASK.replace("secret-t", "'${REPLICATOR_TEST_PASSWORD}'"))
    secret = task.target_database.password.get_secret_value()
    assert secret == "Up8156jArvIPymkVC+5LxkAT6rek"
