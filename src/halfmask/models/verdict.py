"""What a check says of one model: what was required, what was achieved, who fails."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from halfmask.table.classes import Classes
    from halfmask.table.table import Table


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome of checking one model on one table.

    Attributes:
        model: the model's name, such as ``"k-anonymity"``.
        column: the sensitive column it speaks of, if any.
        holds: whether the promise is kept.
        required: the parameter that was asked for.
        achieved: the strongest parameter that the table satisfies.
        failing_classes: how many classes break the promise.
        failing_rows: how many rows stand in these classes.
        classes: how many classes there are.
        rows: how many rows there are.
        note: what a reader should know about this figure, in one sentence (empty if nothing).
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
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the verdict as plain values."""
        return asdict(self)


@runtime_checkable
class Model(Protocol):
    """A privacy promise that can be checked on class statistics.

    ``monotone``: merging classes that all pass gives a class that passes.
    ``absorbing``: a class that passes still passes after any rows are added to it.
    ``whole``: the promise is about all classes together (an average), not class by class.
    """

    name: ClassVar[str]
    monotone: ClassVar[bool]
    absorbing: ClassVar[bool]
    whole: ClassVar[bool]

    @property
    def columns(self) -> tuple[str, ...]:
        """The sensitive columns whose histograms it reads."""
        ...

    @property
    def policy(self) -> tuple[str, ...]:
        """The personal demands (``"k"`` ...) whose histograms it reads."""
        ...

    @property
    def population(self) -> Table | None:
        """The population table it compares with."""
        ...

    def passes(self, classes: Classes) -> NDArray[np.bool_]:
        """Tell for each class whether it keeps the promise, exactly."""
        ...

    def check(self, classes: Classes) -> Verdict:
        """Return the verdict on ``classes``."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """Return the model's name and parameters, to repeat it."""
        ...
