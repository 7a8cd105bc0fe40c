"""Small tables from lists of values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from halfmask.table.columns import Column
from halfmask.table.schema import Schema
from halfmask.table.table import Table

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


@pytest.fixture(scope="session")
def table() -> Callable[..., Table]:
    """Make a table of one quasi-identifier ``q`` and further columns."""

    def make(q: Sequence[object], **others: Sequence[object]) -> Table:
        columns: dict[str, Any] = {"q": Column("quasi")}
        columns |= {name: Column("sensitive") for name in others if name == "s"}
        schema = Schema(
            columns,
            person="person" if "person" in others else None,
            policy={"k": "k"} if "k" in others else {},
        )
        return Table(pa.table({"q": pa.array(q), **others}), schema)

    return make
