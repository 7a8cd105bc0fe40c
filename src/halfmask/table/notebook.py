"""Results in a notebook: small pieces of HTML, light and dark, that load nothing."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from halfmask.table.schema import Schema

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
