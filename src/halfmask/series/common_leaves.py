"""What the labels of one column, taken from several releases, cover of common leaves.

No original is needed: leaves come from the hierarchy where it lists them, else from the labels
themselves. Two labels overlap exactly if they share one of these leaves: ranges are told apart by
their ends, masks by one code under each.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from halfmask.errors import HierarchyError
from halfmask.metrics.common_ground import published_labels
from halfmask.table.hierarchies import Auto, Csv, Dates, Intervals, Mask, Ordered, Tree
from halfmask.table.hierarchy import TOP, canonical, flat
from halfmask.table.labels import ANY, MISSING, SIGN

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray
    from scipy.sparse import csr_array

    from halfmask.table.columns import Column
    from halfmask.table.hierarchy import Hierarchy

    Label = str | None

_NUMBER = r"-?[0-9]+(?:\.[0-9]+)?"
_BETWEEN = re.compile(rf"[\[\](]\s*({_NUMBER})\s*,\s*({_NUMBER})\s*[\[\])]")
_FROM_TO = re.compile(rf"({_NUMBER})\s?(?:-|\u2013|to)\s?({_NUMBER})")
_BEYOND = re.compile(rf"(?:<=|>=|<|>)\s*({_NUMBER})")
_ALONE = re.compile(rf"({_NUMBER})")
_CODE = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?")  # 007 is a code and no number
_MASKED = re.compile(r"[^*]+\*+")
_DAY = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_DAYS = re.compile(rf"({_DAY})(?: to ({_DAY}))?")
_PERIOD = re.compile(r"([0-9]{4})(?:-([0-9]{2}))?")
_YEAR = re.compile(r"[0-9]{4}")
_MOST_YEARS = 200


@dataclass(frozen=True, slots=True, eq=False)
class ColumnLeaves:
    """The labels that one column has in any release, and what they cover.

    Attributes:
        name: the column.
        labels: the labels as text, numbered in this order.
        leaves: the leaves as text.
        covered: (labels, leaves) 1 where a label covers a leaf.
        unread: how many labels could not be read; each is taken as a value of its own.
    """

    name: str
    labels: tuple[Label, ...]
    leaves: tuple[Label, ...]
    covered: csr_array
    unread: int

    def overlaps(self) -> csr_array:
        """(labels, labels) not 0 where two labels share a leaf."""
        from scipy.sparse import csr_array

        shared = csr_array(self.covered @ self.covered.T)
        shared.sort_indices()
        return shared


def column_leaves(
    column: Column | None,
    name: str,
    labels: Iterable[Label],
    more: Iterable[Any] = (),
    *,
    declared: bool = True,
) -> ColumnLeaves:
    """Find what labels cover.

    Args:
        column: what the schema says of it.
        name: its name.
        labels: the distinct labels of all releases.
        more: values that people are known to hold.
        declared: whether a column without a hierarchy has none. Else labels may lie under others,
            and those that do not say themselves what they cover cannot be read.
    """
    from scipy.sparse import csr_array

    texts = sorted(set(labels), key=lambda text: (text is None, text or ""))
    rule = None if column is None else column.hierarchy
    held = {None if value is None else canonical(value) for value in more}
    values = _values(rule, texts, held)
    hierarchy, built = _hierarchy(rule, name, values)
    found = published_labels(hierarchy, values, pa.array(texts, pa.string()))
    count = len(values) + len(found.fresh)
    cells = np.ones(len(found.covered), dtype=np.int32)
    covered = csr_array((cells, found.covered, found.starts), shape=(len(texts), count))
    known: list[Label] = [None if v is None else canonical(v) for v in values.to_pylist()]
    fresh = [texts[place] for place in found.fresh.tolist()]
    unread = len(fresh) if built else len(texts)
    if rule is None or isinstance(rule, Auto):
        unread += _unclear(texts, declared=declared and rule is None)
    return ColumnLeaves(name, tuple(texts), (*known, *fresh), covered, unread)


def _unclear(texts: list[Label], *, declared: bool) -> int:
    """How many labels may cover others without saying so, where no hierarchy tells.

    Where there is none, labels are values; beside ranges, though, other words stand for ranges too.
    Codes are read from a mask where all are as long: shorter ones may lie under it too.
    """
    said = [text for text in texts if text is not None and text != TOP]
    if _are_days(_pieces(said)):
        return 0
    masks = [text for text in said if _MASKED.fullmatch(text)]
    if masks and len(set(map(len, said))) > 1:
        return len(said)
    unclear = sum(not _is_clear(text) for text in said)
    ranges = any(_is_clear(text) and not _ALONE.fullmatch(text) for text in said)
    return 0 if declared and not ranges else unclear


def _is_clear(text: str) -> bool:
    """Whether a label says itself what it covers: numbers, ranges of them, masked codes."""
    forms = (_ALONE, _BETWEEN, _FROM_TO, _BEYOND, _MASKED)
    return all(any(form.fullmatch(piece) for form in forms) for piece in _pieces([text]))


def _pieces(said: Iterable[str]) -> list[str]:
    """The parts of sets, without the word for missing values."""
    return [
        piece
        for text in said
        for piece in text.split(SIGN)
        if piece not in (ANY, MISSING) or SIGN not in text
    ]


def _are_days(pieces: Iterable[str]) -> bool:
    """Whether all are days of the calendar, ranges of them, months or years, and not all years."""
    found = [_days_of(piece) for piece in pieces]
    return all(found) and any(not _YEAR.fullmatch(piece) for piece in pieces)


def _days_of(piece: str) -> list[date]:
    """The ends of a day, a range of days, a month or a year; the first day of a period is enough.

    A range that holds a period's first day meets it, and so does one that begins inside it.
    """
    days, period = _DAYS.fullmatch(piece), _PERIOD.fullmatch(piece)
    try:
        if days is not None:
            return [date.fromisoformat(one) for one in days.groups() if one]
        if period is not None:
            return [date(int(period[1]), int(period[2] or 1), 1)]
    except ValueError:  # no such day
        pass
    return []


def _hierarchy(rule: object, name: str, values: pa.Array) -> tuple[Hierarchy, bool]:
    """The hierarchy over the leaves, and whether it could be built; else as is or nothing."""
    if isinstance(rule, Csv | Tree | Intervals | Mask | Dates) or (
        isinstance(rule, Ordered) and rule.order
    ):
        try:
            return rule.build(name, values), True
        except HierarchyError:
            return flat(values.to_pylist()), False
    return flat(values.to_pylist()), True


def _values(rule: object, texts: list[Label], held: set[Label]) -> pa.Array:
    """The leaves in order, the missing value last."""
    said = [text for text in texts if text is not None and text != TOP]
    if isinstance(rule, Csv | Tree):
        leaves = set(rule.leaves())
    elif isinstance(rule, Ordered) and rule.order:
        return _with_missing(pa.array([canonical(one) for one in rule.order]), texts, held)
    elif isinstance(rule, Dates):
        return _with_missing(_days([*said, *(one for one in held if one)]), texts, held)
    else:
        pieces = [*_pieces(said), *(text for text in held if text is not None)]
        if not isinstance(rule, Mask) and _are_days(pieces):
            days = sorted({day for piece in pieces for day in _days_of(piece)})
            return _with_missing(pa.array(days, pa.date32()), texts, held)
        leaves = {leaf for text in said for leaf in _leaves_of(rule, text)}
        leaves |= {text for text in held if text is not None}
        leaves = leaves or {"0"}  # all is suppressed: any value stands for all
        if leaves and all(_ALONE.fullmatch(leaf) and _CODE.fullmatch(leaf) for leaf in leaves):
            return _with_missing(_numbers(leaves), texts, held)
    if leaves and all(_CODE.fullmatch(leaf) for leaf in leaves):
        return _with_missing(_sorted_numbers(leaves), texts, held)
    return _with_missing(pa.array(sorted(leaves), pa.string()), texts, held)


def _with_missing(values: pa.Array, texts: list[Label], held: set[Label]) -> pa.Array:
    named = any(text and SIGN in text and MISSING in text.split(SIGN) for text in texts)
    if None not in texts and None not in held and not named:
        return values
    return pa.concat_arrays([values, pa.nulls(1, values.type)])


def _leaves_of(rule: object, text: str) -> list[str]:
    """The leaves by which a label can be told from others, as it is written."""
    if isinstance(rule, Mask):
        body = text.rstrip(rule.char) if rule.from_ == "right" else text.lstrip(rule.char)
        hidden = "0" * (len(text) - len(body))
        return [body + hidden if rule.from_ == "right" else hidden + body]
    found: list[str] = []
    for piece in _pieces([text]):
        if (rule is None or isinstance(rule, Auto)) and _MASKED.fullmatch(piece):
            found.append(piece.replace(TOP, "0"))  # one code under it
            continue
        if piece[:1] == "{" and piece[-1:] == "}":
            found += [one.strip() for one in piece[1:-1].split(",")]
            continue
        for form in (_BETWEEN, _FROM_TO, _BEYOND):
            ends = form.fullmatch(piece)
            if ends is not None:
                found += ends.groups()
                break
        else:
            found += piece.split(" to ") if " to " in piece else [piece]
    return found


def _numbers(leaves: set[str]) -> pa.Array:
    """Numbers and what lies beside each, so that open and closed ends are told apart."""
    if all("." not in leaf for leaf in leaves):
        whole = {int(leaf) for leaf in leaves}
        return pa.array(sorted(whole | {n + 1 for n in whole} | {n - 1 for n in whole}), pa.int64())
    ends = np.array(sorted({float(leaf) for leaf in leaves}))
    middle = (ends[1:] + ends[:-1]) / 2
    beyond = np.array([ends[0] - 1, ends[-1] + 1])
    return pa.array(np.unique(np.concatenate((ends, middle, beyond))))


def _sorted_numbers(leaves: set[str]) -> pa.Array:
    if all("." not in leaf for leaf in leaves):
        return pa.array(sorted(int(leaf) for leaf in leaves), pa.int64())
    return pa.array(sorted(float(leaf) for leaf in leaves))


def _days(said: list[str]) -> pa.Array:
    """Every day of the years that labels speak of."""
    years = [int(found) for text in said for found in _YEAR.findall(text)]
    if not years:  # all is suppressed: any day stands for all
        return pa.array([date(2000, 1, 1)], pa.date32())
    first, last = min(years), max(years) + 10  # a decade is named by its first year
    last = min(last, first + _MOST_YEARS)
    days = np.arange(np.datetime64(date(first, 1, 1)), np.datetime64(date(last, 1, 1)))
    return pa.array(days.astype("datetime64[D]"), pa.date32())


def label_numbers(found: ColumnLeaves, texts: Iterable[Label]) -> NDArray[np.int32]:
    """The number of each of some labels."""
    place = {text: number for number, text in enumerate(found.labels)}
    return np.array([place[text] for text in texts], dtype=np.int32)
