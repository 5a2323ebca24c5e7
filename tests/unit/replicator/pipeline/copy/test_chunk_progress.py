"""What a task tells of a chunk under way, and what the driver makes of it."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from actors.copying import progress as copy_progress
from actors.copying.progress import CopyProgress
from actors.counting.task_counts import CopyCounts
from replicator.pipeline.copy.chunk_progress import ProgressReader, ProgressWriter
from replicator.pipeline.copy.copy_writing import Counter


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[ProgressReader]:
    with ProgressReader(str(tmp_path)) as reader:
        yield reader


def blocks(*sizes: int) -> Iterator[tuple[memoryview, int]]:
    for size in sizes:
        yield memoryview(bytes(size)), 2


def test_counts_grow_by_block_and_start_anew_with_an_attempt(reader: ProgressReader) -> None:
    with ProgressWriter(reader.path) as writer:
        assert reader.counts() == (0, 0)
        seen = [reader.counts() for _ in Counter(writer.tell).counted(blocks(10, 20, 30))]
        assert seen == [(0, 0), (2, 10), (4, 30)]
        assert reader.counts() == (6, 60)
        again = Counter(writer.tell)
        assert reader.counts() == (0, 0)
        list(again.counted(blocks(10, 20, 30)))
        writer.end_chunk(again.rows, again.size)
        assert reader.counts() == (6, 60)
        list(Counter(writer.tell).counted(blocks(5)))
        assert reader.counts() == (8, 65)


def test_a_chunk_that_failed_counts_for_nothing(reader: ProgressReader) -> None:
    with ProgressWriter(reader.path) as writer:
        list(Counter(writer.tell).counted(blocks(10)))
        writer.end_chunk(0, 0)
    assert reader.counts() == (0, 0)


def test_only_its_user_has_the_file_and_it_goes_with_the_job(tmp_path: Path) -> None:
    with ProgressReader(str(tmp_path)) as reader:
        path = Path(reader.path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert not path.exists()
    with ProgressWriter(str(path)) as late:
        late.tell(1, 1)
    assert not path.exists()


@pytest.mark.parametrize("content", [b"", b"short", b"\xff" * 16, b"\xff" * 100_000])
def test_a_damaged_file_counts_for_nothing(reader: ProgressReader, content: bytes) -> None:
    Path(reader.path).write_bytes(content)
    assert reader.counts() == (0, 0)


def test_a_file_put_in_its_place_is_not_read(reader: ProgressReader, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_bytes(bytes(7) + b"\1" + bytes(7) + b"\1")
    Path(reader.path).unlink()
    Path(reader.path).symlink_to(other)
    assert reader.counts() == (0, 0)
    with ProgressWriter(reader.path) as writer:
        writer.tell(5, 5)
    assert other.read_bytes() == bytes(7) + b"\1" + bytes(7) + b"\1"


def spark(master: str) -> Any:
    return SimpleNamespace(master=master)


def test_what_jobs_have_sent_is_in_the_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copy_progress, "newest_folder", lambda: str(tmp_path))
    progress = CopyProgress(CopyCounts(), rows=100, size=1000, expected=1000, counted=True)
    local = spark("local[2]")
    with progress.under_way(local) as one, progress.under_way(local) as two:
        for path in (one, two):
            with ProgressWriter(path) as writer:
                writer.tell(50, 500)
        figures = progress.figures()
        assert (figures.rows, figures.bytes, figures.percent) == (200, 2000, 20.0)
        assert figures.seconds_left is not None
        assert progress.rows == 100
        with ProgressWriter(two) as writer:
            writer.tell(5000, 500)
        assert progress.figures().rows_expected == 5150
        assert progress.figures().percent == 99.9
    assert (progress.figures().rows, progress.figures().rows_expected) == (100, 1000)
    assert not list(tmp_path.iterdir())


def test_a_cluster_or_a_full_disk_leaves_the_figures_to_the_ends_of_jobs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copy_progress, "newest_folder", lambda: str(tmp_path / "missing"))
    progress = CopyProgress(CopyCounts(), rows=100, counted=True)
    for master in ("spark://host:7077", "local[2]"):
        with progress.under_way(spark(master)) as path, ProgressWriter(path) as writer:
            assert path == ""
            writer.tell(1, 1)
            assert progress.figures().rows == 100
