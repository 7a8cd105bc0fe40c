"""The doors for rows that were made: under noise, or without a formal guarantee.

Differential privacy cannot be checked on an output; what can be checked is that the budget was
spent before, that every look at the rows was charged, and that the noise came from the secure
source. Without noise no promise is made: the door checks that nothing leaves that must not,
measures how near the rows come to real people, and says so.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from halfmask.dp.budget import Approximate
from halfmask.dp.figures import column_bounds
from halfmask.errors import InternalError, PrivacyError
from halfmask.release.demands import enforce_group_demands, noisy_demands, order_notes
from halfmask.release.release import DOOR, PrivateRelease, SealedGuarantee, SyntheticRelease
from halfmask.table.schema import Column, Schema
from halfmask.table.table import Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

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
    _require_demands(candidate)
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
    original, synthetic = candidate.codes
    if len(original) != len(table) or len(synthetic) != rows.num_rows:
        raise InternalError("The synthetic rows and their codes do not match.")
    if not rows.num_rows:
        raise PrivacyError("No row would leave: ask for at least one.")
    alone = np.arange(len(table))  # without groups everybody is one
    groups = alone if candidate.groups is None else candidate.groups
    if len(groups) != len(table):
        raise InternalError("The groups are not those of the original rows.")
    own = enforce_group_demands(table, groups, candidate.demands)
    found = measure(names, original, synthetic, candidate.control, candidate.seed)
    notes = list(candidate.notes)
    if candidate.control is None:
        notes.append(
            "No rows were held out: the risks stand against guessing, not against people outside."
        )
    if "likeness" not in found:
        notes.append("scikit-learn is not installed: likeness was not measured.")
    notes.append(
        "No formal guarantee is claimed; the measured figures speak of the attacks that were tried."
    )
    statement = {
        "kind": "synthetic",
        "claimed": [],
        "not_claimed": list(NOT_CLAIMED),
        "measured": found,
    }
    return SyntheticRelease(
        guarantee=SealedGuarantee(statement=statement, demands=own),
        method=candidate.method,
        parameters=dict(candidate.parameters),
        notes=order_notes(own, notes),
        origin=table.origin,
        _arrow=rows,
        door=DOOR,
    )


def measure(
    names: Sequence[str],
    original: NDArray[np.int32],
    synthetic: NDArray[np.int32],
    control: NDArray[np.int32] | None = None,
    seed: int = 0,
) -> dict[str, Any]:
    """Measure what synthetic rows, given as codes, still tell about people, as plain values.

    Rows are compared by the parts of columns that the generator knows (a value, or an interval of
    numbers), so that a number drawn inside a person's interval counts as that person's.

    Args:
        names: the columns.
        original: the rows that the generator learned from.
        synthetic: the rows that it drew.
        control: rows that it did not learn from; None: risks stand against guessing.
        seed: repeats the choice of the people who are attacked.
    """
    from halfmask.metrics.risk.attack import targets
    from halfmask.metrics.risk.disclosure import attribution
    from halfmask.metrics.risk.inference import membership
    from halfmask.metrics.risk.linkability import nearness
    from halfmask.metrics.utility.distributions import likeness
    from halfmask.metrics.utility.prediction import available

    held = None if control is None or not len(control) else _table(names, control)
    whom = targets(_table(names, original), _table(names, synthetic), held, seed=seed)
    found: dict[str, Any] = {
        "attribution": attribution(whom.sides, whom.size).to_dict(),
        "nearness": nearness(whom).to_dict(),
        "criteria": [one.to_dict() for one in _criteria(names, whom)],
    }
    if held is not None:
        told = membership(whom)
        found["membership"] = {"area": told.area.to_dict(), "advantage": told.advantage.to_dict()}
    if available():
        found["likeness"] = likeness(whom.sides, seed=seed).to_dict()
    return found


def _criteria(names: Sequence[str], whom: Any) -> list[Any]:
    from halfmask.metrics.risk.inference import inference
    from halfmask.metrics.risk.linkability import linkability
    from halfmask.metrics.risk.singling_out import singling_out

    out = [singling_out(whom)]
    if len(names) > 1:
        out.append(linkability(whom))
        out += [inference(whom, name, [n for n in names if n != name]) for name in names]
    return out


def _table(names: Sequence[str], codes: NDArray[np.int32]) -> Table:
    """Codes as a table in which every column may be known and none has an order."""
    rows = pa.table({name: pa.array(codes[:, i]) for i, name in enumerate(names)})
    return Table(rows, Schema({name: Column("quasi", kind="nominal") for name in names}))
