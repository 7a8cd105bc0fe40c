"""What a search found and hands to ``release.seal``; nothing in it has been trusted yet."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from halfmask.models.verdict import Model
    from halfmask.release.demands import Choice
    from halfmask.release.partition import Partition
    from halfmask.release.recoding import Recoding
    from halfmask.table.table import Table


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A recoding or a partition of one table that claims to satisfy the models.

    Attributes:
        table: the original rows.
        models: the promises it must keep.
        recoding: how rows are generalized.
        step: per row, the index of the recoding's step or of the partition's class; -1 means that
            the row is suppressed.
        loss: the loss that the search believes it has, or None where it did not compute it.
        method: how it was found, such as ``"optimal"``.
        metric: what the search minimized.
        parameters: what is needed to repeat it (suppression, seed, time limit, weights ...).
        gap: the proven distance to the optimum; 0.0 is optimal, None is a heuristic.
        notes: what a reader should know, one sentence each.
        demands: whether people's own demands are kept, or set aside by the controller.
    """

    table: Table
    models: Sequence[Model]
    recoding: Recoding | Partition
    step: NDArray[np.int32]
    loss: float | None = None
    method: str = "optimal"
    metric: str = "loss"
    parameters: Mapping[str, Any] = field(default_factory=dict)
    gap: float | None = None
    notes: Sequence[str] = ()
    demands: Choice = "keep"

    def __repr__(self) -> str:
        return f"Candidate({self.method}, {len(self.models)} models, {self.recoding!r})"
