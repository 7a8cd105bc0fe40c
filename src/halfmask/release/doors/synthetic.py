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

from halfmask.coclustering.stretches import levels_together, stretches
from halfmask.dp.budget import Approximate
from halfmask.dp.conditions import occurs
from halfmask.dp.figures import column_bounds
from halfmask.errors import InternalError, PrivacyError
from halfmask.release.demands import enforce_group_demands, noisy_demands, order_notes
from halfmask.release.files import types_of_rows
from halfmask.release.labels import decode_labels, decoded_type
from halfmask.release.release import DOOR, PrivateRelease, SealedGuarantee, SyntheticRelease
from halfmask.table.columns import Column
from halfmask.table.files.rows import normalize
from halfmask.table.schema import Schema
from halfmask.table.table import Table
from halfmask.table.tuples import Tuples
from halfmask.table.values import is_continuous

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from halfmask.coclustering.stretches import Stretches
    from halfmask.metrics.risk.attack import AttackOutcome
    from halfmask.release.candidate import NoiseCandidate, SyntheticCandidate

    Ints = NDArray[np.int64]

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
        "were tried. They are of everybody, and can tell how many people hold what was withheld: "
        "they are for who may see the table."
    )
    statement = {
        "kind": "synthetic",
        "claimed": _value_claims(candidate.least, candidate.combinations),
        "not_claimed": [
            *NOT_CLAIMED,
            *_combination_claims(candidate.least, candidate.combinations),
        ],
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


def _combination_claims(least: int, together: int) -> list[str]:
    """What is said of the combinations that were not counted."""
    if least < 2:
        return []
    return [
        f"that {least:,} people share what more than {together} column(s) of a row hold together"
    ]


def _value_claims(least: int, together: int) -> list[str]:
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
        left = decoded_type(rows[name].type)
        written = is_continuous(sides[0][name].type) and not is_continuous(left)
        if written:
            labels = pc.unique(rows[name].combine_chunks().drop_null()).to_pylist()
            sides = [
                side.set_column(place, name, into_intervals(side[name], labels)) for side in sides
            ]
        columns[name] = Column("quasi", kind="nominal" if written else kind)
    known = Schema(columns)
    control = Table(sides[1], known) if len(sides) > 1 else None
    return Table(sides[0], known), Table(rows, known), control


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

    Names count by their value, numbers by the interval between ``cuts`` that they lie in, or in
    pairs by a stretch of these, what is missing as a value of its own.

    Raises:
        InternalError: some columns hold such a combination; nothing leaves.
    """
    if columns < 2 or least < 2:
        return
    names = rows.column_names
    person = table.schema.person
    owner = None if person is None else table.encode(person).codes.astype(np.int64)
    sides = [_classes(table.arrow[name], rows[name], cuts.get(name)) for name in names]
    wide = None
    if columns == 2:
        wide = [
            _stretches(one, table.arrow[name], _intervals(rows[name], cuts.get(name)), owner)
            for one, name in zip(sides, names, strict=True)
        ]
    for chosen in combinations(range(len(names)), min(columns, len(names))):
        mine, theirs = _number_rows([sides[place] for place in chosen])
        if wide is None or len(chosen) != 2:
            fine = _people(mine, owner, int(max(mine.max(initial=0), theirs.max(initial=0))) + 1)
            held = bool((fine[np.unique(theirs)] >= least).all())
        else:
            both = [(sides[place], wide[place]) for place in chosen]
            held = _pairs_shared(both, owner, least)
        if not held:
            words = ", ".join(repr(names[place]) for place in chosen)
            raise InternalError(
                f"Columns {words} would publish a combination that fewer than {least:,} people "
                "share."
            )


def _number_rows(sides: Sequence[tuple[Ints, Ints]]) -> tuple[Ints, Ints]:
    """One number for what each row of either side holds in all columns."""
    count = len(sides[0][0])
    number = np.zeros(count + len(sides[0][1]), np.int64)
    for mine, theirs in sides:
        both = np.unique(np.r_[mine, theirs], return_inverse=True)[1].reshape(-1)
        number = np.unique(number * (int(both.max(initial=0)) + 1) + both, return_inverse=True)[1]
    return number.reshape(-1)[:count], number.reshape(-1)[count:]


def _people(group: Ints, owner: Ints | None, count: int) -> Ints:
    """How many people the rows of each group are about."""
    if owner is None:
        return np.bincount(group, minlength=count)
    everybody = int(owner.max(initial=-1)) + 1
    return np.bincount(np.unique(group * everybody + owner) // everybody, minlength=count)


def _intervals(released: pa.ChunkedArray, cuts: Sequence[float] | None) -> int:
    """How many intervals of numbers there are that may be counted together."""
    return len(cuts) + 1 if cuts is not None and is_continuous(decoded_type(released.type)) else 0


def _stretches(
    side: tuple[Ints, Ints], values: pa.ChunkedArray, intervals: int, owner: Ints | None
) -> Stretches:
    """The stretches of a column's classes; the last class is of missing values."""
    last = max(intervals, int(max(one.max(initial=0) for one in side)) + 1)
    mine, count = np.where(side[0] < 0, last, side[0]), last + 1
    held = decode_labels(values.combine_chunks()).dictionary_encode().indices.fill_null(-1)
    distinct = np.unique(np.stack([mine, np.asarray(held).astype(np.int64)]), axis=1)
    single = np.bincount(distinct[0], minlength=count) == 1
    everybody = len(mine) if owner is None else int(owner.max(initial=-1)) + 1
    return stretches(_people(mine, owner, count), intervals, single, everybody)


def _pairs_shared(
    both: Sequence[tuple[tuple[Ints, Ints], Stretches]], owner: Ints | None, least: int
) -> bool:
    """Whether enough people share each pair of classes that leaves, numbers by stretches."""
    wide, broad = both[0][1], both[1][1]
    size = [held.first.shape[1] for held in (wide, broad)]
    # What is missing is the last class.
    mine = [np.where(side[0] < 0, n - 1, side[0]) for (side, _), n in zip(both, size, strict=True)]
    left = [np.where(side[1] < 0, n - 1, side[1]) for (side, _), n in zip(both, size, strict=True)]
    seen = np.unique(left[0] * size[1] + left[1])
    a, b = seen // size[1], seen % size[1]
    everybody = len(mine[0]) if owner is None else int(owner.max(initial=-1)) + 1
    levels = [level[a, b] for level in levels_together(wide, broad, least, everybody)]
    for up, across in sorted({*zip(*(level.tolist() for level in levels), strict=True)}):
        here = (levels[0] == up) & (levels[1] == across)
        group = wide.first[up][mine[0]] * size[1] + broad.first[across][mine[1]]
        asked = wide.first[up][a[here]] * size[1] + broad.first[across][b[here]]
        number, place = np.unique(np.r_[group, asked], return_inverse=True)
        place = place.reshape(-1)
        people = _people(place[: len(group)], owner, len(number))
        if not (people[place[len(group) :]] >= least).all():
            return False
    return True


def _classes(
    own: pa.ChunkedArray, released: pa.ChunkedArray, cuts: Sequence[float] | None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Per row of either side, a number that stands for what is counted as one value."""
    mine, theirs = decode_labels(own.combine_chunks()), decode_labels(released.combine_chunks())
    if cuts is not None and is_continuous(theirs.type):
        ends = np.asarray(cuts, dtype=np.float64)
        found = [
            np.where(np.asarray(side.is_null()), -1, np.searchsorted(ends, as_floats(side)))
            for side in (mine, theirs)
        ]
        return found[0], found[1]
    if cuts is not None:
        mine = into_intervals(pa.chunked_array([mine]), pc.unique(theirs.drop_null()).to_pylist())
    elif mine.type != theirs.type:
        theirs = theirs.cast(mine.type)
    known = pc.unique(pa.chunked_array([mine, theirs]))
    sides = (pc.index_in(side, value_set=known) for side in (mine, theirs))
    first, second = (np.asarray(side.fill_null(-1)).astype(np.int64) for side in sides)
    return first, second


def _shared(table: Table, name: str, released: pa.Array, least: int) -> bool:
    own, released = decode_labels(table.arrow[name].combine_chunks()), decode_labels(released)
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
    if not is_continuous(own.type) or kind in ("nominal", "ordinal"):
        return bool(
            pc.all(pc.is_in(released, value_set=common.combine_chunks())).as_py() is not False
        )
    if not is_continuous(released.type):
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
    low = np.sort(as_floats(ends["value_min"]))[least - 1]
    high = np.sort(as_floats(ends["value_max"]))[-least]
    found = as_floats(new)
    return bool(((found >= low) & (found <= high)).all())


def _intervals_shared(held: pa.Table, released: pa.Array, least: int) -> bool:
    """Whether every interval that leaves holds the numbers of enough people."""
    held = held.filter(pc.is_valid(held["value"]))
    numbers, whose = as_floats(held["value"]), held["person"].to_numpy()
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
        return float(as_floats(pa.array([text]).cast(kind))[0])
    return float(text)


def as_floats(values: pa.Array | pa.ChunkedArray) -> NDArray[np.float64]:
    """Numbers or times as doubles, what is missing as NaN."""
    if pa.types.is_temporal(values.type):
        narrow = pa.types.is_date32(values.type) or pa.types.is_time32(values.type)
        values = values.cast(pa.int32() if narrow else pa.int64())
    return np.asarray(values.cast(pa.float64(), safe=False), dtype=np.float64)


def into_intervals(values: pa.ChunkedArray, labels: Sequence[str]) -> pa.Array:
    """The interval of each number; a text of its own where none of those that leave holds it."""
    numbers = as_floats(values)
    out = np.full(len(numbers), "(none of these)", dtype=object)
    for label in labels:
        low, high = interval_ends(label, values.type)
        out[(numbers > low) & (numbers <= high)] = label
    return pa.array(out, pa.string(), mask=np.asarray(values.is_null()))
