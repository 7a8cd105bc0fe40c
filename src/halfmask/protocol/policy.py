"""A person's policy: how well to hide, how often to answer, and what noise may cost."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - read when a policy is decoded
from dataclasses import dataclass, field

from halfmask.errors import ParameterError
from halfmask.protocol.noise import truth

LARGEST = 10**9


@dataclass(frozen=True, slots=True)
class Policy:
    """What the person demands.

    Attributes:
        k: of every query; None: queries are refused unless their columns are named.
        l: of every query.
        columns: column to (k, l) when it is queried.
        days: so long an answer blocks another one on the same values.
        answers: so many answers on the same values within that time.
        epsilon: what one answer with noise may cost; None: none is given.
        budget: what all answers with noise may cost within that time.
    """

    k: int | None = None
    l: int = 1  # noqa: E741
    columns: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    days: int = 30
    answers: int = 1
    epsilon: float | None = None
    budget: float = 1.0

    def __post_init__(self) -> None:
        pairs = [(self.k if self.k is not None else 1, self.l), *self.columns.values()]
        for k, l in pairs:  # noqa: E741
            for name, value in (("k", k), ("l", l)):
                if not isinstance(value, int) or isinstance(value, bool):
                    raise ParameterError(name, value, "a whole number")
                if not 1 <= value <= LARGEST:
                    raise ParameterError(name, value, f"1 to {LARGEST:,}")
        if self.epsilon is not None:
            truth(self.epsilon, 2)
        if not 0 <= self.budget < float("inf"):
            raise ParameterError("budget", self.budget, "a number of at least 0")
        if self.days < 0 or self.answers < 0:
            raise ParameterError("days or answers", min(self.days, self.answers), "at least 0")

    def demand(self, queried: tuple[str, ...]) -> tuple[int, int] | None:
        """The largest demand over the queried columns; None where one of them has none."""
        known = {name.lower(): pair for name, pair in self.columns.items()}
        general = None if self.k is None else (self.k, self.l)
        found = [known.get(name.lower(), general) for name in queried] or [general]
        if any(pair is None for pair in found):
            return None
        pairs = [pair for pair in found if pair is not None]
        return max(pair[0] for pair in pairs), max(pair[1] for pair in pairs)
