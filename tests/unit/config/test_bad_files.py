"""Files that can't be read, are no task, or hold anything at all: always a clear error."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from config import Problem, TaskFileError, load_task
from config.problems import did_you_mean, nearest
from config.yaml_lines import read_yaml

TASK = """\
name: merge
task-mode: incremental
target-database: {host: t, port: 4000, user: root, password: hidden-word}
sources:
  - source-id: shard-a
    from: {host: a, port: 3306, user: repl}
mysql-instances:
  - source-id: shard-a
    route-rules: [orders]
    meta: {binlog-name: mysql-bin.000001}
routes:
  orders: {schema-pattern: sales_*, target-schema: sales}
"""


def problems_of(folder: Path, text: str | bytes) -> tuple[Problem, ...]:
    path = folder / "task.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(TaskFileError) as caught:
        load_task(path)
    return caught.value.problems


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "the file is empty"),
        ("# nothing\n", "the file is empty"),
        ("- a\n", "a task file is a section"),
        ("word", "a task file is a section"),
        ("a: 1\n---\nb: 2\n", "not valid YAML"),
        (b"name: \xff\xfe\n", "not valid YAML"),
        (b"name: \x00\n", "not valid YAML"),
        ("? [a, b]\n: 1\n", "a key must be a single word"),
        ("name: &a [*a]\n", "contains itself"),
        ("a: &a\n  <<: *a\n", ""),
        ("<<: 1\n", "not valid YAML"),
        ("[" * 5000, "nested too deeply"),
    ],
)
def test_files_that_are_no_task(tmp_path: Path, text: str | bytes, says: str) -> None:
    assert any(says in problem.message for problem in problems_of(tmp_path, text))


@pytest.mark.parametrize("name", ["sources", "mysql-instances"])
def test_lists_that_are_needed(tmp_path: Path, name: str) -> None:
    lines = TASK.replace(f"{name}:\n", f"{name}: []\nx-{name}:\n", 1)
    (found,) = [p for p in problems_of(tmp_path, lines) if p.key == name]
    assert "is missing" in found.message or "must not be empty" in found.message


def test_a_missing_file_names_the_one_like_it(tmp_path: Path) -> None:
    (tmp_path / "merge.yaml").touch()
    with pytest.raises(TaskFileError, match=r"No such file.*did you mean `merge.yaml`") as caught:
        load_task(tmp_path / "merge.yml")
    assert str(tmp_path / "merge.yml") in str(caught.value)


def test_a_folder_is_no_task_file(tmp_path: Path) -> None:
    with pytest.raises(TaskFileError, match="can't be read") as caught:
        load_task(tmp_path)
    assert "did you mean" not in str(caught.value)


def test_problems_of_a_source_file_name_that_file(tmp_path: Path) -> None:
    (tmp_path / "b.yaml").write_text(
        "source-id: shard-b\nfrom:\n  host: b\n  port: 3306\n  usr: repl\nenable: false\n",
        encoding="utf-8",
    )
    problems = problems_of(tmp_path, TASK + "source-files: [b.yaml, c.yaml]\n")
    told = {(Path(p.file).name, p.line, p.key) for p in problems}
    assert told == {
        ("task.yaml", 13, "source-files[1]"),
        ("b.yaml", 2, "from.user"),
        ("b.yaml", 5, "from.usr"),
        ("b.yaml", 6, "enable"),
    }
    (missing,) = [p for p in problems if p.key == "source-files[1]"]
    assert "did you mean `b.yaml`?" in missing.message


def test_a_source_that_could_not_be_read_is_not_called_unknown(tmp_path: Path) -> None:
    text = TASK.replace("sources:", "source-files: [none.yaml]\nx:")
    keys = {problem.key for problem in problems_of(tmp_path, text)}
    assert keys == {"source-files[0]", "x"}


def test_the_error_reads_well(tmp_path: Path) -> None:
    path = tmp_path / "task.yaml"
    path.write_text(TASK.replace("incremental", "incremantal"), encoding="utf-8")
    with pytest.raises(TaskFileError) as caught:
        load_task(path)
    assert str(caught.value) == (
        f"the task file {path} has 1 problem:\n"
        f"  {path}:2: task-mode: must be one of `full`, `incremental`, `all`, not `incremantal`;"
        " did you mean `incremental`?"
    )


def test_the_nearest_key_ignores_case_and_dashes() -> None:
    assert nearest("Do_DBS", ["do-dbs", "ignore-dbs"]) == "do-dbs"
    assert nearest("xyz", ["do-dbs"]) is None
    assert did_you_mean("xyz", []) == ""


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["source-id", "from", "name", "*", ""]), inner, max_size=3
        )
    ),
    max_leaves=5,
)


@given(where=st.integers(min_value=0, max_value=200), value=_JSON)
@settings(max_examples=300, deadline=None)
def test_no_value_of_any_shape_raises_another_error(
    tmp_path_factory: pytest.TempPathFactory, where: int, value: object
) -> None:
    data = yaml.safe_load(TASK)
    places = list(_places(data))
    section, key = places[where % len(places)]
    section[key] = value
    path = tmp_path_factory.mktemp("any") / "task.yaml"
    path.write_text(yaml.safe_dump(data), encoding="utf-8")
    problems: tuple[Problem, ...] = ()
    try:
        load_task(path)
    except TaskFileError as error:
        problems = error.problems
    assert all(problem.line and problem.key and problem.message for problem in problems)


def _places(data: Any) -> Iterator[tuple[Any, Any]]:
    steps = data if isinstance(data, dict) else range(len(data))
    for step in list(steps):
        yield data, step
        if isinstance(data[step], dict | list):
            yield from _places(data[step])


def test_an_unknown_key_in_the_only_instance_does_not_make_the_list_empty(tmp_path: Path) -> None:
    text = TASK.replace("    route-rules:", "    route-rulez:")
    assert text != TASK
    found = problems_of(tmp_path, text)
    assert [p.key for p in found if "must not be empty" in p.message] == []
    assert any(p.key == "mysql-instances[0].route-rulez" for p in found)


def test_a_port_may_stand_in_quotes(tmp_path: Path) -> None:
    path = tmp_path / "merge.yaml"
    path.write_text(TASK.replace("port: 4000", "port: '4000'"))
    assert load_task(path).target_database.port == 4000


def nested(kind: str) -> str:
    """Nine aliases of nine aliases of …"""
    lines = ["a0: &a0 {x: 1, y: 2}"] + [
        f"a{n}: &a{n} " + ("[" + ", ".join([f"*a{n - 1}"] * 9) + "]" if kind == "list"
        else "{" + ", ".join(f"k{m}: *a{n - 1}" for m in range(9)) + "}")
        for n in range(1, 30)
    ]  # fmt: skip
    return "\n".join(lines)


TOO_MUCH = {
    "lists of aliases": (nested("list"), "more than 50,000 values"),
    "sections of aliases": (nested("section"), "more than 50,000 values"),
    "merged again and again": (
        "a: &a {" + ", ".join(f"k{n}: 1" for n in range(1000)) + "}\n"
        "b: {<<: [" + ", ".join(["*a"] * 2000) + "]}",
        "more than 50,000 values by merge keys",
    ),
    "brackets": ("[" * 2000, "nested too deeply"),
    "blocks": ("- " * 2000, "nested too deeply"),
    "levels of aliases": (
        "a0: &a0 [x]\n" + "\n".join(f"a{n}: &a{n} [*a{n - 1}]" for n in range(1, 300)),
        "nested too deeply",
    ),
    "bytes": ("x: " + "y" * 3_000_000, "more than 2 MiB"),
}


@pytest.mark.parametrize("case", TOO_MUCH)
def test_a_small_file_makes_no_large_work(case: str, tmp_path: Path) -> None:
    text, says = TOO_MUCH[case]
    (problem,) = problems_of(tmp_path, text)
    assert says in problem.message
    assert problem.line or case == "bytes"


def test_merges_of_merges_come_to_their_keys(tmp_path: Path) -> None:
    sections = ["a0: &a0 {worker-count: 7, batch: 3}"] + [
        f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}], k{n}: 1, batch: {n}}}"
        for n in range(1, 30)
    ]
    found = read_yaml("f", "\n".join(sections).encode()).data
    assert isinstance(found, dict)
    assert found["a29"]["worker-count"] == 7
    assert (found["a29"]["batch"], len(found["a29"])) == (29, 31)


def test_a_long_number_is_text() -> None:
    text = ":".join(["59"] * 50_000)
    assert read_yaml("f", f"a: {text}".encode()).data == {"a": text}
