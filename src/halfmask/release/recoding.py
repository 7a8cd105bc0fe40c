"""A found recoding: which level each row's values take, apart from the rows it was found on.

A recoding is a decision list. A row takes the first step whose published classes contain its
generalized labels; a row that no step takes is suppressed. Full-domain recoding is one step.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from halfmask.errors import HierarchyError, SchemaError
from halfmask.release.labels import Label, as_text, as_type, label_texts
from halfmask.table.classes import tuple_codes
from halfmask.table.schema import Schema
from halfmask.table.table import Table, require_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from os import PathLike

    from numpy.typing import NDArray

    from halfmask.models.verdict import Model
    from halfmask.release.release import Release
    from halfmask.table.schema import Column


@dataclass(frozen=True, slots=True)
class Step:
    """One decision: generalize to ``levels`` the rows that fall into ``classes``.

    Attributes:
        levels: the level per column; the hierarchy's height + 1 means that the cell is suppressed.
        classes: the label texts of each published class in order of the recoding's columns
            (``None`` inside a class is the missing value); ``None`` means any class.
    """

    levels: Mapping[str, int]
    classes: tuple[tuple[Label, ...], ...] | None = None


@dataclass(frozen=True, slots=True)
class Recoding:
    """How quasi-identifiers are generalized; holds no row and no value but published labels.

    Attributes:
        columns: the quasi-identifiers with their hierarchies, in order.
        steps: the decisions, first match wins.
    """

    columns: Mapping[str, Column]
    steps: tuple[Step, ...]

    @classmethod
    def of(cls, table: Table, steps: Sequence[Step | Mapping[str, int]]) -> Recoding:
        """Make a recoding of the quasi-identifiers of ``table`` from steps or plain levels."""
        columns = {name: table.schema.columns[name] for name in table.schema.quasi}
        made = tuple(s if isinstance(s, Step) else Step(dict(s)) for s in steps)
        return cls(columns, made)

    def __repr__(self) -> str:
        kind = "full-domain" if self.full_domain else f"{len(self.steps)} steps"
        return f"Recoding({', '.join(self.columns)}; {kind})"

    @property
    def full_domain(self) -> bool:
        """Whether every row gets the same levels."""
        return len(self.steps) == 1

    @property
    def levels(self) -> dict[str, int] | None:
        """The level per column where the recoding is full-domain, else None."""
        return dict(self.steps[0].levels) if self.full_domain else None

    def bind(self, table: Table) -> Table:
        """Give ``table`` this recoding's columns and hierarchies, all faults reported together."""
        require_table(table)
        missing = [name for name in self.columns if name not in table.arrow.column_names]
        if missing:
            raise SchemaError(
                *(
                    f"The recoding needs the column {name!r}: add it to the table."
                    for name in missing
                )
            )
        own = {name: table.schema.columns.get(name) for name in self.columns}
        same = own == dict(self.columns)
        bound = table if same else Table(table.arrow, Schema(dict(self.columns)), table.origin)
        faults: list[str] = []
        for name in self.columns:
            try:
                bound.hierarchy(name)
            except HierarchyError as error:
                faults.extend(error.faults)
        if faults:
            raise HierarchyError(*faults)
        return bound

    def published(self, table: Table, step: NDArray[np.int32]) -> pa.Table:
        """The generalized quasi-identifiers of the rows that ``step`` keeps, in their order.

        Args:
            table: the original rows.
            step: per row, the index of the step it takes; -1 leaves the row out.
        """
        bound = self.bind(table)
        kept = np.flatnonzero(step >= 0)
        taken = step[kept]
        arrays = {name: self._column(bound, name, taken, kept) for name in self.columns}
        return pa.table(arrays)

    def _column(
        self, table: Table, name: str, taken: NDArray[np.int32], kept: NDArray[np.int64]
    ) -> pa.Array:
        encoded, hierarchy = table.encode(name), table.hierarchy(name)
        per_step = np.array([s.levels[name] for s in self.steps], dtype=np.int64)
        used = np.unique(per_step[np.flatnonzero(np.bincount(taken))])
        codes = encoded.codes[kept]
        kind = table.arrow.schema.field(name).type
        if used.tolist() in ([], [0]):
            return as_type(kind, encoded.values, codes)
        texts = [label_texts(table, name, int(level)) for level in used]
        words = pa.array(sorted({t for _, labels in texts for t in labels if t is not None}))
        place: dict[Label, int] = {t: i for i, t in enumerate(words.to_pylist())}
        place[None] = len(words)
        look = np.empty((len(used), len(encoded.values)), dtype=np.int32)
        for i, (level_map, labels) in enumerate(texts):
            look[i] = np.array([place[t] for t in labels], dtype=np.int32)[level_map]
        assert hierarchy.maps.shape[1] == len(encoded.values)  # noqa: S101 - bound to these values
        row_level = np.searchsorted(used, per_step)[taken]
        values = pa.concat_arrays([words.cast(pa.string()), pa.nulls(1, pa.string())])
        text = pa.dictionary(pa.int32(), pa.string()) if pa.types.is_dictionary(kind) else None
        return as_type(text or pa.string(), values, look[row_level, codes])

    def assign(self, table: Table) -> NDArray[np.int32]:
        """The step that each row takes; -1 where no step's classes hold the row's labels."""
        bound = self.bind(table)
        if self.steps[0].classes is None:
            return np.zeros(len(table), dtype=np.int32)
        names = list(self.columns)
        units, unit = tuple_codes(bound, names)
        labels = [_labels(bound, name, {one.levels[name] for one in self.steps}) for name in names]
        taken = np.full(len(units[0]), -1, dtype=np.int32)
        for index, step in enumerate(self.steps):
            open_ = np.flatnonzero(taken < 0)
            if step.classes is None:
                taken[open_] = index
                break
            hit = _match(names, step, labels, [codes[open_] for codes in units])
            taken[open_[hit]] = index
        return np.asarray(taken[unit])

    def with_classes(self, table: Table, step: NDArray[np.int32]) -> Recoding:
        """State the published classes of every step, as ``step`` assigns the rows of ``table``."""
        labels = [as_text(column) for column in self.published(table, step).columns]
        names = [str(i) for i in range(len(labels))]
        taken = pa.array(step[step >= 0], type=pa.int32())
        named = pa.table([*labels, taken], names=[*names, "step"])
        unique = named.group_by(named.column_names).aggregate([])
        found: list[list[tuple[Label, ...]]] = [[] for _ in self.steps]
        columns = [unique[name].to_pylist() for name in names]
        for index, labels_ in zip(
            unique["step"].to_pylist(), zip(*columns, strict=True), strict=True
        ):
            found[index].append(labels_)
        steps = [
            replace(one, classes=tuple(sorted(classes, key=_none_last)))
            for one, classes in zip(self.steps, found, strict=True)
        ]
        return replace(self, steps=tuple(steps))

    def apply(self, table: Table, *models: Model, **settings: Any) -> Release:
        """Recode new rows, suppress classes that fail up to the limit, check them, release them.

        Args:
            table: the new rows.
            models: the promises; what people demand for themselves is kept beside them.
            settings: ``suppression``, ``policies`` and ``demands``, as for ``anonymize``.
        """
        from halfmask.release.apply import apply

        return apply(self, table, *models, **settings)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the recoding as JSON."""
        from halfmask.release.storage import save

        save(self, path)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Recoding:
        """Read a recoding that ``save`` wrote."""
        from halfmask.release.storage import load

        return load(path)

    def to_csv(self, folder: str | PathLike[str], table: Table) -> list[str]:
        """Write one value mapping per column for the values of ``table``; returns the paths.

        The files name original values: they are for whoever holds the table, not for publication.
        """
        from halfmask.release.mapping import write_mappings

        return write_mappings(self, table, folder)

    def to_sql(self, table: Table, *, name: str, dialect: str = "duckdb") -> str:
        """One SQL statement that recodes the table ``name`` inside a database.

        Args:
            table: the rows, for their values and types; the statement names these values.
            name: the table's name in the database, with dots between its parts.
            dialect: duckdb, postgres or spark.
        """
        from halfmask.release.sql import statement

        return statement(self, table, name=name, dialect=dialect)


def reachable(recoding: Recoding, table: Table, name: str) -> NDArray[np.bool_]:
    """Which values of a column have a label in some published class."""
    position = list(recoding.columns).index(name)
    found = np.zeros(len(table.encode(name).values), dtype=np.bool_)
    for step in recoding.steps:
        if step.classes is None:
            return np.ones_like(found)
        level_map, labels = label_texts(table, name, step.levels[name])
        listed = {one[position] for one in step.classes}
        found |= np.array([label in listed for label in labels], dtype=np.bool_)[level_map]
    return found


def combine(columns: Iterable[NDArray[Any]], sizes: Sequence[int]) -> NDArray[np.int64]:
    """One integer per row that is equal exactly where all columns are equal."""
    key = np.zeros(1, dtype=np.int64)
    span = 1
    for codes, size in zip(columns, sizes, strict=True):
        if span * max(size, 1) >= 2**62:
            distinct, key = np.unique(key, return_inverse=True)
            key, span = key.reshape(-1).astype(np.int64), len(distinct)
        key = key * max(size, 1) + codes
        span *= max(size, 1)
    return key


def _labels(
    table: Table, name: str, levels: set[int]
) -> tuple[dict[Label, int], dict[int, NDArray[np.int64]]]:
    """A number for each label text of a column, and per level the number of each value's label."""
    place: dict[Label, int] = {}
    look = {}
    for level in sorted(levels):
        level_map, labels = label_texts(table, name, level)
        numbers = np.array([place.setdefault(t, len(place)) for t in labels], dtype=np.int64)
        look[level] = numbers[level_map]
    return place, look


def _match(
    names: list[str],
    step: Step,
    labels: list[tuple[dict[Label, int], dict[int, NDArray[np.int64]]]],
    units: list[NDArray[np.int32]],
) -> NDArray[np.bool_]:
    """Which tuples fall into the classes of ``step``."""
    classes = step.classes or ()
    known = np.ones(len(classes), dtype=np.bool_)

    def columns() -> Iterator[NDArray[np.int64]]:  # one at a time: there may be many tuples
        nonlocal known
        for position, (name, (place, look)) in enumerate(zip(names, labels, strict=True)):
            listed = np.array([place.get(c[position], -1) for c in classes], dtype=np.int64)
            known &= listed >= 0
            own = look[step.levels[name]][units[position]]
            yield np.concatenate((own, np.maximum(listed, 0)))

    key = combine(columns(), [len(place) for place, _ in labels])
    count = len(units[0])
    return np.isin(key[:count], key[count:][known])


def _none_last(labels: tuple[Label, ...]) -> tuple[tuple[bool, str], ...]:
    return tuple((label is None, label or "") for label in labels)
