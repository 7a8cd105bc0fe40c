"""What is compared, how, and which settings are tried: what may be asked, checked once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypedDict

from halfmask.anonymize.auto import AUTO
from halfmask.assessment.points import require_axes
from halfmask.assessment.settings import require_effort, require_limit
from halfmask.errors import InputError, ParameterError
from halfmask.metrics.discrimination.need import Need, stated_needs
from halfmask.metrics.discrimination.partition import stated_partitions
from halfmask.metrics.risk.attack import LIMIT
from halfmask.metrics.sides import require_word
from halfmask.metrics.utility.queries import columns_named, statements
from halfmask.models.requirements import refuse_keywords
from halfmask.models.verdict import require_whole

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from os import PathLike

    from halfmask.metrics.sides import ReleasedRows
    from halfmask.table.tuples import Tuples


@dataclass(frozen=True, slots=True, eq=False)
class ComparedTables:
    """What is compared.

    Attributes:
        original: the rows or tuples it was made from.
        release: its rows or tuples; ``earlier`` another release, ``control`` other people.
        weaker: a release under a weaker promise.
        notes: who counted what, and which columns were left out.
        blanks: per release, the columns in which a missing cell may be a suppressed one.
    """

    original: Tuples
    release: ReleasedRows | Tuples
    control: Tuples | None
    earlier: ReleasedRows | Tuples | None
    weaker: ReleasedRows | Tuples | None
    notes: tuple[str, ...] = ()
    blanks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


class ComparisonSettings(TypedDict, total=False):
    """How two tables are compared; ``compare`` explains each."""

    suppressed: str | None
    same_order: bool
    targets: Sequence[str] | str | None
    needs: Sequence[Need] | str | PathLike[str]
    partition: object
    values: bool
    queries: str | PathLike[str] | None
    weights: str | None
    learn: bool | None
    attacks: int
    seed: int
    limit: float


@dataclass(frozen=True, slots=True)
class ComparisonOptions:
    """How it is compared, read and checked; ``compare`` explains each."""

    suppressed: str | None = None
    same_order: bool = False
    targets: tuple[str, ...] | None = None
    needs: tuple[Need, ...] = ()
    partition: Mapping[str, object] = field(default_factory=dict)
    values: bool = False
    queries: tuple[str, ...] = ()
    weights: str | None = None
    learn: bool | None = None
    attacks: int = 500
    seed: int = 0
    limit: float = LIMIT

    @classmethod
    def of(cls, settings: ComparisonSettings) -> ComparisonOptions:
        """Read settings.

        Raises:
            ParameterError: there is no such setting, or it cannot be so.
        """
        given: dict[str, Any] = dict(settings)
        for name in given:
            if name not in cls.__slots__:
                raise ParameterError(name, given[name], f"one of {', '.join(cls.__slots__)}")
        targets = given.get("targets")
        if targets is not None:
            given["targets"] = (targets,) if isinstance(targets, str) else tuple(targets)
        queries = given.get("queries")
        given["queries"] = () if queries is None else tuple(statements(queries))
        given["needs"] = tuple(stated_needs(given.get("needs", ())))
        given["partition"] = stated_partitions(given.get("partition"))
        found = cls(**given)
        found.require()
        return found

    def require(self) -> None:
        """Refuse what cannot be."""
        require_whole("attacks", self.attacks, 1)
        require_whole("seed", self.seed, 0)
        require_limit(self.limit)
        require_word(self.suppressed)
        if not all(isinstance(wish, Need) for wish in self.needs):
            raise InputError(
                "A need is written as Need(target, keys): what is to be learned from what."
            )

    @property
    def named(self) -> list[str]:
        """The columns that are named, so that they count whatever their role."""
        wanted = [name for one in self.needs for name in (one.target, *one.keys)]
        weights = [] if self.weights is None else [self.weights]
        return [*columns_named(self.queries), *(self.targets or ()), *wanted, *weights]


class FrontierSettings(TypedDict, total=False):
    """Which settings are tried and how they are compared; ``frontier`` explains each."""

    methods: Sequence[str]
    suppression: Sequence[float]
    metric: str
    risk: str
    utility: str | None
    seed: int
    time_limit: float | None
    epsilons: Sequence[float]
    synthesizer: str
    domains: Any
    draws: int


@dataclass(frozen=True, slots=True)
class FrontierOptions:
    """Which settings are tried and how they are compared, checked."""

    methods: Sequence[str] = (AUTO,)
    suppression: Sequence[float] = (0.0, 0.02, 0.05)
    metric: str = "loss"
    risk: str = "mean"
    utility: str | None = None
    seed: int = 0
    time_limit: float | None = None
    epsilons: Sequence[float] = ()
    synthesizer: str = "auto"
    domains: Any = None
    draws: int = 5

    @classmethod
    def of(cls, settings: FrontierSettings) -> FrontierOptions:
        """Read settings.

        Raises:
            ParameterError: there is no such setting, or it cannot be so.
        """
        given: dict[str, Any] = dict(settings)
        refuse_keywords("frontier", [name for name in given if name not in cls.__slots__])
        found = cls(**given)
        require_axes(found.risk, found.utility)
        require_effort(found.seed, found.time_limit)
        require_whole("draws", found.draws, 2)
        return found
