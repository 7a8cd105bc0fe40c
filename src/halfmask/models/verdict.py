"""What a model is: a promise that declares itself once and is checked on class statistics.

A class says its parameters with their ranges and words, what it needs of a table, how it behaves
under merging, how the command line and the page ask for it and how a report explains it. Reading
it from text, writing it into documents and all forms follow from that. The command line reads what
models say before it helps anybody, so modules with models import tables where they use them.
"""

from __future__ import annotations

import math
from dataclasses import MISSING, Field, dataclass, field, fields
from decimal import Decimal
from functools import cache
from importlib import import_module
from numbers import Integral, Real
from pkgutil import iter_modules
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Literal,
    NamedTuple,
    Protocol,
    TypeVar,
    runtime_checkable,
)

import numpy as np

from halfmask.errors import InternalError, ParameterError
from halfmask.models.exact_comparison import ParameterNumber, fraction
from halfmask.table.document import Result, document_field

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray

    from halfmask.table.classes import Classes
    from halfmask.table.table import Table


def plain_number(value: ParameterNumber) -> float:
    """The number as Python's own integer or float, as it stands in verdicts and documents."""
    return int(value) if isinstance(value, Integral) else float(value)


def require_whole(name: str, value: ParameterNumber, least: int) -> None:
    """Refuse ``value`` unless it is a whole number of at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise ParameterError(name, value, f"a whole number, at least {least}")


def require_number(
    name: str,
    value: ParameterNumber,
    low: ParameterNumber,
    high: ParameterNumber | None = None,
    *,
    open_low: bool = False,
) -> None:
    """Refuse ``value`` unless it is a finite number from ``low`` to ``high``."""
    allowed = f"a number {'above' if open_low else 'from'} {low}"
    allowed += "" if high is None else f" to {high}"
    if isinstance(value, bool) or not isinstance(value, Real | Decimal) or not math.isfinite(value):
        raise ParameterError(name, value, allowed)
    number = fraction(value)
    if number < low or (open_low and number == low) or (high is not None and number > high):
        raise ParameterError(name, value, allowed)


@dataclass(frozen=True, slots=True)
class Parameter:
    """What one field of a model may be.

    Attributes:
        kind: what is stated.
        low: the least number.
        high: the highest number, if there is one.
        open_low: whether ``low`` itself is not possible.
        words: the words that are possible, and what the page calls each; the first is usual.
        label: what the page asks where a word or a further number is chosen.
        stronger: 1 where a higher number promises more, -1 where a lower one does.
        counts: whether the number counts something, so that ``3`` is meant where ``3.0`` is read.
        percent: whether the page asks for it in percent.
        option: the option of another model that states this number too.
        text: whether the command line and the page can state it.
    """

    kind: Literal["number", "whole", "word", "column", "columns", "population", "any"]
    low: float = 0
    high: float | None = None
    open_low: bool = False
    words: Mapping[str, str] = field(default_factory=dict)
    label: str = ""
    stronger: int = 0
    counts: bool = False
    percent: bool = False
    option: str = ""
    text: bool = True

    def require(self, name: str, value: Any) -> None:
        """Refuse what the parameter cannot be."""
        if self.kind == "whole":
            require_whole(name, value, int(self.low))
        elif self.kind == "number":
            require_number(name, value, self.low, self.high, open_low=self.open_low)
        elif self.kind == "word" and value not in self.words:
            raise ParameterError(name, value, "one of " + ", ".join(self.words))
        elif self.kind == "column" and (not isinstance(value, str) or not value):
            raise ParameterError(name, value, "the name of a column")
        elif self.kind == "columns" and not all(isinstance(one, str) and one for one in value):
            raise ParameterError(name, value, "names of columns")
        elif self.kind == "population":
            if value is None:
                raise ParameterError(name, None, "a table")
            from halfmask.table.table import require_table

            require_table(value)


# What stands behind ``field(metadata=...)`` in the class of a model.


def whole_number(low: int, **more: Any) -> dict[str, Parameter]:
    """A whole number of at least ``low``."""
    return {"parameter": Parameter("whole", low, counts=True, **more)}


def number(low: float, high: float | None = None, **more: Any) -> dict[str, Parameter]:
    """A number from ``low`` to ``high``."""
    return {"parameter": Parameter("number", low, high, **more)}


def word(label: str, **words: str) -> dict[str, Parameter]:
    """One of ``words``, each given with what the page calls it."""
    return {"parameter": Parameter("word", words=words, label=label)}


def sensitive_column() -> dict[str, Parameter]:
    """The name of a sensitive column."""
    return {"parameter": Parameter("column")}


def missing_values() -> dict[str, Parameter]:
    """Whether a missing value of the sensitive column protects anybody; the controller decides."""
    return word("Missing values", unknown="protect nobody", value="count as a value")


def compared_rows() -> dict[str, Parameter]:
    """Which rows a class is compared with."""
    return word("Compared with", release="the rows that leave", original="the original table")


def everybody() -> dict[str, Parameter]:
    """The table of a population."""
    return {"parameter": Parameter("population")}


@dataclass(frozen=True, slots=True)
class Option:
    """How people ask for a model.

    Attributes:
        name: of the option on the command line, without its dashes.
        help: what the option means, in one line.
        label: what the page writes before the field.
        note: what the page writes below it.
        common: whether the page shows the field at once.
    """

    name: str
    help: str
    label: str
    note: str = ""
    common: bool = False


@dataclass(frozen=True, slots=True)
class Words:
    """A model for a reader who is no specialist.

    Attributes:
        promise: what holds for everybody in the release.
        attacker: what the promise assumes that an attacker knows and does.
        open: what it does not protect from.
        bound: how the figure is compared, ``"at least"`` or ``"at most"``.
    """

    promise: str
    attacker: str
    open: str
    bound: str


KNOWN = "The attacker knows that a person is in the table, and this person's quasi-identifiers"
KNOWN_ONLY = f"{KNOWN}, but nothing else of the row."
SOUGHT = f"{KNOWN}, and looks for the sensitive value."
ONE_VALUE = "If all rows of a class hold the same sensitive value, that value is known."
ALIKE = "Values may be alike in meaning, and one of them may be much likelier than before."
WHOLE_RELEASE = "What the whole release tells about everybody in it stays told."
SOUGHT_AGAINST_ALL = (
    f"{SOUGHT} The distribution in the whole release (or, where the promise names it, in the "
    "original table) is taken to be known to everybody."
)


class KernelDemand(NamedTuple):
    """What a model asks of the class of each row, as far as methods that divide rows look at it.

    Attributes:
        rows: how many rows, for all rows alike or for each.
        column: the sensitive column that the others are about.
        values: how many different values.
        distance: how far, at most, from the distribution of all rows; 1: any.
        missing: whether a missing value counts as one of the values.
    """

    rows: Any = 1
    column: str | None = None
    values: Any = 0
    distance: Any = 1.0
    missing: bool = False


@dataclass(frozen=True, slots=True)
class DemandLevel(Result):
    """Those who demand the same, and what they have.

    Attributes:
        demanded: what each of them asks for.
        people: how many they are, each counted once.
        reached: what the one with least of it has: people or values in the class, or the distance.
    """

    demanded: float
    people: int
    reached: float


@dataclass(frozen=True, slots=True)
class Verdict(Result):
    """The outcome of checking one model on one table.

    Attributes:
        model: the model's name, such as ``"k-anonymity"``.
        column: the sensitive column it speaks of, if any.
        holds: whether the promise is kept.
        required: the parameter that was asked for.
        achieved: the strongest parameter that the table satisfies; infinite if none does.
        failing_classes: how many classes break the promise (or, where the promise is about all
            classes together, how many would have to leave).
        failing_rows: how many rows stand in these classes.
        classes: how many classes there are.
        rows: how many rows there are.
        smallest: how many people the smallest class holds, where classes were looked at.
        note: what a reader should know about this figure, in one sentence (empty if nothing).
        demands: of a personal promise, by what people demand, what they have.
        failing: who demands more than they have (people, or rows from 0), where ``check`` looked;
            for the controller only: no release and no document of one holds it.
    """

    model: str
    holds: bool
    required: float
    achieved: float
    failing_classes: int
    failing_rows: int
    classes: int
    rows: int
    column: str | None = None
    smallest: int | None = None
    note: str = ""
    demands: tuple[DemandLevel, ...] = ()
    failing: tuple[object, ...] = field(
        default=(), repr=False, compare=False, metadata=document_field(hidden=True)
    )

    def _repr_html_(self) -> str:
        """The verdict, by demand where it is personal; nobody is named."""
        from halfmask.table.document import grid, view

        if self.demands:
            levels = [(one.demanded, one.people, one.reached) for one in self.demands]
            told = grid(("demanded", "people", "reached"), levels)
        else:
            told = grid(("required", "achieved"), [(self.required, self.achieved)])
        about = "" if self.column is None else f" of {self.column}"
        holds = "holds" if self.holds else f"does not hold: {self.failing_rows:,} rows fail"
        return view(f"{self.model}{about} {holds}", told)

    def to_dict(self) -> dict[str, Any]:
        """Return the verdict as plain values, without names; an infinite figure is ``None``.

        A personal promise has no figure for all: it is told by demand.
        """
        found = Result.to_dict(self)
        return found | {"required": None, "achieved": None} if self.demands else found


@runtime_checkable
class Model(Protocol):
    """A privacy promise that can be checked on class statistics.

    The statistics' rows are those of the table alone; where a population is given, classes that
    hold only its people have no rows. A model is a frozen dataclass whose fields carry a parameter
    in their metadata, made by ``whole_number``, ``number``, ``word``, ``sensitive_column`` or
    ``everybody``; what this class defines fits most of them.

    Attributes:
        family: what the promise is called, whatever its parameters.
        option: how people ask for it; ``None``: only in Python.
        words: what reports say of it.
    """

    __slots__ = ()

    family: ClassVar[str]
    option: ClassVar[Option | None] = None
    words: ClassVar[Words]

    def __post_init__(self) -> None:
        for one, parameter in parameters(type(self)):
            value = getattr(self, one.name)
            if value is not None or one.default is not None:
                parameter.require(one.name, value)

    @property
    def name(self) -> str:
        """What the promise is called in verdicts and reports."""
        return self.family

    @property
    def monotone(self) -> bool:
        """Whether merging classes that all pass gives a class that passes."""
        ...

    @property
    def absorbing(self) -> bool:
        """Whether a class that passes still passes after any rows are added to it."""
        return False

    @property
    def whole(self) -> bool:
        """Whether the promise is about all classes together (an average), not class by class.

        Then ``passes`` marks the classes that may stay: without the others the promise holds.
        """
        return False

    @property
    def relative(self) -> bool:
        """Whether a class is compared with all rows, so that it depends on the other classes.

        Where a model leaves that open, it has a field ``reference`` of ``compared_rows``.
        """
        return getattr(self, "reference", None) == "release"

    @property
    def original(self) -> bool:
        """Whether a class is compared with rows of the table that may not leave."""
        return getattr(self, "reference", None) == "original"

    @property
    def columns(self) -> tuple[str, ...]:
        """The sensitive columns whose histograms it reads."""
        return tuple(
            getattr(self, one.name)
            for one, parameter in parameters(type(self))
            if parameter.kind == "column"
        )

    @property
    def policy(self) -> tuple[str, ...]:
        """The personal demands (``"k"`` ...) whose histograms it reads."""
        return ()

    @property
    def personal(self) -> bool:
        """Whether its figures follow what single people state: no document holds them."""
        return bool(self.policy)

    @property
    def units(self) -> tuple[str, ...]:
        """What it counts beside people, by the name under which a table encodes it."""
        return ()

    @property
    def weighted(self) -> bool:
        """Whether it counts the people of a population whom rows stand for by their weights."""
        return False

    @property
    def population(self) -> Table | None:
        """The population table it compares with."""
        return None

    @property
    def blind(self) -> bool:
        """Whether it also speaks of how classes were chosen, which classes alone do not show."""
        return False

    def settle(self, table: Table) -> Model:  # noqa: ARG002 - most are as they stand
        """The model with what it leaves open decided by the table."""
        return self

    def faults(self, table: Table) -> list[str]:  # noqa: ARG002 - most need nothing more
        """What the table lacks beyond its columns and demands, in words."""
        return []

    def passes(self, classes: Classes) -> NDArray[np.bool_]:
        """Tell for each class whether it keeps the promise, exactly."""
        ...

    def check(self, classes: Classes) -> Verdict:
        """Return the verdict on ``classes``."""
        ...

    def unavoidable(self, classes: Classes, limit: int) -> NDArray[np.int64]:  # noqa: ARG002
        """Per class, how many of its rows any finer grouping must lose, if it may lose ``limit``.

        A lower bound; 0 always holds.
        """
        return np.zeros(len(classes), dtype=np.int64)

    def survivors(
        self,
        classes: Classes,  # noqa: ARG002 - most have no kernel
        kept: NDArray[np.bool_],  # noqa: ARG002
    ) -> NDArray[np.bool_] | None:
        """The classes of ``kept`` that stay when those that fail leave until none does.

        None: not known faster than by ``passes``, again and again.
        """
        return None

    def shortfall(self, classes: Classes) -> str:  # noqa: ARG002 - the verdict says it
        """How far ``classes`` fall short, in words of its own; empty: the verdict's figures."""
        return ""

    def kernel_demand(self, table: Table) -> KernelDemand | None:  # noqa: ARG002 - most have none
        """What methods that divide rows see to as they go; the check decides in the end."""
        return None

    def unmet(
        self,
        classes: Classes,  # noqa: ARG002 - nobody demands anything
        ids: NDArray[Any],
        asked: NDArray[np.float64],  # noqa: ARG002
    ) -> NDArray[np.bool_]:
        """Tell per row, by its class and what its person asks for, whether that is not met."""
        return np.zeros(len(ids), dtype=np.bool_)

    @classmethod
    def own(cls, table: Table) -> list[Model]:  # noqa: ARG003 - most read no demands
        """The models of this kind that keep what people of ``table`` demand for themselves."""
        return []

    def to_dict(self) -> dict[str, Any]:
        """Return the model's family and parameters, to repeat it; a population is no parameter."""
        facts: dict[str, Any] = {"model": self.family}
        for one in fields(self):  # type: ignore[arg-type]  # every model is a dataclass
            parameter = one.metadata.get("parameter")
            value = getattr(self, one.name)
            if parameter is None or parameter.kind in ("word", "column"):
                facts[one.name] = value
            elif parameter.kind != "population":
                facts[one.name] = None if value is None else plain_number(value)
        return facts


def most_achieved(verdicts: Iterable[Verdict]) -> list[str]:
    """What to ask for where not even all rows together keep a promise."""
    return [
        f"{one.model}{f' of column {one.column!r}' if one.column else ''}: {one.required:,} is "
        f"required, all rows in one class achieve {one.achieved:,}: ask for no more than that."
        for one in verdicts
        if not one.holds
    ]


@cache
def parameters(model: type[Model]) -> tuple[tuple[Field[Any], Parameter], ...]:
    """The fields of a model that carry a parameter."""
    stated = [(one, one.metadata.get("parameter")) for one in fields(model)]  # type: ignore[arg-type]
    return tuple((one, parameter) for one, parameter in stated if parameter is not None)


def is_required(one: Field[Any]) -> bool:
    """Whether a model cannot be made without this field."""
    return one.default is MISSING and one.default_factory is MISSING


_Kind = TypeVar("_Kind", bound=type[Model])
_REGISTER: dict[str, type[Model]] = {}


def register_model(model: _Kind) -> _Kind:
    """Make a model known to command line, page, frontier, report and reference."""
    known = _REGISTER.setdefault(model.family, model)
    if (known.__module__, known.__qualname__) != (model.__module__, model.__qualname__):
        raise InternalError(f"Two models are called {model.family!r}: rename one.")
    return model


def known_models() -> tuple[type[Model], ...]:
    """Every model: those of this package and of others that name theirs under halfmask.models."""
    _load()
    return tuple(_REGISTER.values())


# Modules without models.
_TOOLS = (
    "blank_cells",
    "check",
    "exact_comparison",
    "options",
    "requirements",
    "statistics",
    "verdict",
)


@cache
def _load() -> None:
    package = import_module("halfmask.models")
    for module in iter_modules(package.__path__):
        if module.name not in _TOOLS:
            import_module(f"{package.__name__}.{module.name}")
    from importlib import metadata  # late: only who lists all models looks for other packages

    for entry in metadata.entry_points(group="halfmask.models"):
        entry.load()


def judge(
    model: Model,
    classes: Classes,
    passing: NDArray[np.bool_],
    *,
    required: ParameterNumber,
    achieved: ParameterNumber,
    note: str = "",
    demands: tuple[DemandLevel, ...] = (),
) -> Verdict:
    """Build the verdict of ``model`` from the classes that pass; no rows, no promise."""
    rows = int(classes.rows.sum())
    failing = ~passing
    return Verdict(
        model=model.name,
        holds=rows > 0 and not bool(failing.any()),
        required=plain_number(required),
        achieved=plain_number(achieved),
        failing_classes=int(np.count_nonzero(failing)),
        failing_rows=int(classes.rows[failing].sum()),
        classes=int(np.count_nonzero(classes.rows)),
        rows=rows,
        column=model.columns[0] if model.columns else None,
        smallest=int(classes.people[classes.rows > 0].min(initial=rows)),
        note=note,
        demands=demands,
    )
