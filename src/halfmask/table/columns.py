"""Columns: what is declared of each; what names must be, and how an error tells them.

A file without its line of names has the cells of its first row in their place, and these must not
be told. Nobody can know for sure, but a name that reads as a number or date gives such files away.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

from halfmask.errors import InputError
from halfmask.table.moments import form_fault
from halfmask.table.values import MARKS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from halfmask.table.hierarchy import HierarchyBuilder


Role = Literal["identifier", "quasi", "sensitive", "other", "drop"]
ColumnKind = Literal["numeric", "date", "ordinal", "nominal"]

ROLES: tuple[str, ...] = get_args(Role)
KINDS: tuple[str, ...] = get_args(ColumnKind)
PERIODS = ("day", "month", "quarter", "year", "decade")


@dataclass(frozen=True, slots=True)
class Column:
    """What one column is.

    Attributes:
        role: identifier (never leaves), quasi (known to others), sensitive, other (leaves as is),
            or drop (does not leave, though it identifies nobody).
        kind: how its values relate; ``None`` means: as the data says.
        hierarchy: how a quasi-identifier (or a sensitive column) is generalized.
        weight: how much this column's loss counts against the others'.
        order: the values of an ordinal column from lowest to highest.
        domain: the public values of the column, or its bounds, known without looking at the rows:
            ``("f", "m")`` or ``{"low": 0, "high": 110, "bins": 22}``; for differential privacy.
        decimal: the decimal mark of its numbers where they are texts, ``","`` or ``"."``.
        format: how its dates are written, such as ``"%d.%m.%Y"``; ``"excel"``: days as numbers.
        missing: the texts that mean a missing value in this column, beside those of the table.
        step: what the bounds of published ranges are rounded to: a number, or for dates ``"day"``,
            ``"month"``, ``"quarter"``, ``"year"`` or ``"decade"``; ``None``: found from the rows.
    """

    role: Role
    kind: ColumnKind | None = None
    hierarchy: HierarchyBuilder | None = None
    weight: float = 1.0
    order: tuple[object, ...] | None = None
    domain: tuple[object, ...] | Mapping[str, object] | None = None
    decimal: str | None = None
    format: str | None = None
    missing: tuple[str, ...] | None = None
    step: float | str | None = None

    def faults(self, name: str) -> list[str]:
        """Everything that is wrong with this entry taken alone."""
        found = []
        if self.role not in ROLES:
            found.append(f"Column '{name}': the role is none of {', '.join(ROLES)}.")
        if self.kind is not None and self.kind not in KINDS:
            found.append(f"Column '{name}': the kind is none of {', '.join(KINDS)}.")
        if self.hierarchy is not None and not hasattr(self.hierarchy, "build"):
            found.append(f"Column '{name}': the hierarchy is no builder; see halfmask.hierarchies.")
        if not is_nonnegative(self.weight):
            found.append(f"Column '{name}': the weight must be a finite number of at least 0.")
        if self.order is not None:
            if self.kind not in (None, "ordinal"):
                found.append(f"Column '{name}': only an ordinal column takes an order.")
            if len({str(value) for value in self.order}) < len(self.order):
                found.append(f"Column '{name}': the order names a value twice.")
        if self.domain is not None and not isinstance(self.domain, list | tuple | range | Mapping):
            found.append(
                f"Column '{name}': the domain is a list of values, or a table with low and high."
            )
        return found + self._writing_faults(name)

    def _writing_faults(self, name: str) -> list[str]:
        """What is wrong with how its values are said to be written."""
        found = []
        if self.decimal is not None and self.decimal not in MARKS:
            found.append(f'Column \'{name}\': decimal must be "," or ".".')
        elif self.decimal is not None and self.kind not in (None, "numeric"):
            found.append(f"Column '{name}': only a numeric column takes a decimal mark.")
        fault = None if self.format is None else form_fault(self.format)
        if fault:
            found.append(f"Column '{name}': {fault}.")
        elif self.format is not None and self.kind not in (None, "date"):
            found.append(f"Column '{name}': only a date column takes a format.")
        if self.missing is not None and not all(isinstance(text, str) for text in self.missing):
            found.append(f"Column '{name}': missing must be a list of texts, such as [\"-1\"].")
        if self.step is not None and not _is_step(self.step):
            found.append(
                f"Column '{name}': step must be a number above 0, or for dates one of "
                f"{', '.join(PERIODS)}."
            )
        return found


def _is_step(step: object) -> bool:
    return step in PERIODS if isinstance(step, str) else is_nonnegative(step) and step != 0


def is_nonnegative(weight: object) -> bool:
    """Whether something is a finite number of at least 0."""
    return (
        isinstance(weight, int | float)
        and not isinstance(weight, bool)
        and math.isfinite(weight)
        and weight >= 0
    )


_FIGURE = re.compile(r"[-+]?\d[\d\s.,:/TZ+-]*%?")  # numbers, dates and times


ROW_NAMES = (
    "Column 1 has no name: it is taken for row numbers or row names, as R and pandas write them, "
    "and left out of all that is done. Name it if it is to be used."
)


def has_row_names(names: Sequence[str]) -> bool:
    """Whether the first of several columns alone is without a name, whatever it holds.

    The names alone decide, never a row; what may be people's names is left out with the numbers.
    """
    return len(names) > 1 and not names[0].strip()


def check_names(names: Sequence[str]) -> None:
    """Every column but one of row names has a name, and no two the same."""
    apart = int(has_row_names(names))
    blank = [str(place) for place, name in enumerate(names, 1) if not name and place > apart]
    if blank:
        raise InputError(
            f"Column {', '.join(blank)} has no name: name it (only a first column without a name is"
            " taken for row numbers)."
        )
    # Told by place: where a file lacks its line of names, they are the cells of a person.
    places: dict[str, list[str]] = {}
    for place, name in enumerate(names, start=1):
        places.setdefault(name, []).append(str(place))
    twice = [" and ".join(held) for held in places.values() if len(held) > 1]
    if twice:
        raise InputError(
            f"Column names occur more than once: columns {'; '.join(twice)}. Rename them, or add a "
            "first line that names the columns if the file begins with a row."
        )


def quote_names(names: Iterable[str]) -> str:
    """``names`` in a row for an error, or that they seem to be cells."""
    names = list(names)
    if any(_FIGURE.fullmatch(name.strip()) for name in names):
        return (
            f"{len(names)} columns that are not listed here, as some are named by a number or "
            "date: add a first line that names the columns if the file begins with a row"
        )
    return ", ".join(f"'{name}'" for name in names)


def abbreviate_names(names: Sequence[str], most: int = 10) -> str:
    """The first of ``names`` in a row, and how many more there are."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def require_known(wanted: Iterable[str], names: Iterable[str]) -> None:
    """Refuse columns that a table does not have.

    Raises:
        InputError: some of ``wanted`` are not among ``names``.
    """
    names = list(names)
    unknown = [name for name in wanted if name not in names]
    if unknown:
        words = ", ".join(f"'{name}'" for name in unknown)
        raise InputError(f"Unknown columns: {words}. The table has {quote_names(names)}.")
