"""Partially synthetic and hybrid tables: columns drawn from a model of the others, or of groups.

Definition: partly synthetic: a tree cuts the people by the other columns, and a value is drawn from
    those of a leaf, once or m times. With q and u the estimate and its variance in each draw, the
    estimate is the mean of q, its variance mean(u) + var(q) / m, with (m - 1)(1 + mean(u) m /
    var(q))^2 degrees of freedom. Hybrid: groups of at least k people get synthetic rows that have
    the same means and the same covariances, by a random rotation that keeps both, once or m times.
    A node of a tree is cut in two along one column where that explains most of what differs in the
    target (squares of ranks of numbers, Gini's index of categories), while both parts keep as many
    rows as asked for.
Source: Reiter, "Inference for partially synthetic, public use microdata sets", 2003; Reiter, "Using
    CART to generate partially synthetic public use microdata", 2005; Domingo-Ferrer and
    Gonzalez-Nicolas, "Hybrid microdata using microaggregation", 2010; Breiman, Friedman, Olshen and
    Stone, "Classification and regression trees", 1984.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa

from halfmask.errors import InputError, ParameterError, UnsatisfiableError
from halfmask.masking.methods.microaggregation import Microaggregate
from halfmask.masking.numeric_columns import Numbers, numbers_in
from halfmask.masking.step import (
    MaskStep,
    MaskWords,
    Outcome,
    known_columns,
    register_mask,
    some_columns,
    value_type,
)
from halfmask.models.verdict import whole_number
from halfmask.release.doors.claims import CopyClaim, DrawClaim
from halfmask.table.values import is_number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from halfmask.masking.step import Rows
    from halfmask.release.doors.masked import MaskedRelease
    from halfmask.table.table import Encoded, Table

    Bins = NDArray[np.uint8]
    Bools = NDArray[np.bool_]
    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

_FEWEST = 3  # rows of a group: two can only stay or change places
_MOST = 100  # draws of a table
_BINS = 32  # of a column: cuts lie between them
_CLASSES = 12  # categories that cuts tell apart; the others count as one
_DEPTH = 8
_SAMPLE = 50_000  # rows that bins are found from
_GAIN = 0.002  # of what differs in a node, that a cut must explain


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
        _require_end(self.draws)

    def faults(self, table: Table) -> list[str]:
        """Refuse names that are taken, and columns given that never leave."""
        found = _taken_names(table, self.columns, self.draws)
        hidden = [name for name in self.given or () if name in table.schema.private]
        return found + [
            f"column '{name}' never leaves, so nothing is drawn from it." for name in hidden
        ]

    def apply(self, rows: Rows) -> Outcome:
        """Draw the columns, all of them once per draw."""
        owner, people = rows.people()
        most = int(np.bincount(owner, minlength=people).max(initial=1))
        known = {
            name: _read(rows.table, name)
            for name in known_columns(self.given, self.columns, rows.table)
        }
        drawn = [_Source(_read(rows.table, name), owner, self.k, name) for name in self.columns]
        models: list[_Drawing] = []
        for place, one in enumerate(drawn):
            before = {d.name: d.column for d in drawn[:place]}
            # So many rows in a leaf are sure to be of k people.
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


def copies_of(column: str, draws: int) -> tuple[str, ...]:
    """The names of the draws after the first."""
    return tuple(f"{column}_{place}" for place in range(2, draws + 1))


def _require_end(draws: int) -> None:
    if draws > _MOST:
        raise ParameterError("draws", draws, f"at most {_MOST}")


def _taken_names(table: Table, columns: Sequence[str], draws: int) -> list[str]:
    """What is wrong with the names that further draws would have."""
    names = [name for column in columns for name in copies_of(column, draws)]
    taken = [name for name in names if name in table.arrow.column_names]
    return [f"there is a column '{name}' already: rename it." for name in taken[:1]]


def _read(table: Table, name: str) -> Numbers | Encoded:
    """A column as numbers where it holds numbers or moments without an order, else as codes."""
    kind, declared = value_type(table.arrow[name].type), table.schema.columns.get(name)
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
                _people_of_values(
                    np.unique(column.values, return_inverse=True)[1].reshape(-1), owner
                )
                >= k
            )
        else:
            self.there = column.codes < len(column.values.drop_null())
            self.donors = self.there & (
                _people_of_values(column.codes.astype(np.int64), owner) >= k
            )
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


def _people_of_values(codes: Ints, owner: Ints) -> Ints:
    """Per row, how many people hold its value."""
    many = int(owner.max(initial=0)) + 1
    if many == len(owner):  # one row each
        return np.bincount(codes)[codes]
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
    tree: CutTree
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
        score = _ranks(target) if classes else target
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
            # By number inside each leaf: a draw may lie between a number and the next.
            order = np.argsort(column.values[places])
        else:
            order = np.arange(len(places))
        narrow = leaf.astype(np.min_scalar_type(tree.leaves))  # sorts faster
        order = order[np.argsort(narrow[order], kind="stable")]
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
    """One table for each draw of ``PartlySynthetic`` and ``Hybrid``, all with the same columns.

    Raises:
        InputError: nothing was drawn.
    """
    steps = [s for s in release.steps if s["mask"] in (PartlySynthetic.name, Hybrid.name)]
    if not steps:
        raise InputError(
            "The release has no draws: mask it with hm.masks.PartlySynthetic or hm.masks.Hybrid."
        )
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
    """Combine what each draw of a partially synthetic or hybrid table gives, by Reiter's rules.

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
    so do all rows together. Groups are those of ``Microaggregate``, people's own k included. With
    ``draws`` above 1 the further draws, of the same groups, leave as ``age_2``, ``age_3`` beside
    ``age``, for ``draw_tables`` and ``combine_estimates``; the more, the closer their average comes
    to the mean of a person's group.

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
    draws: int = field(default=1, metadata=whole_number(1))

    def require(self) -> None:
        """Refuse draws without end."""
        _require_end(self.draws)

    def faults(self, table: Table) -> list[str]:
        """Refuse names that are taken."""
        return _taken_names(table, self.columns, self.draws)

    def apply(self, rows: Rows) -> Outcome:
        """Group the rows and turn each group around its middle, once per draw."""
        grouped = Microaggregate(self.columns, self.k).form_groups(rows, self.name)
        block = np.array([np.where(one.there, one.values, 0.0) for one in grouped.columns]).T
        out: dict[str, Any] = {}
        for draw in range(self.draws):
            made = _turn(block, grouped.group, rows.random)
            for place, one in enumerate(grouped.columns):
                there = one.there & (grouped.group >= 0)
                target = one.name if not draw else copies_of(one.name, self.draws)[draw - 1]
                out[target] = replace(one, there=there).back(made[:, place])
        copies = {name: copies_of(name, self.draws) for name in self.columns}
        claims = tuple(CopyClaim(name, more) for name, more in copies.items() if more)
        sizes = np.bincount(grouped.group[grouped.group >= 0])
        facts = {"groups": len(sizes), "smallest": int(sizes.min())}
        return Outcome(out, claims=claims, facts=facts, notes=grouped.notes)


def _turn(block: Floats, group: Ints, random: np.random.Generator) -> Floats:
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
            out[members] = middle + _rotate(points - middle, random)
    return out


def _rotate(centered: Floats, random: np.random.Generator) -> Floats:
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


def bin_edges(values: Floats) -> Floats:
    """Numbers that cut a column into bins of like size; NaN stands above all of them."""
    held = values[~np.isnan(values)]
    held = held[:: max(1, len(held) // _SAMPLE)]
    if not len(held):
        return np.zeros(0)
    found: Floats = np.unique(np.quantile(held, np.arange(1, _BINS - 1) / (_BINS - 1)))
    return found


def scored_bins(codes: NDArray[Any], score: Floats, size: int) -> Bins:
    """A bin for each category, those with like mean scores side by side."""
    counts = np.bincount(codes, minlength=size)
    means = np.bincount(codes, score, minlength=size) / np.maximum(counts, 1)
    order = np.argsort(means, kind="stable")
    if size <= _BINS:
        place = np.arange(size)
    else:
        before = np.cumsum(counts[order]) - counts[order]
        place = before * _BINS // max(int(counts.sum()) + 1, 1)
    out = np.zeros(max(size, 1), np.uint8)
    out[order] = place
    return out


@dataclass(frozen=True, slots=True, eq=False)
class CutTree:
    """Cuts level by level.

    Attributes:
        column: per node the column that it is cut along; -1 in a leaf.
        edge: per node the last bin that goes to its first part.
        first: per node its first part, the second being the next one; in a leaf, its number.
        leaves: how many leaves there are.
    """

    column: Ints
    edge: Ints
    first: Ints
    leaves: int

    def leaf_of(self, block: Bins) -> Ints:
        """The leaf of each row, whose bins are a column of ``block``."""
        node = np.zeros(block.shape[1], np.int64)
        places = np.arange(block.shape[1])
        for _ in range(_DEPTH):
            inner = np.flatnonzero(self.column[node] >= 0)
            if not len(inner):
                break
            at = node[inner]
            beyond = block[self.column[at], places[inner]] > self.edge[at]
            node[inner] = self.first[at] + beyond
        return self.first[node]


def grow_tree(block: Bins, target: Floats, classes: int, least: int) -> CutTree:
    """Grow a tree whose leaves hold at least ``least`` rows each.

    Args:
        block: the bins of each row, one column a row of it.
        target: what the leaves should agree on: numbers, or codes of ``classes`` categories.
        classes: how many categories there are; 0 where the target is a number.
        least: rows of a leaf.
    """
    labels = _frequent(target.astype(np.int64), classes) if classes else None
    kinds = 0 if labels is None else int(labels.max(initial=0)) + 1
    column, edge, first = [-1], [0], [0]
    node = np.zeros(block.shape[1], np.int64)
    open_ = np.array([0])
    for _ in range(_DEPTH):
        place = np.full(len(column), -1)
        place[open_] = np.arange(len(open_))
        rows = np.flatnonzero(place[node] >= 0)
        if not len(rows):
            break
        inside = place[node[rows]]
        best = np.zeros(len(open_))
        along, at = np.full(len(open_), -1), np.zeros(len(open_), np.int64)
        for c in range(len(block)):
            gain, cut = _best_cut(
                inside, block[c, rows], target[rows],
                None if labels is None else labels[rows], len(open_), kinds, least,
            )  # fmt: skip
            better = gain > best
            best[better], along[better], at[better] = gain[better], c, cut[better]
        opened = []
        for i in np.flatnonzero(along >= 0).tolist():
            mine = int(open_[i])
            column[mine], edge[mine], first[mine] = int(along[i]), int(at[i]), len(column)
            opened += [len(column), len(column) + 1]
            column += [-1, -1]
            edge += [0, 0]
            first += [0, 0]
        cut_at = along[inside] >= 0
        moved = rows[cut_at]
        owner = inside[cut_at]
        beyond = block[along[owner], moved] > at[owner]
        node[moved] = np.array(first)[node[moved]] + beyond
        open_ = np.array(opened, np.int64)
        if not len(open_):
            break
    columns, numbers = np.array(column), np.array(first)
    leaves = np.flatnonzero(columns < 0)
    numbers[leaves] = np.arange(len(leaves))
    return CutTree(columns, np.array(edge), numbers, len(leaves))


def _frequent(codes: Ints, classes: int) -> Ints:
    """The most frequent categories numbered, the others together."""
    counts = np.bincount(codes, minlength=classes)
    order = np.argsort(-counts, kind="stable")
    number = np.empty(classes, np.int64)
    number[order] = np.minimum(np.arange(classes), _CLASSES - 1)
    return number[codes]


def _best_cut(
    node: Ints, bins: Bins, target: Floats, labels: Ints | None, nodes: int, kinds: int, least: int
) -> tuple[Floats, Ints]:
    """Per node what the best cut along one column explains, and the last bin before it."""
    wide = int(bins.max(initial=0)) + 1
    key = node * wide + bins
    counts = np.bincount(key, minlength=nodes * wide).reshape(nodes, wide)
    if labels is None:
        sums = np.bincount(key, target, nodes * wide).reshape(nodes, wide, 1)
        spread = np.bincount(node, target**2, nodes)
    else:
        sums = np.bincount(key * kinds + labels, minlength=nodes * wide * kinds)
        sums = sums.reshape(nodes, wide, kinds).astype(np.float64)
        spread = counts.sum(axis=1).astype(np.float64)
    before, left = np.cumsum(counts, axis=1), np.cumsum(sums, axis=1)
    after, right = before[:, -1:] - before, left[:, -1:] - left
    allowed = (before >= least) & (after >= least)
    with np.errstate(divide="ignore", invalid="ignore"):
        explained = (left**2).sum(axis=2) / before + (right**2).sum(axis=2) / after
    whole = (left[:, -1] ** 2).sum(axis=1) / np.maximum(before[:, -1], 1)
    gain = np.where(allowed, explained - whole[:, None], 0.0)
    cut = gain.argmax(axis=1)
    found = gain[np.arange(nodes), cut]
    return np.where(found > _GAIN * np.maximum(spread - whole, 1e-12), found, 0.0), cut
