"""``synthesize``: from a table to a sealed synthetic table, by one of the methods."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from halfmask.errors import ParameterError
from halfmask.table.table import require_table

if TYPE_CHECKING:
    from halfmask.release.synthetic import SyntheticRelease
    from halfmask.table.table import Table

# A method without a formal guarantee is a module with ``synthesize(table, **options)``.
MEASURED = {"cocluster": "halfmask.synthesize.cocluster"}


def synthesize(table: Table, method: str = "cocluster", **options: Any) -> SyntheticRelease:
    """A synthetic table whose risk is measured.

    Args:
        table: the rows, with every column declared.
        method: ``"cocluster"``: drawn from groups of at least ``k`` people; no formal guarantee.
        options: what the method takes, such as ``k``; see ``docs/coclustering.md``.

    Example:
        >>> import halfmask as hm
        >>> people = hm.read("people.csv", schema="people.toml")  # doctest: +SKIP
        >>> hm.synthesize(people, method="cocluster", k=50)  # doctest: +SKIP
        SyntheticRelease(400 rows; cocluster; no formal guarantee)
    """
    require_table(table)
    if method not in MEASURED:
        raise ParameterError("method", method, "one of " + ", ".join(MEASURED))
    made: SyntheticRelease = importlib.import_module(MEASURED[method]).synthesize(table, **options)
    return made
