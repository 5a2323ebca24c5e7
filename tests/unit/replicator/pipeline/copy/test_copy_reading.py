"""Errors while a chunk is read: which are the source's, and which only ask for text."""

from __future__ import annotations

import pymysql.err
import pytest

from replicator.downstream.rows.bulk_statements import NotTypedError
from replicator.pipeline.copy.binary_rows import UnknownTypeError
from replicator.pipeline.copy.copy_reading import SourceFailedError, or_not_typed


@pytest.mark.parametrize(
    "error",
    [
        pymysql.err.OperationalError(1295, "not supported in the prepared statement protocol"),
        pymysql.err.OperationalError(1461, "can't create more than max_prepared_stmt_count"),
        pymysql.err.OperationalError(1615, "prepared statement needs to be re-prepared"),
        UnknownTypeError("values of the type 255"),
    ],
    ids=["not this statement", "too many are prepared", "void at once", "another type"],
)
def test_text_is_asked_for_where_rows_can_not_be_had_otherwise(error: Exception) -> None:
    with pytest.raises(NotTypedError), or_not_typed():
        raise error


def test_other_errors_are_those_of_the_source() -> None:
    with pytest.raises(SourceFailedError) as raised, or_not_typed():
        raise pymysql.err.ProgrammingError(1146, "no such table")
    assert raised.value.error.args[0] == 1146
