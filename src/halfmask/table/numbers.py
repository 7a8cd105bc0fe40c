"""The distinct values of a column as numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfmask.errors import HierarchyError
from halfmask.table.decimal_comma import comma_hint

if TYPE_CHECKING:
    from numpy.typing import NDArray


def numbers_of(column: str, values: pa.Array) -> NDArray[Any]:
    """``values`` (none missing) as int64 where they are whole numbers, else as float64.

    Raises:
        HierarchyError: some are no finite numbers; says how many.
    """
    if pa.types.is_floating(values.type) or pa.types.is_decimal(values.type):
        numbers = values.cast(pa.float64(), safe=False)
    elif pa.types.is_integer(values.type):
        numbers = values if len(values) == 0 or pc.max(values).as_py() < 2**63 else None
        numbers = values.cast(pa.float64(), safe=False) if numbers is None else numbers
    elif is_text(values.type):
        numbers = _from_text(column, values.cast(pa.string()))
    else:
        raise HierarchyError(
            f"Column '{column}' holds {values.type}, not numbers; choose another hierarchy."
        )
    out = numbers.to_numpy(zero_copy_only=False)
    if out.dtype.kind in "iu":
        return np.asarray(out, dtype=np.int64)
    infinite = int(np.count_nonzero(~np.isfinite(out)))
    if infinite:
        raise HierarchyError(f"Column '{column}': {infinite} distinct value(s) are not finite.")
    return np.asarray(out, dtype=np.float64)


def are_numbers(values: pa.Array) -> NDArray[np.bool_]:
    """Which of ``values`` are finite numbers, or texts that write one."""
    if is_text(values.type):
        texts = pc.utf8_trim_whitespace(values.cast(pa.string()))
        found = pc.match_substring_regex(texts, NUMBER)
    elif is_number(values.type):
        found = pc.is_finite(values.cast(pa.float64(), safe=False))
    else:
        found = pa.array(np.zeros(len(values), dtype=bool))
    return np.asarray(pc.fill_null(found, fill_value=False))


def is_number(kind: pa.DataType) -> bool:
    """Whether values of this type are numbers."""
    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    )


def is_text(kind: pa.DataType) -> bool:
    """Whether a type holds text."""
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"


def _from_text(column: str, values: pa.Array) -> pa.Array:
    texts = pc.utf8_trim_whitespace(values)
    bad = len(texts) - (pc.sum(pc.match_substring_regex(texts, NUMBER)).as_py() or 0)
    if bad:
        raise HierarchyError(
            f"Column '{column}': {bad} distinct value(s) are text, not numbers. Correct them, or"
            f" list what means a missing value under [table] missing.{comma_hint(values)}"
        )
    texts = pc.replace_substring_regex(texts, r"^\+", "")
    if pc.all(pc.match_substring_regex(texts, r"^-?[0-9]{1,18}$")).as_py() is not False:
        return texts.cast(pa.int64())
    return texts.cast(pa.float64())
