"""What was paid for is delivered: columns from noisy counts, where a model cannot be computed.

A method sees noisy views only, so whether it fails, and what stands in for it, is post-processing:
neither tells more of a row than the views do, and nothing more is spent.

Trouble with numbers is foreseen. Whatever else a method raises is a defect of it: its model is not
used, what was paid for still leaves, and a note and a warning say that the method is wrong.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from halfmask.errors import (
    BudgetExceededError,
    InputError,
    InternalError,
    UnsatisfiableError,
)
from halfmask.synthesize.inference import draw_values
from halfmask.synthesize.marginals import rows_from, simplex

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from halfmask.dp.budget import Budget
    from halfmask.dp.views import Guess, NoisyCounts, NoisyViews
    from halfmask.synthesize.constraints import DrawLimits

    Codes = dict[str, NDArray[np.int64]]

FELL_BACK = (
    "The model could not be computed: columns were drawn for themselves, from the noisy counts "
    "that had been paid for."
)
SHORT = (
    "The model holds few rows, or none, within what is given and possible: rows that fit were "
    "repeated, or, where there is none, columns that no condition names were drawn as of everybody."
)
DEFECT = (
    "The method failed by a defect of halfmask ({}): columns were drawn for themselves, from the "
    "noisy counts that had been paid for. Please report it."
)
# What numbers can do: a division, an overflow, a matrix without an inverse, no structure found.
_FORESEEN = (UnsatisfiableError, ArithmeticError, np.linalg.LinAlgError)


@dataclass(slots=True, eq=False)
class PaidViews:
    """Noisy views, with a list of the counts that were answered."""

    views: NoisyViews
    answered: list[NoisyCounts] = field(default_factory=list)

    @property
    def sizes(self) -> Mapping[str, int]:
        """How many public values each column has."""
        return self.views.sizes

    @property
    def limit(self) -> Budget:
        """The budget to use."""
        return self.views.limit

    def count(self, columns: Sequence[str], cost: Budget) -> NoisyCounts:
        """A noisy table of counts over ``columns``."""
        # Listed, whatever becomes of the method: they are paid for, and columns can rest on them.
        found = self.views.count(columns, cost)
        self.answered.append(found)
        return found

    def recode(self, maps: Mapping[str, NDArray[np.int64]]) -> NoisyViews:
        """The same rows by other codes; what is counted of them is not listed."""
        return self.views.recode(maps)

    def within(self, limit: Budget) -> PaidViews:
        """The same rows for a part of the budget."""
        return PaidViews(self.views.within(limit), self.answered)

    def heavy(
        self, columns: Sequence[str], cost: Budget
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], float]:
        """The cells of a table too large to list whose noisy count is large, and the total."""
        return self.views.heavy(columns, cost)

    def worst(self, guesses: Sequence[Guess], cost: Budget) -> int:
        """Which guess is (about) farthest from the rows."""
        return self.views.worst(guesses, cost)

    def dependent(self, pairs: Sequence[tuple[tuple[str, ...], str]], cost: Budget) -> int:
        """Which (parents, child) is (about) farthest from independence."""
        return self.views.dependent(pairs, cost)


def learn_and_draw(
    learn: Callable[..., Any],
    views: NoisyViews,
    rows_of: Callable[[float], int],
    random: np.random.Generator,
    *,
    limits: DrawLimits | None = None,
    **options: Any,
) -> tuple[Codes, tuple[str, ...]]:
    """Public codes of the rows that a method draws, and what to say where it could not.

    Args:
        learn: the method.
        views: all that it may ask about the rows.
        rows_of: how many rows to draw where a model has so many.
        random: where chance comes from; it holds no secret.
        limits: which rows may be drawn; None: all.
        options: what the method takes.

    Raises:
        InternalError: the views refused, or no column's counts had been paid for.
    """
    note = FELL_BACK
    paid = PaidViews(views)
    try:
        model = learn(paid, **options)
        codes, short = _draw_codes(model, rows_of(float(model.rows)), random, views.sizes, limits)
        return codes, _short_note(short)
    except (InputError, InternalError, BudgetExceededError):
        raise  # what is public is wrong, or the views refuse
    except _FORESEEN:
        pass
    except Exception as error:  # noqa: BLE001 - the budget is gone: deliver, and tell of it
        # The kind only: what an error says may hold a value, if a noisy one.
        note = DEFECT.format(type(error).__name__)
    columns = {name: _single(paid.answered, name, size) for name, size in views.sizes.items()}
    if not any(table is not None for table in columns.values()):
        raise InternalError("The method failed before it had counted a column.")
    if note != FELL_BACK:
        warnings.warn(note, RuntimeWarning, stacklevel=2)
    count = rows_of(rows_from([one for one in paid.answered if one.counts.size]))
    alone = _IndependentColumns(
        {n: np.ones(s) if (t := columns[n]) is None else t for n, s in views.sizes.items()}
    )
    codes, short = _draw_codes(alone, count, random, views.sizes, limits)
    return codes, (note, *_short_note(short))


@dataclass(frozen=True, slots=True, eq=False)
class _IndependentColumns:
    """Columns that know nothing of each other, by the weights of their values."""

    weights: Mapping[str, NDArray[np.float64]]

    def draw(self, rows: int, random: np.random.Generator) -> Codes:
        return {
            name: draw_values(np.zeros(rows, np.int64), held[None, :], random)
            for name, held in self.weights.items()
        }


def _draw_codes(
    model: Any,
    rows: int,
    random: np.random.Generator,
    sizes: Mapping[str, int],
    limits: DrawLimits | None,
) -> tuple[Codes, float]:
    """Codes within the limits, and which share of them the model did not give.

    Raises:
        ArithmeticError: what the model draws is none.
    """

    def draw(count: int, chance: np.random.Generator) -> Codes:
        codes: Codes = model.draw(count, chance)
        if not all(_inside(codes[name], size) for name, size in sizes.items()):
            raise ArithmeticError
        return codes

    if limits is None:
        return draw(rows, random), 0.0
    if limits.given and hasattr(model, "given"):
        model = model.given(limits.given)
    return limits.draw(draw, rows, random)


def _short_note(short: float) -> tuple[str, ...]:
    return (SHORT,) if short else ()


def _inside(codes: NDArray[Any], size: int) -> bool:
    whole = np.issubdtype(codes.dtype, np.integer)
    return whole and bool(((codes >= 0) & (codes < size)).all())


def _single(answered: Sequence[NoisyCounts], name: str, size: int) -> NDArray[np.float64] | None:
    """The counts of one column from the table that has the least noise on them."""
    found = None
    for one in answered:
        if name not in one.columns:
            continue
        noise = one.variance * one.counts.size / size
        if found is None or noise < found[0]:
            others = tuple(i for i, other in enumerate(one.columns) if other != name)
            found = noise, one.counts.sum(axis=others).astype(np.float64)
    if found is None:
        return None
    return simplex(found[1], max(1.0, float(found[1].sum())))
