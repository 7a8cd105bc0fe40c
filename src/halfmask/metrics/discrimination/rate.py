"""The discrimination rate of columns and of their values.

Definition: DR_X(Y) = 1 - H(X | Y) / H(X) in bits; of a value, 1 - p(y) H(X | Y = y) / H(X), so that
1 - DR_X(Y) is the sum of 1 - DR_X(y). A partition of a column is applied before anything else.
Source: Sondeck, "Privacy and utility assessment within statistical data bases", 2017, whose printed
algorithms stop too early; its tables follow the definition.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from halfmask.engines.counted import counted
from halfmask.errors import InputError, NotObservedError, ParameterError
from halfmask.metrics.codes import joint, pairs
from halfmask.metrics.discrimination.partition import Blocks, Cuts, Partition, partitioning
from halfmask.table.table import require_table

if TYPE_CHECKING:
    from os import PathLike

    import pyarrow as pa
    from numpy.typing import NDArray

    from halfmask.table.table import Table

Kind = Literal["identifier", "partial", "sketchy", "zero", "undefined"]
Suppressed = Literal["keep", "drop", "missing"]
_SAME = 1e-12
STAR = "*"


@dataclass(frozen=True, slots=True, repr=False)
class ValueRate:
    """One value (or tuple of values) of the keys.

    Attributes:
        value: the value; a tuple where there are several keys.
        rate: 1 - p(y) H(X | y) / H(X); mostly driven by how rare the value is.
        count: how many rows hold it; ``share`` is p(y).
        unweighted: 1 - H(X | y) / H(X), what the value says, however rare; may be negative.
        top: the largest share of one outcome among these rows.
    """

    value: object
    rate: float
    count: int
    share: float
    unweighted: float
    top: float

    def __repr__(self) -> str:
        return f"ValueRate(rate={self.rate:.4f}, count={self.count}, top={self.top:.4f})"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Discrimination(Mapping[object, float]):
    """How far ``keys`` discriminate ``target``: a mapping from value to rate, with all around it.

    Attributes:
        rate: the rate of the keys together; not a number where the target never varies.
        kind: identifier, partial, sketchy or zero; undefined where the target never varies.
        rows: how many rows it rests on; ``left_out`` those with suppressed cells that were dropped.
        entropy: H(X) in bits; ``residual`` is H(X | Y).
        identifying: how many values leave one outcome only; ``identified_rows`` their rows.
        details: one entry per value.
        notes: what a reader should know.
    """

    target: str
    keys_: tuple[str, ...]
    rate: float
    kind: Kind
    rows: int
    left_out: int
    entropy: float
    residual: float
    identifying: int
    identified_rows: int
    details: tuple[ValueRate, ...] = ()
    notes: tuple[str, ...] = ()
    _places: dict[object, int] = field(default_factory=dict)

    @property
    def degenerate(self) -> bool:
        """Whether the target never varies, so that there is nothing to discriminate."""
        return self.kind == "undefined"

    def __repr__(self) -> str:
        return f"Discrimination({self.rate:.4f}, {self.kind}, {len(self.details)} values)"

    def __getitem__(self, value: object) -> float:
        return self.of(value).rate

    def __iter__(self) -> Iterator[object]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def of(self, value: object) -> ValueRate:
        """The entry of one value; raises ``NotObservedError`` where no row holds it."""
        if value not in self._places:
            raise NotObservedError(self.keys_)
        return self.details[self._places[value]]

    def to_dict(self, *, values: bool = False) -> dict[str, Any]:
        """Return plain figures; with ``values`` also the values of the table."""
        out: dict[str, Any] = {
            "target": self.target,
            "keys": list(self.keys_),
            "rate": None if self.degenerate and np.isnan(self.rate) else self.rate,
            "kind": self.kind,
            "rows": self.rows,
            "left_out": self.left_out,
            "entropy": self.entropy,
            "residual": self.residual,
            "identifying_values": self.identifying,
            "identified_rows": self.identified_rows,
            "notes": list(self.notes),
        }
        if values:
            out["values"] = [
                {
                    "value": v.value,
                    "rate": v.rate,
                    "count": v.count,
                    "share": v.share,
                    "unweighted": v.unweighted,
                    "top": v.top,
                }
                for v in self.details
            ]
        return out


def discrimination_rate(
    table: Table | str | PathLike[str],
    target: str,
    keys: str | Sequence[str],
    partition: object = None,
    *,
    values: bool = False,
    suppressed: Suppressed = "keep",
    undefined: float = float("nan"),
    schema: object = None,
    engine: str | None = None,
    source_table: str | None = None,
    memory_limit: str | None = None,
) -> float | Discrimination:
    """Tell how far knowing ``keys`` shrinks what ``target`` can be: 0 not at all, 1 to one outcome.

    Args:
        table: the rows; every column can be target or key, whatever its role. Or the name of a
            file or the address of a database, as for ``check``, with ``schema``, ``engine``,
            ``source_table`` and ``memory_limit``.
        target: the column X whose outcomes are the anonymity set.
        keys: the column or columns Y that somebody knows.
        partition: which values count as one: blocks of the target's values (a mapping from block to
            values, or lists of values), or a mapping from column to such blocks for any columns.
        values: also give the rate of each value, as a mapping.
        suppressed: rows with a cell ``*`` are kept as a value of its own, dropped, or such cells
            count as missing.
        undefined: what a target that never varies gives.
        schema: the schema of a file or database, as for ``read``.
        engine: ``"duckdb"`` counts a file within ``memory_limit``; ``"memory"`` reads it.
        source_table: which table of a database.
        memory_limit: how much memory DuckDB may take, such as ``"500MB"``.

    Raises:
        InputError: a column is not there, or a partition overlaps or leaves values out.

    Example:
        >>> import halfmask as hm
        >>> people = hm.read({"age": [22, 35, 22], "id": [1, 2, 3]}, schema={})
        >>> round(hm.discrimination_rate(people, "id", "age"), 4)
        0.5794
    """
    names = (keys,) if isinstance(keys, str) else tuple(keys)
    held = counted(
        table,
        lambda _: (target, *names),
        schema=schema,
        engine=engine,
        table=source_table,
        memory_limit=memory_limit,
    )
    found = discriminate(
        held.table,
        target,
        names,
        partition,
        suppressed=suppressed,
        undefined=undefined,
        values=values,
        counts=held.counts,
    )
    return found if values else found.rate


def discriminate(
    table: Table,
    target: str,
    keys: str | Sequence[str],
    partition: object = None,
    *,
    suppressed: Suppressed = "keep",
    undefined: float = float("nan"),
    values: bool = True,
    counts: NDArray[np.int64] | None = None,
) -> Discrimination:
    """The rate with its class and, if ``values``, each value's figures.

    With ``counts``, each row of ``table`` stands for so many.
    """
    require_table(table)
    names = (keys,) if isinstance(keys, str) else tuple(keys)
    _require(table, target, names, suppressed)
    bound = bind(table, (target, *names), target, partition)
    columns = {
        name: _column(table, name, bound.get(name)) for name in dict.fromkeys((target, *names))
    }
    keep = _kept(table, (target, *names), suppressed, columns)
    x, size, _ = columns[target]
    y, groups = joint([(codes[keep], count) for codes, count, _ in (columns[n] for n in names)])
    notes = tuple(note for blocks in bound.values() for note in blocks.notes)
    held = np.ones(len(table), dtype=np.int64) if counts is None else counts
    weights = None if counts is None else counts[keep]
    found = measure(x[keep], size, y, groups, undefined, weights)
    labels = _labels([columns[n] for n in names], y, keep, groups) if values else []
    details = tuple(_details(found, labels)) if values else ()
    places = {entry.value: i for i, entry in enumerate(details)}
    return Discrimination(
        target, names, found.rate, found.kind, int(held[keep].sum()), int(held[~keep].sum()),
        found.entropy, found.residual, int(found.pure.sum()), int(found.sizes[found.pure].sum()),
        details, notes, places,
    )  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """The rate of a grouping, and what each group adds to it."""

    rate: float
    kind: Kind
    entropy: float
    residual: float
    sizes: NDArray[np.int64]
    inside: NDArray[np.float64]
    pure: NDArray[np.bool_]
    top: NDArray[np.int64]


def measure(
    x: NDArray[np.int32], size: int, y: NDArray[np.int64], groups: int,
    undefined: float = float("nan"), weights: NDArray[np.int64] | None = None,
) -> Measured:  # fmt: skip
    """Measure how the groups ``y`` discriminate the outcomes ``x``; both are dense codes.

    With ``weights``, each entry stands for so many rows.
    """
    owner, _, counts = pairs(y, x, size, groups, weights)
    sizes = np.bincount(y, weights, minlength=groups).astype(np.int64)
    starts = np.flatnonzero(np.concatenate(([True], owner[1:] != owner[:-1])))
    parts = counts / sizes[owner]
    inside = np.add.reduceat(-parts * np.log2(parts), starts) + 0.0
    pure = np.diff(np.append(starts, len(owner))) == 1
    inside[pure] = 0.0
    top = np.maximum.reduceat(counts, starts)
    entropy = entropy_of(np.bincount(x, weights, minlength=size).astype(np.int64))
    residual = float(sizes @ inside) / int(sizes.sum())
    rate, kind = _rate(entropy, residual, pure, undefined)
    return Measured(rate, kind, entropy, residual, sizes, inside, pure, top)


def _rate(
    entropy: float, residual: float, pure: NDArray[np.bool_], undefined: float
) -> tuple[float, Kind]:
    """The rate, and its class by structure rather than by comparing floats with 0 and 1."""
    if entropy == 0.0:
        return undefined, "undefined"
    if pure.all():
        return 1.0, "identifier"
    if abs(entropy - residual) < _SAME:
        return 0.0, "zero"
    return 1.0 - residual / entropy, "partial" if pure.any() else "sketchy"


def entropy_of(counts: NDArray[np.int64]) -> float:
    """The entropy in bits of a distribution given as counts."""
    filled = counts[counts > 0]
    if len(filled) < 2:
        return 0.0
    parts = filled / filled.sum()
    return float(-(parts @ np.log2(parts)))


def bind(table: Table, names: Sequence[str], target: str, partition: object) -> dict[str, Blocks]:
    """Bind what the user gave to the columns it speaks of."""
    if partition is None:
        return {}
    per_column = isinstance(partition, Mapping) and _names_columns(table, partition)
    given: Mapping[Any, object] = partition if per_column else {target: partition}  # type: ignore[assignment]
    strange = [str(name) for name in given if name not in names]
    if strange:
        raise InputError(f"The partition names columns that are not used: {', '.join(strange)}.")
    return {
        name: partitioning(blocks).bind(name, table.encode(name).values)
        for name, blocks in given.items()
    }


def _names_columns(table: Table, partition: Mapping[Any, object]) -> bool:
    nested = (Mapping, Partition, Cuts)
    return bool(partition) and all(
        name in table.arrow.column_names and (isinstance(blocks, nested) or _lists(blocks))
        for name, blocks in partition.items()
    )


def _lists(blocks: object) -> bool:
    return (
        isinstance(blocks, Sequence)
        and not isinstance(blocks, str)
        and len(blocks) > 0
        and all(
            isinstance(b, Sequence | set | frozenset) and not isinstance(b, str) for b in blocks
        )
    )


_Column = tuple["NDArray[np.int32]", int, Sequence[object]]


def _column(table: Table, name: str, blocks: Blocks | None) -> _Column:
    """Codes, how many there are, and what each stands for."""
    encoded = table.encode(name)
    if blocks is None:
        return encoded.codes, len(encoded.values), _Lazy(encoded.values)
    return blocks.places[encoded.codes], len(blocks.names), blocks.names


class _Lazy(Sequence[object]):
    """Arrow values that become Python objects one by one."""

    def __init__(self, values: pa.Array) -> None:
        self._values = values

    def __len__(self) -> int:
        return len(self._values)

    def __getitem__(self, place: Any) -> Any:
        return self._values[int(place)].as_py()


def _kept(
    table: Table, names: Sequence[str], suppressed: Suppressed, columns: dict[str, _Column]
) -> NDArray[np.bool_]:
    """Which rows count; stars become missing values where that is asked for."""
    keep = np.ones(len(table), dtype=bool)
    if suppressed == "keep":
        return keep
    for name in dict.fromkeys(names):
        values = table.encode(name).values.to_pylist()
        if STAR not in values:
            continue
        starred = table.encode(name).codes == values.index(STAR)
        if suppressed == "drop":
            keep &= ~starred
        elif None in values:
            codes, size, labels = columns[name]
            columns[name] = (
                np.where(starred, values.index(None), codes).astype(np.int32),
                size,
                labels,
            )
    if not keep.any():
        raise InputError("Every row holds a suppressed cell in these columns: nothing is left.")
    return keep


def _labels(
    columns: Sequence[_Column], y: NDArray[np.int64], keep: NDArray[np.bool_], groups: int
) -> list[object]:
    """What each group is called: its value, or the tuple of its values."""
    first = np.full(groups, -1, dtype=np.int64)
    first[y[::-1]] = np.arange(len(y))[::-1]
    held = [[labels[code] for code in codes[keep][first]] for codes, _, labels in columns]
    return list(held[0]) if len(held) == 1 else list(zip(*held, strict=True))


def _details(found: Measured, labels: list[object]) -> Iterator[ValueRate]:
    total = int(found.sizes.sum())
    for i, label in enumerate(labels):
        count, inside = int(found.sizes[i]), float(found.inside[i])
        share = count / total
        if found.entropy == 0.0:
            rate = alone = found.rate
        else:
            rate = 1.0 - share * inside / found.entropy
            alone = 1.0 - inside / found.entropy
        yield ValueRate(label, rate, count, share, alone, int(found.top[i]) / count)


def _require(table: Table, target: str, names: tuple[str, ...], suppressed: str) -> None:
    if not names:
        raise ParameterError("keys", names, "at least one column")
    known = table.arrow.column_names
    unknown = [str(name) for name in (target, *names) if name not in known]
    if unknown:
        raise InputError(
            f"Unknown columns: {', '.join(unknown)}. The table has {', '.join(known)}."
        )
    if suppressed not in ("keep", "drop", "missing"):
        raise ParameterError("suppressed", suppressed, "keep, drop or missing")
    if not len(table):
        raise InputError("The table has no rows: there is nothing to measure.")
