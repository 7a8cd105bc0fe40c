"""Who finds the hierarchies of a table whose columns say ``"auto"``.

The search co-clusters the columns of whole tables, so that it stands above them. The package, which
knows both, says here who searches; a table asks without knowing. Alone in a file because it loads
with the package, which loads no library.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from halfmask.table.table import Table

    Finder = Callable[[Table, float | None], Table]

ROUNDS = 1  # the effort of every co-clustering whose caller does not say another
_registered: list[Finder] = []


def register_finder(find: Finder) -> None:
    """Have ``find`` write out the automatic hierarchies of a table, in so many seconds."""
    _registered[:] = [find]


def find_hierarchies(table: Table, seconds: float | None) -> Table:
    """The table with its automatic hierarchies written out."""
    (find,) = _registered
    return find(table, seconds)
