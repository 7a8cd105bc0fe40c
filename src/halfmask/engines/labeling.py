"""Labels for rows that stay where they are: which value becomes which label, as joins.

Each quasi-identifier is joined with a small table of its values; where labels differ between
combinations of values, or some combinations do not leave, the codes of the values together are
joined with a table of the combinations that leave. Rows leave grouped and in the order of all
published columns: nothing is told by their order.
"""

# ruff: noqa: S608 - names are quoted, and values travel in tables
from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

CELLS, MAP = "hm_cells", "hm_map_"
_WIDEST = 1 << 62  # what one number can tell apart


@dataclass(frozen=True, slots=True, eq=False)
class ColumnLabels:
    """The values of one quasi-identifier and what they become.

    Attributes:
        values: the values as the engine spells them, none missing.
        codes: the number of each value; ``missing`` is that of the missing value, None where no row
            misses it.
        size: how many numbers there are.
        labels: per number its label; None: the value itself leaves, or cells say the label.
    """

    values: pa.Array
    codes: NDArray[np.int64]
    missing: int | None
    size: int
    labels: pa.Array | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Labeling:
    """What the engine is asked to write; it knows no promise.

    Attributes:
        columns: per quasi-identifier its values.
        codes: per combination that leaves, the number of each value, in the order of ``columns``;
            None where all leave and no label depends on several columns.
        cells: the labels that depend on the combination, by column, one per combination.
        published: the columns that leave, in order.
        floats: those of them whose values are floating: what is no number is missing.
    """

    columns: Mapping[str, ColumnLabels]
    codes: Sequence[NDArray[np.int64]] | None
    cells: Mapping[str, pa.Array]
    published: tuple[str, ...]
    floats: frozenset[str]

    def tables(self) -> dict[str, pa.Table]:
        """The tables that the joins need, by name."""
        found = {}
        for place, one in enumerate(self.columns.values()):
            columns = {"value": one.values, "code": pa.array(one.codes)}
            if one.labels is not None:
                columns["label"] = one.labels.take(pa.array(one.codes))
            found[f"{MAP}{place}"] = pa.table(columns)
        if self.codes is not None:
            keys = [
                sum((self.codes[i] * factor for i, factor in group), np.int64(0))
                for group in self._keys()
            ]
            labels = {f"label_{list(self.columns).index(n)}": one for n, one in self.cells.items()}
            found[CELLS] = pa.table({f"key_{i}": k for i, k in enumerate(keys)} | labels)
        return found

    def query(self, table: str) -> str:
        """The rows with their labels, grouped, with how many there are of each, in order."""
        every = ", ".join(map(quoted, self.published))
        places = ", ".join(str(i + 1) for i in range(len(self.published)))
        return (
            f"SELECT {every}, COUNT(*) AS hm_n FROM ({self.rows(table)}) t "
            f"GROUP BY {places} ORDER BY {places}"
        )

    def rows(self, table: str) -> str:
        """The rows with their labels."""
        names = list(self.columns)
        shown = []
        for name in self.published:
            place = names.index(name) if name in names else None
            own = None if place is None else self.columns[name]
            if name in self.cells:
                cell = f"c.label_{place}"
            elif own is not None and own.labels is not None:
                cell = self._label(name, f"m{place}.label", own)
            else:
                cell = self._plain(name)
            shown.append(f"{cell} AS {quoted(name)}")
        joins = [
            f"LEFT JOIN {MAP}{i} m{i} ON r.{quoted(name)} = m{i}.value"
            for i, name in enumerate(names)
        ]
        if self.codes is not None:
            same = " AND ".join(
                f"c.key_{k} = "
                + " + ".join(f"{self._code(names[i], i)} * CAST({f} AS BIGINT)" for i, f in group)
                for k, group in enumerate(self._keys())
            )
            joins.append(f"JOIN {CELLS} c ON {same}")
        return f"SELECT {', '.join(shown)} FROM {quoted(table)} r {' '.join(joins)}"

    def _keys(self) -> list[list[tuple[int, int]]]:
        """Columns with a factor each, in groups whose codes together are one number."""
        groups: list[list[tuple[int, int]]] = [[]]
        span = 1
        for place, one in enumerate(self.columns.values()):
            if span * max(one.size, 1) >= _WIDEST:
                groups.append([])
                span = 1
            groups[-1].append((place, span))
            span *= max(one.size, 1)
        return groups

    def _code(self, name: str, place: int) -> str:
        missing = self.columns[name].missing
        number = "NULL" if missing is None else str(missing)
        return f"CASE WHEN r.{quoted(name)} IS NULL THEN {number} ELSE m{place}.code END"

    def _label(self, name: str, label: str, own: ColumnLabels) -> str:
        text = None
        if own.missing is not None and own.labels is not None:
            text = own.labels[own.missing].as_py()
        word = "NULL" if text is None else "'" + text.replace("'", "''") + "'"
        return f"CASE WHEN r.{quoted(name)} IS NULL THEN {word} ELSE {label} END"

    def _plain(self, name: str) -> str:
        cell = f"r.{quoted(name)}"
        if name not in self.floats:
            return cell
        return f"NULLIF({cell}, CAST('NaN' AS REAL)) + CAST(0 AS REAL)"  # and zero has one sign


def label_columns(
    raw: pa.ChunkedArray, codes: NDArray[np.int32], size: int, labels: pa.Array | None
) -> ColumnLabels:
    """The values of a column as they were counted, with the number that each of them got."""
    if pa.types.is_dictionary(raw.type):
        raw = raw.cast(raw.type.value_type)
    pairs = pa.table({"value": raw, "code": codes.astype(np.int64)})
    seen = pairs.group_by(["value", "code"]).aggregate([])
    gone = pc.is_null(seen["value"])
    missing = seen.filter(gone)["code"].to_pylist()
    known = seen.filter(pc.invert(gone))
    values = known["value"].combine_chunks()
    values = pa.concat_arrays(values.chunks) if isinstance(values, pa.ChunkedArray) else values
    numbers = np.asarray(known["code"].to_numpy(), dtype=np.int64)
    return ColumnLabels(values, numbers, missing[0] if missing else None, size, labels)


def quoted(name: str) -> str:
    """A name as SQL writes it, whatever characters stand in it."""
    return '"' + name.replace('"', '""') + '"'
