"""The list of the tests that take long."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.support.long_tests import LONG_SECONDS, found_in, long_tests

ROOT = Path(__file__).parents[4]


def test_each_test_of_the_list_exists() -> None:
    files: dict[str, set[str]] = {}
    for test in long_tests():
        file, _, name = test.partition("::")
        files.setdefault(file, set()).add(name)
    for file, names in files.items():
        tree = ast.parse((ROOT / file).read_text("utf-8"))
        functions = {
            node.name
            for node in tree.body
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        }
        assert names <= functions, file


def test_the_cases_of_a_test_count_together() -> None:
    half = LONG_SECONDS / 2
    report = f"""
    <testsuites><testsuite>
    <testcase classname="tests.integration.test_a" name="test_one[x]" time="{half}"/>
    <testcase classname="tests.integration.test_a" name="test_one[y]" time="{half}"/>
    <testcase classname="tests.integration.test_a" name="test_two" time="{half}"/>
    <testcase classname="tests.unit.test_b" name="test_three" time="{2 * half}"/>
    </testsuite></testsuites>
    """
    assert found_in(report) == ["tests/integration/test_a.py::test_one"]
