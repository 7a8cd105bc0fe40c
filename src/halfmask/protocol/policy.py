"""A person's policy: how well to hide, how often to answer, and what noise may cost."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - read when a policy is decoded
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

from halfmask.errors import ParameterError
from halfmask.protocol.noise import truth

if TYPE_CHECKING:
    from collections.abc import Iterable

    from halfmask.protocol.commons import Commons

LARGEST = 10**9


@dataclass(frozen=True, slots=True)
class Policy:
    """What the person demands.

    Attributes:
        k: of every query; None: queries are refused unless all their columns are named.
        l: of every query.
        columns: column to (k, l) when a query touches it, if that is more.
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

    def demand(self, touched: Iterable[str]) -> tuple[int, int] | None:
        """The strictest demand on a query that touches these columns; None: it is refused.

        The general demand is a floor for every column; where there is none, every column that is
        touched must have its own.
        """
        names = {name.lower() for name in touched}
        own = [(name.lower(), pair) for name, pair in self.columns.items() if name.lower() in names]
        pairs = [pair for _, pair in own]
        if self.k is not None:
            pairs.append((self.k, self.l))
        elif {name for name, _ in own} != names:
            return None
        if not pairs:
            return None
        return max(pair[0] for pair in pairs), max(pair[1] for pair in pairs)

    def check_columns(self, commons: Commons) -> None:
        """Refuse a demand on a column that does not exist: nobody would ever honor it.

        Raises:
            ParameterError: a column is not one of the common schema, or is in another case.
        """
        known = {field.name for table in commons.tables.values() for field in table.arrow}
        for name in self.columns:
            if name not in known:
                raise ParameterError("column", name, f"one of {', '.join(sorted(known))}")


def permits(policy: Policy | None, commons: Commons, text: str, level: int) -> bool:
    """Whether a record may leave a person's cell at a level of a question: the last look at it.

    Reads the question itself, and shares nothing with what chose the level: the guarantee of the
    level must cover what the person demands in general, and of each column that is named.
    """
    named, guarantees = _read(commons, text)
    if policy is None or not 0 <= level < len(guarantees):
        return False
    k, l = guarantees[level]  # noqa: E741
    k = max(k, commons.floor)
    if policy.k is not None and (policy.k > k or policy.l > l):
        return False
    stated = set()
    for column, (own_k, own_l) in policy.columns.items():
        if column.lower() in named:
            stated.add(column.lower())
            if own_k > k or own_l > l:
                return False
    return policy.k is not None or (bool(stated) and stated == named)


@lru_cache(maxsize=32)
def _read(commons: Commons, text: str) -> tuple[frozenset[str], tuple[tuple[int, int], ...]]:
    """The columns of the common schema that a question names anywhere, and its guarantees."""
    from sqlglot import exp

    from halfmask.query.parsing.parse import parse

    statement = parse(text)
    known = {field.name.lower() for table in commons.tables.values() for field in table.arrow}
    parts = [
        identifier.name
        for identifier in statement.select.find_all(exp.Identifier)
        # A new name touches nothing: what it stands for is named beside it.
        if not (
            isinstance(identifier.parent, exp.Alias | exp.TableAlias)
            and identifier.arg_key != "this"
        )
    ]
    # A natural join compares whatever columns two tables have in common.
    if any(join.method for join in statement.select.find_all(exp.Join)):
        parts += known
    parts += statement.chain.diverse
    named = frozenset(part.lower() for part in parts) & known
    return named, tuple((g.k, g.l) for g in statement.chain.guarantees)


def named_columns(commons: Commons, text: str) -> frozenset[str]:
    """The columns of the common schema, in lower case, that a question names anywhere."""
    return _read(commons, text)[0]
