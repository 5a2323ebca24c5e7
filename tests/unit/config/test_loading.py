"""Task files that load: defaults, spellings, source files, passwords, warnings."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pydantic
import pytest

import config
from config.models import Instance
from config.processing import Loader, Mydumper, Syncer
from config.values import parse_duration, parse_mebibytes, parse_size

EXAMPLES = Path(config.__file__).parent / "examples"

TASK = """\
name: merge
task-mode: incremental
target-database: {host: t, port: 4000, user: root, password: secret-t}
sources:
  - source-id: a
    from: {host: a, port: 3306, user: repl, password: secret-a}
mysql-instances:
  - source-id: a
"""


def load(folder: Path, text: str) -> config.Task:
    path = folder / "task.yaml"
    path.write_text(text, encoding="utf-8")
    return config.load_task(path)


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.name)
def test_example_loads_without_warnings(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHARD_PASSWORD", "one")
    monkeypatch.setenv("TARGET_PASSWORD", "two")
    task = config.load_task(path)
    assert task.warnings == ()
    assert task.target_database.password.get_secret_value() == "two"
    assert {source.connection.password.get_secret_value() for source in task.sources} == {"one"}


def test_there_are_examples() -> None:
    assert {path.name for path in EXAMPLES.glob("*.yaml")} == {
        "copy-then-follow.yaml",
        "every-key.yaml",
        "merge-two-sources.yaml",
    }


def test_keys_that_are_left_out_have_their_defaults(tmp_path: Path) -> None:
    task = load(tmp_path, TASK)
    instance = task.mysql_instances[0]
    assert (task.shard_mode, task.meta_schema, task.remove_meta) == ("", "dm_meta", False)
    assert (task.online_ddl, task.timezone, task.case_sensitive) == (True, None, False)
    assert (task.spark.master, task.spark.conf) == ("local[*]", {})
    assert task.writer.buckets == 4
    assert (task.writer.batch_bytes, task.limits.largest_event) == (None, None)
    assert task.writer.mailbox_segments == 8
    assert task.syncer_of(instance) == Syncer()
    assert task.syncer_of(instance).checkpoint_flush_interval == 30
    assert task.mydumper_of(instance) == Mydumper()
    assert task.mydumper_of(instance).threads == 4
    assert task.mydumper_of(instance).chunk_filesize == 64 * 1024 * 1024
    assert task.mydumper_of(instance).rows == 0
    assert task.loader_of(instance) == Loader()
    assert (task.pool_size, task.loader_of(instance).on_duplicate_logical) == (16, "error")
    assert task.full_copy.rows_per_second == 0
    assert instance.meta is None
    assert task.source("a").server_id == 0
    assert task.warnings == ()


def test_named_parts_are_found_in_order(tmp_path: Path) -> None:
    task = load(
        tmp_path,
        TASK
        + """\
    route-rules: [second, first]
    block-allow-list: list
    syncer-config-name: slow
    meta: {binlog-name: mysql-bin.000002}
routes:
  first: {schema-pattern: "a*", target-schema: a}
  second: {schema-pattern: "b*", table-pattern: "t?", target-schema: b, target-table: t}
block-allow-list:
  list: {do-dbs: ["~^a"], ignore-tables: [{db-name: a, tbl-name: t}]}
syncers:
  slow: {checkpoint-flush-interval: 90, safe-mode: true}
""",
    )
    instance = task.mysql_instances[0]
    assert [route.target_schema for route in task.routes_of(instance)] == ["b", "a"]
    assert task.routes_of(instance)[1].table_pattern == ""
    assert task.allow_list_of(instance).ignore_tables[0].tbl_name == "t"
    assert task.syncer_of(instance).checkpoint_flush_interval == 90
    assert task.syncer_of(instance).safe_mode
    assert instance.meta is not None
    assert (instance.meta.binlog_name, instance.meta.binlog_pos) == ("mysql-bin.000002", 4)


def test_inline_parts(tmp_path: Path) -> None:
    text = "    syncer: {checkpoint-flush-interval: 5}\n    mydumper: {}\n    loader: {}\n"
    task = load(tmp_path, TASK + text)
    assert task.syncer_of(task.mysql_instances[0]).checkpoint_flush_interval == 5
    assert task.warnings == ()


def test_settings_of_the_full_copy(tmp_path: Path) -> None:
    text = TASK.replace("incremental", "all").replace(
        "mysql-instances:",
        "  - source-id: b\n    from: {host: b, port: 1, user: u}\nmysql-instances:",
    )
    text += """\
    mydumper-config-name: slow
    loader-config-name: few
  - source-id: b
    mydumper: {chunk-filesize: 16, rows: 500}
    loader: {pool-size: 8, on-duplicate: ignore}
mydumpers:
  slow: {threads: 1, chunk-filesize: "32"}
loaders:
  few: {pool-size: 2, on-duplicate-logical: error}
copy:
  rows-per-second: 1000
"""
    task = load(tmp_path, text)
    assert task.warnings == ()
    first, second = task.mysql_instances
    assert (task.mydumper_of(first).threads, task.mydumper_of(second).threads) == (1, 4)
    assert task.mydumper_of(first).chunk_filesize == 32 << 20
    assert (task.mydumper_of(second).chunk_filesize, task.mydumper_of(second).rows) == (
        16 << 20,
        500,
    )
    assert task.loader_of(first).on_duplicate_logical == "error"
    assert task.loader_of(second).on_duplicate_logical == "ignore"
    assert task.pool_size == 8
    assert task.full_copy.rows_per_second == 1000


def test_source_with_an_unknown_name() -> None:
    task = config.Task.model_validate(
        {
            "name": "n",
            "task-mode": "incremental",
            "target-database": {"host": "h", "port": 1, "user": "u"},
            "mysql-instances": [{"source-id": "a"}],
        }
    )
    with pytest.raises(KeyError):
        task.source("a")


def test_the_task_is_frozen(tmp_path: Path) -> None:
    task = load(tmp_path, TASK)
    with pytest.raises(pydantic.ValidationError, match="frozen"):
        task.name = "other"


def test_passwords_do_not_show(tmp_path: Path) -> None:
    task = load(tmp_path, TASK)
    assert task.target_database.password.get_secret_value() == "secret-t"
    assert task.source("a").connection.password.get_secret_value() == "secret-a"
    assert "secret-" not in repr(task) + str(task) + task.model_dump_json()


@pytest.mark.parametrize(
    "written", ["0123", "1e3", "yes", "2024-02-30", "+10:00", "$HOME", "a${B}"]
)
def test_passwords_are_taken_as_written(tmp_path: Path, written: str) -> None:
    task = load(
        tmp_path, TASK.replace("secret-t", written.replace("a$", '"a$') + '"' * ("a$" in written))
    )
    assert task.target_database.password.get_secret_value() == written


def test_only_passwords_are_expanded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_NAME", "value")
    text = TASK.replace("secret-t", '"${SOME_NAME}"').replace("user: root", 'user: "${SOME_NAME}"')
    database = load(tmp_path, text).target_database
    assert (database.user, database.password.get_secret_value()) == ("${SOME_NAME}", "value")


def test_words_that_yaml_reads_as_something_else_are_text(tmp_path: Path) -> None:
    text = TASK.replace("source-id: a", "source-id: 007").replace("name: merge", "name: 2024")
    text += "    route-rules: [1]\nroutes:\n  1: {schema-pattern: 12, target-schema: on}\n"
    task = load(tmp_path, text + "timezone: +10:00\nspark: {conf: {a: 1, b: true}}\n")
    assert (task.name, task.timezone) == ("2024", "+10:00")
    assert task.source("007") is task.sources[0]
    assert task.routes_of(task.mysql_instances[0])[0].target_schema == "on"
    assert task.spark.conf == {"a": "1", "b": "true"}


def test_session_variables_keep_their_type(tmp_path: Path) -> None:
    text = TASK.replace("secret-t", "p, session: {sql_mode: ANSI, n: 1, ok: true}")
    assert load(tmp_path, text).target_database.session == {"sql_mode": "ANSI", "n": 1, "ok": True}


def test_keys_without_a_value_are_not_given(tmp_path: Path) -> None:
    task = load(tmp_path, TASK + "    route-rules:\n    syncer:\nroutes:\nmeta-schema:\nspark:\n")
    assert task.routes == {}
    assert task.meta_schema == "dm_meta"
    assert task.mysql_instances[0].route_rules == ()
    assert task.spark.master == "local[*]"


def test_anchors_and_merge_keys(tmp_path: Path) -> None:
    text = TASK + (
        "    syncer: &base {safe-mode: true, checkpoint-flush-interval: 5}\n"
        "syncers:\n  unused: {<<: *base, checkpoint-flush-interval: 7}\n"
    )
    with pytest.raises(config.TaskFileError) as caught:
        load(tmp_path, text)
    assert [problem.key for problem in caught.value.problems] == ["syncers.unused"]
    text = text.replace("syncer: &base", "meta: &base").replace("safe-mode: true", "binlog-pos: 9")
    text = text[: text.index("syncers:")].replace(
        "checkpoint-flush-interval: 5", "binlog-name: b.1"
    )
    text += "  - source-id: b\n    meta: {<<: *base, binlog-pos: 12}\n"
    text = text.replace(
        "mysql-instances:",
        "  - source-id: b\n    from: {host: b, port: 1, user: u}\nmysql-instances:",
    )
    first, second = (instance.meta for instance in load(tmp_path, text).mysql_instances)
    assert first is not None
    assert second is not None
    assert (first.binlog_pos, second.binlog_name, second.binlog_pos) == (9, "b.1", 12)


@pytest.mark.parametrize(("written", "offset"), [("0", 4), ("3", 4), ("4", 4), ("1234", 1234)])
def test_a_binlog_starts_at_its_first_event(tmp_path: Path, written: str, offset: int) -> None:
    text = TASK + f"    meta: {{binlog-name: b.000001, binlog-pos: {written}}}\n"
    meta = load(tmp_path, text).mysql_instances[0].meta
    assert meta is not None
    assert meta.binlog_pos == offset


def test_meta_by_gtid(tmp_path: Path) -> None:
    meta = load(tmp_path, TASK + "    meta: {binlog-gtid: 0-1-42}\n").mysql_instances[0].meta
    assert meta is not None
    assert (meta.binlog_name, meta.binlog_gtid) == ("", "0-1-42")


def test_source_files(tmp_path: Path) -> None:
    (tmp_path / "sources").mkdir()
    (tmp_path / "sources" / "b.yaml").write_text(
        "source-id: b\nenable-gtid: true\n"
        "from:\n  host: b\n  port: 3307\n  user: u\n  password: 012\n",
        encoding="utf-8",
    )
    task = load(tmp_path, TASK + "  - source-id: b\nsource-files: [sources/b.yaml]\n")
    assert [source.source_id for source in task.sources] == ["a", "b"]
    assert task.source("b").enable_gtid
    assert task.source("b").connection.password.get_secret_value() == "012"


def test_old_spelling_of_the_allow_list(tmp_path: Path) -> None:
    text = "    black-white-list: l\nblack-white-list:\n  l: {do-dbs: [a]}\n"
    task = load(tmp_path, TASK + text)
    assert task.allow_list_of(task.mysql_instances[0]).do_dbs == ("a",)


def test_no_allow_list_allows_everything(tmp_path: Path) -> None:
    task = load(tmp_path, TASK)
    assert task.allow_list_of(Instance.model_validate({"source-id": "a"})).do_dbs == ()


@pytest.mark.parametrize(
    ("added", "line", "key"),
    [
        ("enable-heartbeat: true", 9, "enable-heartbeat"),
        ("heartbeat-update-interval: 1", 9, "heartbeat-update-interval"),
        ("heartbeat-report-interval: 1", 9, "heartbeat-report-interval"),
        ("ansi-quotes: true", 9, "ansi-quotes"),
        ("clean-dump-file: true", 9, "clean-dump-file"),
        ("    mydumper-config-name: m\nmydumpers:\n  m: {threads: 8}", 10, "mydumpers"),
        ("    loader-config-name: m\nloaders:\n  m: {pool-size: 8}", 10, "loaders"),
        ("    mydumper: {threads: 8}", 9, "mysql-instances[0].mydumper"),
        ("    loader: {dir: ./dump}", 9, "mysql-instances[0].loader"),
        ("    syncer: {batch: 5}", 9, "mysql-instances[0].syncer.batch"),
        ("    syncer-config-name: s\nsyncers:\n  s:\n    compact: true", 12, "syncers.s.compact"),
        ("    syncer: {multiple-rows: true}", 9, "mysql-instances[0].syncer.multiple-rows"),
        ("    syncer: {worker-count: 4}", 9, "mysql-instances[0].syncer.worker-count"),
        ("    syncer-thread: 4", 9, "mysql-instances[0].syncer-thread"),
        ("    mydumper-thread: 4", 9, "mysql-instances[0].mydumper-thread"),
        (
            "    validator-config-name: v\nvalidators:\n  v: {meta-flush-interval: 5m}",
            11,
            "validators.v.meta-flush-interval",
        ),
        ("collation_compatible: strict", 9, "collation_compatible"),
        ("experimental: {async-checkpoint-flush: true}", 9, "experimental"),
    ],
)
def test_keys_without_effect_are_warned_about(
    tmp_path: Path, added: str, line: int, key: str
) -> None:
    (warning,) = load(tmp_path, f"{TASK}{added}\n").warnings
    assert warning.startswith(f"{tmp_path / 'task.yaml'}:{line}: {key}: has no effect: ")


@pytest.mark.parametrize(
    ("mode", "added", "key"),
    [
        ("all", "    meta: {binlog-name: b.000001}", "mysql-instances[0].meta"),
        ("full", "    meta: {binlog-name: b.000001}", "mysql-instances[0].meta"),
        ("full", "    syncer: {safe-mode: true}", "mysql-instances[0].syncer"),
        ("all", "    syncer: {batch: 5}", "mysql-instances[0].syncer.batch"),
        ("all", "    mydumper: {extra-args: -B x}", "mysql-instances[0].mydumper.extra-args"),
        ("full", "    mydumper: {skip-tz-utc: true}", "mysql-instances[0].mydumper.skip-tz-utc"),
        ("all", "    mydumper: {statement-size: 9}", "mysql-instances[0].mydumper.statement-size"),
        ("all", "    mydumper: {mydumper-path: x}", "mysql-instances[0].mydumper.mydumper-path"),
        ("all", "    loader: {dir: ./dump}", "mysql-instances[0].loader.dir"),
        ("full", "    loader: {import-mode: sql}", "mysql-instances[0].loader.import-mode"),
        ("incremental", "    mydumper: {where: id > 5}", "mysql-instances[0].mydumper"),
        ("incremental", "copy: {rows-per-second: 5}", "copy"),
    ],
)
def test_what_has_no_effect_depends_on_the_task_mode(
    tmp_path: Path, mode: str, added: str, key: str
) -> None:
    text = TASK.replace("incremental", mode)
    (warning,) = load(tmp_path, f"{text}{added}\n").warnings
    assert f": {key}: has no effect: " in warning


def test_an_unused_source_is_warned_about(tmp_path: Path) -> None:
    extra = "  - source-id: b\n    from: {host: b, port: 1, user: u}\nmysql-instances:"
    (warning,) = load(tmp_path, TASK.replace("mysql-instances:", extra)).warnings
    assert ":7: sources[1].source-id: the source `b` is not used" in warning


@pytest.mark.parametrize(
    ("written", "size"),
    [("1024", 1024), ("64KiB", 1 << 16), ("16 MiB", 16 << 20), ("1gib", 1 << 30), (5, 5)],
)
def test_sizes_have_units_or_are_bytes(written: object, size: int) -> None:
    assert parse_size(written) == size


@pytest.mark.parametrize(
    ("written", "size"),
    [("64", 64 << 20), (64, 64 << 20), (" 1 ", 1 << 20), ("512KiB", 1 << 19), (True, True)],
)
def test_sizes_in_mebibytes(written: object, size: int) -> None:
    assert parse_mebibytes(written) == size


@pytest.mark.parametrize(
    ("written", "seconds"), [("60s", 60), ("1h30m", 5400), ("1.5s", 1.5), ("250ms", 0.25)]
)
def test_durations_have_units(written: str, seconds: float) -> None:
    assert parse_duration(written) == timedelta(seconds=seconds)
