"""What steps do to a table: what it is good for afterwards, and what it still tells.

All of them are for the controller: whoever knows the other people works out of a share or a
correlation what stood in a cell that does not leave.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfmask.errors import InputError
from halfmask.masking.numeric_columns import numbers_in
from halfmask.masking.step import value_type
from halfmask.metrics.estimate import failed_estimate, proportion
from halfmask.table.values import is_number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from halfmask.masking.numeric_columns import Numbers
    from halfmask.metrics.estimate import Estimate
    from halfmask.table.table import Table

    Floats = NDArray[np.float64]

_NEAR = 0.1  # of a standard deviation: what counts as telling a number
_MOST = 12  # columns whose correlations are compared
_WORK = 200_000_000  # comparisons that a linkage may make
_LEAST = 50


def step_figures(
    before: Table, after: Table, changed: Sequence[str]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """What a step did to its columns: for documents, and for the controller alone.

    ``before`` and ``after`` hold the same people's rows in the same order.
    """
    public: dict[str, Any] = {}
    private: dict[str, Any] = {}
    for name in changed:
        if name not in before.arrow.column_names or name not in after.arrow.column_names:
            continue
        if name in before.schema.private:  # tokens are all new
            continue
        share = _changed_share(before.arrow[name], after.arrow[name])
        public[name] = {"changed": share}
        pair = _pair(before, after, name)
        if pair is not None:
            inside, moments = _numeric(*pair)
            public[name]["within_interval"] = inside
            private[name] = moments
        else:
            public[name]["shares_moved"] = _share_moved(before, after, name)
    moved, exact = _correlations(before, after, changed)
    if moved is not None:
        public_all = {"columns": public, "correlation_moved": round(moved, 3)}
        return public_all, {"columns": private, "correlations": exact}
    return {"columns": public}, {"columns": private}


def _changed_share(before: pa.ChunkedArray, after: pa.ChunkedArray) -> float:
    """The share of cells that are not what they were."""
    if not len(before):
        return 0.0
    one, other = _plain(before), _plain(after)
    if one.type != other.type:
        wide = pa.float64() if is_number(one.type) and is_number(other.type) else pa.string()
        one, other = one.cast(wide, safe=False), other.cast(wide, safe=False)
    same = pc.fill_null(pc.equal(one, other), fill_value=False)
    gone = pc.and_(pc.is_null(one), pc.is_null(other))
    return round(1.0 - float(pc.sum(pc.or_(same, gone)).as_py()) / len(before), 9)


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = column.type
    return column.cast(kind.value_type) if pa.types.is_dictionary(kind) else column


def _pair(before: Table, after: Table, name: str) -> tuple[Numbers, Numbers] | None:
    """A column before and after as numbers; None where it is none."""
    for table in (before, after):
        kind = value_type(table.arrow[name].type)
        if not (is_number(kind) or pa.types.is_date(kind) or pa.types.is_timestamp(kind)):
            return None
    try:
        return numbers_in(before, name), numbers_in(after, name)
    except InputError:
        return None


def _numeric(before: Numbers, after: Numbers) -> tuple[float | None, dict[str, Any]]:
    """How many of the numbers that stood there are nearly told, and the moments."""
    both = before.there & after.there
    spread = float(before.held.std()) if before.there.any() else 0.0
    inside = None
    if before.there.any():  # a cell that was blanked tells nothing
        near = np.abs(before.values[both] - after.values[both]) <= _NEAR * spread
        inside = float(near.sum() / before.there.sum())
    moments = {
        "mean": [_moment(np.mean, before), _moment(np.mean, after)],
        "variance": [_moment(np.var, before), _moment(np.var, after)],
        "missing": [int((~before.there).sum()), int((~after.there).sum())],
    }
    return inside, moments


def _moment(what: Any, numbers: Numbers) -> float | None:
    return float(what(numbers.held)) if numbers.there.any() else None


def _share_moved(before: Table, after: Table, name: str) -> float:
    """Half the sum of what shares of values differ by: the rows that would have to change."""
    shares: dict[Any, float] = {}
    for table, sign in ((before, 1.0), (after, -1.0)):
        counts = pc.value_counts(_plain(table.arrow[name]))
        total = max(len(table), 1)
        for value, count in zip(
            counts.field("values").to_pylist(), counts.field("counts").to_pylist(), strict=True
        ):
            key = value if isinstance(value, str | type(None)) else str(value)
            shares[key] = shares.get(key, 0.0) + sign * count / total
    return float(sum(map(abs, shares.values())) / 2)


def _correlations(
    before: Table, after: Table, changed: Sequence[str]
) -> tuple[float | None, dict[str, Any]]:
    """The largest change of a correlation of a changed column with another."""
    names = [
        name
        for name in before.arrow.column_names
        if name in after.arrow.column_names
        and name not in before.schema.private
        and is_number(value_type(before.arrow[name].type))
        and is_number(value_type(after.arrow[name].type))
    ]
    mine = [name for name in names if name in changed]
    others = [name for name in names if name not in changed][: max(0, _MOST - len(mine))]
    chosen = [*mine[:_MOST], *others]
    if not mine or len(chosen) < 2 or len(before) < 3:
        return None, {}
    try:
        block = np.array([_center(numbers_in(before, name)) for name in chosen])
        one = block @ block.T
        for place, name in enumerate(mine[:_MOST]):
            block[place] = _center(numbers_in(after, name))
    except InputError:
        return None, {}
    other, many = one.copy(), min(len(mine), _MOST)  # only the changed columns differ
    other[:many] = block[:many] @ block.T
    other[:, :many] = other[:many].T
    one, other = _scale(one), _scale(other)
    apart = np.abs(one - other)[: len(mine)]
    return float(apart.max()), {
        "columns": chosen,
        "before": one.round(6).tolist(),
        "after": other.round(6).tolist(),
    }


def _scale(product: Floats) -> Floats:
    """Correlations, a missing value counting as the mean; 0 with a column that does not vary."""
    scale = np.sqrt(np.diag(product))
    with np.errstate(invalid="ignore", divide="ignore"):
        found = product / np.outer(scale, scale)
    return np.asarray(np.nan_to_num(found), dtype=np.float64)


def _center(numbers: Numbers) -> Floats:
    middle = float(numbers.held.mean()) if numbers.there.any() else 0.0
    return np.where(numbers.there, numbers.values - middle, 0.0)


def linkage_rate(
    original: Table, rows: Table, source: NDArray[np.int64], random: np.random.Generator
) -> Estimate:
    """How many masked rows have their own original as the nearest by the quasi-identifiers.

    Definition: of released rows, the share whose nearest original (standardized numbers, values of
        categories 0 or 1 apart) is the row they were made from; of r nearest, 1 / r.
    Source: Domingo-Ferrer and Torra, "Disclosure risk assessment in statistical data protection",
        2004.
    """
    names = [name for name in rows.schema.quasi if name in original.arrow.column_names]
    if not names or not len(rows):
        return failed_estimate("There is no quasi-identifier to link by.")
    from halfmask.kernels.distance import nearest_share

    numeric, codes = [], []
    for name in names:
        pair = _pair(original, rows, name)
        if pair is None:
            codes.append(_common_codes(original, rows, name))
        else:
            numeric.append(_standardize(*pair))
    # Fewer rows of large tables: the share is an estimate with an interval.
    many = max(_LEAST, _WORK // max(1, len(original) * len(names)))
    sample = np.arange(len(rows))
    if len(sample) > many:
        sample = random.choice(len(rows), many, replace=False)
    hits = nearest_share(
        _stack(numeric, 0, len(original), np.float64),
        _stack(numeric, 1, len(rows), np.float64)[sample],
        _stack(codes, 0, len(original), np.int64),
        _stack(codes, 1, len(rows), np.int64)[sample],
        source[sample],
    )
    return proportion(float(hits), len(sample))


def _stack(pairs: list[Any], side: int, size: int, kind: Any) -> NDArray[Any]:
    found = [pair[side] for pair in pairs]
    return (
        np.ascontiguousarray(np.array(found, dtype=kind).T) if found else np.zeros((size, 0), kind)
    )


def _standardize(before: Numbers, after: Numbers) -> tuple[Floats, Floats]:
    """Both on the scale of the original; missing is far from everything but missing."""
    middle = float(before.held.mean()) if before.there.any() else 0.0
    spread = (float(before.held.std()) if before.there.any() else 0.0) or 1.0
    return (
        np.where(before.there, (before.values - middle) / spread, 1e3),
        np.where(after.there, (after.values - middle) / spread, 1e3),
    )


def _common_codes(before: Table, after: Table, name: str) -> tuple[NDArray[Any], NDArray[Any]]:
    """Codes that mean the same on both sides; a blank cell matches nothing (-1)."""
    one, other = before.encode(name), after.encode(name)
    known = {str(value): i for i, value in enumerate(one.values.to_pylist()) if value is not None}
    table = np.array(
        [-1 if v is None else known.get(str(v), len(known)) for v in other.values.to_pylist()]
        or [-1]
    )
    return one.codes.astype(np.int64), table[other.codes].astype(np.int64)
