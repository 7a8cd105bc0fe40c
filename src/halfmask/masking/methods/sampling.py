"""Sampling of people with weights, and MASSC.

Definition: a share of the people, drawn at random (in each stratum), leaves; weights add up to all
    of them. MASSC: people are put into strata by how rare they are, values of some in each
    are substituted by those of a like person, some are left out, and weights are calibrated.
Source: Singh, Yu and Dunteman, "MASSC: a new data mask for limiting statistical information loss
    and disclosure", 2003.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pyarrow as pa

from halfmask.errors import PrivacyError
from halfmask.masking.methods.swapping import group_ids
from halfmask.masking.step import (
    MaskStep,
    MaskWords,
    Outcome,
    anything,
    register_mask,
    some_columns,
)
from halfmask.models.verdict import number, whole_number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from halfmask.masking.step import Rows
    from halfmask.table.table import Table

    Ints = NDArray[np.int64]

WEIGHT = "weight"


@register_mask
@dataclass(frozen=True, slots=True)
class Sample(MaskStep):
    """Let a random ``share`` of the people leave, with how many each stands for.

    ``by`` names columns in whose classes the share is drawn apart. The new column ``weight`` (or
    what is named so) adds up to all people of a class; ``weight=""`` leaves it out.
    """

    name: ClassVar[str] = "sample"
    words: ClassVar[MaskWords] = MaskWords(
        "A random share of the people leaves, with weights.",
        "Being sure that a person is in the table: somebody alone in it may not be alone.",
        "People who are known to be in the sample, and those who are rare everywhere.",
    )

    share: float = field(metadata=number(0, 1, open_low=True))
    by: tuple[str, ...] | str = field(default=(), metadata=some_columns(changed=False))
    weight: str = field(default=WEIGHT, metadata=anything())

    def faults(self, table: Table) -> list[str]:
        """Refuse a name that is taken."""
        return weight_faults(table, self.weight, self.by)

    def apply(self, rows: Rows) -> Outcome:
        """Draw the people."""
        owner, people = rows.people()
        classes = group_ids(rows.table, self.by)
        stratum = np.zeros(people, np.int64)
        stratum[owner] = classes  # somebody in several classes counts in the last
        chosen, weight = draw_strata(
            stratum, np.full(classes.max(initial=0) + 1, self.share), rows.random
        )
        keep = np.flatnonzero(chosen[owner])
        if not len(keep):
            raise PrivacyError("sample: nobody would leave: draw a larger share.")
        new = {self.weight: pa.array(weight[owner])} if self.weight else {}
        return Outcome(new, keep=keep, facts={"people_share": float(chosen.mean())})


def weight_faults(table: Table, weight: str, by: Sequence[str]) -> list[str]:
    """Refuse weights that tell of a column that never leaves, or that overwrite one."""
    private = [name for name in by if name in table.schema.private]
    if private:
        return [f"weights by column '{private[0]}' would tell of it, and it never leaves."]
    if weight in table.arrow.column_names:
        return [f"there is a column '{weight}' already: name the weights otherwise (weight=)."]
    return []


def draw_strata(
    stratum: Ints, shares: NDArray[np.float64], random: np.random.Generator
) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Who is drawn from each stratum, at least one person, and how many each stands for."""
    order = np.lexsort((random.random(len(stratum)), stratum))
    sizes = np.bincount(stratum, minlength=len(shares))
    starts = np.cumsum(sizes) - sizes
    place = np.arange(len(stratum)) - starts[stratum[order]]
    # One at least: a class of which nobody is drawn could not be weighed up to its people.
    many = np.minimum(np.maximum(1, np.rint(sizes * shares)), sizes).astype(np.int64)
    chosen = np.zeros(len(stratum), dtype=bool)
    chosen[order] = place < many[stratum[order]]
    weight = (sizes / np.maximum(many, 1))[stratum]
    return chosen, weight


@register_mask
@dataclass(frozen=True, slots=True)
class Massc(MaskStep):
    """Substitute, subsample and calibrate by strata of risk.

    People whom fewer than ``k`` share the quasi-identifiers stand in a stratum of their own, those
    who are alone in another. ``columns`` (default: the quasi-identifiers) of a share ``substitute``
    of each stratum take the values of a random person of the same stratum, ``substitute`` times
    two where people are alone; a share ``sample`` of each stratum leaves. Weights are calibrated so
    that the classes of ``calibrate`` keep their numbers of people.
    """

    name: ClassVar[str] = "massc"
    words: ClassVar[MaskWords] = MaskWords(
        "By strata of risk, values are substituted, people left out and weights calibrated.",
        "Being sure that a person is in the table, or that a row is as it was.",
        "People whose row was neither substituted nor left out.",
    )

    columns: tuple[str, ...] | str | None = field(default=None, metadata=some_columns())
    substitute: float = field(default=0.1, metadata=number(0, 0.5))
    sample: float = field(default=0.9, metadata=number(0, 1, open_low=True))
    k: int = field(default=5, metadata=whole_number(2))
    calibrate: tuple[str, ...] | str = field(default=(), metadata=some_columns(changed=False))
    weight: str = field(default=WEIGHT, metadata=anything())

    def faults(self, table: Table) -> list[str]:
        """Refuse a name that is taken."""
        return weight_faults(table, self.weight, self.calibrate)

    def apply(self, rows: Rows) -> Outcome:
        """Mask stratum by stratum."""
        names = rows.table.schema.quasi if self.columns is None else tuple(self.columns)
        owner, people = rows.people()
        risk = self._strata(rows)
        stratum = np.zeros(people, np.int64)
        np.maximum.at(stratum, owner, risk)  # somebody with several rows is as rare as the rarest
        taken = self._donors(rows, risk)
        new = {n: rows.table.arrow[n].take(pa.array(taken)) for n in names}
        chosen, weight = draw_strata(stratum, np.full(3, float(self.sample)), rows.random)
        kept = np.flatnonzero(chosen[owner])
        if not len(kept):
            raise PrivacyError("massc: nobody would leave: sample a larger share.")
        weights = self._calibrate(rows, weight[owner], kept)
        new[self.weight] = pa.array(weights)
        facts = {
            "strata": np.bincount(stratum, minlength=3).tolist(),
            "substituted_share": float(np.mean(taken != np.arange(len(rows)))),
            "people_share": float(chosen.mean()),
        }
        return Outcome(new, keep=kept, facts=facts)

    def _strata(self, rows: Rows) -> Ints:
        """2 where a person is alone by the quasi-identifiers, 1 where fewer than k share them."""
        shared = rows.people_sharing(group_ids(rows.table, rows.table.schema.quasi))
        return np.where(shared == 1, 2, np.where(shared < self.k, 1, 0)).astype(np.int64)

    def _donors(self, rows: Rows, stratum: Ints) -> Ints:
        """Per row, the row whose values it takes."""
        # Who is alone is found by any true row: twice the share is substituted there.
        rate = np.where(stratum == 2, min(1.0, 2 * float(self.substitute)), float(self.substitute))
        changed = rows.random.random(len(rows)) < rate
        taken = np.arange(len(rows))
        for one in range(3):
            members = np.flatnonzero(stratum == one)
            wanted = members[changed[members]]
            if len(members):
                taken[wanted] = rows.random.choice(members, len(wanted))
        return taken

    def _calibrate(
        self, rows: Rows, weight: NDArray[np.float64], kept: Ints
    ) -> NDArray[np.float64]:
        """Weights under which the classes of ``calibrate`` have the people they had."""
        classes = group_ids(rows.table, self.calibrate)
        before = np.bincount(classes, minlength=classes.max(initial=0) + 1).astype(float)
        after = np.bincount(classes[kept], weights=weight[kept], minlength=len(before))
        factor = np.divide(before, after, out=np.ones_like(before), where=after > 0)
        found: NDArray[np.float64] = weight * factor[classes]
        return found
