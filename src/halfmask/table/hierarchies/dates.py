"""Dates and times merged into days, weeks, months, quarters, years and decades."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from halfmask.errors import HierarchyError
from halfmask.table.hierarchies.tree import Levels, assemble, check_top, options, with_top
from halfmask.table.moments import (
    ALLOWED,
    DECLARED_FORMS,
    FORMAT_HINT,
    FORMS,
    as_moments,
    format_question,
    forms_of,
    moments_by,
    no_dates,
)
from halfmask.table.values import is_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from halfmask.table.hierarchy import Hierarchy

LEVELS = ("day", "week", "month", "quarter", "year", "decade")
DEFAULT = ("day", "month", "quarter", "year", "decade")
_KEYS = ("levels", "top")


@dataclass(frozen=True, slots=True)
class Dates:
    """Calendar levels, finest first.

    A week (ISO 8601, named by its own year) crosses months and years, so nothing but the top may
    stand above it. Days of a column of dates are the values themselves and make no level.

    Attributes:
        levels: any of day, week, month, quarter, year, decade that nest.
        top: the label of the root that is added; False: leave it open.
    """

    levels: Sequence[str] = DEFAULT
    top: str | bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "levels", tuple(self.levels))
        check_top("dates", self.top)
        unknown = [name for name in self.levels if name not in LEVELS]
        if unknown or not self.levels:
            raise HierarchyError(f"hierarchy dates: levels must be some of {', '.join(LEVELS)}.")
        ranks = [LEVELS.index(name) for name in self.levels]
        if any(fine >= coarse for fine, coarse in itertools.pairwise(ranks)):
            raise HierarchyError(
                f"hierarchy dates: name the levels once and in the order {', '.join(LEVELS)}."
            )
        if "week" in self.levels[:-1]:
            after = self.levels[self.levels.index("week") + 1]
            raise HierarchyError(
                f"hierarchy dates: a week does not nest in a {after}; leave out one of them."
            )

    @classmethod
    def parse(cls, value: object, folder: Path) -> Dates:  # noqa: ARG003 - one signature for all
        """Read what stands behind ``dates =`` in the schema file."""
        if value is True:
            return cls()
        if isinstance(value, list | tuple):
            value = {"levels": value}
        chosen = options("dates", value, _KEYS)
        if not isinstance(chosen.get("levels", []), list | tuple):
            raise HierarchyError(f"hierarchy dates: levels must be some of {', '.join(LEVELS)}.")
        return cls(**chosen)

    def to_dict(self) -> dict[str, object]:
        """What stands behind ``hierarchy =`` in the schema file."""
        levels = list(self.levels)
        rest = with_top({}, self.top)
        return {"dates": {"levels": levels, **rest} if rest else levels}

    def build(self, column: str, values: pa.Array) -> Hierarchy:
        """Give each date its label at every level."""
        moments = dates_of(column, values.drop_null())
        plain = pa.types.is_date(moments.type)
        # Of a date its day is the value itself: that level would be level 0 once more.
        names = [name for name in self.levels if not (plain and name == "day")]
        inside = [_LABELS[name](moments).to_pylist() for name in names]
        return assemble(column, values, Levels(inside), top=self.top)


def dates_of(column: str, values: pa.Array) -> pa.Array:
    """``values`` as dates or timestamps; texts must all be written in one form."""
    if pa.types.is_date(values.type) or pa.types.is_timestamp(values.type):
        return values
    if not is_text(values.type):
        raise HierarchyError(
            f"Column '{column}' holds {values.type}, not dates: choose another hierarchy, or say "
            'kind = "date" and how its numbers are dates, such as format = "excel".'
        )
    moments = as_moments(values)
    if moments is None:
        forms = forms_of(values, (*FORMS, *DECLARED_FORMS))
        if len(forms) == 1:
            return moments_by(values, forms[0])
        if forms:
            raise HierarchyError(f"Column '{column}':{format_question(forms)}")
        bad = pc.sum(no_dates(values)).as_py()
        raise HierarchyError(
            f"Column '{column}': {bad} distinct value(s) are no dates; write {ALLOWED}."
            + FORMAT_HINT
        )
    return moments


def _text(values: pa.Array) -> pa.Array:
    return values.cast(pa.string())


def _pad(values: pa.Array, width: int) -> pa.Array:
    return pc.utf8_lpad(_text(values), width, "0")


def _week(moments: pa.Array) -> pa.Array:
    calendar = pc.iso_calendar(moments)
    year = _pad(pc.struct_field(calendar, "iso_year"), 4)
    return pc.binary_join_element_wise(year, _pad(pc.struct_field(calendar, "iso_week"), 2), "-W")


def _month(moments: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise(_pad(pc.year(moments), 4), _pad(pc.month(moments), 2), "-")


def _quarter(moments: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise(_pad(pc.year(moments), 4), _text(pc.quarter(moments)), "-Q")


def _decade(moments: pa.Array) -> pa.Array:
    start = pc.subtract(pc.year(moments), _modulo_ten(pc.year(moments)))
    return pc.binary_join_element_wise(_pad(start, 4), _pad(pc.add(start, 9), 4), "-")


def _modulo_ten(years: pa.Array) -> pa.Array:
    return pc.subtract(years, pc.multiply(pc.divide(years, 10), 10))


_LABELS: dict[str, Callable[[pa.Array], pa.Array]] = {
    "day": lambda moments: pc.strftime(moments, format="%Y-%m-%d"),
    "week": _week,
    "month": _month,
    "quarter": _quarter,
    "year": lambda moments: _pad(pc.year(moments), 4),
    "decade": _decade,
}
