"""What comes back with nothing done in between is a fault, and only then."""

from __future__ import annotations

import pytest
from pyspark.errors import PySparkException, PythonException

from actors.errors.faults import ExecutorError, SparkFailedError, TransientError
from actors.jobs.spark_jobs import SPARK_ATTEMPTS, JobAttempts
from actors.task.recurrence import SPARK_LOSSES, Recurrence

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


LOST = SparkFailedError("Spark's JVM is gone")


def test_spark_that_fails_run_after_run_is_a_fault() -> None:
    recurrence = Recurrence()
    for _ in range(SPARK_LOSSES - 1):
        assert recurrence.fault(LOST, SAVED) is None
    fault = recurrence.fault(SparkFailedError("Spark failed 3 times: worker exited"), SAVED)
    assert fault is not None
    assert fault.event == "spark.failing"
    assert "worker exited" in fault.message
    assert recurrence.fault(LOST, SAVED) is None, "after a resume it counts anew"


@pytest.mark.parametrize(
    ("saved", "copied"), [({"a": "binlog.000001:99"}, 0), (SAVED, 7)], ids=["moved on", "copied"]
)
def test_runs_that_did_something_begin_the_count_anew(saved: dict[str, str], copied: int) -> None:
    recurrence = Recurrence()
    for _ in range(SPARK_LOSSES - 1):
        recurrence.fault(LOST, SAVED)
    for _ in range(SPARK_LOSSES - 1):
        assert recurrence.fault(LOST, saved, copied) is None


def test_servers_that_are_away_are_waited_for() -> None:
    recurrence = Recurrence()
    for _ in range(SPARK_LOSSES * 2):
        assert recurrence.fault(TransientError("away"), SAVED) is None


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


@pytest.mark.parametrize(
    "name", ["MemoryError", "numpy._core._ArrayMemoryError", "pyarrow.lib.ArrowMemoryError"]
)
def test_python_without_memory_is_no_error_of_ours(name: str) -> None:
    error = failed(PythonException(f"Traceback …\n{name}: Unable to allocate 9.40 MiB\n"))
    assert not isinstance(error, ExecutorError)


def test_a_message_has_the_error_of_java_without_its_stack() -> None:
    error = failed(PySparkException("An error\n: SparkException: lost\n\tat a.b.C(D.java:3)\n"))
    assert str(error) == "Spark failed 3 times: An error: SparkException: lost"
