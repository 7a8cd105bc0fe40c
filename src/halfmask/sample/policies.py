"""Invented demands: how much privacy people of a table might ask for.

No table with demands of real people is public. Surveys tell which share of people has a high,
medium or low concern; each group gets a k. Demands are dealt at random, or along the data: people
nearest to the origin of some columns (the young with little schooling) care least.
Source: Acquisti and Grossklags, "Privacy and rationality in individual decision making", 2005
(shares); Michel, "Personalizing privacy constraints in generalization-based anonymization models",
2019, sections 5.3.3 and 5.5.5 (the generator).
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Literal

import numpy as np
import pyarrow as pa

from halfmask.errors import ParameterError, SchemaError
from halfmask.table.table import Table, require_table
from halfmask.table.values import numbers_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

# Percent of people with a high, medium and low concern; the printed shares of "general" sum to
# 99.9, and the largest takes the rest.
CONCERNS: dict[str, tuple[str, str, str]] = {
    "general": ("53.8", "35.5", "10.7"),
    "offline": ("39.6", "48.3", "12.1"),
    "online": ("25.2", "41.2", "33.6"),
    "personal": ("0.9", "16.8", "82.3"),
    "professional": ("11.9", "50.8", "37.3"),
    "sexual-political": ("12.1", "25.8", "62.1"),
}
COLUMN = "k_i"
LIBERAL, MODERATE, CONSERVATIVE = 0, 1, 2

ConcernShares = tuple[float, float, float]


def generate(
    table: Table,
    concern: str | ConcernShares = "personal",
    *,
    k: Sequence[int] = (3, 5, 7),
    correlated: Sequence[str] | None = None,
    distance: Literal["euclidean", "manhattan"] = "euclidean",
    scale: Literal["raw", "normalized"] = "raw",
    column: str = COLUMN,
    seed: int | None = None,
) -> Table:
    """Give everybody in ``table`` a demand for k, as a policy column.

    Args:
        table: the rows; a policy for k that it has is replaced.
        concern: one of ``CONCERNS``, or the shares (percent, summing to 100) of people with a high,
            medium and low concern. Shares are met exactly, to the nearest person.
        k: what people with a low, medium and high concern demand.
        correlated: numeric columns; demands then grow with the distance to their origin, else they
            are dealt at random.
        distance: how that distance is measured.
        scale: whether columns count as they are or each from 0 to 1.
        column: the name of the new column.
        seed: repeats the dealing.

    Example:
        >>> import halfmask as hm
        >>> import pyarrow as pa
        >>> people = hm.read(pa.table({"age": list(range(20, 40))}), schema={"age": "quasi"})
        >>> sorted(hm.policies.generate(people, "general", k=(2, 3, 5)).arrow["k_i"].to_pylist())
        [2, 2, 3, 3, 3, 3, 3, 3, 3, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5]
    """
    table = require_table(table)
    low_to_high = demands(k)
    counts = group_sizes(len(table), concern)
    groups = np.repeat([LIBERAL, MODERATE, CONSERVATIVE], counts)
    if correlated is None:
        place = np.random.default_rng(seed).permutation(len(table))
    else:
        place = np.argsort(_origin(table, correlated, distance, scale), kind="stable")
    asked = np.empty(len(table), dtype=np.int64)
    asked[place] = np.array(low_to_high)[groups]
    return with_demands(table, asked, column)


def with_demands(table: Table, asked: NDArray[np.int64], column: str = COLUMN) -> Table:
    """The table with ``asked`` as everybody's demand for k, in place of what was said of k."""
    old = table.schema.policy.get("k")
    arrow = table.arrow.drop_columns([old]) if old in table.arrow.column_names else table.arrow
    if column in arrow.column_names:
        raise SchemaError(f"The table already has a column '{column}': name another with column=.")
    own = {
        name: {demand: value for demand, value in entry.items() if demand != "k"}
        for name, entry in table.schema.policy_columns.items()
    }
    schema = replace(
        table.schema, policy={**table.schema.policy, "k": column}, policy_columns=own, policies=()
    )
    return Table(arrow.append_column(column, pa.array(asked)), schema, table.origin)


def group_sizes(rows: int, concern: str | ConcernShares) -> tuple[int, int, int]:
    """How many people have a low, medium and high concern; rests go to the largest fractions."""
    if isinstance(concern, str):
        if concern not in CONCERNS:
            raise ParameterError("concern", concern, "one of " + ", ".join(CONCERNS))
        percent = [Fraction(share) for share in CONCERNS[concern]]
    else:
        percent = [Fraction(str(share)) for share in concern]
        if len(percent) != 3 or min(percent) < 0 or sum(percent) != 100:
            raise ParameterError("concern", concern, "three shares in percent that sum to 100")
    exact = [share * rows / 100 for share in reversed(percent)]
    whole = [int(share) for share in exact]
    order = sorted(range(3), key=lambda i: (whole[i] - exact[i], i))
    for i in order[: rows - sum(whole)]:
        whole[i] += 1
    return whole[0], whole[1], whole[2]


def demands(k: Sequence[int]) -> tuple[int, int, int]:
    """The demands of low, medium and high concern, checked."""
    listed = tuple(int(one) for one in k)
    if len(listed) != 3 or list(listed) != sorted(listed) or listed[0] < 1:
        raise ParameterError("k", tuple(k), "three whole numbers of at least 1 that do not fall")
    return listed[0], listed[1], listed[2]


def _origin(table: Table, columns: Sequence[str], distance: str, scale: str) -> NDArray[np.float64]:
    """How far each row is from the origin of ``columns``."""
    absent = [name for name in columns if name not in table.arrow.column_names]
    if absent or not columns:
        raise SchemaError(*(f"There is no column '{name}' to correlate with." for name in absent))
    if distance not in ("euclidean", "manhattan"):
        raise ParameterError("distance", distance, "euclidean or manhattan")
    if scale not in ("raw", "normalized"):
        raise ParameterError("scale", scale, "raw or normalized")
    parts = []
    for name in columns:
        encoded = table.encode(name)
        if encoded.values.null_count:
            raise SchemaError(f"Column '{name}' has missing values: correlate with another.")
        numbers = numbers_of(name, encoded.values).astype(np.float64)
        if scale == "normalized":
            numbers = (numbers - numbers.min()) / max(float(np.ptp(numbers)), 1e-300)
        parts.append(numbers[encoded.codes])
    stacked = np.column_stack(parts)
    power = 2 if distance == "euclidean" else 1
    return np.asarray((np.abs(stacked) ** power).sum(axis=1))
