"""What a masking step claims of the rows that leave, found again by code it does not share.

Each claim holds its rows, and refuses where they are not what the step says.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfmask.errors import InternalError, PrivacyError
from halfmask.models.blank_cells import WildcardAnonymity, people_alike, people_of
from halfmask.release.doors.responses import ResponseClaim
from halfmask.release.labels import encode_labels
from halfmask.table.hierarchies.arx_csv import Csv
from halfmask.table.hierarchies.tree import Tree
from halfmask.table.hierarchy import TOP, canonical, flat
from halfmask.table.table import encode_column
from halfmask.table.values import is_continuous

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from halfmask.table.table import Table

    Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class AnatomyClaim:
    """Claims that a sensitive column leaves apart, by groups of at least ``l`` values."""

    l: int  # noqa: E741 - the literature's name
    column: str
    group: str

    @property
    def words(self) -> str:
        """What is claimed."""
        return (
            f"no value of '{self.column}' makes up more than 1 in {self.l} rows of a group, and "
            "groups are all that joins it to the rows"
        )

    def verify(self, rows: Table, tables: Mapping[str, pa.Table], original: Table) -> None:  # noqa: ARG002
        """Demand it of the rows and the table beside them."""
        beside = tables.get(self.column)
        names = rows.arrow.column_names
        if beside is None or self.column in names or self.group not in names:
            raise InternalError("A sensitive column would leave beside its rows.")
        groups = rows.arrow[self.group].to_numpy()
        if beside.column_names != [self.group, self.column, "count"]:
            raise InternalError("The table of sensitive values has other columns than it should.")
        sizes = np.bincount(groups, minlength=int(groups.max(initial=-1)) + 1)
        totals = np.zeros_like(sizes)
        owner, count = beside[self.group].to_numpy(), beside["count"].to_numpy()
        if len(owner) and (owner.min() < 0 or owner.max() >= len(sizes)):
            raise PrivacyError("A later step took rows of a group away: use Anatomy last.")
        np.add.at(totals, owner, count)
        if not np.array_equal(totals, sizes):
            raise PrivacyError("A later step took rows of a group away: use Anatomy last.")
        if np.any(count * self.l > sizes[owner]):
            raise InternalError(f"A group has fewer than {self.l} values; nothing was released.")


@dataclass(frozen=True, slots=True)
class BucketClaim(AnatomyClaim):
    """Claims that the values of a column stand in random order inside buckets of ``l`` values."""

    @property
    def words(self) -> str:
        """What is claimed."""
        return (
            f"no value of '{self.column}' makes up more than 1 in {self.l} rows of a bucket, "
            "inside which rows and values stand in random order"
        )

    def verify(self, rows: Table, tables: Mapping[str, pa.Table], original: Table) -> None:  # noqa: ARG002
        """Demand it of the rows that leave."""
        if not {self.column, self.group} <= set(rows.arrow.column_names):
            raise InternalError("A column of buckets does not leave.")
        block = np.array(
            [encode_column(rows.arrow[name]).codes for name in (self.group, self.column)]
        ).T.astype(np.int64)
        together, sizes = people_alike(block, None), people_alike(block[:, :1], None)
        if np.any(together * self.l > sizes):
            raise PrivacyError(
                f"A value would make up more than 1 in {self.l} rows of a bucket: a later step "
                "took rows or values away. Bucketize last."
            )


@dataclass(frozen=True, slots=True)
class PseudonymClaim:
    """Claims that a column that identifies leaves as tokens, none of them one of its values.

    ``vault`` is the private file that ties them to these, where there is one.
    """

    column: str
    vault: Path | None = field(default=None, repr=False)

    @property
    def words(self) -> str:
        """What is claimed; next to nothing."""
        return f"tokens in place of '{self.column}', which are not anonymous"

    def verify(self, rows: Table, tables: Mapping[str, pa.Table], original: Table) -> None:  # noqa: ARG002
        """Demand that no value is told."""
        tokens = pc.drop_null(pc.unique(rows.arrow[self.column]))
        told = encode_labels(original.arrow[self.column]).dictionary
        same = not pa.types.is_string(tokens.type)
        if not same:
            lengths = pc.unique(pc.binary_length(tokens))  # texts of other lengths are other texts
            told = told.filter(pc.is_in(pc.binary_length(told), value_set=lengths))
            same = pc.any(pc.is_in(tokens, value_set=told)).as_py()
        if same:
            raise InternalError(f"Column {self.column!r} would leave as it was; nothing leaves.")


@dataclass(frozen=True, slots=True)
class DrawClaim:
    """Claims that a column, and its further draws ``copies``, show nothing that few people hold."""

    column: str
    copies: tuple[str, ...]
    k: int

    @property
    def words(self) -> str:
        """What is claimed."""
        return (
            f"'{self.column}' is drawn: it shows no category that fewer than {self.k} people hold, "
            "and no number beyond which fewer stand"
        )

    def verify(self, rows: Table, tables: Mapping[str, pa.Table], original: Table) -> None:  # noqa: ARG002
        """Demand it of every draw, by the original column."""
        true = encode_column(original.arrow[self.column])
        owner = people_of(original)
        block = true.codes[:, None].astype(np.int64)
        held = np.zeros(len(true.values), np.int64)
        held[true.codes] = people_alike(block, owner)
        for name in (self.column, *self.copies):
            if name not in rows.arrow.column_names:
                raise InternalError("A draw of a column does not leave.")
            shown = pc.drop_null(pc.unique(rows.arrow[name]))
            if pa.types.is_dictionary(shown.type):
                shown = shown.dictionary_decode()
            values = true.values.drop_null()
            if is_continuous(values.type):
                lasting = self._within(original, owner, shown, true)
            else:
                places = pc.index_in(shown.cast(values.type), value_set=values)
                lasting = not places.null_count and bool((held[places.to_numpy()] >= self.k).all())
            if not lasting:
                raise PrivacyError(
                    f"Column '{name}' would show values that fewer than {self.k} people hold: let "
                    "no other step change a column that is drawn."
                )

    def _within(self, original: Table, owner: Ints | None, shown: pa.Array, true: Any) -> bool:
        """Whether ``k`` people stand at or beyond the lowest and the highest number shown.

        A declared order does not change what is a number.
        """
        if not len(shown):
            return True
        owner = np.arange(len(original)) if owner is None else owner
        values = true.values.cast(shown.type, safe=False)
        extremes = pc.min_max(shown)
        for beyond, edge in ((pc.less_equal, "min"), (pc.greater_equal, "max")):
            far = pc.fill_null(beyond(values, extremes[edge]), fill_value=False)
            at = np.asarray(far, dtype=bool)[true.codes]
            if len(np.unique(owner[at])) < self.k:
                return False
        return True


@dataclass(frozen=True, slots=True)
class CopyClaim:
    """Claims that ``copies`` are further draws of a column, missing where it is."""

    column: str
    copies: tuple[str, ...]

    @property
    def words(self) -> str:
        """What is claimed."""
        return f"'{self.column}' has {len(self.copies):,} further draws, missing where it is"

    def verify(self, rows: Table, tables: Mapping[str, pa.Table], original: Table) -> None:  # noqa: ARG002
        """Demand it of every draw."""
        if not {self.column, *self.copies} <= set(rows.arrow.column_names):
            raise InternalError("A draw of a column does not leave.")
        shown = pc.is_null(rows.arrow[self.column])
        if any(not pc.is_null(rows.arrow[name]).equals(shown) for name in self.copies):
            raise PrivacyError(
                f"Draws of column '{self.column}' would be missing in different rows: let no other "
                "step change a column that is drawn."
            )


@dataclass(frozen=True, slots=True)
class GuardClaim:
    """Claims that no label of a column tells its person's guarded values beyond the chance p."""

    column: str
    guard: str
    p: float

    @property
    def words(self) -> str:
        """What is claimed."""
        return (
            f"of the values that a label of '{self.column}' can stand for, and of the rows of "
            f"people who guard nothing, at most the share {self.p:g} is what its person guards"
        )

    def verify(self, rows: Table, tables: Mapping[str, pa.Table], original: Table) -> None:  # noqa: ARG002
        """Demand it of every label beside every node, by declared values and rows shown as is."""
        if not {self.column, self.guard} <= set(rows.arrow.column_names):
            raise InternalError("A column of guarded values does not leave.")
        pairs = pa.table(
            {
                "label": encode_labels(rows.arrow[self.column]).cast(pa.string()),
                "node": encode_labels(rows.arrow[self.guard]).cast(pa.string()),
            }
        )
        seen = pairs.filter(pc.and_(*(pc.is_valid(one) for one in pairs.columns)))
        shown = original.arrow.filter(pc.is_null(original.arrow[self.guard]))[self.column]
        each = pc.value_counts(shown.drop_null()).to_pylist()
        held = {canonical(one["values"]): int(one["counts"]) for one in each}
        nodes = {canonical(one) for one in pc.unique(seen["node"]).to_pylist()}
        meaning = _meanings(original, self.column, held.keys() | (nodes - {TOP}))
        limit = Fraction(str(self.p))
        for one in seen.group_by(["label", "node"]).aggregate([]).to_pylist():
            label, node = (meaning.get(one[side], frozenset()) for side in ("label", "node"))
            for weigh in (lambda value: held.get(value, 0), lambda _: 1):
                part, whole = (sum(map(weigh, found)) for found in (label & node, label))
                if (not label and limit < 1) or part > limit * whole:
                    raise PrivacyError(
                        f"A label of '{self.column}' would tell what its person guards: let no "
                        "other step change that column."
                    )


def _meanings(table: Table, column: str, plain: set[str]) -> dict[str, frozenset[str]]:
    """Which declared values each label of a hierarchy stands for; without one, of ``plain``."""
    declared = table.schema.columns.get(column)
    builder = None if declared is None else declared.hierarchy
    if isinstance(builder, Tree | Csv):
        leaves: list[object] = list(builder.leaves())
        tree = builder.build(column, pa.array(leaves, pa.string()))
    else:
        leaves = list(plain)
        tree = flat(leaves)
    found: dict[str, set[str]] = {}
    for level, labels in zip(tree.maps.tolist(), tree.labels, strict=True):
        for value, place in zip(leaves, level, strict=True):
            found.setdefault(canonical(labels[place]), set()).add(canonical(value))
    return {label: frozenset(under) for label, under in found.items()}


def drawn_copies(claims: Sequence[Claim]) -> dict[str, str]:
    """The further draws that steps claim, and the column that each is one of."""
    found = [c for c in claims if isinstance(c, DrawClaim | CopyClaim)]
    return {copy: claim.column for claim in found for copy in claim.copies}


Claim = (
    WildcardAnonymity
    | AnatomyClaim
    | BucketClaim
    | PseudonymClaim
    | DrawClaim
    | CopyClaim
    | GuardClaim
    | ResponseClaim
)
