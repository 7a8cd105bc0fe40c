"""What every kind of release can do with the rows that passed the door.

The token ``DOOR`` is known to the sealing code only: without it no release comes into being.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, ClassVar

from halfmask.errors import PrivacyError
from halfmask.release.files import whole_file
from halfmask.release.frames import duckdb_relation, pandas_frame, polars_frame
from halfmask.release.write import report_kind, write_table

if TYPE_CHECKING:
    from os import PathLike

    import pyarrow as pa

DOOR = object()


class Sealed:
    """Rows that were checked or paid for, and may leave as frames, files and reports."""

    __slots__ = ()

    _made_by: ClassVar[str]
    origin: str
    _arrow: pa.Table

    def __post_init__(self, door: object) -> None:
        if door is not DOOR:
            raise PrivacyError(self._made_by)

    def __len__(self) -> int:
        return int(self._arrow.num_rows)

    def __reduce__(self) -> tuple[Any, ...]:
        raise PrivacyError("A release is not copied unchecked: write it to a file instead.")

    def to_arrow(self) -> pa.Table:
        """The released rows as an Arrow table."""
        return self._arrow

    def to_pandas(self) -> Any:
        """The released rows as a pandas frame; whole numbers stay whole where some are missing."""
        return pandas_frame(self.to_arrow(), self._dtypes("pandas"))

    def to_polars(self) -> Any:
        """The released rows as a Polars frame."""
        return polars_frame(self.to_arrow(), self._dtypes("polars"))

    def to_duckdb(self) -> Any:
        """The released rows as a DuckDB relation."""
        return duckdb_relation(self.to_arrow())

    def _dtypes(self, library: str) -> dict[str, Any]:  # noqa: ARG002 - for those who keep them
        return {}

    def native(self) -> Any:
        """The released rows as the kind that came in."""
        convert = {
            "pandas": self.to_pandas,
            "polars": self.to_polars,
            "duckdb": self.to_duckdb,
        }.get(self.origin, self.to_arrow)
        return convert()

    def write(self, path: str | PathLike[str]) -> None:
        """Write the released rows to a file whose suffix says the kind, whole or not at all."""
        write_table(self.to_arrow(), path)

    def to_dict(self) -> dict[str, Any]:
        """All that is known of the release but its rows, as plain values."""
        raise NotImplementedError

    def _page(self) -> str:
        """The report as a self-contained page."""
        raise NotImplementedError

    def report(self, path: str | PathLike[str]) -> None:
        """Write the report as ``.json`` or as a self-contained ``.html`` page."""
        if report_kind(path) == ".json":
            text = json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
        else:
            text = self._page()
        with whole_file(path) as temporary:
            temporary.write_text(text, encoding="utf-8")
