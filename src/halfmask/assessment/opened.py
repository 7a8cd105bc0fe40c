"""The tables of a comparison: rows that were read, or distinct tuples that an engine counted."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from halfmask.engines.counted import Counted, counted
from halfmask.engines.open import is_address
from halfmask.engines.source import Source
from halfmask.errors import InputError, ParameterError
from halfmask.metrics.sides import Published
from halfmask.metrics.suppressed import MISSING, require_word, starred
from halfmask.table.decimal_comma import labels_with_points
from halfmask.table.demands import without_policies
from halfmask.table.normalize import normalize
from halfmask.table.read import rows_of
from halfmask.table.schema import Schema
from halfmask.table.table import Table

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from os import PathLike

    Given = Table | Published | str | PathLike[str]

_OPTIONS = ("release_table", "control_table", "earlier_table", "weaker_table")


@dataclass(frozen=True, slots=True, eq=False)
class Opened:
    """What is compared.

    Attributes:
        original: the rows or tuples it was made from.
        release: its rows or tuples; ``earlier`` another release, ``control`` other people.
        weaker: a release under a weaker promise.
        notes: who counted what, and which columns were left out.
    """

    original: Counted
    release: Published | Counted
    control: Counted | None
    earlier: Published | Counted | None
    weaker: Published | Counted | None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class How:
    """How tables that are files or stand in databases are read or counted.

    Attributes:
        engine: as for ``counted``.
        memory_limit: how much memory DuckDB may take.
        suppressed: what stands for a suppressed cell in releases, if it is not ``*``.
    """

    engine: str | None = None
    memory_limit: str | None = None
    suppressed: str | None = None

    def __post_init__(self) -> None:
        require_word(self.suppressed)


def open_sides(
    sources: tuple[Given, Given, Given | None, Given | None, Given | None],
    tables: tuple[str | None, ...],
    *,
    schema: object,
    more: Sequence[str],
    how: How,
    **written: str | None,
) -> Opened:
    """Read or count the original, the release, the control, the earlier and the weaker release.

    Args:
        sources: these five.
        tables: which table of a database each of them is.
        schema: that of the original, as for ``read``.
        more: columns that are compared though they have no role.
        how: how they are read.
        **written: the delimiter and the encoding of the original; those of others are detected.

    Raises:
        SchemaError: the original names no quasi-identifier.
        InputError: a table is named of a source that is not given.
    """
    for option, source, table in zip(_OPTIONS, sources[1:], tables[1:], strict=True):
        if source is None and table is not None:
            given = option.removesuffix("_table")
            raise InputError(f"{option} names a table of {given}, which is not given: give it too.")
    original = _counted("source_table", sources[0], tables[0], how, _named, more, schema, **written)
    held = original.table.schema
    names = [name for name in [*_named(held), *more] if name not in original.private]
    release, control, earlier, weaker = (
        None if source is None else _other(option, source, table, how, names, schema=declared)
        for option, source, table, declared in zip(
            _OPTIONS, sources[1:], tables[1:], (None, _only(held, names), None, None), strict=True
        )
    )
    assert release is not None  # noqa: S101 - it is always given
    if control is not None and not isinstance(control, Counted):
        raise InputError("A release is no control: give a table of people who are not in it.")
    release = _read_as_said(release, held, how)
    earlier = None if earlier is None else _read_as_said(earlier, held, how)
    weaker = None if weaker is None else _read_as_said(weaker, held, how)
    opened = Opened(original, release, control, earlier, weaker)
    notes = (*_notes(opened), *_left_out(original, release), *_said(held, how))
    return replace(opened, notes=notes)


def _read_as_said(release: Published | Counted, held: Schema, how: How) -> Published | Counted:
    """A release with ``*`` where its quasi-identifiers are suppressed, and with its numbers."""
    if how.suppressed is None and held.decimal != ",":
        return release
    if not isinstance(release, Counted):
        release = Counted(Table(normalize(release.to_arrow(), ()), Schema()))
    rows = release.table.arrow
    if held.decimal == ",":
        rows = labels_with_points(rows)
    if how.suppressed is not None:
        rows = starred(rows, held.quasi, how.suppressed)
    return replace(release, table=Table(rows, release.table.schema))


def _said(held: Schema, how: How) -> list[str]:
    if how.suppressed is None:
        return []
    cells = "Missing cells" if how.suppressed == MISSING else "Cells with the stated text"
    return [f"{cells} of the release are read as suppressed in {', '.join(held.quasi)}."]


def _named(schema: Schema) -> list[str]:
    """The columns that everything is counted from; people count one by one."""
    schema.require_quasi()
    names = [*schema.quasi, *schema.sensitive]
    return names if schema.person is None else [*names, schema.person]


def _only(schema: Schema, names: Sequence[str]) -> Schema:
    """What the schema says of some columns, for other people's rows."""
    columns = {name: column for name, column in schema.columns.items() if name in names}
    return without_policies(replace(schema, columns=columns, person=None))


def _other(
    option: str,
    source: Any,
    table: str | None,
    how: How,
    names: list[str],
    schema: Schema | None = None,
) -> Published | Counted:
    """Another table, of which those columns count that the original has too."""
    if not isinstance(source, str | os.PathLike):
        if isinstance(source, Published) and not hasattr(source, "__arrow_c_stream__"):
            return source
        source = rows_of(source)  # a frame, whose roles are those of the original
    return _counted(option, source, table, how, lambda _: [], names, schema)


def _counted(
    option: str,
    source: object,
    table: str | None,
    how: How,
    columns: Callable[[Schema], list[str]],
    optional: Sequence[str],
    schema: object,
    **written: str | None,
) -> Counted:
    if isinstance(source, str | os.PathLike) and is_address(os.fspath(source)) and table is None:
        raise ParameterError(option, None, "the name of a table of the database")
    found = Source(source, schema, how.engine, table, how.memory_limit, **written)
    return counted(found, columns, optional)


def _notes(opened: Opened) -> list[str]:
    sides = (opened.original, opened.release, opened.control, opened.earlier, opened.weaker)
    names = ("original", "release", "control", "earlier release", "weaker release")
    return [
        f"The rows of the {name} were counted by {one.engine}: {len(one.table):,} distinct tuples "
        f"stand for {one.rows:,} rows. Figures without an interval are counted on all rows."
        for name, one in zip(names, sides, strict=True)
        if isinstance(one, Counted) and one.engine
    ]


def _left_out(original: Counted, release: Published | Counted) -> list[str]:
    """Columns that both tables may share and that were not counted."""
    uncounted, there = set(original.left_out), None
    if isinstance(release, Counted):
        uncounted |= set(release.left_out)
        there = set(release.columns)
    names = [
        name
        for name in original.columns
        if name in uncounted and name not in original.private and (there is None or name in there)
    ]
    if not names:
        return []
    return [
        f"Not compared, as they are neither quasi-identifiers nor sensitive: {', '.join(names)}. "
        "Give them a role in the schema to have them counted too."
    ]
