"""What a check says of one model: what was required, what was achieved, who fails."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from halfmask.models.exact import plain

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.models.exact import Number
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
        achieved: the strongest parameter that the table satisfies; infinite if none does.
        failing_classes: how many classes break the promise (or, where the promise is about all
            classes together, how many would have to leave).
        failing_rows: how many rows stand in these classes.
        classes: how many classes there are.
        rows: how many rows there are.
        note: what a reader should know about this figure, in one sentence (empty if nothing).
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
    note: str = ""
    failing: tuple[object, ...] = field(default=(), repr=False, compare=False)

    def to_dict(self) -> dict[str, Any]:
        """Return the verdict as plain values, without names; an infinite figure is ``None``."""
        plain = asdict(self)
        del plain["failing"]
        for key in ("required", "achieved"):
            plain[key] = plain[key] if math.isfinite(plain[key]) else None
        return plain


@runtime_checkable
class Model(Protocol):
    """A privacy promise that can be checked on class statistics.

    The statistics' rows are those of the table alone; where a population is given, classes that
    hold only its people have no rows.
    """

    @property
    def name(self) -> str:
        """What the promise is called in verdicts and reports."""
        ...

    @property
    def monotone(self) -> bool:
        """Whether merging classes that all pass gives a class that passes."""
        ...

    @property
    def absorbing(self) -> bool:
        """Whether a class that passes still passes after any rows are added to it."""
        ...

    @property
    def whole(self) -> bool:
        """Whether the promise is about all classes together (an average), not class by class.

        Then ``passes`` marks the classes that may stay: without the others the promise holds.
        """
        ...

    @property
    def relative(self) -> bool:
        """Whether a class is compared with all rows, so that it depends on the other classes."""
        ...

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


def judge(
    model: Model,
    classes: Classes,
    passing: NDArray[np.bool_],
    *,
    required: Number,
    achieved: Number,
    note: str = "",
) -> Verdict:
    """Build the verdict of ``model`` from the classes that pass; no rows, no promise."""
    rows = int(classes.rows.sum())
    failing = ~passing
    return Verdict(
        model=model.name,
        holds=rows > 0 and not bool(failing.any()),
        required=plain(required),
        achieved=plain(achieved),
        failing_classes=int(np.count_nonzero(failing)),
        failing_rows=int(classes.rows[failing].sum()),
        classes=int(np.count_nonzero(classes.rows)),
        rows=rows,
        column=model.columns[0] if model.columns else None,
        note=note,
    )
