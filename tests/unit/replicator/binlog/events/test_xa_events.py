"""What the events of XA transactions say, and what is kept of them."""

from __future__ import annotations

import pytest

from replicator.binlog.errors import BinlogError, UnsupportedEventError
from replicator.binlog.events.xa_events import (
    UnknownTransactionError,
    XaOutcome,
    Xid,
    read_outcome,
    read_start,
    read_xa_prepare,
    xa_prepare_body,
)
from replicator.binlog.parser.prepared_transactions import PreparedPlaces, PreparedTransactions
from replicator.binlog.positions.position import BinlogPosition

XID = Xid((1 << 32) - 1, b"g'\x00", b"\xff")
AT = [BinlogPosition("bin.000001", offset) for offset in (100, 200, 300)]
OUTCOME = bytes(range(19))


def rows(transactions: PreparedTransactions, *sizes: int) -> None:
    transactions.begin()
    for size in sizes:
        transactions.collect(bytes(9) + size.to_bytes(4, "little") + bytes(size - 13))


@pytest.mark.parametrize("one_phase", [False, True])
def test_the_name_of_a_prepared_transaction(*, one_phase: bool) -> None:
    body = xa_prepare_body(XID, one_phase=one_phase)
    assert read_xa_prepare(body) == (XID, one_phase)
    for size in range(len(body)):
        with pytest.raises(BinlogError, match="XA_PREPARE"):
            read_xa_prepare(body[:size])


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (f"XA COMMIT {XID}", XaOutcome(XID, committed=True)),
        (f"xa rollback {XID} ", XaOutcome(XID, committed=False)),
        ("XA COMMIT X'',X'',0", XaOutcome(Xid(0, b"", b""), committed=True)),
        ("XA COMMIT X'01',X'',1 ONE PHASE", None),
        ("XA COMMIT 'a'", None),
        ("XA PREPARE X'01',X'',1", None),
        (f"XA START {XID}", None),
    ],
)
def test_outcomes(sql: str, expected: XaOutcome | None) -> None:
    assert read_outcome(sql) == expected


def test_beginnings() -> None:
    wide = Xid(1 << 40, b"a", b"")
    assert read_start(f"XA START {wide}") == wide
    assert read_start(f"XA COMMIT {wide}") is None


def test_the_end_of_a_group_whose_name_is_too_wide_for_it() -> None:
    assert read_xa_prepare(xa_prepare_body(Xid(1 << 40, b"a", b""), one_phase=True))[1]


def test_what_is_kept_comes_with_the_outcome_and_is_forgotten_behind_it() -> None:
    transactions = PreparedTransactions()
    rows(transactions, 30, 40)
    transactions.prepare(XID, AT[0])
    assert transactions.places == (AT[0],)
    payload = transactions.commit(XID, AT[1], OUTCOME)
    assert payload is not None
    sizes = []
    while payload.fill():
        sizes.append(len(payload.next_event()))
    assert sizes[:2] == [30, 40]
    assert list(transactions.places) == AT[:1], "it may have to be read again until the group ends"
    transactions.settled()
    assert not transactions.places
    with pytest.raises(UnknownTransactionError) as caught:
        transactions.commit(XID, AT[2], OUTCOME)
    assert (caught.value.xid, caught.value.at) == (XID, AT[2])


def test_a_name_that_is_used_again() -> None:
    transactions = PreparedTransactions()
    for at, size in zip(AT, (30, 40, 50), strict=True):
        rows(transactions, size)
        transactions.prepare(XID, at)
    assert transactions.places == (AT[2],)
    payload = transactions.commit(XID, AT[2], OUTCOME)
    assert payload is not None
    assert payload.fill()
    assert len(payload.next_event()) == 50


def test_a_prepare_without_its_beginning() -> None:
    with pytest.raises(UnsupportedEventError, match="XA"):
        PreparedTransactions().prepare(XID, AT[0])


def test_places_count_up_to_a_place() -> None:
    other = Xid(1, b"x", b"")
    places = PreparedPlaces(AT[2].key)
    places.prepare(XID, AT[0])
    places.prepare(other, AT[1])
    places.commit(XID, AT[1], OUTCOME)
    assert places.found == {other: AT[1]}
    places.roll_back(other, AT[2])
    places.prepare(XID, AT[2])
    assert places.found == {other: AT[1]}


def test_a_name_that_was_used_before() -> None:
    places = PreparedPlaces(AT[2].key, XID)
    places.prepare(Xid(1, b"x", b""), AT[0])
    assert not places.met
    places.roll_back(XID, AT[2])
    assert not places.met, "that is the outcome it is sought for"
    places.roll_back(XID, AT[1])
    assert places.met
