"""What a release still tells, scored attack by attack as discrimination rates.

Definition: identity DR_A(A*) per quasi-identifier; homogeneity DR_S(Y*) per sensitive column, of
all released quasi-identifiers and of each; background 1 - DR_S(Y*), the information that must come
from elsewhere; skewness DR_S(Y) - DR_S(Y*); similarity DR_sS(Y*) on a semantic partition. The loss
of an attack is 1 - its mean rate; overall, the mean of those of identity and homogeneity.
Source: Sondeck, "Privacy and utility assessment within statistical data bases", 2017, ch. 4-5.

Identity uses the pairing of rows, which the assessor holds and an attacker does not, so that it
bounds the attacker from above. Rows that were left out count as one label of their own there.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from halfmask.errors import InputError
from halfmask.metrics.discrimination.attack_rate import AttackRate, undefined_as_none
from halfmask.metrics.discrimination.attacks import information_loss
from halfmask.metrics.discrimination.columns import coded, grouped
from halfmask.metrics.discrimination.grouping import measure
from halfmask.metrics.discrimination.released import owners
from halfmask.metrics.discrimination.secret_rates import secret_rates

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from halfmask.metrics.discrimination.released import Owners
    from halfmask.metrics.sides import Sides

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
class ReleaseRates:
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

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self) | {"rates": [one.to_dict() for one in self.rates]}


def release_rates(
    both: Sides, partitions: Mapping[str, object] | None = None, *, same_order: bool = False
) -> ReleaseRates:
    """Score every attack on a release.

    Args:
        both: the original and the release.
        partitions: per sensitive column, which of its values mean the same; else as
            ``halfmask.metrics.discrimination.meaning`` says.
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
    own = owners(both, same_order=same_order)
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


def _identity(both: Sides, own: Owners | None) -> list[AttackRate]:
    """How far each released label gives the original value away."""
    out = []
    for place, column in enumerate(both.quasi):
        keys = (column.name,)
        if own is None:
            out.append(AttackRate("identity", column.name, keys, None, reason=_NOBODY))
            continue
        x, y = coded(both.original, column.name), own.labels(place)
        found = measure(x.codes, x.size, *grouped([y]), weights=both.original_counts)
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
