"""Each check has a test that executes its remedies, or a reason why there is none."""

from __future__ import annotations

import ast
from pathlib import Path

from replicator.checks.check_items import CHECKS

TESTS = Path(__file__).parents[3] / "integration"
TASK_FILE = "an edit of the task file"
MY_CNF = "an option of the server's my.cnf"
BY_HAND = {
    "all": "no check",
    "binlog_row_metadata": "it always passes",
    "binlog_db": MY_CNF,
    "source_cluster": MY_CNF,
    "expression_filters": TASK_FILE,
    "ignore-checking-items": TASK_FILE,
    "lower_case_table_names": TASK_FILE,
    "routes": TASK_FILE,
    "connection": "what the operator finds out about the network or the account",
    "spark_master": "what the operator finds out about the cluster",
    "version": "another server",
    "sql_mode": "another account",
    "system_versioning": "changes of the shards that their owner chooses",
}


def cured() -> set[str]:
    """The checks that marks of the tests name."""
    found: set[str] = set()
    for path in TESTS.rglob("test_*.py"):
        text = path.read_text(encoding="utf-8")
        if "mark.cures(" not in text:
            continue
        for call in ast.walk(ast.parse(text)):
            if isinstance(call, ast.Call) and ast.unparse(call.func) == "pytest.mark.cures":
                found |= {ast.literal_eval(argument) for argument in call.args}
    return found


def test_the_remedies_of_each_check_are_executed() -> None:
    assert set(CHECKS) == cured() | set(BY_HAND)
    assert not cured() & set(BY_HAND)
