"""The doors for rows that were made: under noise, or without a formal guarantee.

Differential privacy cannot be checked on an output; what can be checked is that the budget was
spent before, that every look at the rows was charged, and that the noise came from the secure
source. Without noise no promise is made about whole rows: the door checks that no value and no
combination of some columns leaves that too few people share, measures on the rows that leave how
near they come to real people, and says so.
"""

from __future__ import annotations

from fractions import Fraction
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
from halfmask.release.doors.shared import (
    into_intervals,
    ordered,
    require_shared,
    require_shared_together,
)
from halfmask.release.release import DOOR, PrivateRelease, SealedGuarantee, SyntheticRelease
from halfmask.table.columns import Column
from halfmask.table.files.rows import normalize
from halfmask.table.schema import Schema
from halfmask.table.table import Table
from halfmask.table.tuples import Tuples

if TYPE_CHECKING:
    from collections.abc import Sequence

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
        written = ordered(sides[0][name].type) and not ordered(_plain_type(rows[name].type))
        if written:
            labels = pc.unique(rows[name].combine_chunks().drop_null()).to_pylist()
            sides = [
                side.set_column(place, name, into_intervals(side[name], labels)) for side in sides
            ]
        columns[name] = Column("quasi", kind="nominal" if written else kind)
    known = Schema(columns)
    control = Table(sides[1], known) if len(sides) > 1 else None
    return Table(sides[0], known), Table(rows, known), control


def _plain_type(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


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
