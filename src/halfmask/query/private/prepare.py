"""What is decided before a question under EPSILON is paid for: its plan, promise and views."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeVar

from halfmask.dp.accountant import unit
from halfmask.dp.answers import require_confidence
from halfmask.dp.budget import Approximate, Number, Pure, budget, require_modest
from halfmask.dp.declared import given_domains
from halfmask.dp.views import Groups, View, views_of
from halfmask.errors import ParameterError, QueryError, UnsupportedQueryError
from halfmask.models.exact import require_whole
from halfmask.query.private.clause import PrivateStatement, parse_private
from halfmask.query.private.personal import Audience, audience
from halfmask.query.private.plan import PrivatePlan, plan_private

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike

    from halfmask.dp.accountant import Accountant
    from halfmask.dp.budget import Budget
    from halfmask.query.run import Session

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Prepared:
    """A question that is ready to be answered or explained; nothing is spent."""

    statement: PrivateStatement
    plan: PrivatePlan
    audience: Audience
    rows_per_person: int
    confidence: float

    @property
    def promise(self) -> Pure | Approximate:
        """What it costs those who pay most."""
        return self.audience.promise

    @property
    def groups(self) -> Groups:
        """How groups are found."""
        return "public" if self.plan.public else "threshold"

    def views(self) -> tuple[View, ...]:
        """The noisy views that will be read; of levels that are read apart, those of all."""
        limits = [unit(self.promise) if self.plan.public else self.promise]
        if self.audience.apart:
            limits = [self.audience.limit(code) for code in self.audience.read]
        return tuple(
            view
            for limit in limits
            for view in views_of(
                self.plan.questions,
                self.plan.labels,
                limit,
                self.rows_per_person,
                groups=self.groups,
            )
        )


def prepare_privately(
    session: Session,
    sql: str,
    *,
    epsilon: Number | Literal["personal"] | None = None,
    delta: Number | None = None,
    domains: Mapping[str, object] | str | PathLike[str] | None = None,
    rows_per_person: int | None = None,
    confidence: float | None = None,
    share: Number | None = None,
    demands: str = "keep",
    insist: bool = False,
    accountant: Accountant | None = None,
) -> Prepared:
    """Decide everything that can be decided before the budget is spent."""
    statement = parse_private(sql)
    most = _stated("rows_per_person", statement.rows_per_person, rows_per_person, 1)
    require_whole("rows_per_person", most, 1)
    sure = _stated("confidence", statement.confidence, confidence, 0.95)
    require_confidence(sure)
    plan = plan_private(
        statement,
        session.catalog,
        session.engine,
        domains=given_domains(domains),
        rows_per_person=most,
    )
    own = epsilon == "personal" or (statement.personal and epsilon is None)
    part = _stated("share", statement.share, share, None)
    if part is not None and not own:
        raise ParameterError("share", str(part), "it with PERSONAL EPSILON only")
    promise = None
    if own:
        chance = statement.delta if delta is None else delta
    else:
        chance = 0
        promise = _promise(statement, epsilon, delta)
        require_modest(promise, insist=insist)
        _require_groups(plan, statement, promise)
    whose = audience(
        plan,
        statement,
        promise,
        delta=chance,
        share=1 if part is None else part,
        demands=demands,
        accountant=accountant,
    )
    require_modest(whose.promise, insist=insist)
    return Prepared(statement, plan, whose, most, sure)


def _promise(
    statement: PrivateStatement, epsilon: Number | None, delta: Number | None
) -> Pure | Approximate:
    """The budget, stated once: in the clause or in the call."""
    if (statement.epsilon or statement.personal) and (epsilon is not None or delta is not None):
        raise QueryError(
            "the budget is stated twice, here and in the call: keep one.",
            text=statement.text,
            start=statement.start,
            length=12,
        )
    if statement.epsilon:
        return budget(statement.epsilon, statement.delta)
    if epsilon is None:
        raise QueryError(
            "the query states no budget: add WITH EPSILON 1.0 behind it.",
            text=statement.text,
            start=statement.start,
        )
    return budget(epsilon, 0 if delta is None else delta)


def _stated(name: str, written: T | None, given: T | None, default: T) -> T:
    if written is not None and given is not None and written != given:
        raise ParameterError(name, given, "it in the query or in the call, not both")
    return written if written is not None else given if given is not None else default


def _require_groups(plan: PrivatePlan, statement: PrivateStatement, promise: Budget) -> None:
    """Groups that nobody declared need a delta."""
    if plan.public or (isinstance(promise, Approximate) and promise.delta):
        return
    unknown = next(key.name for key in plan.keys if key.domain is None)
    at = statement.text.lower().rfind(unknown.lower(), 0, statement.start)
    raise UnsupportedQueryError(
        f"the groups of {unknown} are not public: declare domain = [...] for it in the schema (or "
        "domains=...), or add DELTA 1e-6, and only groups far above one person are shown.",
        text=statement.text,
        start=max(at, 0),
        length=len(unknown),
    )
