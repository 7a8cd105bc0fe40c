"""What a release is still good for, measured against its original.

Definition: loss as in ``halfmask.metrics.loss``, read from the published labels; the distance of
two distributions is the total variation, sum |p - q| / 2.
Source: Iyengar, "Transforming data to satisfy privacy constraints", 2002 (loss).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa

from halfmask.errors import InputError, SchemaError
from halfmask.table.normalize import normalize
from halfmask.table.table import Table, encode, require_table

if TYPE_CHECKING:
    from collections.abc import Sequence


class Published(Protocol):
    """Anything that gives its rows as Arrow, such as a release."""

    def to_arrow(self) -> pa.Table:
        """The rows."""
        ...


@dataclass(frozen=True, slots=True)
class GeneralizedColumn:
    """What became of one quasi-identifier: loss from 0 to 1, values before, labels after."""

    name: str
    loss: float
    distinct: int
    distinct_released: int


@dataclass(frozen=True, slots=True)
class KeptColumn:
    """How far the distribution of a column moved because rows were left out, from 0 to 1."""

    name: str
    distance: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """An original and its release, side by side.

    Attributes:
        rows: rows of the original.
        rows_released: rows that left.
        suppressed: rows that did not.
        classes: classes of the original; ``classes_released`` those of the release.
        mean_class: mean rows per class before; ``mean_class_released`` after.
        loss: the geometric aggregate of the columns' losses, 0 to 1.
        generalized: the quasi-identifiers.
        kept: the columns that leave as they are.
    """

    rows: int
    rows_released: int
    suppressed: int
    classes: int
    classes_released: int
    mean_class: float
    mean_class_released: float
    loss: float
    generalized: tuple[GeneralizedColumn, ...]
    kept: tuple[KeptColumn, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as plain values."""
        return asdict(self)


def compare(original: Table, release: Published | Table) -> Comparison:
    """Measure what ``release`` lost against ``original``, whose schema and hierarchies count.

    Example:
        >>> import halfmask as hm
        >>> import pyarrow as pa
        >>> people = hm.read(pa.table({"age": [30, 30, 41, 41]}), schema={"age": "quasi"})
        >>> hm.compare(people, hm.anonymize(people, hm.KAnonymity(2))).suppressed
        0
    """
    require_table(original)
    rows = _comparable(original, release)
    quasi = original.schema.quasi
    _fitting(original, rows, quasi)
    generalized = tuple(_generalized(original, rows, name) for name in quasi)
    losses = np.array([1.0 + column.loss for column in generalized])
    before, after = _class_count(original.arrow, quasi), _class_count(rows, quasi)
    kept = (*original.schema.sensitive, *original.schema.names("other"))
    return Comparison(
        rows=len(original),
        rows_released=rows.num_rows,
        suppressed=len(original) - rows.num_rows,
        classes=before,
        classes_released=after,
        mean_class=len(original) / before if before else 0.0,
        mean_class_released=rows.num_rows / after if after else 0.0,
        loss=float(losses.prod() ** (1 / len(losses)) - 1),
        generalized=generalized,
        kept=tuple(_kept(original, rows, n) for n in kept if n in rows.column_names),
    )


def _comparable(original: Table, release: Published | Table) -> pa.Table:
    """The published rows in the types in which the original is held."""
    if isinstance(release, Table):
        return release.arrow
    if not hasattr(release, "to_arrow"):
        require_table(release)
    rows = release.to_arrow()
    rows = normalize(rows, ()) if rows.num_rows else rows
    for place, name in enumerate(rows.column_names):
        if name not in original.arrow.column_names:
            continue
        kind = original.arrow.schema.field(name).type
        if pa.types.is_integer(kind) and pa.types.is_floating(rows[name].type):
            try:
                rows = rows.set_column(place, name, rows[name].cast(kind))
            except pa.ArrowInvalid:
                continue
    return rows


def _fitting(original: Table, rows: pa.Table, quasi: Sequence[str]) -> None:
    if not quasi:
        raise SchemaError("The original names no quasi-identifier: give roles in its schema.")
    missing = [name for name in quasi if name not in rows.column_names]
    if missing:
        raise SchemaError(
            *(f"The release lacks the column {name!r} of the original." for name in missing)
        )
    if rows.num_rows > len(original):
        raise InputError(
            f"The release has {rows.num_rows:,} rows, more than the {len(original):,} of the "
            "original: give the original first."
        )


def _generalized(original: Table, rows: pa.Table, name: str) -> GeneralizedColumn:
    hierarchy, published = original.hierarchy(name), encode(rows[name])
    known = _leaves_by_label(original, name)
    labels = _texts(published.values)
    unknown = sum(label not in known for label in labels)
    if unknown:
        raise InputError(
            f"Column {name!r}: {unknown:,} distinct labels of the release are not in the "
            "original's hierarchy; give the schema that the release was made with."
        )
    leaves = np.array([known[label] for label in labels], dtype=np.int64)
    left_out = len(original) - rows.num_rows
    covered = int(leaves[published.codes].sum()) + left_out * hierarchy.size
    loss = 0.0
    if hierarchy.size > 1 and len(original):
        loss = (covered / len(original) - 1) / (hierarchy.size - 1)
    return GeneralizedColumn(name, loss, len(original.encode(name).values), len(labels))


def _leaves_by_label(original: Table, name: str) -> dict[str | None, int]:
    """How many leaves each text label covers; the coarser one where two levels share a text."""
    hierarchy = original.hierarchy(name)
    out: dict[str | None, int] = {"*": hierarchy.size}
    for level in range(hierarchy.height, -1, -1):
        labels = (
            _texts(original.encode(name).values) if level == 0 else list(hierarchy.labels[level])
        )
        for label, leaves in zip(labels, hierarchy.leaves[level].tolist(), strict=True):
            out.setdefault(None if label is None else str(label), leaves)
    return out


def _texts(values: pa.Array) -> list[str | None]:
    texts: list[str | None] = values.cast(pa.string()).to_pylist()
    return texts


def _class_count(rows: pa.Table, quasi: Sequence[str]) -> int:
    return int(rows.select(quasi).group_by(list(quasi)).aggregate([]).num_rows)


def _kept(original: Table, rows: pa.Table, name: str) -> KeptColumn:
    before, after = original.encode(name), encode(rows[name])
    shares = dict.fromkeys(_texts(before.values), 0.0)
    p = np.bincount(before.codes, minlength=len(before.values)) / max(len(original), 1)
    q = np.bincount(after.codes, minlength=len(after.values)) / max(rows.num_rows, 1)
    for label, share in zip(_texts(before.values), p.tolist(), strict=True):
        shares[label] -= share
    for label, share in zip(_texts(after.values), q.tolist(), strict=True):
        shares[label] = shares.get(label, 0.0) + share
    return KeptColumn(name, sum(abs(share) for share in shares.values()) / 2)
