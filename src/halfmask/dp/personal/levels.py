"""The public levels of epsilon that people's own demands are rounded down to.

Which levels there are is public, from the schema or halfmask's own list; who stands at which, and
how many do, is not. A person's demand is a total over all answers: the ledger accounts for each
level, and whoever stands there has spent at most what the level has.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from halfmask.dp.bounds import attacker
from halfmask.dp.budget import Number, exact
from halfmask.errors import ParameterError, PrivacyError
from halfmask.table.demands import EXACT, sources, states

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from halfmask.dp.accountant import Accountant
    from halfmask.dp.compose import Part
    from halfmask.table.schema import Schema
    from halfmask.table.table import Table

# Where the schema declares none: known to everybody, whatever the rows say.
USUAL = ("0.01", "0.02", "0.05", "0.1", "0.2", "0.5", "1", "2", "5", "10", "20")
QUIET = 1  # beyond it figures of a few people are as good as exact
OUT = -1  # below the least level, or no number: no noise keeps this person but being left out
MOST = 1e300  # what is above is no demand: infinite, or no number


@dataclass(frozen=True, slots=True)
class Levels:
    """The public levels of a table.

    Attributes:
        epsilons: ascending.
        sources: the columns (or the numbers) that hold people's demands; the smallest counts.
        shares: the public share of people at each level, of those who state one; may be empty.
        exact: whether people can state k, l or t as well.

    Example:
        >>> Levels((Fraction(1, 2), Fraction(2)), ("own",)).codes(np.array([0.1, 0.7, 9, np.nan]))
        array([-1,  0,  1,  2])
    """

    epsilons: tuple[Fraction, ...]
    sources: tuple[str | float, ...]
    shares: tuple[float, ...] = ()
    exact: bool = False

    def reads_silent(self, epsilon: Fraction) -> bool:
        """Whether one epsilon for all may read people who state none, but perhaps k, l or t."""
        return not self.exact or epsilon <= QUIET

    @property
    def silent(self) -> int:
        """The code of people who state nothing."""
        return len(self.epsilons)

    def codes(self, stated: NDArray[np.float64]) -> NDArray[np.int64]:
        """The level of each demand; what is missing (no number) is silent here."""
        cuts = np.array([float(level) for level in self.epsilons])
        found = np.searchsorted(cuts, np.nan_to_num(stated, nan=np.inf), side="right") - 1
        found[stated > MOST] = OUT
        found[np.isnan(stated)] = self.silent
        return found.astype(np.int64)

    def code(self, stated: float) -> int:
        """The level of one demand."""
        return int(self.codes(np.array([float(stated)]))[0])

    def of_people(self, table: Table) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Per row the number of its person, and per person the level: the least of all rows."""
        import pyarrow as pa
        import pyarrow.compute as pc

        person = np.arange(len(table))
        if table.schema.person is not None:
            person = table.encode(table.schema.person).codes.astype(np.int64)
        least = np.full(int(person.max(initial=-1)) + 1, self.silent)
        for source in self.sources:
            if not isinstance(source, str):
                least = np.minimum(least, self.code(source))
                continue
            column = table.arrow[source].cast(pa.float64())
            odd = pc.fill_null(pc.is_nan(column), fill_value=False)
            stated = pc.if_else(odd, np.inf, column).to_numpy(zero_copy_only=False)
            np.minimum.at(least, person, self.codes(stated))
        return person, least

    def left(self, accountant: Accountant | None, part: Part = None) -> tuple[Fraction, ...]:
        """What people at each level have left; all of it where nobody keeps count."""
        return self.epsilons if accountant is None else accountant.left(self.epsilons, part)

    def costs(
        self, epsilon: Fraction, accountant: Accountant | None, part: Part = None
    ) -> tuple[Fraction, ...]:
        """What one epsilon for everybody costs each level; 0 where less is left than that."""
        left = self.left(accountant, part)
        return tuple(epsilon if epsilon <= rest else Fraction(0) for rest in left)

    def require_somebody(self, costs: Sequence[Fraction]) -> None:
        """Refuse what no level allows; this depends on public levels and spendings only.

        Raises:
            PrivacyError: all people who state an epsilon would be left out.
        """
        # A number that holds for everybody is public, unlike a column.
        stated = [self.code(place) for place in self.sources if not isinstance(place, str)]
        if not any(costs[: min([*stated, len(costs)]) + 1]):
            raise PrivacyError(
                "No public level of epsilon allows this (the largest is "
                f"{float(self.epsilons[-1]):g}, less what was spent): everybody who states one "
                "would be left out. Ask for less; a controller can set demands aside "
                "(demands='ignore', --ignore-demands)."
            )

    def notes(self, costs: Sequence[Fraction]) -> tuple[str, ...]:
        """Who was left out, by public levels and not by number."""
        out = self.left_out(costs)
        if not out:
            least = f"{float(self.epsilons[0]):g}"
            return (f"People who allow less than the least public level, {least}, are left out.",)
        named = ", ".join(out[:-1]) + (" and " if len(out) > 1 else "") + out[-1]
        return (
            f"People who allow less in all than this answer would bring them to are left out: "
            f"those at the level{'s' * (len(out) > 1)} {named}, and below all levels.",
        )

    def told(self, costs: Sequence[Fraction], delta: Number = 0) -> dict[str, Any]:
        """Levels, what each pays, and how well membership of its people can be guessed then."""
        return {
            "levels": [float(level) for level in self.epsilons],
            "costs": [float(cost) for cost in costs],
            "membership": [attacker(cost, 2, delta=delta if cost else 0) for cost in costs],
        }

    def left_out(self, costs: Sequence[Fraction]) -> tuple[str, ...]:
        """The levels whose people are left out, as a reader sees them."""
        return tuple(
            f"{float(level):g}"
            for level, cost in zip(self.epsilons, costs, strict=True)
            if not cost
        )


def levels_of(schema: Schema | None) -> Levels | None:
    """The levels of a table whose people may state an epsilon; None where nobody can.

    This is the only place that reads where people's own epsilons stand.
    """
    every = () if schema is None else sources(schema)
    found: list[str | float] = []
    for one in every:
        listed = 0 if one.people is None else len(one.people) - one.people["epsilon"].null_count
        if listed:
            raise PrivacyError(
                f"{listed} people state an own epsilon in policies keyed by person, which noise "
                "cannot look up: put them in a column of the table, or set demands aside "
                "(demands='ignore', --ignore-demands)."
            )
        entries = (one.general, *one.columns.values())
        found += [place for entry in entries if (place := entry.get("epsilon")) is not None]
    if schema is None or not found:
        return None
    stated: Sequence[float | str] = schema.epsilon_levels or USUAL
    epsilons = tuple(exact("epsilon", level) for level in stated)
    both = any(states(schema, demand) for demand in EXACT)
    return Levels(epsilons, tuple(dict.fromkeys(found)), schema.epsilon_shares, both)


NOBODY = (
    "Nobody's own epsilon is declared: name its column in the schema, [policy] epsilon = ..., or "
    "give one epsilon for everybody."
)
IGNORED = "People's own demands of epsilon were set aside by the controller."


def kept_levels(schema: Schema | None, demands: str) -> Levels | None:
    """The levels that a verb must keep; None where there are none, or they are set aside."""
    if demands not in ("keep", "ignore"):
        raise ParameterError("demands", demands, "'keep' or 'ignore'")
    return levels_of(schema) if demands == "keep" else None


def require_quiet(schema: Schema | None, epsilon: Fraction, demands: str) -> None:
    """Refuse noise so small that it is nearly exact where people ask for k, l or t alone.

    Raises:
        PrivacyError: they state no epsilon, and this one is above ``QUIET``.
    """
    if schema is None or demands == "ignore" or epsilon <= QUIET or states(schema, "epsilon"):
        return
    if any(states(schema, demand) for demand in EXACT):
        raise PrivacyError(
            f"People state k, l or t and no epsilon: noise keeps them up to epsilon {QUIET}. Ask "
            "for less, declare their epsilon under [policy], or set demands aside "
            "(demands='ignore', --ignore-demands)."
        )


def require_share(share: Number) -> Fraction:
    """The share of everybody's own epsilon that one use spends."""
    found = exact("share", share)
    if not 0 < found <= 1:
        raise ParameterError("share", str(share), "above 0, at most 1")
    return found
