"""An error in an executor that comes back the same way is a fault, and only then."""

from __future__ import annotations

import pytest
from pyspark.errors import PySparkException, PythonException

from actors.faults import ExecutorError, TransientError
from actors.spark_jobs import SPARK_ATTEMPTS, JobAttempts
from actors.task.recurrence import Recurrence

ERROR = ExecutorError("Spark failed 3 times", "ValueError: no")
SAVED = {"a": "binlog.000001:4"}


def test_the_same_error_at_the_same_place_is_a_fault() -> None:
    recurrence = Recurrence()
    assert recurrence.fault(ERROR, SAVED) is None
    fault = recurrence.fault(ExecutorError("Spark failed again", "ValueError: no"), dict(SAVED))
    assert fault is not None
    assert fault.event == "task.unexpected"
    assert "ValueError: no" in fault.message
    assert fault.where == "saved positions: a binlog.000001:4"


@pytest.mark.parametrize(
    ("error", "saved", "copied"),
    [
        (ExecutorError("", "ValueError: other"), SAVED, 0),
        (ERROR, {"a": "binlog.000001:99"}, 0),
        (ERROR, SAVED, 7),
        (TransientError("Spark's JVM is gone"), SAVED, 0),
    ],
    ids=["another", "moved on", "copied more", "not ours"],
)
def test_what_differs_is_tried_again(error: Exception, saved: dict[str, str], copied: int) -> None:
    recurrence = Recurrence()
    recurrence.fault(ERROR, SAVED)
    assert recurrence.fault(error, saved, copied) is None


def test_a_server_that_is_away_in_between_changes_nothing() -> None:
    recurrence = Recurrence()
    recurrence.fault(ERROR, SAVED)
    recurrence.fault(TransientError("away"), SAVED)
    assert recurrence.fault(ERROR, SAVED) is not None


def failed(error: Exception) -> TransientError:
    attempts = JobAttempts()
    for _ in range(SPARK_ATTEMPTS - 1):
        attempts.spark_failed(error)
    with pytest.raises(TransientError) as caught:
        attempts.spark_failed(error)
    return caught.value


def test_errors_of_python_are_told_from_those_of_spark() -> None:
    text = "An exception was thrown from the Python worker:\nTraceback …\nValueError: no\n"
    error = failed(PythonException(text))
    assert isinstance(error, ExecutorError)
    assert error.text == "ValueError: no"
    assert not isinstance(failed(PySparkException("Task lost")), ExecutorError)
