"""Could a synthetic row be anybody's? The all-but-one attacker and exact copies.

Definition: the attacker knows every original row but one and takes away each synthetic row that
    these explain; the ratio is the share of synthetic rows left, which the hidden row may have
    caused, averaged over the hidden rows. 1/n: the copy of the table; 1: nothing in common.
Source: Benkhelif, "Publication de données personnelles respectueuse de la vie privée", 2018, 3.5.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Attribution:
    """What synthetic rows have in common with the original ones.

    Attributes:
        ratio: the attribution ratio.
        copies: the share of synthetic rows that equal some original row.
        unique_copies: the share of original rows that stand alone and were reproduced.
        absent: the share of synthetic rows that no original row equals.
    """

    ratio: float
    copies: float
    unique_copies: float
    absent: float

    def to_dict(self) -> dict[str, float]:
        """Return the figures as plain values."""
        return asdict(self)


def attribution(original: NDArray[np.int32], synthetic: NDArray[np.int32]) -> Attribution:
    """Compare rows given as codes, (rows, columns) each.

    Example:
        >>> rows = np.array([[0, 1], [1, 1], [1, 0]], dtype=np.int32)
        >>> attribution(rows, rows).ratio == 1 / 3
        True
    """
    both = np.concatenate([original, synthetic])
    ids = np.unique(both, axis=0, return_inverse=True)[1].reshape(-1)
    count = int(ids.max()) + 1
    real = np.bincount(ids[: len(original)], minlength=count)
    drawn = np.bincount(ids[len(original) :], minlength=count)
    left = int(np.maximum(drawn - real, 0).sum())
    caused = int(real[drawn >= real].sum())
    ratio = (left * len(original) + caused) / (len(original) * len(synthetic))
    alone = real == 1
    return Attribution(
        ratio=ratio,
        copies=float(drawn[real > 0].sum() / len(synthetic)),
        unique_copies=float((alone & (drawn > 0)).sum() / max(int(alone.sum()), 1)),
        absent=float(drawn[real == 0].sum() / len(synthetic)),
    )
