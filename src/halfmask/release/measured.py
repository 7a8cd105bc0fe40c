"""What a synthetic table still tells about people: the measures of risk and likeness, run on it.

Rows are compared by the parts of columns that the generator knows (a value, or an interval of
numbers), so that a number drawn inside a person's interval counts as that person's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from halfmask.metrics.risk.attribution import attribution
from halfmask.metrics.risk.inference import inference
from halfmask.metrics.risk.linkability import linkability
from halfmask.metrics.risk.membership import membership
from halfmask.metrics.risk.nearness import nearness
from halfmask.metrics.risk.singling_out import singling_out
from halfmask.metrics.risk.targets import targets
from halfmask.metrics.utility.learning import available
from halfmask.metrics.utility.likeness import likeness
from halfmask.table.schema import Column, Schema
from halfmask.table.table import Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray


def measured(
    names: Sequence[str],
    original: NDArray[np.int32],
    synthetic: NDArray[np.int32],
    control: NDArray[np.int32] | None = None,
    seed: int = 0,
) -> dict[str, Any]:
    """Measure synthetic rows given as codes, (rows, columns) each, as plain values.

    Args:
        names: the columns.
        original: the rows that the generator learned from.
        synthetic: the rows that it drew.
        control: rows that it did not learn from; None: risks stand against guessing.
        seed: repeats the choice of the people who are attacked.
    """
    held = None if control is None or not len(control) else _table(names, control)
    whom = targets(_table(names, original), _table(names, synthetic), held, seed=seed)
    found: dict[str, Any] = {
        "attribution": attribution(whom.sides, whom.size).to_dict(),
        "nearness": nearness(whom).to_dict(),
        "criteria": [one.to_dict() for one in _criteria(names, whom)],
    }
    if held is not None:
        told = membership(whom)
        found["membership"] = {"area": told.area.to_dict(), "advantage": told.advantage.to_dict()}
    if available():
        found["likeness"] = likeness(whom.sides, seed=seed).to_dict()
    return found


def _criteria(names: Sequence[str], whom: Any) -> list[Any]:
    out = [singling_out(whom)]
    if len(names) > 1:
        out.append(linkability(whom))
        out += [inference(whom, name, [n for n in names if n != name]) for name in names]
    return out


def _table(names: Sequence[str], codes: NDArray[np.int32]) -> Table:
    """Codes as a table in which every column may be known and none has an order."""
    rows = pa.table({name: pa.array(codes[:, i]) for i, name in enumerate(names)})
    return Table(rows, Schema({name: Column("quasi", kind="nominal") for name in names}))
