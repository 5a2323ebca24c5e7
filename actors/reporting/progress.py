"""Throughput and lag over time: a bounded number of points, however many records there are."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

MOST_POINTS = 2000
"""Of more points each two neighbours become one."""


@dataclass(frozen=True, slots=True)
class Point:
    """Rows a second, on average, and the largest lag in seconds (None: unknown), up to a time."""

    at: datetime
    rows_per_second: float
    lag_seconds: float | None
    records: int = 1


class Curve:
    """Points in the order of time, and the extremes of all records that went into them."""

    def __init__(self) -> None:
        self.points: list[Point] = []
        self.most_rows: Point | None = None
        self.most_lag: Point | None = None
        self._fold = 1

    @property
    def last_lag(self) -> float | None:
        """The lag of the last point."""
        return self.points[-1].lag_seconds if self.points else None

    @property
    def mean_rows(self) -> float:
        """Rows a second, on average of all records."""
        records = sum(point.records for point in self.points)
        return sum(p.rows_per_second * p.records for p in self.points) / max(records, 1)

    def add(self, point: Point) -> None:
        """Take another record."""
        if self.most_rows is None or point.rows_per_second > self.most_rows.rows_per_second:
            self.most_rows = point
        if point.lag_seconds is not None and (
            self.most_lag is None or point.lag_seconds > (self.most_lag.lag_seconds or 0.0)
        ):
            self.most_lag = point
        if self.points and self.points[-1].records < self._fold:
            self.points[-1] = _both(self.points[-1], point)
        else:
            self.points.append(point)
        if len(self.points) > MOST_POINTS:
            pairs = zip(self.points[::2], self.points[1::2], strict=False)
            odd = self.points[-1:] if len(self.points) % 2 else []
            self.points = [*(_both(*pair) for pair in pairs), *odd]
            self._fold *= 2


def _both(one: Point, other: Point) -> Point:
    records = one.records + other.records
    rows = one.rows_per_second * one.records + other.rows_per_second * other.records
    lags = [lag for lag in (one.lag_seconds, other.lag_seconds) if lag is not None]
    return Point(other.at, rows / records, max(lags, default=None), records)
