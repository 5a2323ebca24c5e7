"""The full copy: every kind of row, byte for byte, from each kind of source."""

from __future__ import annotations

from collections.abc import Callable

from replicator.sandbox.server import DatabaseServer
from tests.integration.rows.test_rows_types import columns, groups_of, rows, selected
from tests.support.servers.matrix import matrix
from tests.support.tasks.merging import Merging


@matrix("copy", broad=True)
async def test_every_type_is_copied_byte_for_byte(merging: Merging) -> None:
    merging.mode = "full"
    groups = groups_of(merging.source, merging.target)
    for name, types in groups.items():
        merging.create(name, f"(id INT PRIMARY KEY, {columns(types)})", with_target=False)
        merging.do(
            *(
                f"INSERT INTO {name}_1 VALUES ({n}, {','.join(values)})"
                for n, values in enumerate(rows(types))
            )
        )
    generation = await merging.copy()
    assert generation.finished
    shown = {name: selected(types, merging.target, "id") for name, types in groups.items()}
    assert not merging.differences(shown)


async def test_chunks_of_every_kind_of_key_meet_without_gap_or_overlap(
    merging_from: Callable[..., Merging], mariadb_source: DatabaseServer
) -> None:
    merging = merging_from(mariadb_source)
    merging.mode = "full"
    merging.more = {
        "mydumpers": {"small": {"rows": 7}},
        "loaders": {"strict": {"on-duplicate-logical": "error"}},
    }
    keys = {
        "number": "a INT, PRIMARY KEY (a)",
        "negative": "a DECIMAL(10,2), PRIMARY KEY (a)",
        "pair": "a INT, b INT, PRIMARY KEY (a, b)",
        "triple": "a VARCHAR(5), b DATE, c BINARY(4), PRIMARY KEY (a, b, c)",
        "kind": "a INT, b ENUM('z','y','x'), PRIMARY KEY (a, b)",
        "first": "a ENUM('z','y','x'), b INT, PRIMARY KEY (a, b)",
        "uniq": "a VARCHAR(20) NOT NULL, b INT, UNIQUE KEY u (a)",
        "bits": "a BIT(20), b DATETIME(3), PRIMARY KEY (a, b)",
        "maybe": "a INT, UNIQUE KEY u (a)",
    }
    fill = {
        "number": "SELECT CAST(seq * seq AS SIGNED) - 50 FROM seq_1_to_100",
        "negative": "SELECT (CAST(seq AS SIGNED) - 50) / 4 FROM seq_1_to_100",
        "pair": "SELECT seq DIV 30, seq FROM seq_1_to_100",
        "triple": "SELECT CHAR(96 + seq % 5), '2020-01-01' + INTERVAL seq DIV 20 DAY,"
        " UNHEX(CONCAT('00', LPAD(HEX(seq * 2500), 6, '0'))) FROM seq_1_to_100",
        "kind": "SELECT seq DIV 3, seq % 3 + 1 FROM seq_1_to_100",
        "first": "SELECT seq % 3 + 1, seq FROM seq_1_to_100",
        "uniq": "SELECT CONCAT('k''\\\\', CHAR(9), seq), seq FROM seq_1_to_100",
        "bits": "SELECT seq * 9, '2020-01-01' + INTERVAL seq * 1500000 MICROSECOND"
        " FROM seq_1_to_100",
        "maybe": "SELECT IF(seq % 2, NULL, seq) FROM seq_1_to_100",
    }
    for name, key in keys.items():
        merging.create(name, f"({key}) CHARACTER SET latin1", with_target=False)
        merging.do(f"INSERT INTO {name}_1 {fill[name]}")
    merging.instance = {"mydumper-config-name": "small", "loader-config-name": "strict"}
    generation = await merging.copy()
    assert not merging.differences()
    assert generation.copy is not None
    progress = generation.copy.progress
    assert (progress.rows, progress.counts.replaced, progress.counts.ignored) == (900, 0, 0)
    assert (progress.tables, progress.tables_done) == (9, 9)
    chunks = merging.target.execute(
        f"SELECT table_name, COUNT(*) FROM {merging.database}_meta.{merging.database}_chunk"
        " GROUP BY table_name"
    )
    # 100 rows in sevens; whole groups of three; one chunk where no column serves to cut.
    assert dict(chunks) == {f"{name}_1": 15 for name in keys} | {
        "kind_1": 12,
        "first_1": 1,
        "maybe_1": 1,
    }
