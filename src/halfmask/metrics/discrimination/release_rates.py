"""What a release still tells as discrimination rates, attack by attack and label by label."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from halfmask.errors import InputError
from halfmask.metrics.discrimination.columns import CodedColumn, code_column, group_rows
from halfmask.metrics.discrimination.partition import Cuts, Partition, Partitioning, read_partition
from halfmask.metrics.discrimination.rate import (
    NEVER_VARIES,
    GroupRates,
    beside_chance,
    group_rates,
)
from halfmask.metrics.sides import ReleasedTuples, pairs_in_order, tightest_class
from halfmask.table.classes import value_facts
from halfmask.table.document import Result
from halfmask.table.hierarchy import canonical
from halfmask.table.table import encode_column
from halfmask.table.tuples import rows_in, tally

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from halfmask.metrics.common_ground import SharedColumn
    from halfmask.metrics.discrimination.rate import KeyKind
    from halfmask.metrics.estimate import Estimate
    from halfmask.metrics.sides import Sides
    from halfmask.table.table import Table
    from halfmask.table.tuples import Counts


_HALF = 0.5  # the share of released rows that must find their people
_MOST_LABELS = 1000  # labels of a column that are listed, those of most rows


def released_column(
    both: Sides, name: str, partition: object = None
) -> tuple[CodedColumn, tuple[str, ...]]:
    """The released rows of a column, in blocks if a partition is given, and remarks.

    Raises:
        InputError: the partition does not fit the values.
    """
    column = both.columns[name]
    if partition is None:
        return CodedColumn(column.after, column.labels, range(column.labels)), ()
    block_of, blocks = _block_of_leaf(both, column, partition)
    held, begins = block_of[column.covered], column.starts[:-1]
    low, high = np.minimum.reduceat(held, begins), np.maximum.reduceat(held, begins)
    place = np.where(low == high, low, blocks + np.arange(column.labels)).astype(np.int32)
    size = blocks + column.labels
    several = int((low != high).sum())
    notes = (
        (f"{several} released label(s) of {name} cover several blocks and stand for themselves.",)
        if several
        else ()
    )
    return CodedColumn(place[column.after], size, range(size)), notes


def _block_of_leaf(
    both: Sides, column: SharedColumn, partition: object
) -> tuple[NDArray[np.int64], int]:
    """The block of each leaf, of the original's values and of those that are new."""
    stated = read_partition(partition)
    own = stated.bind(column.name, both.original.encode(column.name).values)
    block_of = np.empty(column.leaves, dtype=np.int64)
    block_of[: column.known] = own.places
    if column.leaves == column.known:
        return block_of, len(own.names)
    import pyarrow as pa

    fresh = np.flatnonzero(column.covered[column.starts[:-1]] >= column.known)
    values = encode_column(both.rows[column.name]).values.take(pa.array(fresh))
    new = stated.bind(column.name, values)
    number = {block: i for i, block in enumerate(own.names)}
    places = [number.setdefault(block, len(number)) for block in new.names]
    block_of[column.covered[column.starts[:-1][fresh]]] = np.array(places)[new.places]
    return block_of, len(number)


class ReleasedLabels:
    """Which released labels each original row has, as far as the assessor can tell.

    Attributes:
        kept: whether an original row is in the release.
        words: how rows were paired.
    """

    def __init__(self, released: ReleasedTuples, owner: NDArray[np.int64], words: str) -> None:
        self._released, self._owner = released, owner
        self.kept: NDArray[np.bool_] = owner >= 0
        self.words = words

    def labels(self, place: int) -> CodedColumn:
        """The label of each original row in one quasi-identifier; rows left out have their own."""
        column = self._released.columns[place]
        held = self._released.labels[place][self._owner]
        codes = np.where(self.kept, held, column.labels).astype(np.int32)
        return CodedColumn(codes, column.labels + 1, range(column.labels + 1))


def released_labels(both: Sides, *, same_order: bool = False) -> ReleasedLabels | None:
    """Pair original rows with released classes; None where the rows stand for nobody.

    Where the classes that values tell have the published sizes, the pairing follows from the
    values; else rows are taken to stand in the tightest class that covers them.
    """
    released = ReleasedTuples(both.quasi)
    if same_order:
        pairs_in_order(both)
        return ReleasedLabels(released, released.ids, "Rows were paired by their place.")
    if any(column.foreign for column in both.quasi):
        return None
    owner = tightest_class(both.quasi)
    kept = owner >= 0
    counts = both.original_counts
    found = tally(owner[kept], len(released), counts[kept])
    if (found == released.rows).all():
        return ReleasedLabels(released, owner, "Which row became which follows from the values.")
    agree = float(np.minimum(found, released.rows).sum()) / both.after
    if agree < _HALF:
        return None
    return ReleasedLabels(
        released,
        owner,
        f"Labels overlap: each row was taken to have the tightest that cover it, which agrees with "
        f"{agree:.1%} of the published rows: identity is an estimate then.",
    )


_PARTS = 10


def meaning_of(table: Table, column: str, given: object = None) -> Partitioning | None:
    """The partition of a column's values by what they mean; None where nothing tells.

    Definition: the blocks of a given partition; else the labels of the first level of the column's
    hierarchy; else, for numbers, ten equal parts of their range in the original table. Where there
    is none of these, nothing says which values are alike.
    Source: Sondeck, "Privacy and utility assessment within statistical data bases", 2017, chapter
    5; Li et al., "t-closeness: privacy beyond k-anonymity and l-diversity", 2007 (salaries that are
    near).
    """
    if given is not None:
        return read_partition(given)
    facts, declared = value_facts(table, column), table.schema.columns.get(column)
    hierarchy = facts["hierarchy"]
    if hierarchy is not None and hierarchy.height > 1:
        blocks: dict[object, list[object]] = {}
        for value, block in zip(
            facts["labels"].to_pylist(), hierarchy.maps[1].tolist(), strict=True
        ):
            blocks.setdefault(block, []).append(value)
        return Partition(blocks, rest="own")
    if facts["numbers"] is None or (declared is not None and declared.kind == "nominal"):
        return None
    return _parts(facts["numbers"])


def _parts(numbers: NDArray[np.float64]) -> Cuts:
    """Equal parts of the range; what is beyond it belongs to the first or the last."""
    known = numbers[np.isfinite(numbers)]
    inner: list[float] = []
    if len(known) and known.min() < known.max():
        inner = np.unique(np.linspace(known.min(), known.max(), _PARTS + 1)[1:-1]).tolist()
    return Cuts(-np.inf, *inner, np.inf, rest="own")


def original_blocks(
    table: Table, column: str, meaning: Partitioning | None
) -> NDArray[np.int32] | None:
    """The block of each value of the original, by its code."""
    if meaning is None:
        return None
    return meaning.bind(column, table.encode(column).values).places


def released_blocks(
    both: Sides, released: Table, column: str, meaning: Partitioning | None
) -> NDArray[np.int32] | None:
    """The block of each released label, by its code in ``released``."""
    if meaning is None:
        return None
    encoded = released.encode(column)
    blocks = np.zeros(len(encoded.values), dtype=np.int32)
    blocks[encoded.codes] = released_column(both, column, meaning)[0].codes
    return blocks


AttackKind = Literal["identity", "homogeneity", "background", "skewness", "similarity"]


@dataclass(frozen=True, slots=True)
class AttackRate(Result):
    """One attack on one column.

    Attributes:
        attack: identity, homogeneity, background, skewness or similarity.
        target: what is to be learned; ``keys`` from which released columns, jointly.
        rate: the attack's figure; None with a ``reason``.
        before: the same attack on the original; None where it makes no sense there.
        kind: the class of the keys as identifiers; None where the figure is no rate.
        rows: the rows it rests on; ``identified_rows`` those whose labels leave one outcome.
        chance: what shuffled targets give in the release; ``chance_before`` in the original.
    """

    attack: AttackKind
    target: str
    keys: tuple[str, ...]
    rate: float | None
    before: float | None = None
    kind: KeyKind | None = None
    rows: int = 0
    identified_rows: int = 0
    chance: Estimate | None = None
    chance_before: Estimate | None = None
    reason: str = ""


def undefined_as_none(one: AttackRate) -> AttackRate:
    """A figure that is not a number is None, with its reason."""
    before = None if one.before is None or np.isnan(one.before) else one.before
    if one.rate is not None and np.isnan(one.rate):
        return replace(one, rate=None, before=before, reason=NEVER_VARIES)
    return replace(one, before=before)


def information_loss(*attacks: Sequence[float]) -> float:
    """What an anonymization lost overall: the mean over attacks of 1 - the mean of its rates."""
    return float(np.mean([1.0 - float(np.mean(rates)) for rates in attacks]))


_CHANGED = "The released rows are not known to be rows of the original with these sensitive values."
_NO_MEANING = (
    "Nothing says which values mean the same: give a partition, or a hierarchy in the schema."
)
_SHUFFLED = 1_000_000  # rows that are shuffled in all to see what chance gives


def secret_rates(
    both: Sides, secret: str, partition: object, own: ReleasedLabels | None
) -> list[AttackRate]:
    """All attacks on one sensitive column.

    Each is measured for all quasi-identifiers together and for each of them, beside the original.
    """
    quasi = [column.name for column in both.quasi]
    sets = [tuple(quasi)] + ([(name,) for name in quasi] if len(quasi) > 1 else [])
    kept = _released_rows(both, secret, own)
    meaning = meaning_of(both.original, secret, partition)
    return [
        undefined_as_none(one)
        for keys in sets
        for one in _attacks(both, secret, keys, kept, meaning, shuffle=keys == sets[0])
    ]


def _attacks(
    both: Sides,
    secret: str,
    keys: tuple[str, ...],
    kept: NDArray[np.bool_] | None,
    meaning: Partitioning | None,
    *,
    shuffle: bool,
) -> list[AttackRate]:
    old, new = _Knowledge.before(both, keys), _Knowledge.after(both, keys)
    x0, x1 = code_column(both.original, secret), released_column(both, secret)[0]
    before, after = old.measure(x0), new.measure(x1)
    rows = int(after.sizes.sum())
    figures = (after.kind, rows, after.pure_rows)
    chances = (new.chance(x1), old.chance(x0)) if shuffle else (None, None)
    out = [
        AttackRate("homogeneity", secret, keys, after.rate, before.rate, *figures, *chances),
        AttackRate("background", secret, keys, 1 - after.rate, 1 - before.rate, None, rows),
    ]
    if kept is None:
        out.append(AttackRate("skewness", secret, keys, None, reason=_CHANGED))
    else:
        told = before if kept.all() else old.measure(x0, kept)
        out.append(AttackRate("skewness", secret, keys, told.rate - after.rate, None, None, rows))
    if meaning is None:
        out.append(AttackRate("similarity", secret, keys, None, reason=_NO_MEANING))
        return out
    block_of = meaning.bind(secret, both.original.encode(secret).values)
    m0, m1 = code_column(both.original, secret, block_of), released_column(both, secret, meaning)[0]
    before, after = old.measure(m0), new.measure(m1)
    figures = (after.kind, rows, after.pure_rows)
    chances = (new.chance(m1), old.chance(m0)) if shuffle else (None, None)
    out.append(AttackRate("similarity", secret, keys, after.rate, before.rate, *figures, *chances))
    return out


class _Knowledge:
    """What an attacker knows of each row: its group by the keys."""

    def __init__(self, columns: Sequence[CodedColumn], counts: Counts) -> None:
        self.groups, self.count = group_rows(columns)
        self.counts = counts

    @classmethod
    def before(cls, both: Sides, keys: Sequence[str]) -> _Knowledge:
        """The original keys."""
        return cls([code_column(both.original, name) for name in keys], both.original_counts)

    @classmethod
    def after(cls, both: Sides, keys: Sequence[str]) -> _Knowledge:
        """The released keys."""
        return cls([released_column(both, name)[0] for name in keys], both.released_counts)

    def measure(self, x: CodedColumn, kept: NDArray[np.bool_] | None = None) -> GroupRates:
        """How far it tells ``x``, on the rows ``kept``."""
        if kept is None:
            return group_rates(x.codes, x.size, self.groups, self.count, self.counts)
        part = group_rows([CodedColumn(self.groups[kept].astype(np.int32), self.count, ())])
        return group_rates(x.codes[kept], x.size, *part, self.counts[kept])

    def chance(self, x: CodedColumn) -> Estimate | None:
        """What shuffled outcomes give."""
        times = max(3, min(10, _SHUFFLED // rows_in(self.counts)))
        groups = (self.groups, self.count)
        return beside_chance(x.codes, x.size, *groups, self.counts, times).chance


def _released_rows(
    both: Sides, secret: str, own: ReleasedLabels | None
) -> NDArray[np.bool_] | None:
    """The original rows that were released; None where the sensitive values do not bear it out."""
    column = both.columns[secret]
    if column.foreign or int(column.level.max(initial=0)) > 0:
        return None
    value = column.covered[column.starts[:-1]]
    published = tally(value[column.after], column.leaves, both.released_counts)
    counts = both.original_counts
    candidates = [np.ones(len(column.before), dtype=bool)] + ([] if own is None else [own.kept])
    for kept in candidates:
        if (tally(column.before[kept], column.leaves, counts[kept]) == published).all():
            return kept
    return None


_NOBODY = "Which row became which cannot be told: labels are new values or overlap too much."
_RANKED = ("identity", "homogeneity", "similarity")


@dataclass(frozen=True, slots=True)
class AttackLoss:
    """What a release lost by resisting one attack: 1 - the mean of its rates."""

    attack: str
    rate: float | None
    loss: float | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class AbsentValues:
    """How many of a column's values no released label but ``*`` stands for."""

    column: str
    values: int
    absent: int


@dataclass(frozen=True, slots=True)
class Inversion:
    """Where a release tells more than one that was made under a weaker promise."""

    attack: str
    target: str
    keys: tuple[str, ...]
    rate: float
    weaker: float


@dataclass(frozen=True, slots=True)
class ReleaseRates(Result):
    """Every attack that is scored by a discrimination rate.

    Attributes:
        rates: one entry per attack, target and keys.
        losses: per attack, its mean rate and what the release lost.
        loss: the overall information loss; None where a part of it is not known.
        absent: values that are gone, in counts.
        pairing: how original and released rows were paired.
        rows: the released rows that it rests on.
        inversions: where it tells more than a weaker release, if one was given;
            ``weaker_rows`` how many rows that one holds.
    """

    rates: tuple[AttackRate, ...]
    losses: tuple[AttackLoss, ...]
    loss: float | None
    absent: tuple[AbsentValues, ...]
    pairing: str
    rows: int
    inversions: tuple[Inversion, ...] | None = None
    weaker_rows: int | None = None

    def than(self, weaker: ReleaseRates) -> ReleaseRates:
        """The same with all cases in which this release tells more than ``weaker``."""
        others = {(one.attack, one.target, one.keys): one.rate for one in weaker.rates}
        found = []
        for one in self.rates:
            other = others.get((one.attack, one.target, one.keys))
            if one.attack not in _RANKED or one.rate is None or other is None:
                continue
            if one.rate > other + 1e-12:
                found.append(Inversion(one.attack, one.target, one.keys, one.rate, other))
        return replace(self, inversions=tuple(found), weaker_rows=weaker.rows)


def release_rates(
    both: Sides, partitions: Mapping[str, object] | None = None, *, same_order: bool = False
) -> ReleaseRates:
    """Score every attack on a release.

    Definition: identity DR_A(A*) per quasi-identifier; homogeneity DR_S(Y*) per sensitive column,
    of all released quasi-identifiers and of each; background 1 - DR_S(Y*), the information that
    must come from elsewhere; skewness DR_S(Y) - DR_S(Y*); similarity DR_sS(Y*) on a semantic
    partition. The loss of an attack is 1 - its mean rate; overall, the mean of those of identity
    and homogeneity.
    Source: Sondeck, "Privacy and utility assessment within statistical data bases", 2017, ch. 4-5.

    Identity uses the pairing of rows, which the assessor holds and an attacker does not, so that it
    bounds the attacker from above. Rows that were left out count as one label of their own there.

    Args:
        both: the original and the release.
        partitions: per sensitive column, which of its values mean the same; else as
            ``halfmask.metrics.discrimination.release_rates`` says.
        same_order: whether both hold the same people in the same order.

    Raises:
        InputError: a partition speaks of a column that is not sensitive or not released.
    """
    given = dict(partitions or {})
    secrets = [column.name for column in both.sensitive]
    strange = [str(name) for name in given if name not in secrets]
    if strange:
        raise InputError(
            f"Partitions are of sensitive columns that are released; these are none: "
            f"{', '.join(strange)}."
        )
    own = released_labels(both, same_order=same_order)
    rates = list(_identity(both, own))
    for name in secrets:
        rates += secret_rates(both, name, given.get(name), own)
    losses = [_loss("identity", rates)]
    if secrets:
        every = len(both.quasi)
        joint = [one for one in rates if len(one.keys) == every]
        losses += [_loss(attack, joint) for attack in ("homogeneity", "similarity")]
    counted = [one.rate for one in losses if one.attack != "similarity"]
    known = [rate for rate in counted if rate is not None]
    return ReleaseRates(
        tuple(rates),
        tuple(losses),
        information_loss(*([rate] for rate in known)) if len(known) == len(counted) else None,
        tuple(_absent(both)),
        _NOBODY if own is None else own.words,
        both.after,
    )


def _identity(both: Sides, own: ReleasedLabels | None) -> list[AttackRate]:
    """How far each released label gives the original value away."""
    out = []
    for place, column in enumerate(both.quasi):
        keys = (column.name,)
        if own is None:
            out.append(AttackRate("identity", column.name, keys, None, reason=_NOBODY))
            continue
        x, y = code_column(both.original, column.name), own.labels(place)
        found = group_rates(x.codes, x.size, *group_rows([y]), both.original_counts)
        out.append(
            undefined_as_none(
                AttackRate(
                    "identity", column.name, keys, found.rate, 1.0, found.kind,
                    int(found.sizes.sum()), found.pure_rows,
                )
            )
        )  # fmt: skip
    return out


def _loss(attack: str, rates: Sequence[AttackRate]) -> AttackLoss:
    """The mean over what varies; not known where one of the rates is not."""
    mine = [one for one in rates if one.attack == attack and one.kind != "undefined"]
    if not mine:
        return AttackLoss(attack, None, None, "No column that is attacked varies.")
    unknown = [one.reason for one in mine if one.rate is None]
    if unknown:
        return AttackLoss(attack, None, None, unknown[0])
    rate = float(np.mean([one.rate for one in mine if one.rate is not None]))
    return AttackLoss(attack, rate, 1.0 - rate)


def _absent(both: Sides) -> list[AbsentValues]:
    out = []
    for column in both.columns.values():
        narrow = column.sizes < max(column.known, 2)  # not the label of everything
        seen = np.zeros(column.leaves, dtype=bool)
        seen[column.covered[np.repeat(narrow, column.sizes)]] = True
        gone = int((~seen[: column.known]).sum())
        if gone:
            out.append(AbsentValues(column.name, column.known, gone))
    return out


@dataclass(frozen=True, slots=True)
class LabelRate(Result):
    """One published label of one quasi-identifier, under one attack.

    Attributes:
        attack: identity, homogeneity or similarity.
        column: the quasi-identifier; ``label`` what it publishes.
        target: what is to be learned.
        rate: 1 - p(y) H(X | y) / H(X); mostly driven by how rare the label is.
        unweighted: 1 - H(X | y) / H(X), what the label says, however rare; may be negative.
        rows: how many rows have it; ``share`` is p(y).
        top: the largest share of one outcome among these rows.
    """

    attack: AttackKind
    column: str
    label: str
    target: str
    rate: float
    unweighted: float
    rows: int
    share: float
    top: float


def label_rates(
    both: Sides, partitions: Mapping[str, object], *, same_order: bool = False
) -> tuple[LabelRate, ...]:
    """Score each published label of each quasi-identifier.

    Definition: for identity, the original column given its label, on the rows that the assessor can
    pair; for homogeneity, each sensitive column given the label; for similarity, its blocks of
    values that mean the same. The rate of a label y is 1 - p(y) H(X | y) / H(X), so that the gaps
    to 1 add up to that of the column.
    Source: Sondeck, "Privacy and utility assessment within statistical data bases", 2017, tables
    4.5 to 4.7 and 5.6 to 5.8.

    A target that never varies has no rates. Of columns with many labels, the thousand are listed
    that most rows have.
    """
    own = released_labels(both, same_order=same_order)
    out: list[LabelRate] = []
    for place, column in enumerate(both.quasi):
        texts = _label_texts(both, column.name)
        if own is not None:
            x, y = code_column(both.original, column.name), own.labels(place)
            told = (x, y, both.original_counts)
            out += _label_rates("identity", column.name, column.name, texts, *told)
        y, _ = released_column(both, column.name)
        for secret in (one.name for one in both.sensitive):
            x, _ = released_column(both, secret)
            told = (x, y, both.released_counts)
            out += _label_rates("homogeneity", column.name, secret, texts, *told)
            meaning = meaning_of(both.original, secret, partitions.get(secret))
            if meaning is not None:
                x, _ = released_column(both, secret, meaning)
                told = (x, y, both.released_counts)
                out += _label_rates("similarity", column.name, secret, texts, *told)
    return tuple(out)


def _label_texts(both: Sides, name: str) -> list[str]:
    values = encode_column(both.rows[name]).values.to_pylist()
    return ["missing" if one is None else canonical(one) for one in values]


def _label_rates(
    attack: AttackKind,
    column: str,
    target: str,
    texts: list[str],
    x: CodedColumn,
    y: CodedColumn,
    counts: Counts,
) -> Iterator[LabelRate]:
    groups, count = group_rows([y])
    found = group_rates(x.codes, x.size, groups, count, counts)
    if found.entropy == 0.0:
        return
    label = np.zeros(count, dtype=np.int64)
    label[groups] = y.codes
    total = int(found.sizes.sum())
    listed = np.flatnonzero(label < len(texts))  # rows that were left out have a label of their own
    for one in listed[np.argsort(-found.sizes[listed], kind="stable")][:_MOST_LABELS].tolist():
        rows, gain = int(found.sizes[one]), float(found.inside[one]) / found.entropy
        yield LabelRate(
            attack, column, texts[label[one]], target, 1.0 - rows / total * gain, 1.0 - gain, rows,
            rows / total, float(found.top[one]) / rows,
        )  # fmt: skip
