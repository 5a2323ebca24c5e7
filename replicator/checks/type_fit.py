"""Whether each value of a member's column fits into the target's column, unchanged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from replicator.schema.conversions import Fit, charset_conversion, conversion, null_misfit
from replicator.schema.structure import Column


@dataclass(frozen=True, slots=True)
class Misfit:
    """Why a column does not fit: ``warning`` where single values may be refused."""

    state: Literal["warning", "failed"]
    text: str


def type_misfit(member: Column, target: Column) -> Misfit | None:
    """Compare the types of two columns of one name; None when every value fits."""
    found = conversion(member, target)
    return None if found.fit is Fit.ALL else Misfit("failed", found.why)


def null_in_not_null(member: Column, target: Column) -> Misfit | None:
    """Whether the member may hold NULL where the target does not."""
    found = null_misfit(member, target)
    return None if found.fit is Fit.ALL else Misfit("failed", found.why)


def charset_misfit(member: Column, target: Column) -> Misfit | None:
    """Whether each character of the member's charset exists in the target's."""
    found = charset_conversion(member, target)
    if found.fit is Fit.ALL:
        return None
    return Misfit("warning" if found.fit is Fit.SOME else "failed", found.why)
