"""The doors for rows that were made: under noise, or without a formal guarantee.

Differential privacy cannot be checked on an output; what can be checked is that the budget was
spent before, that every look at the rows was charged, and that the noise came from the secure
source. Without noise no promise is made about whole rows: the door checks that no value and no
combination of some columns leaves that too few people share, measures on the rows that leave how
near they come to real people, and says so.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfmask.dp.budget import Approximate
from halfmask.dp.conditions import occurs
from halfmask.dp.figures import column_bounds
from halfmask.errors import InternalError, PrivacyError
from halfmask.release.column_types import types_of_rows
from halfmask.release.demands import enforce_group_demands, noisy_demands, order_notes
from halfmask.release.release import DOOR, PrivateRelease, SealedGuarantee, SyntheticRelease
from halfmask.table.columns import Column
from halfmask.table.files.rows import normalize
from halfmask.table.schema import Schema
from halfmask.table.table import Table
from halfmask.table.tuples import Tuples

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from halfmask.metrics.risk.attack import AttackOutcome
    from halfmask.release.candidate import NoiseCandidate, SyntheticCandidate

NOT_CLAIMED = (
    "k-anonymity of the rows: k is the least number of people in a group of the model",
    "differential privacy",
    "that no row equals that of a real person",
)


def seal_noise(candidate: NoiseCandidate) -> PrivateRelease:
    """Release rows against the accountant's receipt.

    Raises:
        PrivacyError: the receipt is for noise that does not come from the secure source.
        InternalError: the receipt does not add up; nothing leaves.
    """
    receipt = candidate.receipt
    receipt.verify()
    if not receipt.secure:
        raise PrivacyError("The noise did not come from the system's secure source.")
    if not receipt.entries:
        raise InternalError("The receipt names no noisy view.")
    if receipt.by_person and (candidate.schema is None or candidate.schema.person is None):
        raise InternalError(
            "The receipt speaks of people, and no column says whose rows are whose."
        )
    _require_demands(candidate)
    _require_conditions(candidate)
    notes = list(candidate.notes)
    promise = receipt.promise
    if isinstance(promise, Approximate) and promise.delta * len(candidate.rows) > 1:
        notes.append("Delta is above one over the number of rows: choose it far smaller.")
    bounds = column_bounds(promise, candidate.sizes)
    return PrivateRelease(
        guarantee=SealedGuarantee(
            receipt=receipt,
            bounds=bounds,
            demands=noisy_demands(candidate.schema, candidate.parameters.get("demands")),
        ),
        method=candidate.method,
        parameters=dict(candidate.parameters),
        notes=tuple(notes),
        origin=candidate.origin,
        _arrow=candidate.rows,
        door=DOOR,
    )


def _require_demands(candidate: NoiseCandidate) -> None:
    """Refuse what forgot that people state an epsilon; said by the table, not by the planner."""
    if candidate.schema is None or candidate.parameters.get("demands") == "ignore":
        return
    schema = candidate.schema
    declared = {Fraction(str(level)) for level in schema.epsilon_levels}
    places = [schema.policy, *schema.policy_columns.values()]
    stated = any("epsilon" in place for place in places) or any(
        source.states("epsilon") for source in schema.policies
    )
    exact = any(
        any(demand in place for place in places)
        or any(source.states(demand) for source in schema.policies)
        for demand in ("k", "l", "t")
    )
    if exact and not stated and candidate.receipt.promise.parts()[0] > 1:
        raise InternalError("People ask for k, l or t, and noise this small is nearly exact.")
    if stated and (
        not candidate.receipt.levels or (declared and set(candidate.receipt.levels) != declared)
    ):
        raise InternalError("People state an epsilon, and the receipt does not say what they pay.")


def seal_synthetic(candidate: SyntheticCandidate, names: Sequence[str]) -> SyntheticRelease:
    """Measure the rows that would leave, of the columns ``names``, and release them.

    Raises:
        PrivacyError: people demand what groups cannot give.
        InternalError: a column would leave that must not, or rows and codes do not match.
    """
    table, rows = candidate.table, candidate.rows
    if rows.column_names != list(names):
        raise InternalError("The synthetic rows have other columns than may leave.")
    if not rows.num_rows:
        raise PrivacyError("No row would leave: ask for at least one.")
    _require_conditions(candidate)
    require_shared(table, rows, candidate.least)
    require_shared_together(
        table, rows, candidate.least, columns=candidate.combinations, cuts=candidate.cuts
    )
    alone = np.arange(len(table))  # without groups everybody is one
    groups = alone if candidate.groups is None else candidate.groups
    if len(groups) != len(table):
        raise InternalError("The groups are not those of the original rows.")
    own = enforce_group_demands(table, groups, candidate.demands)
    found = measure_synthetic(candidate)
    notes = list(candidate.notes)
    if candidate.control is None:
        notes.append(
            "No rows were held out: the risks stand against guessing, not against people outside."
        )
    if "likeness" not in found:
        notes.append("scikit-learn is not installed: likeness was not measured.")
    notes.append(
        "No formal guarantee is claimed for rows; the measured figures speak of the attacks that "
        "were tried."
    )
    statement = {
        "kind": "synthetic",
        "claimed": _claimed(candidate.least, candidate.combinations),
        "not_claimed": [*NOT_CLAIMED, *_combined(candidate.least, candidate.combinations)],
        "measured": found,
    }
    rows, given = types_of_rows(rows, table, names)
    return SyntheticRelease(
        guarantee=SealedGuarantee(statement=statement, demands=own),
        method=candidate.method,
        parameters=dict(candidate.parameters),
        notes=order_notes(own, notes),
        origin=table.origin,
        given=given,
        _arrow=rows,
        door=DOOR,
    )


def _require_conditions(candidate: NoiseCandidate | SyntheticCandidate) -> None:
    """Refuse rows that cannot be, or that are not what was asked for; on the values that leave."""
    rows = candidate.rows
    if any(occurs(rows, combination).any() for combination in candidate.impossible):
        raise InternalError("A row would hold a combination that is declared impossible.")
    if candidate.given and not occurs(rows, candidate.given).all():
        raise InternalError("A row would not hold what is given.")


def _combined(least: int, together: int) -> list[str]:
    """What is said of the combinations that were not counted."""
    if least < 2:
        return []
    return [
        f"that {least:,} people share what more than {together} column(s) of a row hold together"
    ]


def _claimed(least: int, together: int) -> list[str]:
    if least < 2:
        return []
    claims = [
        f"every value that leaves is held by at least {least:,} people, or is a number with at "
        f"least {least:,} people on either side"
    ]
    if together > 1:
        claims.append(
            f"the values of every {together} columns of a row are held together by at least "
            f"{least:,} people, numbers counted by their interval"
        )
    return claims


def require_shared(table: Table, rows: pa.Table, least: int) -> None:
    """Refuse rows with a value that fewer than ``least`` people share.

    A value leaves where ``least`` people hold it. A number may also be new, where as many people
    have one that is as large, and one that is as small; an interval, where as many lie in it.

    Raises:
        InternalError: a column holds such a value; nothing leaves.
    """
    for name in rows.column_names:
        if not _shared(table, name, rows[name].combine_chunks(), least):
            raise InternalError(
                f"Column {name!r} would publish a value that fewer than {least:,} people share."
            )


def require_shared_together(
    table: Table,
    rows: pa.Table,
    least: int,
    *,
    columns: int,
    cuts: Mapping[str, Sequence[float]],
) -> None:
    """Refuse rows of which fewer than ``least`` people share what some columns hold together.

    Names count by their value, numbers by the interval between ``cuts`` that they lie in, what is
    missing as a value of its own.

    Raises:
        InternalError: some columns hold such a combination; nothing leaves.
    """
    if columns < 2 or least < 2:
        return
    names = rows.column_names
    person = table.schema.person
    held = {"(person)": np.arange(len(table)) if person is None else table.encode(person).codes}
    left: dict[str, NDArray[np.int64]] = {}
    for place, name in enumerate(names):
        both = _classes(table.arrow[name], rows[name], cuts.get(name))
        held[str(place)], left[str(place)] = both
    original, released = pa.table(held), pa.table(left)
    for chosen in combinations(range(len(names)), min(columns, len(names))):
        keys = [str(place) for place in chosen]
        distinct = original.group_by([*keys, "(person)"]).aggregate([])
        counts = distinct.group_by(keys).aggregate([([], "count_all")])
        common = counts.filter(pc.greater_equal(counts["count_all"], least)).select(keys)
        asked = released.group_by(keys).aggregate([])
        if asked.join(common, keys, join_type="left anti").num_rows:
            words = ", ".join(repr(names[place]) for place in chosen)
            raise InternalError(
                f"Columns {words} would publish a combination that fewer than {least:,} people "
                "share."
            )


def _classes(
    own: pa.ChunkedArray, released: pa.ChunkedArray, cuts: Sequence[float] | None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Per row of either side, a number that stands for what is counted as one value."""
    mine, theirs = _plain(own.combine_chunks()), _plain(released.combine_chunks())
    if cuts is not None and _ordered(theirs.type):
        ends = np.asarray(cuts, dtype=np.float64)
        found = [
            np.where(np.asarray(side.is_null()), -1, np.searchsorted(ends, _as_floats(side)))
            for side in (mine, theirs)
        ]
        return found[0], found[1]
    if cuts is not None:
        mine = _into_intervals(pa.chunked_array([mine]), pc.unique(theirs.drop_null()).to_pylist())
    elif mine.type != theirs.type:
        theirs = theirs.cast(mine.type)
    known = pc.unique(pa.chunked_array([mine, theirs]))
    sides = (pc.index_in(side, value_set=known) for side in (mine, theirs))
    first, second = (np.asarray(side.fill_null(-1)).astype(np.int64) for side in sides)
    return first, second


def _shared(table: Table, name: str, released: pa.Array, least: int) -> bool:
    own, released = _plain(table.arrow[name].combine_chunks()), _plain(released)
    person = table.schema.person
    whose = pa.array(np.arange(len(own))) if person is None else table.arrow[person]
    held = pa.table({"value": own, "person": whose})
    distinct = held.group_by(["value", "person"]).aggregate([])
    counts = distinct.group_by("value").aggregate([([], "count_all")])
    common = counts.filter(pc.greater_equal(counts["count_all"], least))["value"]
    if released.null_count and not common.null_count:
        return False
    released = released.drop_null()
    kind = table.schema.columns[name].kind if name in table.schema.columns else None
    if not _ordered(own.type) or kind in ("nominal", "ordinal"):
        return bool(
            pc.all(pc.is_in(released, value_set=common.combine_chunks())).as_py() is not False
        )
    if not _ordered(released.type):
        return _intervals_shared(held, released, least)
    new = released.filter(pc.invert(pc.is_in(released, value_set=common.combine_chunks())))
    if not len(new):
        return True
    ends = (
        held.filter(pc.is_valid(held["value"]))
        .group_by("person")
        .aggregate([("value", "min"), ("value", "max")])
    )
    if len(ends) < least:
        return False
    low = np.sort(_as_floats(ends["value_min"]))[least - 1]
    high = np.sort(_as_floats(ends["value_max"]))[-least]
    found = _as_floats(new)
    return bool(((found >= low) & (found <= high)).all())


def _intervals_shared(held: pa.Table, released: pa.Array, least: int) -> bool:
    """Whether every interval that leaves holds the numbers of enough people."""
    held = held.filter(pc.is_valid(held["value"]))
    numbers, whose = _as_floats(held["value"]), held["person"].to_numpy()
    for label in pc.unique(released).to_pylist():
        low, high = interval_ends(label, held["value"].type)
        inside = (numbers > low) & (numbers <= high)
        if len(np.unique(whose[inside])) < least:
            return False
    return True


def interval_ends(label: str, kind: pa.DataType) -> tuple[float, float]:
    """The ends of an interval that is written as ``]1,2]``, ``<=1``, ``>2`` or ``any``."""
    low, high = "", ""
    if label.startswith("<="):
        high = label[2:]
    elif label.startswith(">"):
        low = label[1:]
    elif label.startswith("]"):
        low, high = label[1:-1].split(",")
    return _end(low, kind, -np.inf), _end(high, kind, np.inf)


def _end(text: str, kind: pa.DataType, otherwise: float) -> float:
    if not text:
        return otherwise
    if pa.types.is_time(kind):  # Arrow reads a time of day as part of a day only
        text, kind = f"1970-01-01 {text}", pa.timestamp(kind.unit)
    if pa.types.is_temporal(kind):
        return float(_as_floats(pa.array([text]).cast(kind))[0])
    return float(text)


def _ordered(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_temporal(kind)
    )


def _as_floats(values: pa.Array | pa.ChunkedArray) -> NDArray[np.float64]:
    if pa.types.is_temporal(values.type):
        narrow = pa.types.is_date32(values.type) or pa.types.is_time32(values.type)
        values = values.cast(pa.int32() if narrow else pa.int64())
    return np.asarray(values.cast(pa.float64(), safe=False).to_numpy())


def _plain(values: pa.Array) -> pa.Array:
    return values.cast(values.type.value_type) if pa.types.is_dictionary(values.type) else values


def _sides(candidate: SyntheticCandidate) -> tuple[Table, Table, Table | None]:
    """The original, the rows that leave and the control, on the terms of the rows that leave.

    Where numbers leave as intervals, those of the original are put into the same intervals.
    """
    rows, schema = candidate.rows, candidate.table.schema
    columns = {}
    sides = [candidate.table.arrow.select(rows.column_names)]
    if candidate.control is not None and len(candidate.control):
        sides.append(candidate.control.arrow.select(rows.column_names))
    for place, name in enumerate(rows.column_names):
        kind = schema.columns[name].kind if name in schema.columns else None
        written = _ordered(sides[0][name].type) and not _ordered(_plain_type(rows[name].type))
        if written:
            labels = pc.unique(rows[name].combine_chunks().drop_null()).to_pylist()
            sides = [
                side.set_column(place, name, _into_intervals(side[name], labels)) for side in sides
            ]
        columns[name] = Column("quasi", kind="nominal" if written else kind)
    known = Schema(columns)
    control = Table(sides[1], known) if len(sides) > 1 else None
    return Table(sides[0], known), Table(rows, known), control


def _plain_type(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _into_intervals(values: pa.ChunkedArray, labels: Sequence[str]) -> pa.Array:
    """The interval of each number; a text of its own where none of those that leave holds it."""
    numbers = _as_floats(values)
    out = np.full(len(numbers), "(none of these)", dtype=object)
    for label in labels:
        low, high = interval_ends(label, values.type)
        out[(numbers > low) & (numbers <= high)] = label
    return pa.array(out, pa.string(), mask=np.asarray(values.is_null()))


def measure_synthetic(candidate: SyntheticCandidate) -> dict[str, Any]:
    """Measure what synthetic rows still tell about people, on the rows that leave, as plain values.

    The criteria are those of ``compare``, by its default choice of people; the wide ones take every
    column as one that may be known.
    """
    from halfmask.metrics.risk.attack import targets
    from halfmask.metrics.risk.criteria import try_wide_criteria
    from halfmask.metrics.risk.disclosure import attribution
    from halfmask.metrics.risk.inference import membership
    from halfmask.metrics.risk.linkability import nearness
    from halfmask.metrics.utility.distributions import likeness
    from halfmask.metrics.utility.prediction import available

    original, released, control = _sides(candidate)
    whom = targets(original, released, control, seed=candidate.seed)
    criteria = (*_criteria(candidate), *try_wide_criteria(whom, released.arrow.column_names))
    found: dict[str, Any] = {
        "attribution": attribution(whom.sides, whom.size).to_dict(),
        "nearness": nearness(whom).to_dict(),
        "criteria": [one.to_dict() for one in criteria],
    }
    if control is not None:
        told = membership(whom)
        found["membership"] = {"area": told.area.to_dict(), "advantage": told.advantage.to_dict()}
    if available():
        found["likeness"] = likeness(whom.sides, seed=candidate.seed).to_dict()
    return found


def _criteria(candidate: SyntheticCandidate) -> tuple[AttackOutcome, ...]:
    """The criteria by the roles that the schema gives to columns."""
    from halfmask.metrics.risk.attack import targets
    from halfmask.metrics.risk.criteria import doubts_about, try_criteria
    from halfmask.metrics.risk.linkage import linkage
    from halfmask.metrics.sides import sides

    original = Tuples.of(candidate.table)
    released = Tuples.of(Table(normalize(candidate.rows, ()), Schema()))
    given = candidate.control
    control = None if given is None or not len(given) else given
    paired = sides(original, released)
    whom = targets(original, released, control, known=paired)
    seen = doubts_about(paired, original, released, whom)
    return try_criteria(whom, seen, linkage(paired, whom.people))
