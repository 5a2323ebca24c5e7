"""The reference page is up to date, and its tables of keys fit the models."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

import config
from config.base import walk
from config.dm_keys import IGNORED, NO_EFFECT, RENAMED, UNSUPPORTED
from config.loading import load_task
from config.models import Task
from scripts.task_file_reference import pattern_of, reference_page, supported
from scripts.task_file_schema import page as schema_page
from scripts.task_file_schema import schema
from scripts.task_file_template import LEFT_OUT, template
from tests.support.json_schema import problems

PAGE = Path(config.__file__).parent.parent / "docs" / "reference" / "task-file.md"
PATTERNS = {pattern_of(place) for place, _ in walk(Task)}


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == reference_page(), (
        "run: python -m scripts.task_file_reference > docs/reference/task-file.md"
    )


def test_every_key_has_a_meaning() -> None:
    assert [place for place, field in walk(Task) if not field.description] == []


@pytest.mark.parametrize(
    "entry", [*UNSUPPORTED, *NO_EFFECT, *IGNORED], ids=lambda entry: entry.pattern
)
def test_listed_keys_exist(entry: object) -> None:
    assert getattr(entry, "pattern", "").removesuffix(".*") in PATTERNS


def test_old_spellings_lead_to_keys() -> None:
    for pattern, old, new in RENAMED:
        assert f"{pattern}.{new}".lstrip(".") in PATTERNS
        assert f"{pattern}.{old}".lstrip(".") not in PATTERNS


def test_what_is_supported_is_told_by_task_mode() -> None:
    def of(key: str) -> str:
        (row,) = [row for row in reference_page().splitlines() if row.startswith(f"| `{key}` |")]
        return row.split(" | ")[-1].removesuffix(" |")

    assert of("task-mode") == "yes"
    assert of("threads") == "no effect: `incremental`"
    assert of("meta") == "no effect: `full`, `all`"
    assert of("extra-args") == "no effect"
    assert of("enable-relay") == "no effect without `relay-dir`"
    assert of("where") == "not yet"


@pytest.mark.parametrize(
    "row",
    [
        "| `buckets` | whole number | `4` |",
        "| `batch-bytes` | size | none |",
        "| `largest-event` | size | none |",
        "| `chunk-filesize` | size | `64MiB` |",
        "| `password` | text, secret |",
    ],
)
def test_the_page_shows(row: str) -> None:
    assert row in reference_page()


TEMPLATE = PAGE.parents[2] / "config" / "examples" / "every-key.yaml"


def test_the_template_is_up_to_date() -> None:
    assert TEMPLATE.read_text(encoding="utf-8") == template(), (
        "run: python -m scripts.task_file_template > config/examples/every-key.yaml"
    )


SCHEMA = TEMPLATE.parents[1] / "task-schema.json"


def test_the_schema_is_up_to_date() -> None:
    assert SCHEMA.read_text(encoding="utf-8") == schema_page(), (
        "run: python -m scripts.task_file_schema > config/task-schema.json"
    )


def test_the_schema_accepts_every_example_and_the_template_with_every_key() -> None:
    everything = re.sub(r"^( *)#(?=[a-z-])", r"\1", template(), flags=re.M)
    examples = [path.read_text(encoding="utf-8") for path in TEMPLATE.parent.glob("*.yaml")]
    assert len(examples) >= 3
    for text in (everything, *examples):
        assert problems(schema(), yaml.safe_load(text)) == []


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"task-mod": "all"}, [".task-mod: unknown"]),
        ({"task-mode": "al"}, [".task-mode: 'al' is none of"]),
        ({"writer": {"buckets": 65}}, [".writer.buckets: 65 is out of range"]),
        ({"writer": {"batch-bytes": "16MiB"}, "routes": None}, []),
        ({"black-white-list": {"only": {"do-dbs": ["d"]}}}, []),
        ({"loaders": {"all": {"on-duplicate": "error"}}}, []),
    ],
    ids=str,
)
def test_the_schema_finds_what_loading_would_refuse(
    change: dict[str, object], found: list[str]
) -> None:
    values = yaml.safe_load((TEMPLATE.parent / "merge-two-sources.yaml").read_text())
    told = problems(schema(), values | change)
    assert len(told) == len(found), told
    assert all(text.startswith(start) for text, start in zip(told, found, strict=True)), told


def test_the_template_has_every_key_that_has_an_effect() -> None:
    shown = set(re.findall(r"^ *#?(?:- )?([a-z][\w-]*):", template(), re.MULTILINE))
    with_effect = {p.rpartition(".")[2] for p, _ in walk(Task) if supported(p) == "yes"}
    left_out = {pattern.rpartition(".")[2] for pattern in LEFT_OUT}
    assert with_effect - shown <= left_out


@pytest.mark.parametrize("everything", [False, True])
def test_the_template_loads_as_it_is_and_with_every_key(
    everything: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHARD_PASSWORD", "s")
    monkeypatch.setenv("TARGET_PASSWORD", "t")
    text = re.sub(r"^( *)#(?=[a-z-])", r"\1", template(), flags=re.M) if everything else template()
    file = tmp_path / "task.yaml"
    file.write_text(text, encoding="utf-8")
    assert load_task(file).name == "merge-orders"
