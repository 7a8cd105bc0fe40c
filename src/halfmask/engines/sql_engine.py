"""What engines that speak SQL share: every request is written for them once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from halfmask.engines import sql
from halfmask.engines.request import Engine
from halfmask.engines.tally import tally_query

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa
    from sqlglot.expressions import Expr, Select

    from halfmask.engines.request import Measure, Request
    from halfmask.engines.tally import Tally


class SqlEngine(Engine, Protocol):
    """An engine that answers requests by running queries."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def sql(self, query: Expr) -> str:
        """The text of a query in this engine's dialect."""
        return query.sql(dialect=self.dialect, pretty=True)

    def collect(self, request: Request) -> pa.Table:
        """Aggregate the rows into groups."""
        return sql.collect(self, request)

    def queries(self, request: Request) -> list[Select]:
        """The queries behind ``collect``."""
        return sql.collect_queries(self, request)

    def measure(
        self, request: Request, places: pa.Table, measures: tuple[Measure, ...]
    ) -> pa.Table:
        """Measure the rows of each place."""
        return sql.measure(self, request, places, measures)

    def parts(
        self,
        request: Request,
        places: pa.Table,
        splits: tuple[Expr, ...],
        counted: tuple[Expr, ...],
    ) -> pa.Table:
        """Count the rows of each place for which the splits are the same."""
        return sql.parts(self, request, places, splits, counted)

    def shares(
        self, request: Request, places: pa.Table, amounts: tuple[Expr, ...], most: int
    ) -> pa.Table:
        """Add up what each person brings to each place."""
        return sql.shares(self, request, places, amounts, most)

    def tally(self, request: Tally) -> pa.Table:
        """Count and sum the bounded contributions of people."""
        return self.run(tally_query(request))

    def trace(self, request: Request, places: pa.Table, columns: Mapping[str, Expr]) -> pa.Table:
        """The rows behind each place."""
        self.add("hm_places", places)
        return self.run(sql.trace_query(request, columns))
