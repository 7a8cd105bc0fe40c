"""The papers' own notation: GB = columns; OP = aggregates; MD = generalizations and guarantees.

    GB = Age, Workclass; OP = AVG(fnlwgt);
    MD = : k=5 l=3, age->20: k=6 l=3, workclass->up: k=8 l=4;

It means what the guarantee clause means. A list that starts with a generalization has no level 0
(the journal paper prints it so, after a bare colon).
Source: Michel 2019, Fig 4.5; Michel, Nguyen, Pucheral, "The Case for Personalized Anonymization
of Database Query Results", Fig 4.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from halfmask.errors import QueryError
from halfmask.query.parsing.chain import SEMANTICS, Chain, Guarantee, Level, Place, Semantics, Step

if TYPE_CHECKING:
    from sqlglot import exp

    from halfmask.query.parsing.parse import Statement

_SECTION = re.compile(r"\b(GB|OP|MD|WH|SE)\s*=", re.IGNORECASE)
_ENTRY = re.compile(
    r"\s*(?:(?P<name>[\w \-]+?)\s*->\s*(?P<what>\w+))?\s*:\s*"
    r"(?:k\s*=\s*(?P<k>\d+)\s*,?\s*l\s*=\s*(?P<l>\d+))?\s*"
)
THE_TABLE = "the_table"


def is_notation(text: str) -> bool:
    """Tell whether ``text`` is in the papers' notation."""
    return re.match(r"\s*(EXPLAIN\s+)?(GB|OP)\s*=", text, re.IGNORECASE) is not None


def parse(text: str) -> Statement:
    """Read GB, OP, MD and the optional WH (a condition) and SE (the semantics).

    Raises:
        QueryError: with line, column and a caret.
    """
    from halfmask.query.parsing.parse import Statement, check_chain

    sections = _sections(text)
    for name in ("GB", "OP", "MD"):
        if name not in sections:
            raise QueryError(f"{name} = ... is missing.", text=text, start=0)
    chain, notes = _chain(text, *sections["MD"])
    check_chain(text, chain)
    semantics = _semantics(text, sections.get("SE"))
    return Statement(
        text,
        _select(text, sections),
        chain,
        semantics,
        explain=text.lstrip()[:7].upper() == "EXPLAIN",
        notes=notes,
    )


def _sections(text: str) -> dict[str, tuple[int, int]]:
    found: dict[str, tuple[int, int]] = {}
    heads = list(_SECTION.finditer(text))
    for head, following in zip(heads, [*heads[1:], None], strict=True):
        end = following.start() if following else len(text)
        name = head.group(1).upper()
        if name in found:
            raise QueryError(f"{name} stands twice.", text=text, start=head.start(), length=2)
        body = text[head.end() : end].rstrip().rstrip(";").rstrip()
        found[name] = (head.end(), head.end() + len(body))
    return found


def _chain(text: str, start: int, end: int) -> tuple[Chain, tuple[str, ...]]:
    levels: list[Level] = []
    at = start
    while at < end:
        entry = _ENTRY.match(text, at, end)
        if entry is None or entry.end() == at:
            raise QueryError(
                "expected column->what: k=number l=number.", text=text, start=_skip(text, at)
            )
        place = Place(_skip(text, at), max(1, len(entry.group().strip())))
        if entry["k"] is None:
            # The journal paper prints a bare colon in front of the list.
            if levels or entry["name"]:
                raise QueryError("expected k=number l=number.", text=text, start=entry.end() - 1)
        else:
            guarantee = Guarantee(_positive(text, entry, "k"), _positive(text, entry, "l"))
            levels.append(Level(guarantee, _step(text, entry), place))
            if entry["name"] is None and len(levels) > 1:
                raise QueryError(
                    "only the first entry may leave the columns as they are.",
                    text=text,
                    start=place.start,
                    length=place.length,
                )
        at = entry.end()
        if entry["k"] is not None and at < end:
            if text[at] != ",":
                raise QueryError("expected a comma.", text=text, start=at)
            at += 1
    if not levels:
        raise QueryError("MD states no guarantee.", text=text, start=start)
    notes = (
        ()
        if levels[0].step is None
        else ("The list starts with a generalization: there is no level 0.",)
    )
    return Chain(tuple(levels)), notes


def _step(text: str, entry: re.Match[str]) -> Step | None:
    if entry["name"] is None:
        return None
    place = Place(_skip(text, entry.start("name")), len(entry["name"].strip()))
    what = entry["what"].lower()
    if what in ("up", "del", "delete"):
        return Step(entry["name"].strip(), "up" if what == "up" else "delete", 0, place)
    if what.isdigit() and int(what) > 0:
        return Step(entry["name"].strip(), "interval", int(what), place)
    raise QueryError(
        "a column is generalized to a width, up, or del.",
        text=text,
        start=entry.start("what"),
        length=len(what),
    )


def _positive(text: str, entry: re.Match[str], name: str) -> int:
    value = int(entry[name])
    if not 1 <= value < 2**31:
        raise QueryError(f"{name} must be at least 1.", text=text, start=entry.start(name))
    return value


def _semantics(text: str, section: tuple[int, int] | None) -> Semantics:
    if section is None:
        return "selective"
    word = text[slice(*section)].strip().lower()
    for known in SEMANTICS:
        if word == known:
            return known
    raise QueryError(
        f"the semantics is one of {', '.join(SEMANTICS)}.",
        text=text,
        start=_skip(text, section[0]),
        length=max(1, len(word)),
    )


def _select(text: str, sections: dict[str, tuple[int, int]]) -> exp.Select:
    from sqlglot import exp

    from halfmask.query.parsing.parse import select_of

    start, end = sections["OP"]
    padded = "SELECT".rjust(start)[-start:] + text[start:end]
    aggregates = select_of(text, padded)
    keys = []
    for match in re.finditer(r"[^,]+", text[slice(*sections["GB"])]):
        name = match.group().strip()
        if not re.fullmatch(r"[\w \-]+", name):
            place = _skip(text, sections["GB"][0] + match.start())
            raise QueryError("GB is a list of columns.", text=text, start=place)
        identifier = exp.to_identifier(name, quoted=True)
        place = _skip(text, sections["GB"][0] + match.start())
        identifier.meta.update(start=place, end=place + len(name) - 1)
        keys.append(exp.Column(this=identifier))
    select = exp.select(*[k.copy() for k in keys], *aggregates.expressions).from_(THE_TABLE)
    select = select.group_by(*keys)
    if "WH" in sections:
        start, end = sections["WH"]
        where = select_of(text, "SELECT 1 WHERE".rjust(start)[-max(start, 14) :] + text[start:end])
        select.set("where", where.args.get("where"))
    return select


def _skip(text: str, at: int) -> int:
    """The next place that is not blank."""
    while at < len(text) and text[at].isspace():
        at += 1
    return at
