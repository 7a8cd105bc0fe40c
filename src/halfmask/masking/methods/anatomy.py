"""Anatomy: quasi-identifiers and sensitive values leave in two tables, joined by groups only.

Definition: rows are put into groups in which every sensitive value occurs at most once in l rows;
    the first table has the quasi-identifiers and the group of each row, the second per group the
    sensitive values and how often each occurs. A count is estimated by the sum over groups of
    (rows of the group that match) x (occurrences of the value) / (rows of the group).
Source: Xiao and Tao, "Anatomy: simple and effective privacy preservation", 2006.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa

from halfmask.errors import InputError, UnsatisfiableError
from halfmask.masking.step import MaskStep, MaskWords, Outcome, anything, one_column, register_mask
from halfmask.models.verdict import whole_number
from halfmask.release.doors.claims import AnatomyClaim, BucketClaim

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.masking.step import Rows
    from halfmask.release.doors.masked import MaskedRelease
    from halfmask.table.table import Table

    Ints = NDArray[np.int64]

GROUP = "group"
BUCKET = "bucket"
_AGAINST = (
    "Being surer than 1 in l of a row's sensitive value.",
    "That a person is in the table: quasi-identifiers leave as they are. Whoever has several rows: "
    "a value that stands in the groups of all of them is likely theirs.",
)
_ROWS = (
    "{name} counts rows, not people: of somebody whose several rows are known, a value that stands "
    "in the groups of all of them is likely the true one. Give everybody one row where l is to be "
    "theirs."
)


@dataclass(frozen=True, slots=True)
class _GroupingMask(MaskStep):
    """Rows dealt into groups with at least ``l`` sensitive values."""

    column: str = field(metadata=one_column())
    l: int = field(metadata=whole_number(2))  # noqa: E741 - the literature's name

    @property
    def label(self) -> str:
        """The column that says the group of each row."""
        raise NotImplementedError

    def notes(self, table: Table) -> tuple[str, ...]:
        """What the schema alone tells: whether somebody has several rows would tell of rows."""
        return () if table.schema.person is None else (_ROWS.format(name=self.name),)

    def faults(self, table: Table) -> list[str]:
        """Refuse quasi-identifiers, and a name that is taken."""
        found = []
        if self.column in table.schema.quasi:
            found.append(f"column '{self.column}' is a quasi-identifier: name a sensitive one.")
        if self.label in table.arrow.column_names:
            found.append(f"there is a column '{self.label}' already: name the groups otherwise.")
        return found


@register_mask
@dataclass(frozen=True, slots=True)
class Anatomy(_GroupingMask):
    """Publish ``column`` apart, by groups with at least ``l`` different values.

    The rows leave without it and with their ``group``; ``release.tables[column]`` holds the values
    of each group with their ``count``, and is written beside the rows.

    Example:
        >>> import halfmask as hm
        >>> rows = {"age": [22, 35, 41, 60], "ill": ["flu", "flu", "aids", "cold"]}
        >>> people = hm.read(rows, schema={"age": "quasi", "ill": "sensitive"})
        >>> release = hm.mask(people, hm.masks.Anatomy("ill", l=2))
        >>> release.to_arrow().column_names, release.tables["ill"].column_names
        (['age', 'group'], ['group', 'ill', 'count'])
    """

    name: ClassVar[str] = "anatomy"
    words: ClassVar[MaskWords] = MaskWords(
        "Sensitive values leave in a table of their own, joined by groups only.",
        *_AGAINST,
    )

    group: str = field(default=GROUP, metadata=anything())

    @property
    def label(self) -> str:
        """The column that says the group of each row."""
        return self.group

    def apply(self, rows: Rows) -> Outcome:
        """Deal the rows into groups."""
        encoded = rows.table.encode(self.column)
        group = deal_groups(encoded.codes.astype(np.int64), self.l, rows.random)
        pairs = pa.table({"group": group, "code": encoded.codes})
        counted = pairs.group_by(["group", "code"]).aggregate([([], "count_all")])
        # Sorted, so that the order of a group's values tells nothing of the rows.
        counted = counted.sort_by([("group", "ascending"), ("code", "ascending")])
        values = encoded.values.take(counted["code"].combine_chunks())
        beside = pa.table(
            {
                self.group: counted["group"],
                self.column: values,
                "count": counted["count_all"],
            }
        )
        sizes = np.bincount(group)
        return Outcome(
            {self.group: pa.array(group)},
            removed=(self.column,),
            tables={self.column: beside},
            claims=(AnatomyClaim(self.l, self.column, self.group),),
            facts={"groups": len(sizes), "smallest": int(sizes.min())},
            notes=self.notes(rows.table),
        )


@register_mask
@dataclass(frozen=True, slots=True)
class Bucketize(_GroupingMask):
    """Put the values of ``column`` in random order inside buckets with at least ``l`` of them.

    As ``Anatomy`` in one table: rows say their ``bucket``, and which value of it is whose is lost.

    Example:
        >>> import halfmask as hm
        >>> rows = {"age": [22, 35, 41, 60], "ill": ["flu", "flu", "aids", "cold"]}
        >>> people = hm.read(rows, schema={"age": "quasi", "ill": "sensitive"})
        >>> hm.mask(people, hm.masks.Bucketize("ill", l=2)).to_arrow().column_names
        ['age', 'ill', 'bucket']
    """

    name: ClassVar[str] = "bucketize"
    words: ClassVar[MaskWords] = MaskWords(
        "Sensitive values change places at random inside buckets of rows.",
        *_AGAINST,
    )

    bucket: str = field(default=BUCKET, metadata=anything())

    @property
    def label(self) -> str:
        """The column that says the bucket of each row."""
        return self.bucket

    def apply(self, rows: Rows) -> Outcome:
        """Deal the rows into buckets, and their values inside each."""
        group = deal_groups(
            rows.table.encode(self.column).codes.astype(np.int64), self.l, rows.random, self.name
        )
        place = np.empty(len(group), np.int64)
        mixed = rows.random.permutation(len(group))  # a stable sort keeps chance inside buckets
        place[np.argsort(group, kind="stable")] = mixed[np.argsort(group[mixed], kind="stable")]
        return Outcome(
            {
                self.column: rows.table.arrow[self.column].take(pa.array(place)),
                self.bucket: pa.array(group),
            },
            claims=(BucketClaim(self.l, self.column, self.bucket),),
            facts={"buckets": int(group.max()) + 1},
            notes=self.notes(rows.table),
        )


def deal_groups(
    codes: Ints,
    l: int,  # noqa: E741
    random: np.random.Generator,
    mask: str = "anatomy",
) -> Ints:
    """A group for each row, in which no value occurs twice and which has at least ``l`` rows.

    Rows sorted by value are dealt to the groups in turn: a value that is held by no more rows than
    there are groups meets each of them once at most.

    Raises:
        UnsatisfiableError: one value is held by more than 1 in ``l`` rows.
    """
    size = len(codes)
    groups = size // l
    most = int(np.bincount(codes).max(initial=0)) if size else 0
    if groups < 1 or most > groups:
        share = most / size if size else 0.0
        raise UnsatisfiableError(
            f"{mask}: the most frequent value has {share:.1%} of the rows, which is more than 1 "
            f"in {l}: ask for a smaller l."
        )
    # Values in random turn, rows in random order: groups must not follow how the file is sorted.
    turn = random.permutation(int(codes.max()) + 1)
    mixed = random.permutation(size)
    keys = turn.astype(np.min_scalar_type(len(turn)))[codes[mixed]]  # narrow ones sort faster
    order = mixed[np.argsort(keys, kind="stable")]
    out = np.empty(size, np.int64)
    out[order] = random.permutation(groups)[np.arange(size) % groups]
    return out


def estimate_count(
    release: MaskedRelease, column: str, value: Any, matching: Any, *, group: str = GROUP
) -> float:
    """Estimate how many rows match and have a sensitive ``value``, from a release by Anatomy.

    Args:
        release: made with ``Anatomy``.
        column: the sensitive column.
        value: the value asked for.
        matching: per row of ``release.to_arrow()``, whether it matches.
        group: what the groups are called.
    """
    rows, beside = release.to_arrow(), release.tables.get(column)
    if beside is None:
        raise InputError(f"The release has no table of '{column}' by Anatomy.")
    marked = np.asarray(matching, dtype=bool)
    if marked.shape != (rows.num_rows,):
        raise InputError("matching says for each row of the release whether it matches.")
    return estimate_from_groups(rows[group].to_numpy(), beside, column, value, marked, group)


def estimate_from_groups(
    groups: Ints, beside: pa.Table, column: str, value: Any, marked: NDArray[np.bool_], group: str
) -> float:
    """The estimate from the groups of rows and the table of sensitive values."""
    size = int(groups.max(initial=-1)) + 1
    rows = np.bincount(groups, minlength=size)
    matches = np.bincount(groups[marked], minlength=size)
    wanted = np.array([one == value for one in beside[column].to_pylist()])
    occurs = np.zeros(size)
    np.add.at(occurs, beside[group].to_numpy()[wanted], beside["count"].to_numpy()[wanted])
    return float((matches * occurs / np.maximum(rows, 1)).sum())
