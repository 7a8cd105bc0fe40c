"""Stand-ins for a vault: one that records answers, one that repeats them without any row."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class Recorder:
    """Passes questions on and keeps the answers."""

    inner: Any
    answers: list[Any] = field(default_factory=list)

    @property
    def sizes(self):
        return self.inner.sizes

    @property
    def limit(self):
        return self.inner.limit

    def within(self, limit):
        return Recorder(self.inner.within(limit), self.answers)

    def recode(self, maps):
        return Recorder(self.inner.recode(maps), self.answers)

    def count(self, columns, cost):
        return self._kept(self.inner.count(columns, cost))

    def heavy(self, columns, cost):
        return self._kept(self.inner.heavy(columns, cost))

    def worst(self, guesses, cost):
        return self._kept(self.inner.worst(guesses, cost))

    def dependent(self, pairs, cost):
        return self._kept(self.inner.dependent(pairs, cost))

    def _kept(self, answer):
        self.answers.append(answer)
        return answer


@dataclass
class Replay:
    """Gives recorded answers in order; it has no rows at all."""

    sizes: Any
    limit: Any
    answers: list[Any]

    def within(self, limit):
        return Replay(self.sizes, limit, self.answers)

    def recode(self, maps):
        sizes = {name: int(new.max()) + 1 for name, new in maps.items()}
        return Replay(sizes, self.limit, self.answers)

    def count(self, columns, cost):
        return self.answers.pop(0)

    heavy = worst = dependent = count
