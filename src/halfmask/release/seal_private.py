"""The door for differential privacy: nothing leaves without the accountant's receipt.

Differential privacy cannot be checked on an output; what can be checked is that the budget was
spent before, that every look at the rows was charged, and that the noise came from the secure
source.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from halfmask.dp.bounds import column_bounds
from halfmask.dp.budget import Approximate
from halfmask.errors import InternalError, PrivacyError
from halfmask.release.document import versions
from halfmask.release.private import PrivateRelease
from halfmask.release.sealed import DOOR

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from halfmask.dp.accountant import Receipt
    from halfmask.table.schema import Schema


@dataclass(frozen=True, slots=True, eq=False)
class Draft:
    """Rows that a private method made, not yet trusted.

    Attributes:
        rows: what would leave.
        sizes: how many public values each column has; the bounds are told for these columns.
        method: how the rows were made.
        parameters: public choices only.
        notes: what a reader should know, one sentence each.
        origin: the kind that came in.
        schema: of the table that was read, which says whether people state an epsilon.
    """

    rows: pa.Table
    sizes: Mapping[str, int]
    method: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    origin: str = "arrow"
    schema: Schema | None = None


def seal_private(draft: Draft, receipt: Receipt) -> PrivateRelease:
    """Release ``draft`` against ``receipt``.

    Raises:
        PrivacyError: the receipt is for noise that does not come from the secure source.
        InternalError: the receipt does not add up; nothing leaves.
    """
    receipt.verify()
    if not receipt.secure:
        raise PrivacyError("The noise did not come from the system's secure source.")
    if not receipt.entries:
        raise InternalError("The receipt names no noisy view.")
    _require_demands(draft, receipt)
    notes = list(draft.notes)
    if isinstance(receipt.promise, Approximate) and receipt.promise.delta * len(draft.rows) > 1:
        notes.append("Delta is above one over the number of rows: choose it far smaller.")
    return PrivateRelease(
        receipt,
        column_bounds(receipt.promise, draft.sizes),
        draft.method,
        dict(draft.parameters),
        versions(),
        tuple(notes),
        draft.origin,
        draft.rows,
        DOOR,
    )


def _require_demands(draft: Draft, receipt: Receipt) -> None:
    """Refuse what forgot that people state an epsilon; said by the table, not by the planner."""
    if draft.schema is None or draft.parameters.get("demands") == "ignore":
        return
    declared = {Fraction(str(level)) for level in draft.schema.epsilon_levels}
    schema = draft.schema
    places = [schema.policy, *schema.policy_columns.values()]
    stated = any("epsilon" in place for place in places) or any(
        source.states("epsilon") for source in schema.policies
    )
    if stated and (not receipt.levels or (declared and set(receipt.levels) != declared)):
        raise InternalError("People state an epsilon, and the receipt does not say what they pay.")
