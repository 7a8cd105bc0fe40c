"""An answer before it is checked: what a query hands to the door."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from halfmask.engines.request import Request
    from halfmask.release.demands import Watch

    Counts = NDArray[np.int64]


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
        figures: per place (``hm_row``) the conditional figures that ``rows`` were made of.
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
    parts: pa.Table | None = None
    watch: Watch | None = None
