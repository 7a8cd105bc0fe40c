"""Rows of one person or household drawn together: one wide row of each, folded and unfolded.

Definition: the rows of one person (or household), at most ``most`` of them, become one row with the
    number of rows and a place for each column of the first, second, ... row; places beyond the
    number hold the code "absent". The wide table is synthesized as any other, and wide rows are
    taken apart again. That a place is absent exactly where the number says so is public.

What it costs: a person is one wide row, whatever the number of rows, so that adding or removing the
person changes one cell by one. A person of a household changes the household's wide row, which is
one row less and one more: noise is for two. That needs to know who is who: rows that name no person
are left out, and households need a person column. People without a household are one each.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfmask.dp.domain import Bins, public_codes
from halfmask.dp.sampling import Sampler
from halfmask.dp.views import GuardedRows, bounded_rows
from halfmask.errors import ParameterError, SchemaError
from halfmask.models.verdict import require_whole
from halfmask.synthesize.constraints import DrawLimits
from halfmask.table.columns import quote_names

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from halfmask.dp.accountant import Allowance
    from halfmask.dp.domain import Domain
    from halfmask.table.schema import Schema
    from halfmask.table.table import Table

    Ints = NDArray[np.int64]
    Codes = dict[str, Ints]

NUMBER = "rows of each"
MOST = 20  # rows of one person or household that one wide row may hold


@dataclass(frozen=True, slots=True)
class Histories:
    """How rows are folded; all of it public.

    Attributes:
        kind: ``"person"`` or ``"household"``.
        unit: the column that says whose rows belong together.
        most: rows of one that are kept.
        order: the column by which they are sorted; None: they have no order.
        constant: the columns that all rows of one share: the value of the first counts.
        sizes: how many public values each column has.
    """

    kind: str
    unit: str
    most: int
    order: str | None
    constant: tuple[str, ...]
    sizes: Mapping[str, int]

    @classmethod
    def of(
        cls,
        schema: Schema,
        kind: str,
        most: int,
        order: str | None,
        constant: Sequence[str],
        sizes: Mapping[str, int],
    ) -> Histories:
        """What is asked for, where it can be done.

        Raises:
            ParameterError: a name or number that cannot be.
            SchemaError: no column says whose rows belong together.
        """
        if kind not in ("person", "household"):
            raise ParameterError("together", kind, "person or household")
        unit = schema.person if kind == "person" else schema.household
        if unit is None:
            raise SchemaError(
                f"No column says which rows are of one {kind}: name it under [table], "
                f'{kind} = "...", or draw rows one by one.'
            )
        if schema.person is None:
            raise SchemaError(
                "No column says whose row it is, which households drawn together need: name it "
                'under [table], person = "...", or draw rows one by one.'
            )
        require_whole("rows_per_person", most, 2)
        if most > MOST:
            raise ParameterError(
                "rows_per_person", most, f"from 2 to {MOST} rows, of which one {kind} is made"
            )
        if not isinstance(constant, list | tuple):
            raise ParameterError("constant", constant, "a list of names of columns that leave")
        for name in constant:
            if not isinstance(name, str) or name not in sizes:
                raise ParameterError(
                    "constant", name, f"names of columns that leave: {quote_names(sizes)}"
                )
        if order is not None and (
            not isinstance(order, str) or order not in sizes or order in constant
        ):
            free = quote_names(one for one in sizes if one not in constant)
            raise ParameterError(
                "order", order, f"a column that leaves and is not constant, such as {free}"
            )
        found = cls(kind, unit, most, order, tuple(constant), sizes)
        names = [NUMBER, *(found.name(n, place) for n in sizes for place in found.places(n))]
        if len(set(names)) < len(names):
            raise SchemaError("Columns are named as places of other columns: rename them.")
        return found

    @property
    def rows_changed(self) -> int:
        """How many wide rows one person can change."""
        return 1 if self.kind == "person" else 2

    @property
    def rows_used(self) -> int:
        """Of how many own rows of one person a wide row is made."""
        return self.most if self.kind == "person" else 1

    def places(self, name: str) -> range:
        """The rows of one of which a column is kept."""
        return range(1 if name in self.constant else self.most)

    def name(self, name: str, place: int) -> str:
        """What a column of the wide table is called."""
        return name if name in self.constant else f"{name} ({place + 1})"

    @property
    def wide(self) -> dict[str, int]:
        """How many values each column of the wide table has; the last of later rows is absent."""
        found = {NUMBER: self.most}
        for name, size in self.sizes.items():
            found |= {self.name(name, place): size + (place > 0) for place in self.places(name)}
        return found

    def ordered(self, names: Sequence[str]) -> list[str]:
        """The columns of the wide table that have an order."""
        return [NUMBER, *(self.name(n, place) for n in names for place in self.places(n))]

    def limits(self, narrow: DrawLimits) -> DrawLimits:
        """What wide rows may hold: nothing impossible in any row, and absent where the number says.

        Args:
            narrow: what each row may hold.
        """
        numbers = np.arange(self.most)
        zeros: list[Mapping[str, NDArray[np.bool_]]] = []
        row = {NUMBER: 0} | {self.name(name, 0): code for name, code in narrow.row.items()}
        for name, size in self.sizes.items():
            absent = np.arange(size + 1) == size
            for place in self.places(name)[1:]:
                column = self.name(name, place)
                zeros.append({NUMBER: numbers >= place, column: absent})
                zeros.append({NUMBER: numbers < place, column: ~absent})
                row[column] = size
        for combination in narrow.impossible:
            fixed = set(combination) <= set(self.constant)
            for place in range(1 if fixed else self.most):
                held = {}
                for name, mask in combination.items():
                    absent = np.zeros(int(place > 0 and name not in self.constant), dtype=bool)
                    held[self.name(name, place)] = np.concatenate([mask, absent])
                zeros.append(held)
        return DrawLimits(tuple(zeros), {}, row)

    def resized(self, sizes: Mapping[str, int]) -> Histories:
        """The same for columns whose bounds were bought."""
        return replace(self, sizes=sizes)

    def guard(
        self, table: Table, domains: Mapping[str, Domain], allowance: Allowance
    ) -> GuardedRows:
        """Lock the wide rows behind noisy views.

        Rows beyond the most are left out: the last ones in the order, or any where there is none.
        Of a household one row of each person counts. Rows that name no person are left out: who has
        how many of them is not known, so that no noise would be for one person.
        """
        sampler = Sampler()
        allowance.secure = allowance.secure and sampler.secure
        codes = {name: public_codes(table, name, domain) for name, domain in domains.items()}
        kept = None if self.kind == "person" else bounded_rows(table, 1, sampler)
        rows = np.arange(len(table)) if kept is None else kept
        assert table.schema.person is not None  # noqa: S101 - made of a schema that names it
        # The noise is for one person's rows: of rows without a name nobody knows how many are
        # one's.
        rows = rows[~_nameless(table, table.schema.person)[rows]]
        # Which rows are left out, and which of equal ones comes first, must not follow the file.
        rows = rows[sampler.permutation(len(rows))]
        if self.order is not None:
            rank: NDArray[np.float64] | NDArray[np.int32] = codes[self.order]
            domain, sorting = domains[self.order], table.encode(self.order)
            if isinstance(domain, Bins):
                rank = domain.ranks(sorting.values)[sorting.codes]
            rows = rows[np.argsort(rank[rows], kind="stable")]
        owner = table.encode(self.unit).codes.astype(np.int64)
        alone = np.flatnonzero(_nameless(table, self.unit))  # a household each
        owner[alone] = len(table) + alone
        rows = rows[np.argsort(owner[rows], kind="stable")]
        starts = np.diff(owner[rows], prepend=-2) != 0
        number = np.cumsum(starts) - 1
        place = np.arange(len(rows)) - np.flatnonzero(starts)[number] if len(rows) else rows
        units = int(starts.sum())
        # Codes count from 0: code 0 is one row.
        wide = {NUMBER: np.minimum(np.bincount(number, minlength=units), self.most) - 1}
        for name, size in self.sizes.items():
            for at in self.places(name):
                column = np.full(units, size, np.int32)
                here = place == at
                column[number[here]] = codes[name][rows[here]]
                wide[self.name(name, at)] = column
        held = {name: column.astype(np.int32) for name, column in wide.items()}
        return GuardedRows(self.wide, allowance.limit, allowance, held, sampler)

    def unfold(self, wide: Codes) -> tuple[Codes, Ints]:
        """The rows of all, and per row the number of whose it is."""
        many = wide[NUMBER] + 1
        owner = np.repeat(np.arange(len(many)), many)
        place = np.arange(len(owner)) - np.repeat(np.cumsum(many) - many, many)
        codes = {}
        for name in self.sizes:
            held = np.stack([wide[self.name(name, at)] for at in self.places(name)])
            codes[name] = held[np.minimum(place, len(held) - 1), owner]
        return codes, owner

    def rows(
        self, drawn: pa.Table, owner: Ints, codes: Codes, domains: Mapping[str, Domain]
    ) -> pa.Table:
        """The rows with invented numbers that say which belong together, in their order.

        Numbers and dates are sorted as such, other values as they are declared: by what rows were
        left out by.
        """
        numbered = drawn.add_column(0, self.unit, pa.array(owner + 1))
        if self.order is None:
            return numbered
        number = isinstance(domains[self.order], Bins)
        rank = drawn[self.order] if number else pa.array(codes[self.order])
        keys = pa.table({"owner": owner, "rank": rank})
        return numbered.take(pc.sort_indices(keys, [("owner", "ascending"), ("rank", "ascending")]))

    def facts(self) -> dict[str, object]:
        """What a release says of it, as plain values."""
        return {"together": self.kind, "order": self.order, "constant": list(self.constant)}

    def notes(self) -> tuple[str, ...]:
        """The same in words."""
        beyond = "at random" if self.order is None else f"from the end, by {self.order!r}"
        cost = (
            "which cost as much as one row would"
            if self.kind == "person"
            else "of one row for each person, and a person costs as much as two rows would"
        )
        shared = (
            f" Of {quote_names(self.constant)} the value in the first row of each counts."
            if self.constant
            else ""
        )
        alone = " People without a household are one each." if self.kind == "household" else ""
        return (
            f"Rows of one {self.kind} were drawn together, at most {self.most} of each, {cost}; "
            f"further ones were left out {beyond}, and rows that name no person.{alone}{shared} "
            f"The numbers in {self.unit!r} are invented.",
        )


def _nameless(table: Table, name: str) -> NDArray[np.bool_]:
    """Per row, whether it names nobody in a column."""
    column = table.encode(name)
    missing = pc.is_null(column.values, nan_is_null=True).to_numpy(zero_copy_only=False)
    found: NDArray[np.bool_] = missing[column.codes].astype(bool)
    return found
