"""Mistakes in the rules about columns: mapped ones, and those that are filled from names."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.config.test_problems import TASK, problems_of


def assert_refused(folder: Path, text: str, key: str, says: str) -> None:
    found = [p for p in problems_of(folder, text) if p.key == key]
    assert any(says in problem.message for problem in found), found


@pytest.mark.parametrize("what", ["table", "schema", "source"])
@pytest.mark.parametrize(
    ("expression", "says"),
    [
        ("orders_.*", "'orders_.*' has no group"),
        ("'shard_('", "is not a regular expression"),
        ("'[a'", "is not a regular expression"),
    ],
)
def test_an_expression_that_extracts_nothing(
    tmp_path: Path, what: str, expression: str, says: str
) -> None:
    rule = f"extract-{what}: {{{what}-regexp: {expression}, target-column: c}}"
    text = TASK.replace("    target-schema:", f"    {rule}\n    target-schema:")
    assert_refused(tmp_path, text, f"routes.orders.extract-{what}.{what}-regexp", says)


def test_two_values_for_one_column(tmp_path: Path) -> None:
    rules = "".join(
        f"    extract-{what}: {{{what}-regexp: (.*), target-column: {column}}}\n"
        for what, column in (("table", "c"), ("source", "C"))
    )
    text = TASK.replace("    target-schema:", f"{rules}    target-schema:")
    assert_refused(tmp_path, text, "routes.orders", "two values for one `target-column`, `c`")


@pytest.mark.parametrize(
    ("rule", "key", "says"),
    [
        ("source-column: no, arguments: ['1', a, b]", "", "maps a column in its place"),
        ("arguments: ['1', a]", "", "the number of the instance, the prefix of schemas"),
        ("arguments: ['1', a, b, _, c]", "", "the number of the instance, the prefix of schemas"),
        ("arguments: [16, a, b]", "", "0 to 15 or empty, and not `16`"),
        ("arguments: [-1, a, b]", "", "0 to 15 or empty, and not `-1`"),
        ("arguments: [x, a, b]", "", "0 to 15 or empty, and not `x`"),
        ("source-column: ID", ".arguments", "missing"),
    ],
)
def test_a_mapping_that_can_not_be_used(tmp_path: Path, rule: str, key: str, says: str) -> None:
    mapping = f"schema-pattern: s, expression: partition id, target-column: id, {rule}"
    text = TASK.replace("syncers:", f"column-mappings: {{m: {{{mapping}}}}}\nsyncers:")
    assert_refused(tmp_path, text, f"column-mappings.m{key}", says)
