"""Semantic partitions: which values of a column mean the same to an attacker or an analyst."""

from __future__ import annotations

import os
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from halfmask.errors import HierarchyError, InputError, ParameterError
from halfmask.table.hierarchy import canonical

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class Blocks:
    """A partition bound to a column: the block of each value, the blocks' names, and remarks."""

    places: NDArray[np.int32]
    names: tuple[object, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Partition:
    """Blocks of values that count as one.

    Definition: disjoint, non-empty blocks that together hold every value of the column.
    Source: Sondeck, "Privacy and utility assessment within statistical data bases", 2017, chapter
    5.

    Attributes:
        blocks: block name to the values in it.
        overlap: what to do with a value in two blocks: ``"refuse"``, or take the ``"first"``.
        rest: what to do with a value in none: ``"refuse"``, make it its ``"own"`` block, or put all
            such values ``"together"``.

    Example:
        >>> Partition({"cancer": ["lung", "colon"], "other": ["flu"]}).names
        ('cancer', 'other')
    """

    blocks: Mapping[object, Sequence[object]]
    overlap: Literal["refuse", "first"] = "refuse"
    rest: Literal["refuse", "own", "together"] = "refuse"

    def __post_init__(self) -> None:
        if self.overlap not in ("refuse", "first"):
            raise ParameterError("overlap", self.overlap, "refuse or first")
        if self.rest not in ("refuse", "own", "together"):
            raise ParameterError("rest", self.rest, "refuse, own or together")

    @property
    def names(self) -> tuple[object, ...]:
        """The names of the blocks."""
        return tuple(self.blocks)

    def bind(self, column: str, values: pa.Array) -> Blocks:
        """Give every value of a column its block.

        Raises:
            InputError: blocks are empty, overlap or leave values out; says all of it in counts.
        """
        texts = [canonical(v) for block in self.blocks.values() for v in dict.fromkeys(block)]
        twice = sum(count > 1 for count in Counter(texts).values())
        empty = sum(not len(block) for block in self.blocks.values())
        place: dict[str, int] = {}
        for number, block in enumerate(self.blocks.values()):
            for value in block:
                place.setdefault(canonical(value), number)
        held = [canonical(value) for value in values.to_pylist()]
        absent = [text for text in dict.fromkeys(held) if text not in place]
        faults = []
        if empty:
            faults.append(f"{empty} of its blocks are empty")
        if twice and self.overlap == "refuse":
            faults.append(f'{twice} value(s) stand in several blocks (overlap="first" allows it)')
        if absent and self.rest == "refuse":
            faults.append(
                f'{len(absent)} value(s) of the table stand in no block (rest="own" or '
                'rest="together" makes blocks of them)'
            )
        if faults:
            raise InputError(f"The partition of column {column!r} is none: {'; '.join(faults)}.")
        names: list[object] = list(self.blocks)
        for text in absent:
            place[text] = len(names) - (self.rest == "together" and text != absent[0])
            if place[text] == len(names):
                names.append("rest" if self.rest == "together" else text)
        places = np.array([place[text] for text in held], dtype=np.int32)
        return Blocks(places, tuple(names), self._notes(twice, len(absent)))

    def _notes(self, twice: int, absent: int) -> tuple[str, ...]:
        notes = []
        if twice:
            notes.append(f"{twice} value(s) stood in several blocks; the first was taken.")
        if absent:
            how = "one block together" if self.rest == "together" else "a block of its own each"
            notes.append(f"{absent} value(s) stood in no block and got {how}.")
        return tuple(notes)


@dataclass(frozen=True, slots=True)
class Cuts:
    """Half-open intervals [a, b[ between rising edges; every number must lie in one.

    ``rest`` says what to do with a value that is no number: ``"refuse"``, or make it its ``"own"``
    block, as the missing value always is.

    Example:
        >>> Cuts(0, 10, 20).edges
        (0.0, 10.0, 20.0)
    """

    edges: tuple[float, ...]
    rest: Literal["refuse", "own"]

    def __init__(self, *edges: float, rest: Literal["refuse", "own"] = "refuse") -> None:
        if len(edges) < 2 or any(low >= high for low, high in pairwise(edges)):
            raise ParameterError("edges", len(edges), "at least two rising numbers")
        if rest not in ("refuse", "own"):
            raise ParameterError("rest", rest, "refuse or own")
        object.__setattr__(self, "edges", tuple(float(edge) for edge in edges))
        object.__setattr__(self, "rest", rest)

    def bind(self, column: str, values: pa.Array) -> Blocks:
        """Give every number of a column its interval; the missing value is a block of its own."""
        from halfmask.table.values import are_numbers, numbers_of

        cut = np.asarray(values.is_valid()) if self.rest == "refuse" else are_numbers(values)
        try:
            numbers = numbers_of(column, values.filter(cut)).astype(np.float64)
        except HierarchyError:
            raise InputError(
                f"Column {column!r} cannot be cut: some of its values are no numbers. Give blocks; "
                "rows with suppressed cells can be dropped."
            ) from None
        place = np.searchsorted(self.edges, numbers, side="right") - 1
        outside = int(((place < 0) | (place >= len(self.edges) - 1)).sum())
        if outside:
            raise InputError(
                f"The cuts of column {column!r} leave {outside} value(s) out: the last edge is not "
                "inside; give a larger one, or infinity."
            )
        names: list[object] = [f"[{a:g}, {b:g}[" for a, b in pairwise(self.edges)]
        own = values.filter(~cut).to_pylist()
        places = np.empty(len(values), dtype=np.int32)
        places[cut] = place
        places[~cut] = len(names) + np.arange(len(own))
        names += [None if value is None else canonical(value) for value in own]
        return Blocks(places, tuple(names))


Partitioning = Partition | Cuts


def read_partition(given: object) -> Partitioning:
    """What a user gave as a partition: a mapping, lists of values, or a partition."""
    if isinstance(given, Partition | Cuts):
        return given
    if isinstance(given, Mapping):
        return Partition({name: _block_values(block) for name, block in given.items()})
    if isinstance(given, Sequence) and not isinstance(given, str):
        return Partition({f"block {i + 1}": _block_values(block) for i, block in enumerate(given)})
    raise ParameterError("partition", type(given).__name__, "blocks of values, a Partition or Cuts")


def _block_values(block: object) -> list[object]:
    if isinstance(block, str) or not hasattr(block, "__iter__"):
        raise ParameterError("partition", type(block).__name__, "a list of values for each block")
    return list(block)


def stated_partitions(given: object) -> dict[str, Any]:
    """Partitions by column: a mapping as it is, or read from a file.

    A file has a table per column, with ``cuts`` for numbers, or with ``blocks`` (a table from block
    to values, or a list of lists) and, if wanted, ``overlap`` and ``rest``.

    Raises:
        InputError: the file cannot be read or says something else.
    """
    if given is None:
        return {}
    if isinstance(given, Mapping):
        return {str(name): blocks for name, blocks in given.items()}
    if not isinstance(given, str | os.PathLike):
        raise InputError("Partitions are a mapping from column to blocks, or a TOML file.")
    path = Path(given)
    return {name: stated_partition(name, blocks) for name, blocks in read_toml(path).items()}


def read_toml(path: Path) -> dict[str, Any]:
    """The document in a file.

    Raises:
        InputError: the file cannot be read.
    """
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"The file {path.name!r} cannot be read: {error.strerror}.") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError):
        raise InputError(
            f"The file {path.name!r} is no TOML: see docs/discrimination-rate.md."
        ) from None


def stated_partition(name: str, stated: object) -> Partitioning:
    """The partition of one column, as a file states it."""
    if not isinstance(stated, Mapping) or ("cuts" in stated) == ("blocks" in stated):
        raise InputError(f"The partition of {name!r} needs either cuts or blocks.")
    known = {"cuts"} if "cuts" in stated else {"blocks", "overlap", "rest"}
    strange = sorted(set(stated) - known)
    if strange:
        raise InputError(f"The partition of {name!r} knows no {', '.join(strange)}.")
    if "cuts" in stated:
        edges = stated["cuts"]
        if not isinstance(edges, list) or not all(is_plain_number(edge) for edge in edges):
            raise InputError(f"The cuts of {name!r} are a list of rising numbers (inf is one).")
        return Cuts(*edges)
    blocks = stated["blocks"]
    if isinstance(blocks, list):
        blocks = {f"block {i}": block for i, block in enumerate(blocks, 1)}
    if not isinstance(blocks, Mapping) or not all(isinstance(b, list) for b in blocks.values()):
        raise InputError(f"The blocks of {name!r} are lists of values, with or without names.")
    options = {key: stated[key] for key in ("overlap", "rest") if key in stated}
    return Partition(dict(blocks), **options)


def is_plain_number(value: object) -> bool:
    """Whether a value of a file is a number."""
    return isinstance(value, int | float) and not isinstance(value, bool)
