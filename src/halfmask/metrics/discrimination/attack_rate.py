"""The figure of one attack on one column, as a discrimination rate."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

if TYPE_CHECKING:
    from halfmask.metrics.discrimination.grouping import Kind
    from halfmask.metrics.estimate import Estimate

Attack = Literal["identity", "homogeneity", "background", "skewness", "similarity"]
NEVER_VARIES = "The target never varies: there is nothing to discriminate."


@dataclass(frozen=True, slots=True)
class AttackRate:
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

    attack: Attack
    target: str
    keys: tuple[str, ...]
    rate: float | None
    before: float | None = None
    kind: Kind | None = None
    rows: int = 0
    identified_rows: int = 0
    chance: Estimate | None = None
    chance_before: Estimate | None = None
    reason: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self) | {"keys": list(self.keys)}


def undefined_as_none(one: AttackRate) -> AttackRate:
    """A figure that is not a number is None, with its reason."""
    before = None if one.before is None or np.isnan(one.before) else one.before
    if one.rate is not None and np.isnan(one.rate):
        return replace(one, rate=None, before=before, reason=NEVER_VARIES)
    return replace(one, before=before)
