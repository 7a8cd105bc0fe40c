"""What a mask is: a change of rows that declares itself once.

A class says its parameters with their ranges, the columns that it changes and what these must
hold, what it does, what it protects and what it does not. Reading it from text, writing it into
documents, the checks before it runs, the report and the reference follow from that.
"""

from __future__ import annotations

import shlex
from dataclasses import MISSING, Field, dataclass, field, fields, replace
from difflib import get_close_matches
from functools import cache
from importlib import import_module, metadata
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

import numpy as np
import pyarrow as pa

from halfmask.errors import InputError, InternalError, ParameterError, SchemaError
from halfmask.models.verdict import Parameter
from halfmask.table.columns import Column, quote_names
from halfmask.table.demands import leaving_columns, resolve
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
        if people < len(ids):
            held = np.unique(ids * people + owner) // people
        found: NDArray[np.int64] = np.bincount(held)[ids]
        return found

    def people_needed(self, k: int) -> NDArray[np.int64]:
        """Per row, how many people must share what it shows: k, or more where its person asks."""
        asked = np.full(len(self.table), float(k))
        if self.keeps_demands:
            asked = np.fmax(
                resolve(self.table, "k", leaving_columns(self.table.schema, "k")), asked
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
        return self._named(changed=True)

    @property
    def reads(self) -> tuple[str, ...]:
        """All columns that it names."""
        return tuple(dict.fromkeys((*self._named(changed=True), *self._named(changed=False))))

    def _named(self, *, changed: bool) -> tuple[str, ...]:
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
        stated = [f"{k} = {v}" for k, v in self._stated().items()]
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

    def _stated(self) -> dict[str, Any]:
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
_REGISTER: dict[str, type[MaskStep]] = {}
_HOMES = (  # in the order that the reference lists them
    "coding", "noise", "swapping", "pram", "response", "microaggregation", "suppression",
    "sampling", "synthetic", "anatomy", "guarding", "cloaking", "pseudonyms",
)  # fmt: skip


def register_mask(mask: _Kind) -> _Kind:
    """Make a mask known to command line, schema file, report and reference."""
    known = _REGISTER.setdefault(mask.name, mask)
    if (known.__module__, known.__qualname__) != (mask.__module__, mask.__qualname__):
        raise InternalError(f"Two masks are called {mask.name!r}: rename one.")
    return mask


def known_masks() -> tuple[type[MaskStep], ...]:
    """Every mask: those of this package and of others that name theirs under halfmask.masks."""
    _load()
    places = {f"halfmask.masking.{home}": place for place, home in enumerate(_HOMES)}
    return tuple(
        sorted(_REGISTER.values(), key=lambda one: places.get(one.__module__, len(places)))
    )


@cache
def _load() -> None:
    for module in _HOMES:
        import_module(f"halfmask.masking.{module}")
    for entry in metadata.entry_points(group="halfmask.masks"):
        entry.load()


def metavar(mask: type[MaskStep]) -> str:
    """The way to write it, such as ``top-code COLUMN [share=NUMBER]``."""
    parts = [mask.name]
    places = [one for one, p in mask_parameters(mask) if p.kind in ("column", "columns")]
    for one, parameter in mask_parameters(mask):
        if places and one is places[0]:
            word = "COLUMN" if parameter.kind == "column" else "COLUMN..."
            parts.append(word if _is_required(one) else f"[{word}]")
        elif parameter.text:
            stated = f"{one.name.replace('_', '-')}={_example(parameter)}"
            parts.append(stated if _is_required(one) else f"[{stated}]")
    return " ".join(parts)


def _example(parameter: Parameter) -> str:
    if parameter.kind == "word":
        return "|".join(parameter.words)
    kinds = {"number": "NUMBER", "whole": "NUMBER", "column": "COLUMN", "columns": "COLUMN,..."}
    return kinds.get(parameter.kind, "VALUE")


def _is_required(one: Field[Any]) -> bool:
    return one.default is MISSING and one.default_factory is MISSING


def read_step(text: str) -> MaskStep:
    """The mask that a text states, such as ``top-code income share=0.01``.

    Names of columns with blanks stand in quotes.

    Raises:
        InputError: the text is not written as it should be.

    Example:
        >>> read_step("top-code income share=0.01")
        TopCode(column='income', share=0.01, value=None, replace='threshold', least=3)
    """
    try:
        first, *words = shlex.split(text)
    except ValueError:
        raise InputError(
            'A step is a mask and its columns, such as "round income base=100".'
        ) from None
    mask = _mask_named(first)
    named = {one.name: (one, parameter) for one, parameter in mask_parameters(mask)}
    stated: dict[str, Any] = {}
    places: list[str] = []
    for word in words:
        name, equals, value = word.partition("=")
        key = name.replace("-", "_")
        if not equals or key not in named:
            places.append(word)
        elif not named[key][1].text:
            raise InputError(f"{mask.name} takes no {name}= as text: state it in Python.")
        else:
            stated[key] = _value(mask, key, named[key][1], value)
    if places:
        stated |= _placed(mask, places, named)
    return _made(mask, stated)


def _placed(mask: type[MaskStep], places: list[str], named: Mapping[str, Any]) -> dict[str, Any]:
    """The columns that stand behind the name of a mask."""
    for key, (_, parameter) in named.items():
        if parameter.kind == "columns":
            return {key: tuple(places)}
        if parameter.kind == "column":
            if len(places) > 1:
                raise InputError(f"{mask.name} takes one column: write {metavar(mask)}.")
            return {key: places[0]}
    raise InputError(f"{mask.name} takes no column: write {metavar(mask)}.")


def _value(mask: type[MaskStep], key: str, parameter: Parameter, text: str) -> Any:
    if parameter.kind == "columns":
        return tuple(part for part in text.split(",") if part)
    if parameter.kind in ("number", "whole", "any"):
        try:
            number = float(text)
        except ValueError:
            if parameter.kind == "any":
                return text
            raise InputError(f"{mask.name} takes a number after {key}=.") from None
        return int(number) if number.is_integer() and "." not in text else number
    return text


def step_from_dict(given: Mapping[str, Any]) -> MaskStep:
    """The mask that ``to_dict`` wrote, or an entry of ``[mask]`` in a schema file."""
    rest = dict(given)
    mask = _mask_named(rest.pop("mask", None))
    if "secrets" in rest:
        raise _secret_untold(mask)
    known = {one.name for one, _ in mask_parameters(mask)}
    unknown = [name for name in rest if name.replace("-", "_") not in known]
    if unknown:
        raise InputError(
            f"{mask.name} takes no {unknown[0]!r}; it takes {', '.join(sorted(known))}."
        )
    return _made(mask, {name.replace("-", "_"): _tupled(value) for name, value in rest.items()})


def step_from_report(given: Mapping[str, Any]) -> MaskStep:
    """The mask that the report of a release tells; a report that brings a secret is not believed.

    No report of ours does: whoever put a key or the place of one there would know all tokens.
    """
    mask = _mask_named(given.get("mask"))
    secrets = {one.name for one, _ in mask_parameters(mask) if one.metadata.get("secret")}
    if any(name.replace("-", "_") in secrets for name in given):
        raise _secret_untold(mask)
    return step_from_dict(given)


def _secret_untold(mask: type[MaskStep]) -> InputError:
    return InputError(
        f"{mask.name} had a key or vault, which its release does not tell: state the steps "
        "themselves, with it."
    )


def _tupled(value: Any) -> Any:
    return tuple(_tupled(one) for one in value) if isinstance(value, list) else value


def read_steps(given: Sequence[Any]) -> tuple[MaskStep, ...]:
    """Masks as they are stated: themselves, their texts or their mappings."""
    out = []
    for one in given:
        if isinstance(one, MaskStep):
            out.append(one)
        elif isinstance(one, str):
            out.append(read_step(one))
        elif isinstance(one, dict):
            out.append(step_from_dict(one))
        elif isinstance(one, type) and issubclass(one, MaskStep):
            raise ParameterError("steps", one.__name__, "it its parameters, as TopCode('income')")
        else:
            raise ParameterError("steps", type(one).__name__, "masks, such as hm.masks.TopCode")
    return tuple(out)


def _mask_named(name: object) -> type[MaskStep]:
    known_masks()
    found = _REGISTER.get(name) if isinstance(name, str) else None
    if found is None:
        near = get_close_matches(str(name), _REGISTER, n=1)
        hint = f"did you mean '{near[0]}'?" if near else f"known are {', '.join(_REGISTER)}."
        raise InputError(f"There is no mask {str(name)!r}: {hint}")
    return found


def _made(mask: type[MaskStep], stated: Mapping[str, Any]) -> MaskStep:
    absent = [
        one.name for one, _ in mask_parameters(mask) if _is_required(one) and one.name not in stated
    ]
    if absent:
        raise InputError(f"{mask.name} needs {' and '.join(absent)}: write {metavar(mask)}.")
    return mask(**stated)


def secret_places(steps: Sequence[MaskStep]) -> list[str]:
    """The files of keys and tokens that steps read."""
    return [
        place
        for one in steps
        for part, parameter in mask_parameters(type(one))
        if part.metadata.get("secret")
        and parameter.text
        and (place := getattr(one, part.name)) is not None
    ]


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
    kind = plain_type(table.arrow[name].type)
    if takes == "dates":
        return bool(pa.types.is_date(kind) or pa.types.is_timestamp(kind) or is_text(kind))
    moments = pa.types.is_date(kind) or pa.types.is_timestamp(kind)
    if takes == "numbers":
        return is_number(kind)
    declared = table.schema.columns.get(name)
    ordered = declared is not None and declared.order is not None
    return is_number(kind) or bool(moments) or ordered


def _kind(table: Table, name: str) -> str:
    kind = plain_type(table.arrow[name].type)
    if is_text(kind):
        return "text"
    return "truth values" if pa.types.is_boolean(kind) else str(kind)


def plain_type(kind: pa.DataType) -> pa.DataType:
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
