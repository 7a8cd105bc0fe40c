"""From text to a statement: ordinary SQL in front, the guarantee clause behind it.

The clause is cut off at token level, so that every place in the text stays known; the rest is
plain SQL for sqlglot.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from halfmask.errors import QueryError, UnsupportedQueryError
from halfmask.query.parsing.guarantee_clause import GuaranteeClause

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlglot import exp
    from sqlglot.tokenizer_core import Token

    from halfmask.query.parsing.chain import Chain, Semantics

WRITTEN_IN = "duckdb"


@dataclass(frozen=True, slots=True)
class Statement:
    """A query as written, taken apart.

    Attributes:
        text: the whole text, to point into.
        select: the plain SQL.
        chain: the guarantees.
        semantics: what may move, if stated.
        rows_per_person: the stated bound on what a join may make of one person.
        explain: whether only the plan is asked for.
        notes: what the asker should know about how it was read.
    """

    text: str
    select: exp.Select
    chain: Chain
    semantics: Semantics
    rows_per_person: int | None = None
    explain: bool = False
    notes: tuple[str, ...] = ()


def parse(text: str) -> Statement:
    """Read a query in SQL with a guarantee clause, or in the papers' GB / OP / MD notation.

    Raises:
        QueryError: with line, column and a caret.
    """
    from halfmask.query.parsing import notation
    from halfmask.query.private.clause import refuse_private

    if notation.is_notation(text):
        return notation.parse(text)
    asked = re.match(r"\s*EXPLAIN\b", text, re.IGNORECASE)
    start = asked.end() if asked else 0
    # Blank it out: places in the text stay as they are.
    tokens = tokens_of(" " * start + text[start:])
    cut = _clause_start(tokens)
    if cut is None:
        _check_brackets(text, tokens)
        refuse_private(text)
        raise QueryError(
            "the query promises nothing: add GUARANTEE k = ..., l = ... behind it, or WITH EPSILON "
            "... for noisy figures.",
            text=text,
            start=len(text.rstrip()),
        )
    plain = " " * start + text[start : tokens[cut].start]
    clause = GuaranteeClause(text, tokens[cut:])
    chain, semantics, bound = clause.read()
    check_chain(text, chain)
    return Statement(text, select_of(text, plain), chain, semantics, bound, asked is not None)


def raised(statement: Statement, floor: int) -> Statement:
    """The statement in which no level promises a k below the controller's floor."""
    chain = statement.chain
    if chain.guarantees[0].k >= floor:
        return statement
    levels = tuple(
        replace(level, guarantee=replace(level.guarantee, k=max(floor, level.guarantee.k)))
        for level in chain.levels
    )
    note = f"Answers are given for at least {floor} people here: k was raised to {floor}."
    return replace(statement, chain=replace(chain, levels=levels), notes=(*statement.notes, note))


def tokens_of(text: str) -> list[Token]:
    """The tokens of a query.

    Raises:
        QueryError: where a text or a comment is not closed.
    """
    import sqlglot
    from sqlglot.errors import SqlglotError

    try:
        return list(sqlglot.tokenize(text, read=WRITTEN_IN))
    except SqlglotError as error:
        end = getattr(error, "end", None)
        place = end if isinstance(end, int) else len(text) - 1
        raise QueryError(
            "this cannot be read: a quote or a comment is not closed.", text=text, start=place
        ) from None


def select_of(text: str, plain: str) -> exp.Select:
    """Parse the plain SQL; ``plain`` has the offsets of ``text``.

    Raises:
        QueryError: where it is no SQL.
        UnsupportedQueryError: where it is not one SELECT.
    """
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import ParseError, SqlglotError

    try:
        parsed = [e for e in sqlglot.parse(plain, read=WRITTEN_IN) if e is not None]
    except ParseError as error:
        fault = error.errors[0] if error.errors else {}
        start = _offset(plain, fault.get("line"), fault.get("col"), str(fault.get("highlight", "")))
        what = str(fault.get("description", "it is not SQL")).split(" but got <Token")[0]
        raise QueryError(
            f"this is not SQL: {what.strip().rstrip('.').lower()}.",
            text=text,
            start=start,
            length=max(1, len(str(fault.get("highlight", "")))),
        ) from None
    except (SqlglotError, RecursionError, ValueError):
        raise QueryError("this is not SQL that can be read.", text=text, start=0) from None
    if not parsed:
        raise QueryError("there is no query before the guarantee.", text=text, start=0)
    if len(parsed) > 1:
        raise UnsupportedQueryError(
            "ask one query at a time.", text=text, start=_start_of(parsed[1])
        )
    select = parsed[0]
    if isinstance(select, exp.SetOperation):
        raise UnsupportedQueryError(
            "UNION, EXCEPT and INTERSECT are refused: their rows could be subtracted from each "
            "other. Ask each query alone.",
            text=text,
            start=_start_of(select),
        )
    if not isinstance(select, exp.Select):
        raise UnsupportedQueryError(
            "only SELECT can be answered.", text=text, start=len(plain) - len(plain.lstrip())
        )
    return select


def check_chain(text: str, chain: Chain) -> None:
    """Refuse guarantees that weaken along the chain.

    Raises:
        QueryError: at the level that promises less than the one before.
    """
    for before, level in zip(chain.levels, chain.levels[1:], strict=False):
        new, old = level.guarantee, before.guarantee
        if new.k < old.k or new.l < old.l:
            raise QueryError(
                f"{new} promises less than {old} before it: a person who agreed to the finer "
                "level may be moved here, so guarantees must not weaken.",
                text=text,
                start=level.place.start,
                length=level.place.length,
            )


def _start_of(node: exp.Expr) -> int:
    """The first place in the text that a node knows."""
    starts = [n.meta["start"] for n in node.walk() if "start" in n.meta]
    return min(starts, default=0)


def _offset(text: str, line: object, column: object, highlight: str) -> int:
    if not isinstance(line, int) or not isinstance(column, int):
        return max(0, len(text.rstrip()) - 1)
    lines = text.split("\n")
    before = sum(len(row) + 1 for row in lines[: line - 1])
    return max(0, before + column - max(1, len(highlight)))


def _clause_start(tokens: Sequence[Token]) -> int | None:
    depth = 0
    for i, token in enumerate(tokens):
        depth += {"L_PAREN": 1, "R_PAREN": -1}.get(token.token_type.name, 0)
        if depth == 0 and token.token_type.name == "VAR" and token.text.upper() == "GUARANTEE":
            return _back_to_then(tokens, i)
    return None


def _check_brackets(text: str, tokens: Sequence[Token]) -> None:
    """Behind an open bracket the clause is not seen: say that first."""
    opened: list[Token] = []
    for token in tokens:
        if token.token_type.name == "L_PAREN":
            opened.append(token)
        elif token.token_type.name == "R_PAREN" and opened:
            opened.pop()
    if opened:
        raise QueryError("this bracket is never closed.", text=text, start=opened[-1].start)


def _back_to_then(tokens: Sequence[Token], at: int) -> int:
    """A chain may begin with THEN column -> operation GUARANTEE: it has no level 0."""
    if at >= 4 and tokens[at - 2].text == "->" and tokens[at - 4].text.upper() == "THEN":
        return at - 4
    return at
