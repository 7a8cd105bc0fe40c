"""What a mask is: a change of rows that declares itself once.

A class says its parameters with their ranges, the columns that it changes and what these must
hold, what it does, what it protects and what it does not. Reading it from text, writing it into
documents, the checks before it runs, the report and the reference follow from that.
"""

from __future__ import annotations

from dataclasses import Field, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

import numpy as np
import pyarrow as pa

from halfmask.errors import InternalError, SchemaError
from halfmask.models.verdict import Parameter
from halfmask.table.columns import Column, quote_names
from halfmask.table.demands import leaving_columns, resolve_demand
from halfmask.table.values import is_number, is_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from halfmask.dp.sampling import Sampler
    from halfmask.release.doors.claims import Claim
    from halfmask.table.table import Table

Takes = Literal["numbers", "ordered", "dates", "anything"]
_HOLDS = {
    "numbers": "numbers",
    "ordered": "numbers, dates or an ordinal column with its order",
    "dates": "dates or times",
}


@dataclass(frozen=True, slots=True)
class MaskWords:
    """A mask for a reader who is no specialist.

    Attributes:
        does: what it does to the rows.
        protects: what it protects from.
        open: what it does not protect from.
    """

    does: str
    protects: str
    open: str


# What stands behind ``field(metadata=...)`` in the class of a mask; numbers and words are declared
# as those of models are.


def one_column(takes: Takes = "anything", *, changed: bool = True) -> dict[str, Any]:
    """The name of one column, and what it must hold."""
    return {"parameter": Parameter("column"), "takes": takes, "changed": changed}


def some_columns(takes: Takes = "anything", *, changed: bool = True) -> dict[str, Any]:
    """The names of one or several columns, and what they must hold."""
    return {"parameter": Parameter("columns"), "takes": takes, "changed": changed}


def anything(*, text: bool = True) -> dict[str, Any]:
    """What the mask looks at itself; without ``text`` only Python can state it."""
    return {"parameter": Parameter("any", text=text)}


def secret() -> dict[str, Any]:
    """What is never written into a document, and never stated on a command line."""
    return {"parameter": Parameter("any", text=False), "secret": True}


def secret_place() -> dict[str, Any]:
    """The path of what is secret, which no document tells either."""
    return {"parameter": Parameter("any"), "secret": True}


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """The rows as one step meets them.

    Attributes:
        table: the rows after earlier steps, private columns among them.
        random: where chance comes from.
        original: the rows before the first step, of the same people in the same order; randomized
            answers stand in place of the true ones, which no other step sees.
        sampler: the exact source of noise behind a promise.
        keeps_demands: whether people's own demands count; else they are set aside.
    """

    table: Table
    random: np.random.Generator
    original: Table
    sampler: Sampler
    keeps_demands: bool = True

    def __len__(self) -> int:
        return len(self.table)

    def people(self) -> tuple[NDArray[np.int64], int]:
        """Whose each row is, from 0, and how many people there are."""
        person = self.table.schema.person
        if person is None:
            return np.arange(len(self.table)), len(self.table)
        encoded = self.table.encode(person)
        return encoded.codes.astype(np.int64), len(encoded.values)

    def people_sharing(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Per row, how many different people have its number, from 0."""
        owner, people = self.people()
        held = ids
        # Somebody with several rows of one number counts once.
        if people < len(ids):
            held = np.unique(ids * people + owner) // people
        found: NDArray[np.int64] = np.bincount(held)[ids]
        return found

    def people_needed(self, k: int) -> NDArray[np.int64]:
        """Per row, how many people must share what it shows: k, or more where its person asks."""
        asked = np.full(len(self.table), float(k))
        if self.keeps_demands:
            asked = np.fmax(
                resolve_demand(self.table, "k", leaving_columns(self.table.schema, "k")), asked
            )
        whole: NDArray[np.int64] = np.ceil(asked).astype(np.int64)
        return whole


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """What a step makes of the rows.

    Attributes:
        columns: the new values of columns, of all rows that the step met; new columns among them.
        keep: which rows stay, as places; None: all.
        removed: columns that leave no more.
        tables: what leaves beside the rows, by its name.
        claims: what the door must find to hold.
        facts: what the step found, for the controller alone: it may tell of cells that stay.
        told: what whoever gets the release needs to estimate from it; the report says it.
        notes: what a reader should know, one sentence each.
    """

    columns: Mapping[str, pa.Array | pa.ChunkedArray] = field(default_factory=dict)
    keep: NDArray[np.int64] | None = None
    removed: tuple[str, ...] = ()
    tables: Mapping[str, pa.Table] = field(default_factory=dict)
    claims: tuple[Claim, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    told: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


class MaskStep:
    """One step that changes rows; every mask is a frozen dataclass that inherits from this.

    Attributes:
        name: what it is called on the command line and in documents.
        words: what reports say of it.
    """

    __slots__ = ()

    name: ClassVar[str]
    words: ClassVar[MaskWords]

    def __post_init__(self) -> None:
        for one, parameter in mask_parameters(type(self)):
            value = getattr(self, one.name)
            if parameter.kind == "columns" and value is not None:
                value = (value,) if isinstance(value, str) else tuple(value)
                object.__setattr__(self, one.name, value)
            if value is not None or one.default is not None:
                parameter.require(one.name, value)
        self.require()

    def require(self) -> None:
        """Refuse parameters that do not go together."""

    @property
    def changes(self) -> tuple[str, ...]:
        """The columns that it changes."""
        return self._columns(changed=True)

    @property
    def reads(self) -> tuple[str, ...]:
        """All columns that it names."""
        return tuple(dict.fromkeys((*self._columns(changed=True), *self._columns(changed=False))))

    def _columns(self, *, changed: bool) -> tuple[str, ...]:
        found: list[str] = []
        for one, parameter in mask_parameters(type(self)):
            value = getattr(self, one.name)
            if value is not None and one.metadata.get("changed") is changed:
                found += [value] if parameter.kind == "column" else list(value)
        return tuple(found)

    def faults(self, table: Table) -> list[str]:  # noqa: ARG002 - most need nothing more
        """What the table lacks for this mask, in words."""
        return []

    def apply(self, rows: Rows) -> Outcome:
        """Mask the rows."""
        raise NotImplementedError

    @property
    def sentence(self) -> str:
        """What was done, with its columns and parameters."""
        stated = [f"{k} = {v}" for k, v in self._parameters().items()]
        of = ", ".join(f"'{name}'" for name in self.changes)
        words = self.words.does.rstrip(".")
        return (
            words
            + (f" ({of}" if of else " (")
            + "; " * bool(of and stated)
            + (", ".join(stated) + ")")
            if of or stated
            else f"{words}."
        )

    def _parameters(self) -> dict[str, Any]:
        """The parameters that are not columns and are stated."""
        return {
            one.name: getattr(self, one.name)
            for one, parameter in mask_parameters(type(self))
            if "changed" not in one.metadata
            and not one.metadata.get("secret")
            and isinstance(getattr(self, one.name), int | float | str)
        }

    def to_dict(self) -> dict[str, Any]:
        """The mask and its parameters, to repeat it; of secrets only which there were."""
        facts: dict[str, Any] = {"mask": self.name}
        secrets = []
        for one, _ in mask_parameters(type(self)):
            value = getattr(self, one.name)
            if not one.metadata.get("secret"):
                facts[one.name] = list(value) if isinstance(value, tuple) else value
            elif value is not None:
                secrets.append(one.name)
        return {**facts, **({"secrets": secrets} if secrets else {})}


def mask_parameters(mask: type[MaskStep]) -> tuple[tuple[Field[Any], Parameter], ...]:
    """The fields of a mask that carry a parameter."""
    stated = [(one, one.metadata.get("parameter")) for one in fields(mask)]  # type: ignore[arg-type]
    return tuple((one, parameter) for one, parameter in stated if parameter is not None)


_Kind = TypeVar("_Kind", bound=type[MaskStep])
REGISTERED: dict[str, type[MaskStep]] = {}


def register_mask(mask: _Kind) -> _Kind:
    """Make a mask known to command line, schema file, report and reference."""
    known = REGISTERED.setdefault(mask.name, mask)
    if (known.__module__, known.__qualname__) != (mask.__module__, mask.__qualname__):
        raise InternalError(f"Two masks are called {mask.name!r}: rename one.")
    return mask


def require_fit(mask: MaskStep, table: Table) -> None:
    """Refuse a mask whose columns are not there, never leave or hold something else.

    Raises:
        SchemaError: with all that is wrong.
    """
    require_there(mask, table.arrow.column_names)
    faults = [*_private(mask, table), *_kinds(mask, table)]
    if not faults:
        faults = [f"{mask.name}: {fault}" for fault in mask.faults(table)]
    if faults:
        raise SchemaError(*faults)


def require_there(mask: MaskStep, names: Sequence[str]) -> None:
    """Refuse a mask whose columns are not among those of the table.

    Raises:
        SchemaError: with the columns that there are.
    """
    absent = [name for name in dict.fromkeys(mask.reads) if name not in names]
    if absent:
        said = ", ".join(f"'{name}'" for name in absent)
        said = f"columns {said} are" if absent[1:] else f"column {said} is"
        raise SchemaError(
            f"{mask.name}: {said} not in the table, which has {quote_names(list(names))}."
        )


def _private(mask: MaskStep, table: Table) -> list[str]:
    if getattr(mask, "identifiers", False):
        return []
    return [
        f"{mask.name}: column '{name}' never leaves (it identifies, is dropped, or holds people's "
        "demands): mask columns that do."
        for name in mask.changes
        if name in table.schema.private
    ]


def _kinds(mask: MaskStep, table: Table) -> list[str]:
    found: list[str] = []
    for one, parameter in mask_parameters(type(mask)):
        takes, value = one.metadata.get("takes", "anything"), getattr(mask, one.name)
        if takes == "anything" or value is None:
            continue
        found += [
            f"{mask.name}: column '{name}' holds {_kind(table, name)}; it takes {_HOLDS[takes]}."
            for name in ([value] if parameter.kind == "column" else value)
            if not _holds(table, name, takes)
        ]
    return found


def _holds(table: Table, name: str, takes: str) -> bool:
    kind = value_type(table.arrow[name].type)
    if takes == "dates":
        return bool(pa.types.is_date(kind) or pa.types.is_timestamp(kind) or is_text(kind))
    moments = pa.types.is_date(kind) or pa.types.is_timestamp(kind)
    if takes == "numbers":
        return is_number(kind)
    declared = table.schema.columns.get(name)
    ordered = declared is not None and declared.order is not None
    return is_number(kind) or bool(moments) or ordered


def _kind(table: Table, name: str) -> str:
    kind = value_type(table.arrow[name].type)
    if is_text(kind):
        return "text"
    return "truth values" if pa.types.is_boolean(kind) else str(kind)


def known_columns(
    given: Sequence[str] | None, changed: Sequence[str], table: Table
) -> tuple[str, ...]:
    """The columns that draws follow: those stated, or all that may leave; none that they change."""
    hidden = {*changed} if given is not None else {*table.schema.private, *changed}
    names = table.arrow.column_names if given is None else given
    return tuple(name for name in names if name not in hidden)


def value_type(kind: pa.DataType) -> pa.DataType:
    """The type of the values of a column, dictionary or not."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def with_columns(
    table: Table,
    new: Mapping[str, pa.Array | pa.ChunkedArray],
    removed: Sequence[str] = (),
    claimed: Sequence[str] = (),
    copies: Mapping[str, str] | None = None,
) -> Table:
    """The table with these columns replaced or added, and without others.

    What is added can tell of what it was made from, so it is one more quasi-identifier, unless the
    door holds it to a claim of its own; one more draw of a column is what that column is.
    """
    arrow, declared = table.arrow, dict(table.schema.columns)
    for name, values in new.items():
        if name in arrow.column_names:
            arrow = arrow.set_column(arrow.column_names.index(name), name, values)
        else:
            arrow = arrow.append_column(name, values)
            role = Column("other" if name in claimed else "quasi")
            like = (copies or {}).get(name)
            declared[name] = role if like is None else declared.get(like, role)
    for name in removed:
        arrow = arrow.drop_columns([name])
        declared.pop(name, None)
    schema = replace(table.schema, columns=declared)
    return table.with_schema(schema, arrow)
