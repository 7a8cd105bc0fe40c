"""A private release: rows or answers that differential privacy covers, with the receipt for them.

Only ``halfmask.release.seal_private`` makes one.
"""

from __future__ import annotations

import json
from dataclasses import InitVar, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from halfmask.errors import InputError, PrivacyError
from halfmask.release.document import plain
from halfmask.release.files import whole_file
from halfmask.release.frames import pandas_frame, polars_frame
from halfmask.release.release import DOOR
from halfmask.release.write import write_table

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike

    import pyarrow as pa

    from halfmask.dp.accountant import Receipt
    from halfmask.dp.bounds import ColumnBound

FORMAT = "halfmask.private/1"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PrivateRelease:
    """Rows or answers under differential privacy, and what a reader must know of them.

    Attributes:
        receipt: what was promised and every noisy view that was read for it.
        bounds: how well an attacker can guess membership and each column of one person.
        method: how the rows were made.
        parameters: public choices only.
        versions: the programs that made it.
        notes: what a reader should know, one sentence each.
        verdicts, loss, levels, suppressed: as in every release; DP has no check on the output, no
            loss of detail that could be told without a further look at the rows, no levels and no
            suppressed rows.
    """

    verdicts: ClassVar[tuple[Any, ...]] = ()
    loss: ClassVar[None] = None
    levels: ClassVar[None] = None
    suppressed: ClassVar[int] = 0

    receipt: Receipt
    bounds: tuple[ColumnBound, ...]
    method: str
    parameters: Mapping[str, Any]
    versions: Mapping[str, str]
    notes: tuple[str, ...]
    origin: str
    _arrow: pa.Table
    door: InitVar[object]

    def __post_init__(self, door: object) -> None:
        if door is not DOOR:
            raise PrivacyError(
                "A private release needs the accountant's receipt: call halfmask.synthesize."
            )

    def __repr__(self) -> str:
        told = ", ".join(f"{b.column} {100 * b.after:.3g}%" for b in self.bounds)
        return (
            f"PrivateRelease({len(self):,} rows; {self.method}; {self.receipt.promise}; an "
            f"attacker's best chance: {told})"
        )

    def __len__(self) -> int:
        return int(self._arrow.num_rows)

    def __reduce__(self) -> tuple[Any, ...]:
        raise PrivacyError("A release is not copied unchecked: write it to a file instead.")

    @property
    def rows(self) -> int:
        """How many rows leave."""
        return len(self)

    def to_arrow(self) -> pa.Table:
        """The released rows as an Arrow table."""
        return self._arrow

    def to_pandas(self) -> Any:
        """The released rows as a pandas frame."""
        return pandas_frame(self._arrow, {})

    def to_polars(self) -> Any:
        """The released rows as a Polars frame."""
        return polars_frame(self._arrow, {})

    def native(self) -> Any:
        """The released rows as the kind that came in."""
        convert = {"pandas": self.to_pandas, "polars": self.to_polars}.get(self.origin)
        return convert() if convert else self._arrow

    def write(self, path: str | PathLike[str]) -> None:
        """Write the rows to a file whose suffix says the kind, whole or not at all."""
        write_table(self._arrow, path)

    def to_dict(self) -> dict[str, Any]:
        """All that is known of the release but its rows, as plain values."""
        found: dict[str, Any] = plain(
            {
                "format": FORMAT,
                "outcome": self._outcome(),
                "rows": {"published": len(self)},
                "columns": list(self._arrow.column_names),
                "privacy": self.receipt.to_dict(),
                "attacker": [
                    {"column": b.column, "values": b.values, "before": b.before, "after": b.after}
                    for b in self.bounds
                ],
                "method": self.method,
                "parameters": dict(self.parameters),
                "versions": dict(self.versions),
                "notes": list(self.notes),
            }
        )
        return found

    def report(self, path: str | PathLike[str]) -> None:
        """Write the report as ``.json`` or as a self-contained ``.html`` page."""
        suffix = Path(path).suffix.lower()
        if suffix not in (".json", ".html", ".htm"):
            raise InputError(
                f"The report {Path(path).name!r} can be .json or .html: end its name in either."
            )
        if suffix == ".json":
            text = json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
        else:
            from halfmask.report.private_page import render_private

            text = render_private(self.to_dict())
        with whole_file(path) as temporary:
            temporary.write_text(text, encoding="utf-8")

    def _outcome(self) -> str:
        member = self.bounds[0]
        return (
            f"{len(self):,} rows may leave under {self.receipt.promise}: whoever knows all other "
            f"people can tell whether one person is in the table with a chance of at most "
            f"{member.after:.1%} instead of {member.before:.0%}."
        )
