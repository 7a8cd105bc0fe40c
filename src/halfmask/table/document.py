"""Results as documents: plain values, as JSON knows them, derived from their fields.

And small pieces of HTML for notebooks, light and dark, that load nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from html import escape
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from halfmask.table.schema import Schema


_NAME, _PARTS, _HIDDEN = "document_name", "document_parts", "document_hidden"


class Result:
    """Figures that were found: a frozen dataclass whose document follows from its fields.

    Each field is written under its own name unless ``document_field`` says otherwise (none whose
    name begins with an underscore), then the properties that ``derived`` names.
    """

    __slots__ = ()

    derived: ClassVar[tuple[str, ...]] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        document = _of_fields(self)
        return document | {name: plain_value(getattr(self, name)) for name in self.derived}


def document_field(
    name: str | None = None, *, parts: tuple[str, ...] = (), hidden: bool = False
) -> dict[str, Any]:
    """The ``metadata`` of a field that is not written as it is.

    Args:
        name: the name that it has in the document.
        parts: what the parts of each of its tuples are called: a tuple becomes an object.
        hidden: whether it stays out of the document.
    """
    return {_NAME: name, _PARTS: parts, _HIDDEN: hidden}


def plain_value(value: Any) -> Any:
    """``value`` as JSON knows it; what JSON does not know becomes the name of its type."""
    if isinstance(value, Result):
        return value.to_dict()
    if isinstance(value, Mapping):
        return {str(key): plain_value(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain_value(inner) for inner in value]
    if isinstance(value, np.generic):
        return plain_value(value.item())
    if isinstance(value, float) and not np.isfinite(value):
        return None
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if is_dataclass(value) and not isinstance(value, type):
        return _of_fields(value)
    return type(value).__name__


def _of_fields(value: Any) -> dict[str, Any]:
    document = {}
    for one in fields(value):
        if not one.name.startswith("_") and not one.metadata.get(_HIDDEN):
            inner, parts = getattr(value, one.name), one.metadata.get(_PARTS)
            if parts:
                inner = [dict(zip(parts, each, strict=True)) for each in inner]
            document[one.metadata.get(_NAME) or one.name] = plain_value(inner)
    return document


_STYLE = """<style>
.hm { --hm-quiet: #5a6669; --hm-line: #dfe3e1; --hm-good: #1b6e4b; --hm-bad: #a32f2f;
  font: 14px/1.5 system-ui, sans-serif; max-width: 60rem; }
@media (prefers-color-scheme: dark) {
  .hm { --hm-quiet: #9fabad; --hm-line: #313a3c; --hm-good: #6fcf9f; --hm-bad: #f08a8a; } }
[data-jp-theme-light="false"] .hm {
  --hm-quiet: #9fabad; --hm-line: #313a3c; --hm-good: #6fcf9f; --hm-bad: #f08a8a; }
[data-jp-theme-light="true"] .hm {
  --hm-quiet: #5a6669; --hm-line: #dfe3e1; --hm-good: #1b6e4b; --hm-bad: #a32f2f; }
.hm table { border-collapse: collapse; margin: .4rem 0; }
.hm th, .hm td { text-align: left; padding: .15rem .9rem .15rem 0;
  border-bottom: 1px solid var(--hm-line); vertical-align: top; }
.hm th, .hm .quiet { color: var(--hm-quiet); font-weight: 500; }
.hm td.number { text-align: right; font-variant-numeric: tabular-nums; }
.hm .yes { color: var(--hm-good); } .hm .no { color: var(--hm-bad); }
.hm p { margin: .3rem 0; }
</style>"""
MOST = 20  # rows that are shown


def view(title: str, *parts: str) -> str:
    """One result: what it is, and its parts."""
    return f'{_STYLE}<div class="hm"><p><b>{escape(title)}</b></p>{"".join(parts)}</div>'


def grid(headings: Sequence[str], rows: Iterable[Sequence[Any]], most: int = MOST) -> str:
    """A table of at most ``most`` rows; says how many more there are."""
    listed = list(rows)
    head = "".join(f"<th>{escape(one)}</th>" for one in headings)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in listed[:most])
    more = len(listed) - most
    rest = f'<p class="quiet">and {more:,} more</p>' if more > 0 else ""
    first = f"<thead><tr>{head}</tr></thead>" if any(headings) else ""
    return f"<table>{first}<tbody>{body}</tbody></table>{rest}"


def _cell(value: Any) -> str:
    if value is None:
        return "<td></td>"
    if isinstance(value, bool):
        return '<td class="yes">✓ yes</td>' if value else '<td class="no">✗ no</td>'
    if isinstance(value, int):
        return f'<td class="number">{value:,}</td>'
    if isinstance(value, float):
        text = f"{value:,.0f}" if 1e3 <= abs(value) < 1e15 else f"{value:.4g}"
        return f'<td class="number">{text}</td>'
    return f"<td>{escape(str(value))}</td>"


def lines(texts: Iterable[str]) -> str:
    """Sentences, one below the other."""
    return "".join(f"<p>{escape(text)}</p>" for text in texts if text)


def schema_parts(schema: Schema, names: Sequence[str]) -> str:
    """The columns ``names`` with what is declared of them."""
    private = dict.fromkeys(schema.policy_names, "policy")
    private |= {} if schema.person is None else {schema.person: "person"}
    rows = []
    for name in names:
        column = schema.columns.get(name)
        role = private.get(name) or (column.role if column else "not declared")
        ladder = column.hierarchy.to_dict() if column and column.hierarchy else {}
        rows.append((name, role, column.kind if column else None, ", ".join(map(str, ladder))))
    return grid(("column", "role", "kind", "hierarchy"), rows, most=len(rows))
