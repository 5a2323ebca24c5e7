"""Defaults that follow from the memory there is."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from replicator.memory import (
    LARGEST_PACKET,
    MIB,
    MemoryDefaults,
    available_memory,
    batch_bytes,
    granted_memory,
    largest_event,
    memory_defaults,
    set_largest_event,
    set_memory,
    worker_environment,
)
from replicator.pipeline.spark.cluster import cluster_settings
from replicator.pipeline.spark.java import driver_memory

GIB = 1024 * MIB
UNLIMITED_V1 = "9223372036854771712"


@pytest.mark.parametrize(
    ("memory", "event", "batch", "heap"),
    [
        (256 * MIB, 32, 2, 512),
        (512 * MIB, 64, 4, 512),
        (1 * GIB, 128, 8, 512),
        (2 * GIB, 256, 16, 512),
        (3 * GIB + 5, 384, 24, 768),
        (4 * GIB, 512, 32, 1024),
        (8 * GIB, 1024, 64, 1024),
        (64 * GIB, 1024, 64, 1024),
        (1, 16, 1, 512),
    ],
)
def test_defaults_follow_from_the_memory(memory: int, event: int, batch: int, heap: int) -> None:
    assert memory_defaults(memory) == MemoryDefaults(event * MIB, batch * MIB, heap * MIB)


def host(root: Path, cgroup: str | None, files: Mapping[str, str]) -> Path:
    (root / "proc/self").mkdir(parents=True)
    if cgroup is not None:
        (root / "proc/self/cgroup").write_text(cgroup)
    for name, text in files.items():
        file = root / "sys/fs/cgroup" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text + "\n")
    return root


@pytest.mark.parametrize(
    ("cgroup", "files", "found"),
    [
        pytest.param(None, {}, 16 * GIB, id="no-groups"),
        pytest.param("0::/\n", {"memory.max": str(GIB)}, GIB, id="v2-container"),
        pytest.param("0::/\n", {}, 16 * GIB, id="v2-root"),
        pytest.param("0::/a/b\n", {"a/b/memory.max": "max"}, 16 * GIB, id="v2-unlimited"),
        pytest.param(
            "0::/a/b\n",
            {"a/b/memory.max": "max", "a/memory.max": str(2 * GIB)},
            2 * GIB,
            id="v2-of-a-parent",
        ),
        pytest.param(
            "0::/a/b\n",
            {"a/b/memory.max": str(GIB), "a/memory.max": str(2 * GIB)},
            GIB,
            id="v2-own",
        ),
        pytest.param("0::/../x\n", {"memory.max": str(GIB)}, GIB, id="v2-path-outside"),
        pytest.param(
            "4:memory:/docker/1\n0::/\n",
            {"memory/memory.limit_in_bytes": str(GIB)},
            GIB,
            id="v1-container",
        ),
        pytest.param(
            "4:cpu,memory:/a\n1:cpu:/\n",
            {
                "memory/a/memory.limit_in_bytes": str(3 * GIB),
                "memory/memory.limit_in_bytes": UNLIMITED_V1,
            },
            3 * GIB,
            id="v1",
        ),
        pytest.param(
            "4:memory:/\n", {"memory/memory.limit_in_bytes": UNLIMITED_V1}, 16 * GIB, id="v1-none"
        ),
        pytest.param("4:cpuset:/memory\n", {"memory.max": str(GIB)}, 16 * GIB, id="other"),
        pytest.param("nonsense\n", {}, 16 * GIB, id="nonsense"),
    ],
)
def test_the_limit_of_the_group_counts(
    tmp_path: Path, cgroup: str | None, files: Mapping[str, str], found: int
) -> None:
    assert available_memory(host(tmp_path, cgroup, files), 16 * GIB) == found


def test_this_host_has_memory() -> None:
    assert 64 * MIB < available_memory() < 1 << 50


def test_what_the_task_file_says_goes_before_the_defaults() -> None:
    assert batch_bytes(5) == 5
    assert batch_bytes(None) == memory_defaults(available_memory()).batch_bytes
    assert driver_memory({"spark.driver.memory": "3g"}) == "3g"
    heap = memory_defaults(available_memory()).java_heap // MIB
    assert driver_memory({}) == f"{heap}m"


def test_the_memory_of_the_task_file_decides_where_there_is_more() -> None:
    try:
        set_memory(GIB)
        assert granted_memory() == min(GIB, available_memory())
        assert batch_bytes(None) == memory_defaults(GIB).batch_bytes
        assert driver_memory({}) == "512m"
        assert largest_event() == 128 * MIB
        set_memory(1 << 40)
        assert granted_memory() == available_memory()
    finally:
        set_memory(None)
    assert batch_bytes(None) == memory_defaults(available_memory()).batch_bytes


def test_workers_learn_the_largest_event() -> None:
    try:
        set_largest_event(5 * MIB)
        assert largest_event() == 5 * MIB
        [(name, value)] = worker_environment().items()
        assert value == str(5 * MIB)
        assert cluster_settings({}, "")[f"spark.executorEnv.{name}"] == value
    finally:
        set_largest_event(None)
    assert worker_environment() == {}
    assert largest_event() == min(LARGEST_PACKET, memory_defaults(available_memory()).largest_event)
