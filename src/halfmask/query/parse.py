"""From text to a statement: ordinary SQL in front, the clause of what is promised behind it.

The clause is cut off at token level, so that every place in the text stays known; the rest is
plain SQL for sqlglot.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from halfmask.errors import QueryError, UnsupportedQueryError
from halfmask.query.catalog import THE_TABLE
from halfmask.query.clauses import (
    SEMANTICS,
    Chain,
    ChainLevel,
    EpsilonClause,
    EpsilonPromise,
    Generalization,
    GuaranteeClause,
    LevelGuarantee,
    Semantics,
    TextPlace,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlglot import exp
    from sqlglot.tokenizer_core import Token


WRITTEN_IN = "duckdb"


@dataclass(frozen=True, slots=True)
class Statement:
    """A query as written, taken apart.

    Attributes:
        text: the whole text, to point into.
        select: the plain SQL.
        promise: what is promised of the answer: a chain of guarantees, or what noise may cost.
        rows_per_person: the stated bound on the rows of one person that count.
        explain: whether only the plan is asked for.
        notes: what the asker should know about how it was read.
    """

    text: str
    select: exp.Select
    promise: Chain | EpsilonPromise
    rows_per_person: int | None = None
    explain: bool = False
    notes: tuple[str, ...] = ()

    @property
    def noisy(self) -> bool:
        """Whether the answer is under differential privacy."""
        return isinstance(self.promise, EpsilonPromise)

    @property
    def chain(self) -> Chain:
        """The guarantees.

        Raises:
            UnsupportedQueryError: there are none, as noise is asked for; points at the clause.
        """
        if isinstance(self.promise, Chain):
            return self.promise
        raise UnsupportedQueryError(
            "a query with EPSILON is answered by hm.query and explained by hm.explain; it is not "
            "suggested or sent to cells.",
            text=self.text,
            start=self.promise.start,
            length=4,
        )

    @property
    def cost(self) -> EpsilonPromise:
        """What noise may cost.

        Raises:
            QueryError: guarantees are asked for.
        """
        if isinstance(self.promise, EpsilonPromise):
            return self.promise
        raise QueryError(
            "the query states no budget: add WITH EPSILON 1.0 behind it.",
            text=self.text,
            start=len(self.text.rstrip()),
        )


def parse(text: str, *, noisy: bool = False) -> Statement:
    """Read SQL with a clause of guarantees or of noise, or the papers' GB / OP / MD notation.

    Args:
        text: the query.
        noisy: whether the call states an epsilon, so that the query need not.

    Raises:
        QueryError: with line, column and a caret.
    """
    if not isinstance(text, str) or not text.strip():
        raise QueryError("there is no query.")
    if not noisy and is_notation(text):
        return parse_notation(text)
    asked = _without_explain(text)
    tokens = tokens_of(asked)
    promise: Chain | EpsilonPromise
    cut, bound = _epsilon_start(tokens), None
    if noisy or cut is not None:
        _refuse_guarantee(text, tokens)
        promise = EpsilonPromise(start=len(text.rstrip()))
        if cut is not None:
            promise, bound = EpsilonClause(text, tokens[cut:]).read()
    else:
        cut = _guarantee_start(tokens)
        if cut is None:
            _check_brackets(text, tokens)
            raise QueryError(
                "the query promises nothing: add GUARANTEE k = ..., l = ... behind it, or WITH "
                "EPSILON ... for noisy figures.",
                text=text,
                start=len(text.rstrip()),
            )
        promise, bound = GuaranteeClause(text, tokens[cut:]).read()
        check_chain(text, promise)
    select = select_of(text, asked if cut is None else asked[: tokens[cut].start])
    return Statement(text, select, promise, bound, asked != text)


def raise_to_floor(statement: Statement, floor: int) -> Statement:
    """The statement in which no level promises a k below the controller's floor."""
    chain = statement.chain
    if chain.guarantees[0].k >= floor:
        return statement
    levels = tuple(
        replace(level, guarantee=replace(level.guarantee, k=max(floor, level.guarantee.k)))
        for level in chain.levels
    )
    note = f"Answers are given for at least {floor} people here: k was raised to {floor}."
    return replace(statement, promise=replace(chain, levels=levels), notes=(*statement.notes, note))


def _without_explain(text: str) -> str:
    """The text with EXPLAIN blanked out, so that places in it stay as they are."""
    asked = re.match(r"\s*EXPLAIN\b", text, re.IGNORECASE)
    return text if asked is None else " " * asked.end() + text[asked.end() :]


def _epsilon_start(tokens: Sequence[Token]) -> int | None:
    depth = 0
    for i, token in enumerate(tokens[:-1]):
        depth += {"L_PAREN": 1, "R_PAREN": -1}.get(token.token_type.name, 0)
        after = [t.text.upper() for t in tokens[i + 1 : i + 3]]
        if depth == 0 and token.text.upper() == "WITH" and "EPSILON" in after[:1]:
            return i
        if depth == 0 and token.text.upper() == "WITH" and after == ["PERSONAL", "EPSILON"]:
            return i
    return None


def _refuse_guarantee(text: str, tokens: Sequence[Token]) -> None:
    for token in tokens:
        if token.token_type.name == "VAR" and token.text.upper() == "GUARANTEE":
            raise QueryError(
                "a query promises a GUARANTEE or an EPSILON, not both: exact rows beside noisy "
                "ones would take the noise away. Ask twice.",
                text=text,
                start=token.start,
                length=len(token.text),
            )


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


def _guarantee_start(tokens: Sequence[Token]) -> int | None:
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


_SECTION = re.compile(r"\b(GB|OP|MD|WH|SE)\s*=", re.IGNORECASE)
_ENTRY = re.compile(
    r"\s*(?:(?P<name>[\w \-]+?)\s*->\s*(?P<what>\w+))?\s*:\s*"
    r"(?:k\s*=\s*(?P<k>\d+)\s*,?\s*l\s*=\s*(?P<l>\d+))?\s*"
)


def is_notation(text: str) -> bool:
    """Tell whether ``text`` is in the papers' notation."""
    return re.match(r"\s*(EXPLAIN\s+)?(GB|OP)\s*=", text, re.IGNORECASE) is not None


def parse_notation(text: str) -> Statement:
    """Read the papers' own notation: GB, OP, MD and the optional WH (a condition) and SE.

        GB = Age, Workclass; OP = AVG(fnlwgt);
        MD = : k=5 l=3, age->20: k=6 l=3, workclass->up: k=8 l=4;

    It means what the guarantee clause means. A list that starts with a generalization has no level
    0 (the journal paper prints it so, after a bare colon).
    Source: Michel 2019, Fig 4.5; Michel, Nguyen, Pucheral, "The Case for Personalized
    Anonymization of Database Query Results", Fig 4.

    Raises:
        QueryError: with line, column and a caret.
    """
    sections = _sections(text)
    for name in ("GB", "OP", "MD"):
        if name not in sections:
            raise QueryError(f"{name} = ... is missing.", text=text, start=0)
    chain, notes = _chain(text, *sections["MD"])
    check_chain(text, chain)
    chain = replace(chain, semantics=_semantics(text, sections.get("SE")))
    return Statement(
        text,
        _select(text, sections),
        chain,
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
    levels: list[ChainLevel] = []
    at = start
    while at < end:
        entry = _ENTRY.match(text, at, end)
        if entry is None or entry.end() == at:
            raise QueryError(
                "expected column->what: k=number l=number.", text=text, start=_skip(text, at)
            )
        place = TextPlace(_skip(text, at), max(1, len(entry.group().strip())))
        if entry["k"] is None:
            # The journal paper prints a bare colon in front of the list.
            if levels or entry["name"]:
                raise QueryError("expected k=number l=number.", text=text, start=entry.end() - 1)
        else:
            guarantee = LevelGuarantee(_positive(text, entry, "k"), _positive(text, entry, "l"))
            levels.append(ChainLevel(guarantee, _step(text, entry), place))
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


def _step(text: str, entry: re.Match[str]) -> Generalization | None:
    if entry["name"] is None:
        return None
    place = TextPlace(_skip(text, entry.start("name")), len(entry["name"].strip()))
    what = entry["what"].lower()
    if what in ("up", "del", "delete"):
        return Generalization(entry["name"].strip(), "up" if what == "up" else "delete", 0, place)
    if what.isdigit() and int(what) > 0:
        return Generalization(entry["name"].strip(), "interval", int(what), place)
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
