"""The columns that a rate is measured on: codes of values, or of the blocks they were put in."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from halfmask.errors import InputError, ParameterError
from halfmask.metrics.discrimination.partition import (
    Blocks,
    Cuts,
    Partition,
    read_partition,
    stated_partitions,
)
from halfmask.metrics.weighted import joint
from halfmask.table.columns import require_known

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from halfmask.table.table import Table

Suppressed = Literal["keep", "drop", "missing"]
STAR = "*"


@dataclass(frozen=True, slots=True, eq=False)
class CodedColumn:
    """The code of each row, how many codes there are, and what each stands for."""

    codes: NDArray[np.int32]
    size: int
    labels: Sequence[object]


class LazyValues(Sequence[object]):
    """Arrow values that become Python objects one by one."""

    def __init__(self, values: pa.Array) -> None:
        self._values = values

    def __len__(self) -> int:
        return len(self._values)

    def __getitem__(self, place: Any) -> Any:
        return self._values[int(place)].as_py()


def code_column(table: Table, name: str, blocks: Blocks | None = None) -> CodedColumn:
    """A column of ``table``, in ``blocks`` if there are any."""
    encoded = table.encode(name)
    if blocks is None:
        return CodedColumn(encoded.codes, len(encoded.values), LazyValues(encoded.values))
    return CodedColumn(blocks.places[encoded.codes], len(blocks.names), blocks.names)


def group_rows(
    columns: Sequence[CodedColumn], keep: NDArray[np.bool_] | slice = slice(None)
) -> tuple[NDArray[np.int64], int]:
    """The number of each row's combination, dense from 0, and how many there are."""
    return joint([(column.codes[keep], column.size) for column in columns])


def group_labels(
    columns: Sequence[CodedColumn],
    y: NDArray[np.int64],
    groups: int,
    keep: NDArray[np.bool_] | slice = slice(None),
) -> list[object]:
    """What each group is called: its value, or the tuple of its values."""
    first = np.full(groups, -1, dtype=np.int64)
    first[y[::-1]] = np.arange(len(y))[::-1]
    held = [[column.labels[code] for code in column.codes[keep][first]] for column in columns]
    return list(held[0]) if len(held) == 1 else list(zip(*held, strict=True))


def bind_partitions(
    table: Table,
    names: Sequence[str],
    target: str,
    partition: object,
    suppressed: Suppressed = "keep",
) -> dict[str, Blocks]:
    """Bind what the user gave to the columns it speaks of.

    Stars are values like others where they are kept; else no block need hold them.
    """
    given = per_column(table, target, partition)
    strange = [str(name) for name in given if name not in names]
    if strange:
        raise InputError(f"The partition names columns that are not used: {', '.join(strange)}.")
    return {name: _bound(table, name, blocks, suppressed) for name, blocks in given.items()}


def per_column(table: Table, target: str, partition: object) -> Mapping[Any, object]:
    """What the user gave, by column: blocks that name no column are those of the target."""
    if partition is None:
        return {}
    if isinstance(partition, str | os.PathLike):
        return stated_partitions(partition)
    if isinstance(partition, Mapping) and _names_columns(table, partition):
        return partition
    if isinstance(partition, Mapping):
        strange = [str(name) for name, blocks in partition.items() if _is_partition(blocks)]
        if strange:
            raise InputError(
                f"The partition holds blocks of blocks under {', '.join(strange)}, which cannot be "
                f"blocks of {target!r}: by column, all names must be columns of the table."
            )
    return {target: partition}


def _bound(table: Table, name: str, blocks: object, suppressed: Suppressed) -> Blocks:
    values = table.encode(name).values
    star = _star(values)
    if star is None or suppressed == "keep":
        return read_partition(blocks).bind(name, values)
    import pyarrow as pa

    others = np.delete(np.arange(len(values)), star)
    found = read_partition(blocks).bind(name, values.take(pa.array(others)))
    places = np.zeros(len(values), dtype=np.int32)  # the star's own is never looked at
    places[others] = found.places
    return Blocks(places, found.names, found.notes)


def _star(values: pa.Array) -> int | None:
    held = values.to_pylist()
    return held.index(STAR) if STAR in held else None


def _names_columns(table: Table, partition: Mapping[Any, object]) -> bool:
    return bool(partition) and all(
        name in table.arrow.column_names and _is_partition(blocks)
        for name, blocks in partition.items()
    )


def _is_partition(blocks: object) -> bool:
    """Whether something is a partition, and no block of values."""
    return isinstance(blocks, Mapping | Partition | Cuts) or _lists(blocks)


def _lists(blocks: object) -> bool:
    return (
        isinstance(blocks, Sequence)
        and not isinstance(blocks, str)
        and len(blocks) > 0
        and all(
            isinstance(b, Sequence | set | frozenset) and not isinstance(b, str) for b in blocks
        )
    )


def counting_rows(
    table: Table, names: Sequence[str], suppressed: Suppressed, columns: dict[str, CodedColumn]
) -> NDArray[np.bool_]:
    """Which rows count; in ``columns`` stars become missing values where that is asked for."""
    keep = np.ones(len(table), dtype=bool)
    if suppressed == "keep":
        return keep
    for name in dict.fromkeys(names):
        encoded = table.encode(name)
        star = _star(encoded.values)
        if star is None:
            continue
        starred = encoded.codes == star
        if suppressed == "drop":
            keep &= ~starred
        else:
            columns[name] = _without_stars(columns[name], starred, encoded.codes, encoded.values)
    if not keep.any():
        raise InputError("Every row holds a suppressed cell in these columns: nothing is left.")
    return keep


def _without_stars(
    column: CodedColumn, starred: NDArray[np.bool_], codes: NDArray[np.int32], values: pa.Array
) -> CodedColumn:
    """Starred rows take the code of the missing value, or a new one where none is missing."""
    absent = len(values) - 1 if values.null_count else -1  # the missing value is the last
    held = np.flatnonzero(codes == absent)
    code = int(column.codes[held[0]]) if len(held) else column.size
    labels = column.labels if len(held) else (*column.labels, None)
    return CodedColumn(np.where(starred, code, column.codes).astype(np.int32), len(labels), labels)


def require_measurable(table: Table, target: str, names: tuple[str, ...], suppressed: str) -> None:
    """Refuse columns that are not there, and tables without rows.

    Raises:
        InputError: there is nothing to measure.
    """
    if not names:
        raise ParameterError("keys", names, "at least one column")
    require_known((target, *names), table.arrow.column_names)
    if suppressed not in ("keep", "drop", "missing"):
        raise ParameterError("suppressed", suppressed, "keep, drop or missing")
    if not len(table):
        raise InputError("The table has no rows: there is nothing to measure.")
