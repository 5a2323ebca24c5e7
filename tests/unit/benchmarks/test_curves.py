from __future__ import annotations

from xml.etree import ElementTree

import pytest

from benchmarks.curves import PICTURES, Picture, curves_of, drawn
from benchmarks.rows import ROWS

SVG = "{http://www.w3.org/2000/svg}"


def measured(*rates: dict[str, float]) -> dict[str, object]:
    """A row of which each run has points, from count to rate."""
    runs = [
        {"points": {count: {"rate": rate, "memory": rate * 2**20} for count, rate in run.items()}}
        for run in rates
    ]
    return {"runs": [{"raw": run} for run in runs]}


@pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: picture.name)
def test_pictures_are_of_rows_that_there_are(picture: Picture) -> None:
    assert {name for name, _ in picture.rows} <= {row.name for row in ROWS}


def test_a_curve_has_the_medians_of_its_runs() -> None:
    rows = {"targets": measured({"1": 100, "200": 10}, {"1": 50, "200": 30}, {"1": 60, "200": 20})}
    (curve,) = curves_of(PICTURES[0], rows)
    assert curve.points == ((1.0, 60), (200.0, 20))


def test_what_was_not_measured_is_left_out() -> None:
    assert [curves_of(picture, {}) for picture in PICTURES] == [[]] * len(PICTURES)


def test_a_picture_is_svg_with_a_line_and_a_name_for_each_curve() -> None:
    rows = {name: measured({"1": 100, "4": 390}) for name in ("sources", "sources-small")}
    picture = PICTURES[1]
    root = ElementTree.fromstring(drawn(picture, curves_of(picture, rows)))
    assert len(root.findall(f"{SVG}polyline")) == 2
    texts = [element.text for element in root.findall(f"{SVG}text")]
    assert {"100-row inserts", "small transactions", "0", "400", "1", "4"} <= set(texts)


def test_higher_values_are_higher_up() -> None:
    rows = {"members": measured({"50": 10, "5000": 20})}
    picture = PICTURES[2]
    root = ElementTree.fromstring(drawn(picture, curves_of(picture, rows)))
    few, many = root.findall(f"{SVG}circle")
    assert float(few.attrib["cx"]) < float(many.attrib["cx"])
    assert float(few.attrib["cy"]) > float(many.attrib["cy"])
