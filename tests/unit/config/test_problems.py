"""Every kind of mistake in a task file: the message names file, line, key and the remedy."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from config import Problem, TaskFileError, load_task

TASK = """\
name: merge
task-mode: incremental
target-database:
  host: t
  port: 4000
  user: root
  password: hidden-word
sources:
  - source-id: shard-a
    from:
      host: a
      port: 3306
      user: repl
mysql-instances:
  - source-id: shard-a
    route-rules: [orders]
    block-allow-list: sales
    syncer-config-name: global
routes:
  orders:
    schema-pattern: sales_*
    table-pattern: orders_*
    target-schema: sales
block-allow-list:
  sales:
    do-dbs: [sales]
syncers:
  global:
    safe-mode: true
"""


def problems_of(folder: Path, text: str | bytes) -> tuple[Problem, ...]:
    path = folder / "task.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(TaskFileError) as caught:
        load_task(path)
    for problem in caught.value.problems:
        assert str(problem) in str(caught.value)
    assert "hidden-word" not in str(caught.value) + repr(caught.value)
    return caught.value.problems


@dataclass(frozen=True)
class Case:
    """One replacement in the task file above, and the one problem that it makes."""

    old: str
    new: str
    line: int
    key: str
    says: str


UNKNOWN_KEYS = [
    Case("task-mode:", "meta-shema: m\ntask-mode:", 2, "meta-shema", "did you mean `meta-schema`?"),
    Case("name:", "task_mode: all\nname:", 1, "task_mode", "did you mean `task-mode`?"),
    Case("  port: 4000", "  port: 4000\n  hots: x", 6, "target-database.hots", "mean `host`?"),
    Case("      user:", "      usr: x\n      user:", 13, "sources[0].from.usr", "mean `user`?"),
    Case(
        "    from:", "    server_id: 1\n    from:", 10, "sources[0].server_id", "mean `server-id`?"
    ),
    Case(
        "    route-rules:",
        "    route-rule: [a]\n    route-rules:",
        16,
        "mysql-instances[0].route-rule",
        "did you mean `route-rules`?",
    ),
    Case(
        "    target-schema:",
        "    target-tabel: t\n    target-schema:",
        23,
        "routes.orders.target-tabel",
        "did you mean `target-table`?",
    ),
    Case(
        "    do-dbs:", "    do-db: []\n    do-dbs:", 26, "block-allow-list.sales.do-db", "`do-dbs`"
    ),
    Case(
        "    safe-mode:", "    zzz: 1\n    safe-mode:", 29, "syncers.global.zzz", "unknown key; the"
    ),
    Case(
        "name:", "checkpoint-flush-interval: 1\nname:", 1, "checkpoint-flush-interval", "`syncers."
    ),
    Case("name:", "spark: {mastr: x}\nname:", 1, "spark.mastr", "did you mean `master`?"),
    Case("name:", "writer: {bucket: 1}\nname:", 1, "writer.bucket", "did you mean `buckets`?"),
    Case("name:", "zzz:\nname:", 1, "zzz", "unknown key"),
]

WRONG_VALUES = [
    Case("name: merge\n", "", 1, "name", "is missing; it is required"),
    Case("  host: t\n", "", 3, "target-database.host", "is missing"),
    Case("    target-schema: sales\n", "", 20, "routes.orders.target-schema", "is missing"),
    Case("incremental", "incremantal", 2, "task-mode", "did you mean `incremental`?"),
    Case("name: merge", "name: merge it", 1, "name", "1 to 49 characters"),
    Case("name: merge", "name: ..", 1, "name", "not starting with"),
    Case("name: merge", "name: " + "n" * 50, 1, "name", "1 to 49 characters"),
    Case("  port: 4000", "  port: many", 5, "target-database.port", "must be a whole number, not"),
    Case("  port: 4000", "  port: 99999", 5, "target-database.port", "at most 65535, not `99999`"),
    Case("  port: 4000", "  port: 0", 5, "target-database.port", "must be at least 1, not `0`"),
    Case("safe-mode: true", "safe-mode: maybe", 29, "syncers.global.safe-mode", "true or false"),
    Case("safe-mode: true", "checkpoint-flush-interval: 0", 29, "syncers", "at least 1"),
    Case("  password: hidden-word", "  password: [x]", 7, "target-database.password", "be text"),
    Case(
        "  password: hidden-word", "  session: {a: [1]}", 7, "target-database.session.a", "number"
    ),
    Case("[orders]", "orders", 16, "mysql-instances[0].route-rules", "must be a list"),
    Case("do-dbs: [sales]", "do-dbs: sales", 26, "block-allow-list.sales.do-dbs", "be a list"),
    Case("do-dbs: [sales]", "do-dbs: [[x]]", 26, "block-allow-list.sales.do-dbs[0]", "be text"),
    Case("name:", "spark: local\nname:", 1, "spark", "must be a section of `key: value` lines"),
    Case("name:", "timezone: Asia/Shanghi\nname:", 1, "timezone", "did you mean `Asia/Shanghai`?"),
    Case("name:", "timezone: '+15:00'\nname:", 1, "timezone", "from -13:59 to +14:00"),
    Case("name:", "writer: {batch-bytes: 16MB}\nname:", 1, "writer.batch-bytes", "is not a size"),
    Case("name:", "writer: {batch-bytes: 1KiB}\nname:", 1, "writer.batch-bytes", "at least 65536"),
    Case("name:", "writer: {buckets: 65}\nname:", 1, "writer.buckets", "at most 64, not `65`"),
    Case("name:", "writer: {buckets: true}\nname:", 1, "writer.buckets", "whole number, not true"),
    Case("name:", "copy: {rows-per-second: -1}\nname:", 1, "copy.rows-per-second", "at least 0"),
    Case(
        "    route-rules:",
        "    mydumper: {chunk-filesize: many}\n    route-rules:",
        16,
        "mysql-instances[0].mydumper.chunk-filesize",
        "is not a size",
    ),
    Case(
        "    route-rules:",
        "    loader: {on-duplicate: stop}\n    route-rules:",
        16,
        "mysql-instances[0].loader.on-duplicate",
        "must be one of `replace`, `error`, `ignore`",
    ),
    Case("name:", "shard-mode: pesimistic\nname:", 1, "shard-mode", "did you mean `pessimistic`?"),
    Case("shard-a\n    from", "s" * 33 + "\n    from", 9, "sources[0].source-id", "at most 32"),
    Case(
        "    route-rules:",
        "    meta: {binlog-pos: 4}\n    route-rules:",
        16,
        "mysql-instances[0].meta",
        "needs one of `binlog-name` (with `binlog-pos`), `binlog-gtid` and `start-time`",
    ),
    Case(
        "    route-rules:",
        "    meta: {binlog-name: mysql-bin}\n    route-rules:",
        16,
        "mysql-instances[0].meta.binlog-name",
        "its name ends in a number",
    ),
    Case(
        "    table-pattern: orders_*",
        "    target-table: orders",
        20,
        "routes.orders",
        "`target-table` needs a `table-pattern`",
    ),
    Case(
        "  password: hidden-word",
        "  security: {ssl-cert: c}",
        7,
        "target-database.security",
        "`ssl-cert` and `ssl-key` belong together",
    ),
    Case(
        "hidden-word",
        "${NOT_SET_ANYWHERE}",
        7,
        "target-database.password",
        "environment variable NOT_SET_ANYWHERE is not set",
    ),
]

REFERENCES = [
    Case("[orders]", "[orders, ordrs]", 16, "mysql-instances[0].route-rules[1]", "`orders`?"),
    Case("block-allow-list: sales", "block-allow-list: sale", 17, "mysql-instances[0]", "`sales`?"),
    Case("config-name: global", "config-name: globl", 18, "mysql-instances[0].syn", "`global`?"),
    Case(
        "    route",
        "    mydumper-config-name: m\n    route",
        16,
        "mysql-instances[0].my",
        "defined",
    ),
    Case(
        "    route", "    loader-config-name: m\n    route", 16, "mysql-instances[0].lo", "defined"
    ),
    Case("    route-rules: [orders]\n", "", 19, "routes.orders", "`orders` is not used"),
    Case("    block-allow-list: sales\n", "", 24, "block-allow-list.sales", "is not used"),
    Case("    syncer-config-name: global\n", "", 27, "syncers.global", "is not used"),
    Case(
        "name:",
        "filters: {f: {schema-pattern: a, events: [all], action: Ignore}}\nname:",
        1,
        "filters.f",
        "name it in `filter-rules`",
    ),
    Case("name:", "loaders:\n  l:\nname:", 2, "loaders.l", "`l` is not used"),
    Case(
        "    route-rules:",
        "    syncer: {}\n    route-rules:",
        16,
        "mysql-instances[0].syncer",
        "`syncer-config-name` names one already",
    ),
    Case(
        "mysql-instances:\n  - source-id: shard-a",
        "mysql-instances:\n  - source-id: shard-b",
        15,
        "mysql-instances[0].source-id",
        "did you mean `shard-a`?",
    ),
    Case(
        "routes:",
        "  - source-id: shard-a\nroutes:",
        19,
        "mysql-instances[1].source-id",
        "each source has one",
    ),
    Case(
        "mysql-instances:",
        "  - source-id: shard-a\n    from: {host: b, port: 1, user: u}\nmysql-instances:",
        14,
        "sources[1].source-id",
        "another source with the id `shard-a`",
    ),
]

ONLINE_DDL = [
    Case(
        "name:", "shadow-table-rules: [a]\nname:", 1, "shadow-table-rules[0]", "exactly one group"
    ),
    Case(
        "name:", "trash-table-rules: [(]\nname:", 1, "trash-table-rules[0]", "not a valid regular"
    ),
    Case("name:", "online-ddl-scheme: both\nname:", 1, "online-ddl-scheme", "gh-ost"),
]

FILTERS = [
    Case(
        "    from:",
        f"    filters: [{{schema-pattern: a, {rule}}}]\n    from:",
        10,
        f"sources[0].filters[0]{key}",
        message,
    )
    for rule, key, message in (
        ("action: Ignore", "", "name `events`, or a `sql-pattern`"),
        ("events: [all]", ".action", "missing"),
        ("events: [truncat], action: Do", ".events[0]", "`truncat` is no event; there are: all,"),
        ("events: [insert], action: Error", "", "`insert` is about rows"),
        ("sql-pattern: ['('], action: Do", "", "'(', which is not valid"),
    )
]

EXPRESSION_FILTERS = [
    Case(
        "    route-rules:",
        "    expression-filters: [f]\n    route-rules:",
        16,
        "mysql-instances[0].expression-filters[0]",
        "`f` is not defined in `expression-filter`",
    ),
    *(
        Case(
            "routes:",
            f"expression-filter: {{f: {{schema: s, table: t{more}}}}}\nroutes:",
            *(19, "expression-filter.f", "for several, write several rules"),
        )
        for more in ("", ", insert-value-expr: a, delete-value-expr: b")
    ),
]

NOT_SUPPORTED = [
    Case("    from:", "    enable: false\n    from:", 10, "sources[0].enable", "switched off"),
    *(
        Case(
            "incremental",
            f"{mode}\nmydumpers: {{m: {{where: id > 5}}}}",
            3,
            "mydumpers.m.where",
            "copying only the rows",
        )
        for mode in ("full", "all")
    ),
]

PASSWORDS = [
    Case("hidden-word", written, 7, "target-database.password", says)
    for written, says in (
        ("'******'", "asterisks"),
        ("/Q7B9DizNLLTTfiZHv9WoEAKamfpIUs=", "encrypted by DM"),
        ("Up8156jArvIPymkVC+5LxkAT6rek", "encrypted by DM"),
    )
]

YAML = [
    Case("name: merge", "name: [merge", 2, "", "not valid YAML"),
    Case("  user: root", "\tuser: root", 6, "", "not valid YAML"),
    Case("name: merge", "name: !strange merge", 1, "", "not valid YAML"),
    Case("name: merge", "name: *nothing", 1, "", "undefined alias"),
    Case("  user: root", "  user: root\n  host: u", 7, "target-database.host", "already in line 4"),
    Case("syncers:", "routes: {}\nsyncers:", 27, "routes", "the key is already in line 19"),
    Case("name:", "black-white-list: {x: {}}\nname:", 1, "black-white-list", "keep `block-allow"),
]


@pytest.mark.parametrize(
    "case",
    UNKNOWN_KEYS
    + WRONG_VALUES
    + ONLINE_DDL
    + FILTERS
    + EXPRESSION_FILTERS
    + NOT_SUPPORTED
    + PASSWORDS,
    ids=lambda c: f"{c.old} -> {c.new}",
)
def test_one_wrong_value(tmp_path: Path, case: Case) -> None:
    assert case.old in TASK
    assert_told(tmp_path, case)


@pytest.mark.parametrize("case", REFERENCES, ids=lambda c: c.new or c.old)
def test_names_that_lead_nowhere(tmp_path: Path, case: Case) -> None:
    assert_told(tmp_path, case)


@pytest.mark.parametrize("case", YAML, ids=lambda c: c.new)
def test_faults_of_the_yaml(tmp_path: Path, case: Case) -> None:
    assert_told(tmp_path, case)


def assert_told(folder: Path, case: Case) -> None:
    """The first problem whose key fits is the expected one."""
    problems = problems_of(folder, TASK.replace(case.old, case.new, 1))
    found = [p for p in problems if p.key.startswith(case.key) and case.says in p.message]
    assert found, "\n".join(map(str, problems))
    assert found[0].line == case.line
    assert found[0].file == str(folder / "task.yaml")
    if case in NOT_SUPPORTED:
        assert found[0].message.startswith("not supported yet")


def test_all_problems_are_told_together_and_in_order(tmp_path: Path) -> None:
    text = (
        TASK.replace("incremental", "incremantal")
        .replace("  port: 4000", "  port: x\n  port: 4001")
        .replace("[orders]", "[ordrs]")
        .replace("safe-mode", "safe-mod")
        .replace("host: a", "hosts: a")
        + "shard-mode: hopeful\n"
    )
    keys = [(problem.line, problem.key) for problem in problems_of(tmp_path, text)]
    assert keys == [
        (2, "task-mode"),
        (6, "target-database.port"),
        (11, "sources[0].from.host"),
        (12, "sources[0].from.hosts"),
        (17, "mysql-instances[0].route-rules[0]"),
        (21, "routes.orders"),
        (30, "syncers.global.safe-mod"),
        (31, "shard-mode"),
    ]
