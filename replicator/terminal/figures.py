"""Counts, sizes, durations and long lists in a form for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

_MOST_NAMES = 8

_BINARY_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def number(count: int) -> str:
    """Return a count with a thin space between groups of three digits."""
    return f"{count:,}".replace(",", "\N{NARROW NO-BREAK SPACE}")


def counted(count: int, what: str) -> str:
    """Return a count and a noun; the noun gets an s if the count is not 1."""
    return f"{number(count)} {what}{'s' * (count != 1)}"


def size(octets: int) -> str:
    """Return a number of bytes in the unit that leaves at most four digits."""
    value = float(octets)
    for unit in _BINARY_UNITS[:-1]:
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} {_BINARY_UNITS[-1]}"


def parts(done: int, expected: int, *, binary: bool = False) -> str:
    """Return two amounts in the unit of the larger: ``41.0 of 90.0 M``, ``0.3 of 1.2 GiB``."""
    base, units = (1024, _BINARY_UNITS) if binary else (1000, ("", "k", "M", "G"))
    power = 0
    while power < len(units) - 1 and expected >= (10 if power == 0 else 1) * base ** (power + 1):
        power += 1
    if power == 0:
        return f"{number(done)} of {number(expected)} {units[0]}".rstrip()
    return f"{done / base**power:.1f} of {expected / base**power:.1f} {units[power]}"


def seconds(value: float | None) -> str:
    """Return a duration: ``0.4 s``, ``3 min 20 s``, ``2 h 5 min``; a dash for None."""
    if value is None:
        return "-"
    if value < 60:
        return f"{value:.1f} s"
    minutes, rest = divmod(int(value), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def some_of(names: Sequence[str], most: int = _MOST_NAMES) -> str:
    """Return names in a row; of very many, only the first ones and the number of the others."""
    more = len(names) - most
    shown = ", ".join(names[:most])
    return f"{shown} and {number(more)} more" if more > 0 else shown


def some_by_source(names: Mapping[str, Sequence[str]], most: int) -> str:
    """Return names of several sources in a row: ``a: d.t1, d.t2; b: d.t1 and 90 more``.

    At most ``most`` names of all sources together are listed.
    """
    found, left = [], most
    for source, of in names.items():
        if of and left > 0:
            found.append(f"{source}: {', '.join(of[:left])}")
            left -= len(of[:left])
    more = sum(map(len, names.values())) - most
    return "; ".join(found) + (f" and {number(more)} more" if more > 0 else "")
