"""Values that several rows share, counted."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from replicator.mysql.names import Member, TableName
from replicator.pipeline.compare.compare_plan import ComparedTable
from replicator.pipeline.compare.value_forms import key_form
from replicator.pipeline.duplicate_keys.key_plan import KeyColumn, KeyRead
from replicator.pipeline.duplicate_keys.key_sample import EXAMPLES, HOLDERS, KeyTally
from replicator.schema.structure.structure import Column

COLUMN = KeyColumn(key_form(Column("id", "int")))
MEMBERS = [Member("a", TableName("s", f"t{n}")) for n in range(4)]
READS = [KeyRead(0, m, ComparedTable("a", m.name, (b"`id`",)), (COLUMN,)) for m in MEMBERS]
ROWS = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 3)), max_size=80)


@given(rows=ROWS)
def test_it_counts_as_one_would_by_hand(rows: list[tuple[int, int]]) -> None:
    tally = KeyTally()
    tally.count(READS, [(b"%d" % value, member, b"%d" % value) for value, member in rows])
    values = Counter(value for value, _ in rows)
    shared = {value: count for value, count in values.items() if count > 1}
    assert (tally.looked_at, tally.shared) == (len(rows), len(shared))
    assert tally.by_member == Counter(READS[m].member for value, m in rows if value in shared)
    assert len(tally.examples) == min(len(shared), EXAMPLES)
    for example in tally.examples:
        holders = sorted(m for value, m in rows if value == int(example.value))
        assert example.rows == len(holders)
        assert list(example.members) == [READS[m].member for m in holders[:HOLDERS]]
