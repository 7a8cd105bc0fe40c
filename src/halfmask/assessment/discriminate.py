"""One document on how far columns tell another: the rate of some keys, or a ranking of all sets."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

from halfmask.assessment.measure import Document
from halfmask.errors import ParameterError
from halfmask.metrics.discrimination.column_sets import rank_column_sets
from halfmask.metrics.discrimination.rate import discrimination_rate
from halfmask.table.document import document_field, plain_value

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

    from halfmask.metrics.discrimination.column_sets import SetRate
    from halfmask.metrics.discrimination.columns import Suppressed
    from halfmask.metrics.discrimination.rate import Discrimination
    from halfmask.table.table import Table

SIZE = 3


@dataclass(frozen=True, slots=True, repr=False)
class DiscriminationReport(Document):
    """What was measured of one target.

    Attributes:
        target: the column that is to be learned.
        rate: the rate of the keys together; None where sets were ranked.
        sets: all sets up to a size, the most telling first; empty where keys were measured.
        suppressed: what suppressed cells counted as.
        values: whether the values of the keys are told too.
        notes: what a reader should know.
    """

    format: ClassVar[str] = "halfmask.discrimination/1"

    target: str
    rate: Discrimination | None
    sets: tuple[SetRate, ...]
    suppressed: Suppressed
    values: bool = field(metadata=document_field(hidden=True))
    notes: tuple[str, ...]

    def figures_as_values(self) -> dict[str, Any]:
        """What stands in the document: the values of the keys too, if they are told."""
        rate = None if self.rate is None else plain_value(self.rate.to_dict(values=self.values))
        return Document.figures_as_values(self) | {"rate": rate}


def discriminate(
    table: Table | str | PathLike[str],
    target: str,
    keys: Sequence[str] | None,
    *,
    size: int | None = None,
    values: bool = False,
    partition: object = None,
    suppressed: Suppressed = "keep",
    permutations: int = 0,
) -> DiscriminationReport:
    """Measure ``keys`` together; without them, or with ``size``, rank all sets of columns."""
    if keys is not None and size is None:
        found = discrimination_rate(
            table, target, keys, partition, values=True, suppressed=suppressed,
            permutations=permutations,
        )  # fmt: skip
        assert not isinstance(found, float)  # noqa: S101 - values were asked for
        told = found if values else replace(found, details=(), _places={})
        return DiscriminationReport(target, told, (), suppressed, values, found.notes)
    if values:
        raise ParameterError("values", values, "keys too, and no size")
    if suppressed != "keep":
        raise ParameterError("suppressed", suppressed, "keep, or keys and no size")
    sets = rank_column_sets(
        table, target, keys, size=SIZE if size is None else size, partition=partition,
        permutations=permutations,
    )  # fmt: skip
    return DiscriminationReport(target, None, sets, suppressed, values, ())
