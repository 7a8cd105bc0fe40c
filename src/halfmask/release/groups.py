"""Groups of rows that leave, compared with groups of rows that arrived: label by label, row by row.

What was checked at the door is held to what stands where it was written, before anybody sees it:
the classes with the values of every column that a promise reads, each with its number of rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from halfmask.errors import InternalError
from halfmask.release.labels import encode_labels
from halfmask.table.files.rows import normalize

if TYPE_CHECKING:
    from collections.abc import Sequence

Groups = tuple[pa.Table, Any]
_ROWS = "hm_rows"


def count_groups(rows: pa.Table, columns: Sequence[str]) -> Groups:
    """The combinations of ``columns`` in rows that are in memory, and how many rows hold each."""
    found = rows.select(list(columns)).group_by(list(columns)).aggregate([([], "count_all")])
    return found.select(list(columns)), found["count_all"].to_numpy()


def require_groups(expected: Groups, arrived: Groups) -> None:
    """Demand that the same groups arrived, each with as many rows.

    Raises:
        InternalError: some group differs; nothing leaves.
    """
    both = pa.concat_tables([_spelled(*expected), _spelled(arrived[0], -np.asarray(arrived[1]))])
    sums = both.group_by(expected[0].column_names).aggregate([(_ROWS, "sum")])
    wrong = int(np.count_nonzero(sums[f"{_ROWS}_sum"].to_numpy()))
    if wrong:
        raise InternalError(
            f"Other rows arrived than those that were checked: {wrong} groups differ; nothing was "
            "released."
        )


def _spelled(groups: pa.Table, counts: Any) -> pa.Table:
    """Groups as the texts of their values: types differ between places, what is read does not."""
    plain = normalize(groups, ()) if groups.num_rows else groups
    columns = {}
    for name in plain.column_names:
        text = encode_labels(plain[name])
        text = text.cast(text.type.value_type) if pa.types.is_dictionary(text.type) else text
        columns[name] = text.cast(pa.string())
    return pa.table({**columns, _ROWS: pa.array(np.asarray(counts, dtype=np.int64))})
