"""An answer before it is checked: what a query hands to the door."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import isfinite
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from halfmask.engines.request import Request
    from halfmask.release.demands import Watch

    Counts = NDArray[np.int64]

MARGIN = Fraction(1, 10**9)


@dataclass(frozen=True, slots=True)
class Promise:
    """What every published row must reach, level by level.

    Attributes:
        what: people, contributors or diversity.
        column: the column it speaks of.
        thresholds: per level.
        count: the column of ``groups`` that holds the number.
        values: the column that lists the distinct values; None where numbers add up.
        cap: from so many on, values are not listed.
    """

    what: str
    column: str
    thresholds: tuple[int, ...]
    count: str
    values: str | None = None
    cap: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Shares:
    """What those bring to the sums of a row who bring most, all amounts without their sign.

    Definition: by the p% rule a sum T is not shown where T - x1 - x2 < p/100 x1, because whoever
    brings x2 could work out x1 too closely; by the (n, k) rule where x1 + ... + xn > k/100 T.
    Source: Hundepool and others, "Statistical Disclosure Control", 2012, section 4.2.

    Attributes:
        figures: the columns of the published rows that hold sums and averages.
        rules: ``{"p": ...}`` or ``{"n": ..., "k": ...}``, all of which must hold.
        most: how many of the largest are known.
        rows: per place and figure ``t0`` (the sum) and ``x0_1`` ..., largest first.
    """

    figures: tuple[str, ...]
    rules: tuple[Mapping[str, float], ...]
    most: int
    rows: pa.Table

    def dominated(self, figure: int) -> NDArray[np.bool_]:
        """Per place, whether few people make up too much of a figure."""
        import numpy as np

        totals = self._numbers(f"t{figure}")
        ranks = range(1, self.most + 1)
        largest = np.array([self._numbers(f"x{figure}_{j}") for j in ranks])
        endless = [v is not None and not isfinite(v) for v in self.rows[f"t{figure}"].to_pylist()]
        found: NDArray[np.bool_] = np.array(endless, dtype=bool)
        for rule in self.rules:
            if "p" in rule:
                rest = totals - largest[0] - (largest[1] if self.most > 1 else 0)
                excess = largest[0] * Fraction(str(rule["p"])) / 100 - rest
            else:
                excess = largest[: int(rule["n"])].sum(axis=0)
                excess = excess - totals * Fraction(str(rule["k"])) / 100
            # Sums of fractions differ in the last digit between engines: what is close counts.
            close = [t > 0 and e > -t * MARGIN for e, t in zip(excess, totals, strict=True)]
            found |= np.array(close, dtype=bool)
        return found

    def _numbers(self, name: str) -> NDArray[np.object_]:
        import numpy as np

        values = [v if v is not None and isfinite(v) else 0 for v in self.rows[name].to_pylist()]
        return np.array([Fraction(v) for v in values], dtype=object)


@dataclass(frozen=True, slots=True, eq=False)
class AnswerCandidate:
    """An answer before it is checked.

    Attributes:
        rows: the asker's columns, ``level`` (as shown) and ``hm_row`` (the place).
        groups: what the engine counted, with ``place`` per group (-1: left out).
        places: per place, its level (from 0).
        request: what was asked of the engine.
        promises: what must hold.
        steps: per level, what was generalized, in words.
        first: the number that the finest level is shown with.
        refused: people whom no level satisfies, and the largest k among them.
        without_policy: people left out because they state none.
        below: people below the guarantee, where somebody may stand in several groups.
        counted: what a second look at the rows found per place, where one was asked for:
            ``place``, then one column per promise, then the largest k and l.
        figures: per place (``hm_row``) the figures that ``rows`` were made of and that may have to
            be null, the conditional ones first.
        conditional: how many of them are conditional.
        shares: who makes up how much of the sums, where the controller asks for that.
        parts: per place and part of the people of a place: ``met``, which conditions they meet,
            ``people``, and ``l0`` ..., how many values there are of what is shown.
        watch: what the door had counted of people's demands; None where the people are not in
            reach of the door (their own cells keep their demands).
    """

    rows: pa.Table
    groups: pa.Table
    places: Counts
    request: Request
    promises: tuple[Promise, ...]
    steps: tuple[str, ...]
    first: int
    refused: tuple[int, int]
    without_policy: int
    semantics: str
    gap: float | None
    engine: str
    sql: str
    notes: tuple[str, ...] = ()
    below: int | None = None
    counted: pa.Table | None = None
    figures: pa.Table | None = None
    conditional: int = 0
    shares: Shares | None = None
    parts: pa.Table | None = None
    watch: Watch | None = None
