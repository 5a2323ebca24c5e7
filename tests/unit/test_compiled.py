"""What is compiled is not taken for what other sources would give."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from replicator import compiled
from replicator.rows import field_text


def test_a_kernel_is_kept_by_a_name_that_changes_with_each_module(tmp_path: Path) -> None:
    folder = Path(field_text.__file__).parent
    kernel: Any = field_text.write_lines
    assert kernel.py_func.__qualname__ == f"write_lines_{compiled.sources_checksum(folder)}"
    seen = {compiled.sources_checksum(tmp_path)}
    for name, text in (("a.py", "1"), ("b.py", "1"), ("b.py", "2")):
        (tmp_path / name).write_text(text)
        compiled.sources_checksum.cache_clear()
        seen.add(compiled.sources_checksum(tmp_path))
    compiled.sources_checksum.cache_clear()
    assert len(seen) == 4
