"""Partially synthetic and hybrid tables: columns drawn from a model of the others, or of groups.

Definition: partly synthetic: a tree cuts the people by the other columns, and a value is drawn from
    those of a leaf, once or m times. With q and u the estimate and its variance in each draw, the
    estimate is the mean of q, its variance mean(u) + var(q) / m, with (m - 1)(1 + mean(u) m /
    var(q))^2 degrees of freedom. Hybrid: groups of at least k people get synthetic rows that have
    the same means and the same covariances, by a random rotation that keeps both.
Source: Reiter, "Inference for partially synthetic, public use microdata sets", 2003; Reiter, "Using
    CART to generate partially synthetic public use microdata", 2005; Domingo-Ferrer and
    Gonzalez-Nicolas, "Hybrid microdata using microaggregation", 2010.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa

from halfmask.errors import InputError, ParameterError, UnsatisfiableError
from halfmask.masking.mask import (
    MaskStep,
    MaskWords,
    Outcome,
    plain_type,
    register_mask,
    some_columns,
)
from halfmask.masking.microaggregation import Microaggregate
from halfmask.masking.numbers import Numbers, numbers_in
from halfmask.masking.trees import bin_edges, grow_tree, scored_bins
from halfmask.models.verdict import whole_number
from halfmask.release.masked import DrawClaim
from halfmask.table.values import is_number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from halfmask.masking.mask import Rows
    from halfmask.masking.trees import Tree
    from halfmask.release.masked import MaskedRelease
    from halfmask.table.table import Encoded, Table

    Bools = NDArray[np.bool_]
    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

_FEWEST = 3  # rows of a group: two can only stay or change places
_MOST = 100  # draws of a table


@register_mask
@dataclass(frozen=True, slots=True)
class PartlySynthetic(MaskStep):
    """Replace columns by draws from what the other columns let expect.

    The first column is drawn given ``given`` (default: all other columns that leave), each further
    one given the drawn ones too. With ``draws`` above 1 the further draws leave as ``income_2``,
    ``income_3`` beside ``income``: ``draw_tables`` makes a table of each, ``combine_estimates``
    one estimate of all. ``k`` people share a leaf; a category that fewer hold, or a number beyond
    which fewer stand, is not drawn. Missing stays missing.

    Example:
        >>> import halfmask as hm
        >>> people = hm.read({"age": list(range(20, 60)), "pay": list(range(40))},
        ...                  schema={"age": "quasi", "pay": "sensitive"})
        >>> release = hm.mask(people, hm.masks.PartlySynthetic("pay", k=5, draws=2))
        >>> release.to_arrow().column_names
        ['age', 'pay', 'pay_2']
    """

    name: ClassVar[str] = "partly-synthetic"
    words: ClassVar[MaskWords] = MaskWords(
        "Values are drawn from a model of the other columns.",
        "Telling a person's own value: the one shown is drawn from those of at least k people who "
        "are alike.",
        "What all people who are alike have in common, and the columns that are not drawn.",
    )

    columns: tuple[str, ...] | str = field(metadata=some_columns())
    given: tuple[str, ...] | str | None = field(default=None, metadata=some_columns(changed=False))
    k: int = field(default=10, metadata=whole_number(2))
    draws: int = field(default=1, metadata=whole_number(1))

    def require(self) -> None:
        """Refuse draws without end."""
        if self.draws > _MOST:
            raise ParameterError("draws", self.draws, f"at most {_MOST}")

    def faults(self, table: Table) -> list[str]:
        """Refuse names that are taken, and columns given that never leave."""
        taken = [
            name
            for column in self.columns
            for name in copies_of(column, self.draws)
            if name in table.arrow.column_names
        ]
        found = [f"there is a column '{name}' already: rename it." for name in taken[:1]]
        hidden = [name for name in self.given or () if name in table.schema.private]
        return found + [
            f"column '{name}' never leaves, so nothing is drawn from it." for name in hidden
        ]

    def apply(self, rows: Rows) -> Outcome:
        """Draw the columns, all of them once per draw."""
        owner, people = rows.people()
        most = int(np.bincount(owner, minlength=people).max(initial=1))
        known = {name: _read(rows.table, name) for name in self._given(rows.table)}
        drawn = [_Source(_read(rows.table, name), owner, self.k, name) for name in self.columns]
        models: list[_Drawing] = []
        for place, one in enumerate(drawn):
            before = {d.name: d.column for d in drawn[:place]}
            models.append(_Drawing.learn(one, {**known, **before}, self.k * most))
        out: dict[str, Any] = {}
        for draw in range(self.draws):
            made: dict[str, Numbers | Encoded] = {}
            for one, model in zip(drawn, models, strict=True):
                made[one.name] = model.draw(made, rows.random)
                target = one.name if not draw else copies_of(one.name, self.draws)[draw - 1]
                out[target] = one.back(made[one.name])
        claims = tuple(
            DrawClaim(name, copies_of(name, self.draws), self.k) for name in self.columns
        )
        return Outcome(out, claims=claims, facts={"leaves": [m.tree.leaves for m in models]})

    def _given(self, table: Table) -> tuple[str, ...]:
        if self.given is not None:
            return tuple(name for name in self.given if name not in self.columns)
        hidden = {*table.schema.private, *self.columns}
        return tuple(name for name in table.arrow.column_names if name not in hidden)


def copies_of(column: str, draws: int) -> tuple[str, ...]:
    """The names of the draws after the first."""
    return tuple(f"{column}_{place}" for place in range(2, draws + 1))


def _read(table: Table, name: str) -> Numbers | Encoded:
    """A column as numbers where it holds numbers or moments without an order, else as codes."""
    kind, declared = plain_type(table.arrow[name].type), table.schema.columns.get(name)
    moments = pa.types.is_date(kind) or pa.types.is_timestamp(kind)
    if (is_number(kind) or moments) and (declared is None or declared.order is None):
        return numbers_in(table, name)
    return table.encode(name)


class _Source:
    """A column that is drawn: which of its values may be, and whose rows they stand in."""

    def __init__(self, column: Numbers | Encoded, owner: Ints, k: int, name: str) -> None:
        self.name, self.column = name, column
        if isinstance(column, Numbers):
            self.there = column.there
            low, high = _inner_bounds(column.values, owner, self.there, k)
            with np.errstate(invalid="ignore"):
                self.donors = self.there & (column.values >= low) & (column.values <= high)
            self.common = (
                _held_by(np.unique(column.values, return_inverse=True)[1].reshape(-1), owner) >= k
            )
        else:
            self.there = column.codes < len(column.values.drop_null())
            self.donors = self.there & (_held_by(column.codes.astype(np.int64), owner) >= k)
            self.common = self.donors
        if len(np.unique(owner[self.donors])) < k:
            raise UnsatisfiableError(
                f"partly-synthetic: fewer than {k} people hold values of column '{name}' that as "
                "many others hold: group its values first, or ask for a smaller k."
            )

    def back(self, drawn: Numbers | Encoded) -> pa.Array:
        """What was drawn as values of the column's type."""
        if isinstance(drawn, Numbers):
            return drawn.back(drawn.values)
        return drawn.values.take(pa.array(drawn.codes))


def _held_by(codes: Ints, owner: Ints) -> Ints:
    """Per row, how many people hold its value."""
    many = int(owner.max(initial=0)) + 1
    pairs = np.unique(codes * many + owner)
    return np.bincount(pairs // many, minlength=int(codes.max(initial=0)) + 1)[codes]


def _inner_bounds(values: Floats, owner: Ints, there: Bools, k: int) -> tuple[float, float]:
    """The numbers below and above which fewer than ``k`` people stand."""
    size = int(owner.max(initial=0)) + 1
    low, high = np.full(size, np.inf), np.full(size, -np.inf)
    np.minimum.at(low, owner[there], values[there])
    np.maximum.at(high, owner[there], values[there])
    low, high = np.sort(low[np.isfinite(low)]), np.sort(high[np.isfinite(high)])[::-1]
    if len(low) < k:
        return np.inf, -np.inf
    return float(low[k - 1]), float(high[k - 1])


@dataclass(frozen=True, slots=True, eq=False)
class _Drawing:
    """A tree over other columns, with the donors of each leaf."""

    source: _Source
    tree: Tree
    bins: dict[str, Any]
    block: NDArray[np.uint8]
    donors: Ints
    starts: Ints

    @classmethod
    def learn(cls, source: _Source, given: dict[str, Any], least: int) -> _Drawing:
        """Grow the tree on rows whose values may be drawn, and sort these by leaf."""
        places = np.flatnonzero(source.donors)
        column = source.column
        if isinstance(column, Numbers):
            target, classes = _ranks(column.values[places]), 0
        else:
            target, classes = column.codes[places].astype(np.float64), len(column.values)
        bins: dict[str, Any] = {}
        score = _ranks(target)
        for name, one in given.items():
            if isinstance(one, Numbers):
                bins[name] = bin_edges(one.values[places])
            else:
                bins[name] = scored_bins(one.codes[places], score, len(one.values))
        block = np.zeros((max(len(bins), 1), len(source.donors)), np.uint8)
        _put_bins(block, bins, given)
        tree = grow_tree(block[:, places], target, classes, least)
        leaf = tree.leaf_of(block[:, places])
        if isinstance(column, Numbers):
            order = np.lexsort((column.values[places], leaf))
        else:
            order = np.argsort(leaf, kind="stable")
        starts = np.searchsorted(leaf[order], np.arange(tree.leaves + 1))
        return cls(source, tree, bins, block, places[order], starts)

    def draw(self, made: dict[str, Any], random: np.random.Generator) -> Numbers | Encoded:
        """A value for each row that has one, from its leaf, by what was drawn before it."""
        _put_bins(self.block, self.bins, made)
        rows = np.flatnonzero(self.source.there)
        leaf = self.tree.leaf_of(self.block[:, rows])
        first, last = self.starts[leaf], self.starts[leaf + 1]
        at = first + np.floor(random.random(len(rows)) * (last - first)).astype(np.int64)
        at = np.minimum(at, last - 1)
        column = self.source.column
        if not isinstance(column, Numbers):
            codes = column.codes.astype(np.int64)
            codes[rows] = column.codes[self.donors[at]]
            return replace(column, codes=codes.astype(column.codes.dtype))
        values = column.values.copy()
        mine = column.values[self.donors[at]]
        beside = np.where(at + 1 < last, at + 1, np.maximum(at - 1, first))
        near = column.values[self.donors[beside]]
        # A number of many people is drawn as it is, one of few lies between it and the next.
        moved = mine + random.random(len(rows)) * (near - mine)
        moved = np.clip(moved, np.minimum(mine, near), np.maximum(mine, near))  # rounding errors
        values[rows] = np.where(self.source.common[self.donors[at]], mine, moved)
        return replace(column, values=values)


def _ranks(values: Floats) -> Floats:
    """Ranks from 0 to 1, equal values sharing one: an outlier weighs no more than anybody."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    middle = (np.cumsum(counts) - counts / 2) / max(len(values), 1)
    found: Floats = middle[place.reshape(-1)]
    return found


def _put_bins(block: NDArray[np.uint8], bins: dict[str, Any], given: dict[str, Any]) -> None:
    """Write the bins of the columns ``given``, each into its row of ``block``."""
    for place, (name, edges) in enumerate(bins.items()):
        one = given.get(name)
        if isinstance(one, Numbers):  # NaN is above every edge
            block[place] = np.searchsorted(edges, one.values, "left")
        elif one is not None:
            block[place] = edges[one.codes]


def draw_tables(release: MaskedRelease) -> list[pa.Table]:
    """One table for each draw of a release by ``PartlySynthetic``, all with the same columns.

    Raises:
        InputError: nothing was drawn.
    """
    steps = [step for step in release.steps if step["mask"] == PartlySynthetic.name]
    if not steps:
        raise InputError("The release has no draws: mask it with hm.masks.PartlySynthetic.")
    rows = release.to_arrow()
    copies = {name: copies_of(name, step["draws"]) for step in steps for name in step["columns"]}
    added = {name for names in copies.values() for name in names}
    first = rows.select([name for name in rows.column_names if name not in added])
    tables = [first]
    for place in range(max(len(names) for names in copies.values())):
        table = first
        for name, names in copies.items():
            if place < len(names):
                table = table.set_column(table.column_names.index(name), name, rows[names[place]])
        tables.append(table)
    return tables


@dataclass(frozen=True, slots=True)
class CombinedEstimate:
    """One estimate from several draws.

    Attributes:
        estimate: the mean of the estimates.
        variance: its variance, that between draws included.
        degrees: degrees of freedom of Student's t; infinite where the draws agree.
        low: of the interval.
        high: of the interval.
    """

    estimate: float
    variance: float
    degrees: float
    low: float
    high: float


def combine_estimates(
    estimates: Sequence[float], variances: Sequence[float], *, level: float = 0.95
) -> CombinedEstimate:
    """Combine what each draw of a partially synthetic table gives, by Reiter's rules.

    Args:
        estimates: of the same quantity, one from each draw.
        variances: the variance of each, as if its draw were real.
        level: of the interval.

    Example:
        >>> found = combine_estimates([9.0, 10.0, 11.0], [4.0, 4.0, 4.0])
        >>> found.estimate, round(found.variance, 4), round(found.degrees, 4)
        (10.0, 4.3333, 338.0)
    """
    q, u = np.asarray(estimates, dtype=np.float64), np.asarray(variances, dtype=np.float64)
    if q.ndim != 1 or q.shape != u.shape or len(q) < 2:
        raise InputError("Give one estimate and one variance for each of at least two draws.")
    if not (np.isfinite(q).all() and np.isfinite(u).all()) or np.any(u < 0):
        raise InputError("Estimates are finite, and variances are not negative.")
    if not 0 < level < 1:
        raise ParameterError("level", level, "a number between 0 and 1")
    from scipy.stats import t as student

    m = len(q)
    between, within = float(q.var(ddof=1)) / m, float(u.mean())
    middle, variance = float(q.mean()), within + between
    degrees = (m - 1) * (1 + within / between) ** 2 if between else float("inf")
    half = float(student.ppf((1 + level) / 2, degrees)) * variance**0.5
    return CombinedEstimate(middle, variance, degrees, middle - half, middle + half)


@register_mask
@dataclass(frozen=True, slots=True)
class Hybrid(MaskStep):
    """Replace the rows of groups of at least ``k`` people by synthetic ones.

    Each group keeps its means and covariances exactly, up to the rounding of whole numbers;
    so do all rows together. Groups are those of ``Microaggregate``, people's own k included.

    Example:
        >>> import halfmask as hm
        >>> people = hm.read({"age": [20.0, 21.0, 25.0, 60.0, 62.0, 67.0]}, schema={"age": "quasi"})
        >>> rows = hm.mask(people, hm.masks.Hybrid("age", k=3)).to_arrow()
        >>> round(sum(rows["age"].to_pylist()), 6)
        255.0
    """

    name: ClassVar[str] = "hybrid"
    words: ClassVar[MaskWords] = MaskWords(
        "Groups of people get synthetic rows with the same means and covariances.",
        "Matching people by exact figures: within a group no row is anybody's.",
        "That a person is near a group, whose spread is told; nobody shares a row with others.",
    )

    columns: tuple[str, ...] | str = field(metadata=some_columns("numbers"))
    k: int = field(metadata=whole_number(_FEWEST))

    def apply(self, rows: Rows) -> Outcome:
        """Group the rows and turn each group around its middle."""
        grouped = Microaggregate(self.columns, self.k).grouped(rows)
        block = np.array([np.where(one.there, one.values, 0.0) for one in grouped.columns]).T
        made = _turned(block, grouped.group, rows.random)
        out = {}
        for place, one in enumerate(grouped.columns):
            there = one.there & (grouped.group >= 0)
            out[one.name] = replace(one, there=there).back(made[:, place])
        sizes = np.bincount(grouped.group[grouped.group >= 0])
        facts = {"groups": len(sizes), "smallest": int(sizes.min())}
        return Outcome(out, facts=facts, notes=grouped.notes)


def _turned(block: Floats, group: Ints, random: np.random.Generator) -> Floats:
    """The rows of each group turned at random around their mean; groups of one size together."""
    out = block.copy()
    order = np.flatnonzero(group >= 0)
    order = order[np.argsort(group[order], kind="stable")]
    sizes = np.bincount(group[order])
    starts = np.cumsum(sizes) - sizes
    for size in np.unique(sizes[sizes > 0]).tolist():
        begins = starts[sizes == size]
        for part in np.array_split(begins, max(1, len(begins) * size // 500_000)):
            members = order[part[:, None] + np.arange(size)]
            points = block[members]
            middle = points.mean(axis=1, keepdims=True)
            out[members] = middle + _rotated(points - middle, random)
    return out


def _rotated(centered: Floats, random: np.random.Generator) -> Floats:
    """Points with the same products of columns and column sums of 0, else at random."""
    groups, size, columns = centered.shape
    _, lengths, directions = np.linalg.svd(centered, full_matrices=False)
    rank = min(size - 1, columns)
    frame = random.standard_normal((groups, size, rank))
    frame -= frame.mean(axis=1, keepdims=True)
    turned, upper = np.linalg.qr(frame)
    # The signs that make every direction as likely as any other.
    turned *= np.sign(np.diagonal(upper, axis1=1, axis2=2))[:, None, :]
    found: Floats = turned @ (lengths[:, :rank, None] * directions[:, :rank])
    return found
