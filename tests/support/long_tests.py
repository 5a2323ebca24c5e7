"""The tests that take long, of which a sample of the tests has one of each file.

``python -m tests.support.long_tests REPORT.xml`` finds them in the report of a run
(``--junitxml``), and writes their list again.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path
from xml.etree import ElementTree

LIST = Path(__file__).parents[1] / "long_tests.txt"
LONG_SECONDS = 4.0
"""A test function whose cases take this long together is in the list."""


def long_tests() -> frozenset[str]:
    """Return the tests of the list, as ``tests/folder/test_file.py::test_name``."""
    return frozenset(LIST.read_text("utf-8").split())


def found_in(report: str) -> list[str]:
    """Return the long tests of a report, sorted. Unit tests are left out.

    Args:
        report: JUnit's XML, as pytest writes it.
    """
    seconds: defaultdict[str, float] = defaultdict(float)
    for case in ElementTree.fromstring(report).iter("testcase"):
        module = case.get("classname", "").replace(".", "/")
        name, _, _ = case.get("name", "").partition("[")
        seconds[f"{module}.py::{name}"] += float(case.get("time", "0"))
    return sorted(
        test
        for test, taken in seconds.items()
        if taken >= LONG_SECONDS and not test.startswith("tests/unit/")
    )


if __name__ == "__main__":
    LIST.write_text("\n".join(found_in(Path(sys.argv[1]).read_text("utf-8"))) + "\n", "utf-8")
