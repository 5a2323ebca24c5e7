"""What statements come to for online schema changes: recorded, replayed, refused."""

from __future__ import annotations

import pytest

from replicator.ddl.online.online_ddl import (
    Beside,
    GhostAct,
    GhostEntry,
    GhostHistory,
    OnlineDdlError,
    OnlineStep,
    gaps_of,
    is_filled,
    read_online,
)
from replicator.ddl.parser.statement_kinds import classify
from replicator.mysql.names import TableName
from replicator.routing.online_tables import OnlineNames, OnlineTable, OnlineUse

NAMES = OnlineNames([r"^_(.+)_(?:new|gho)$"], [r"^_(.+)_(?:ghc|del|old)$"])
T, GHOST = TableName("d", "t"), TableName("d", "_t_gho")
PLAIN = OnlineStep()


def beside(table: TableName) -> Beside | None:
    """Tables of the schema ``d`` are replicated."""
    found = NAMES.read(table.table)
    if found is None or table.schema != "d":
        return None
    return Beside(TableName("d", found.real), found.use is OnlineUse.TRASH)


class Log:
    """A binlog's statements, each at the next place."""

    def __init__(self) -> None:
        self.history = GhostHistory()
        self.at = 0

    def read(self, *statements: str) -> OnlineStep:
        """The last one's step."""
        step = PLAIN
        for sql in statements:
            self.at += 100
            event = GhostEntry(TableName("", ""), self.at, GhostAct.CHANGED, sql, "d")
            parsed = classify(sql, default_schema="d")
            step = read_online(parsed, event, beside, self.history)
            for entry in step.entries:
                self.history.add(entry)
        return step

    def replayed(self, *statements: str) -> list[str]:
        step = self.read(*statements)
        assert step.replayed is not None, "processed like any other"
        return [entry.sql for entry in step.replayed]


def test_what_names_say() -> None:
    assert NAMES.read("_t_gho") == OnlineTable(OnlineUse.GHOST, "t")
    assert NAMES.read("__x_new_new") == OnlineTable(OnlineUse.GHOST, "_x_new")
    assert NAMES.read("_t_old") == OnlineTable(OnlineUse.TRASH, "t")
    assert NAMES.read("t_gho") is None
    assert NAMES.read("__gho") is None


@pytest.mark.parametrize("rule", ["^_t_gho$", "^_(.+)_(gho|new)$", "^_(.+$"])
def test_a_rule_needs_one_group(rule: str) -> None:
    with pytest.raises(ValueError, match=r"group|not valid"):
        OnlineNames([rule], [])


GH_OST = (
    "drop /* gh-ost */ table if exists `d`.`_t_gho`",
    "drop /* gh-ost */ table if exists `d`.`_t_del`",
    "create /* gh-ost */ table `d`.`_t_ghc` (id bigint auto_increment, primary key(id))",
    "create /* gh-ost */ table `d`.`_t_gho` like `d`.`t`",
    "alter /* gh-ost */ table `d`.`_t_gho` ADD c INT",
    "alter /* gh-ost */ table `d`.`_t_gho` AUTO_INCREMENT=42",
)
EXCHANGE = "rename /* gh-ost */ table `d`.`t` to `d`.`_t_del`, `d`.`_t_gho` to `d`.`t`"


def test_gh_ost() -> None:
    log = Log()
    log.read(*GH_OST)
    log.read("create /* gh-ost */ table `d`.`_t_del` (id int) comment='ghost-cut-over-sentry'")
    assert log.replayed("drop /* gh-ost */ table if exists `d`.`_t_del`", EXCHANGE) == [GH_OST[4]]
    assert log.read("drop /* gh-ost */ table if exists `d`.`_t_ghc`, `d`.`_t_del`") == PLAIN


PT_OSC = (
    "CREATE TABLE `d`.`_t_new` (id int primary key)",
    "ALTER TABLE `d`.`_t_new` ADD c INT",
)


def test_pt_online_schema_change() -> None:
    log = Log()
    log.read(
        "CREATE TABLE `d`.`_t_new` (id int primary key)",
        "ALTER TABLE `d`.`_t_new` ADD c INT",
        "CREATE TRIGGER `pt_osc_d_t_del` AFTER DELETE ON `d`.`t` FOR EACH ROW DELETE FROM d._t_new",
    )
    exchange = "RENAME TABLE `d`.`t` TO `d`.`_t_old`, `d`.`_t_new` TO `d`.`t`"
    step = log.read(exchange)
    assert [entry.sql for entry in step.replayed or ()] == ["ALTER TABLE `d`.`_t_new` ADD c INT"]
    assert step.made is not None
    assert step.made.sql == "CREATE TABLE `d`.`_t_new` (id int primary key)"
    assert log.read("DROP TABLE IF EXISTS `_t_old`") == PLAIN


def test_an_exchange_in_two_steps() -> None:
    log = Log()
    log.read(*GH_OST)
    assert log.replayed("alter table t rename _t_del") == []
    assert log.replayed("alter table _t_gho rename to t") == [GH_OST[4]]


def test_a_trash_table_does_not_become_the_real_one_again() -> None:
    log = Log()
    log.read(*GH_OST)
    assert log.replayed("RENAME TABLE t TO _t_del") == []
    with pytest.raises(OnlineDdlError, match="skip the statement"):
        log.read("RENAME TABLE _t_del TO t")
    assert log.replayed(EXCHANGE) == [GH_OST[4]]


def test_a_ghost_that_was_emptied_is_refused() -> None:
    log = Log()
    log.read(*GH_OST, "TRUNCATE _t_gho")
    with pytest.raises(OnlineDdlError, match="created before"):
        log.read(EXCHANGE)


def test_a_second_run_begins_anew() -> None:
    log = Log()
    log.read(*GH_OST, "create table _t_gho like t", "alter table _t_gho add d int")
    log.read("create index i on _t_gho (d)", "drop index j on _t_gho")
    assert log.replayed(EXCHANGE) == [
        "alter table _t_gho add d int",
        "create index i on _t_gho (d)",
        "drop index j on _t_gho",
    ]


def test_reading_again_finds_the_same() -> None:
    log = Log()
    log.read(*GH_OST)
    before = log.at
    log.read(EXCHANGE, "create table _t_gho like t", "alter table _t_gho add e int")
    log.at = before
    assert log.replayed(EXCHANGE) == [GH_OST[4]]
    log.at = before + 100
    log.read("create table _t_gho like t", "alter table _t_gho add e int")
    assert log.replayed(EXCHANGE) == ["alter table _t_gho add e int"]


def test_what_no_reading_needs_is_outdated() -> None:
    log = Log()
    log.read(*GH_OST)
    assert {entry.act for entry in log.history.outdated(log.at + 1)} == {GhostAct.ENDED}
    log.read(EXCHANGE)
    changed = {e.act for e in log.history.outdated(log.at + 1)}
    assert changed == {GhostAct.ENDED, GhostAct.BEGUN, GhostAct.CHANGED}
    assert log.history.outdated(0) == ()


@pytest.mark.parametrize(
    "statements",
    [
        (EXCHANGE,),
        ("alter table _t_gho add c int", EXCHANGE),
        ("create table _t_gho like t", "drop table _t_gho", EXCHANGE),
        ("create table _t_gho like t", "alter table _t_gho add c int", EXCHANGE, EXCHANGE),
    ],
    ids=["nothing", "no beginning", "dropped", "exchanged"],
)
def test_a_ghost_of_unknown_beginning_is_refused(statements: tuple[str, ...]) -> None:
    log = Log()
    log.read(*statements[:-1])
    with pytest.raises(OnlineDdlError, match="created before"):
        log.read(statements[-1])


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("RENAME TABLE t TO _t_gho", "which is the ghost of"),
        ("RENAME TABLE x TO _t_new", "which is the ghost of"),
        ("RENAME TABLE _t_gho TO _u_gho", "which is the ghost of"),
        ("RENAME TABLE _t_old TO t", "skip the statement"),
        ("ALTER TABLE _t_gho ADD z INT, RENAME TO t", "changes it in one statement"),
        ("CREATE TABLE IF NOT EXISTS _t_gho LIKE t", "with IF NOT EXISTS"),
        ("RENAME TABLE t TO _t_del, _t_gho TO t, x TO y", "renames other tables, too"),
    ],
)
def test_what_is_refused(sql: str, why: str) -> None:
    log = Log()
    log.read(*GH_OST)
    with pytest.raises(OnlineDdlError, match=why):
        log.read(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "ALTER TABLE t AUTO_INCREMENT=9",
        "ALTER TABLE u ADD c INT",
        "CREATE INDEX i ON t (id)",
        "RENAME TABLE t TO u",
        "DROP TABLE u",
        "CREATE TEMPORARY TABLE _t_gho (a int)",
        "RENAME TABLE other.t TO other._t_del, other._t_gho TO other.t",
        "TRUNCATE _t_old",
        "DROP TABLE _t_old",
        "CREATE TABLE _t_ghc (a int)",
    ],
)
def test_everything_else_is_processed_like_any_other(sql: str) -> None:
    log = Log()
    log.read(*GH_OST)
    assert log.read(sql) == PLAIN
    assert log.replayed(EXCHANGE) == [GH_OST[4]]


def test_a_ghost_with_nothing_but_a_definition_of_its_own_is_refused() -> None:
    log = Log()
    log.read("CREATE TABLE _t_new (id bigint primary key, c int)")
    with pytest.raises(OnlineDdlError, match="no ALTER TABLE has changed it"):
        log.read("RENAME TABLE t TO _t_old, _t_new TO t")


def test_a_ghost_that_gets_another_name_is_none_any_more() -> None:
    log = Log()
    log.read(*GH_OST)
    assert log.read("RENAME TABLE _t_gho TO backup").replayed is None
    with pytest.raises(OnlineDdlError, match="created before"):
        log.read(EXCHANGE)


@pytest.mark.parametrize(
    "sql",
    [
        "ALTER TABLE t MODIFY a INT AFTER b",
        "CREATE TABLE t (id INT)",
        "RENAME TABLE t TO _t_old, _t_new TO t",
    ],
)
def test_a_ghost_whose_table_was_changed_meanwhile_is_refused(sql: str) -> None:
    log = Log()
    log.read(*GH_OST, "CREATE TABLE _t_new LIKE t", "ALTER TABLE _t_new ADD d INT")
    log.read(sql)
    with pytest.raises(OnlineDdlError, match="was changed while the ghost was there"):
        log.read(EXCHANGE)


def test_an_exchange_that_changes_nothing_is_refused() -> None:
    log = Log()
    log.read("CREATE TABLE _t_gho LIKE t")
    with pytest.raises(OnlineDdlError, match="without any change"):
        log.read(EXCHANGE)


def test_a_table_is_not_dropped_before_its_ghost_takes_its_place() -> None:
    log = Log()
    log.read(*PT_OSC)
    with pytest.raises(
        OnlineDdlError, match=r"d\._t_new.* resume.* the statement with the same statement"
    ):
        log.read("DROP TABLE IF EXISTS `d`.`t`")
    assert log.read("DROP TABLE other, t, _t_new").replayed is None
    assert log.read("DROP TABLE t") == PLAIN


def test_a_table_that_makes_room_for_its_ghost_is_not_dropped() -> None:
    """As pt-online-schema-change does with drop_swap."""
    log = Log()
    log.read(*PT_OSC)
    drop = "DROP TABLE IF EXISTS `d`.`t`"
    place = log.at + 100
    log.history.add(GhostEntry(TableName("d", "_t_new"), place, GhostAct.AWAITED, drop))
    assert log.replayed(drop) == []
    assert log.replayed("RENAME TABLE `d`.`_t_new` TO `d`.`t`") == [PT_OSC[1]]
    log.at = place - 100
    assert log.replayed(drop) == [], "read again"
    with pytest.raises(OnlineDdlError, match="does not show yet"):
        log.read(drop)


@pytest.mark.parametrize(
    ("behind", "filled"),
    [
        ((), None),
        (("ALTER TABLE u ADD a INT", "DROP TRIGGER pt_osc_d_t_del", "COMMIT"), None),
        (("ALTER TABLE u ADD a INT", "RENAME TABLE _t_new TO t"), True),
        (("ALTER TABLE _t_new RENAME TO t",), True),
        (("ALTER TABLE _t_new ADD a INT", "RENAME TABLE _t_new TO t"), False),
        (("RENAME TABLE _t_new TO t, u TO v",), False),
        (("RENAME TABLE _t_new TO u",), False),
        (("CREATE TABLE t (id INT)",), False),
        (("DROP TABLE _t_new", "RENAME TABLE _t_new TO t"), False),
        (("DROP DATABASE d",), False),
        (("WHAT IS THIS",), False),
    ],
)
def test_whether_a_ghost_takes_the_place_next(behind: tuple[str, ...], filled: bool | None) -> None:
    log = Log()
    log.read(*PT_OSC)
    drop = classify("DROP TABLE t", default_schema="d")
    (gap,) = gaps_of(drop, log.at + 100, beside, log.history)
    assert is_filled(gap, [classify(sql, default_schema="d") for sql in behind]) is filled


def test_a_table_that_is_emptied_while_its_ghost_is_filled_is_refused() -> None:
    log = Log()
    log.read(*GH_OST, "TRUNCATE TABLE t")
    with pytest.raises(OnlineDdlError, match="changed while the ghost was there"):
        log.read(EXCHANGE)


def of_before(log: Log, act: GhostAct, sql: str) -> None:
    """What is recorded at a start of a ghost that was there already."""
    for entry in (GhostEntry(GHOST, 1, GhostAct.BEGUN), GhostEntry(GHOST, 2, act, sql, "d")):
        log.history.add(entry)


def test_a_ghost_of_before_the_start() -> None:
    log = Log()
    of_before(log, GhostAct.CHANGED, "ALTER TABLE `d`.`_t_gho` ADD COLUMN `c` int")
    assert log.replayed(EXCHANGE) == ["ALTER TABLE `d`.`_t_gho` ADD COLUMN `c` int"]


def test_a_ghost_of_before_the_start_that_was_like_its_table() -> None:
    log = Log()
    of_before(log, GhostAct.SAME, "ALTER TABLE `d`.`_t_gho` ENGINE=InnoDB")
    assert log.replayed(EXCHANGE) == ["ALTER TABLE `d`.`_t_gho` ENGINE=InnoDB"]
    log = Log()
    of_before(log, GhostAct.SAME, "ALTER TABLE `d`.`_t_gho` ENGINE=InnoDB")
    assert log.replayed(GH_OST[4], EXCHANGE) == [GH_OST[4]], "it was made, and not changed yet"


def test_a_ghost_of_before_the_start_whose_change_is_not_clear() -> None:
    log = Log()
    of_before(log, GhostAct.UNCLEAR, "a column goes")
    with pytest.raises(OnlineDdlError, match=r"a column goes.*ALTER TABLE of t "):
        log.read(EXCHANGE)
    log.read(*GH_OST)
    assert log.replayed(EXCHANGE) == [GH_OST[4]], "made anew"
