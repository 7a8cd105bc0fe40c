"""The clause of differential privacy behind ordinary SQL.

``WITH EPSILON 1.0 DELTA 1e-6 AT MOST 3 ROWS PER PERSON CONFIDENCE 0.9``, or
``WITH PERSONAL EPSILON SHARE 0.1``, which spends a part of everybody's own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from halfmask.errors import QueryError, UnsupportedQueryError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlglot import exp
    from sqlglot.tokenizer_core import Token


@dataclass(frozen=True, slots=True)
class PrivateStatement:
    """A question under differential privacy, taken apart.

    Attributes:
        text: the whole text, to point into.
        select: the plain SQL.
        epsilon: what it may cost, as written; empty where the clause stands in the call.
        delta: the chance that nothing is promised, as written.
        rows_per_person: how many rows of one person count; None where it is not stated.
        confidence: of each interval; None where it is not stated.
        personal: whether every person's own epsilon is to be kept.
        share: the share of everybody's own epsilon to spend, as written; None: all of it.
        start: where the clause begins.
        explain: whether only the plan is asked for.
    """

    text: str
    select: exp.Select
    epsilon: str = ""
    delta: str = "0"
    rows_per_person: int | None = None
    confidence: float | None = None
    personal: bool = False
    share: str | None = None
    start: int = 0
    explain: bool = False


def is_private(text: str) -> bool:
    """Whether a query has the clause; what cannot be read at all has none."""
    if "epsilon" not in text.lower():
        return False
    from halfmask.query.parsing.parse import tokens_of

    try:
        return _clause_start(tokens_of(_without_explain(text))) is not None
    except QueryError:
        return False


def refuse_private(text: str) -> None:
    """Refuse a query with the clause where only guarantees can be planned.

    Raises:
        UnsupportedQueryError: pointing at the clause.
    """
    if is_private(text):
        start = text.upper().rindex("WITH")
        raise UnsupportedQueryError(
            "a query with EPSILON is answered by hm.query and explained by hm.explain; it is not "
            "suggested or sent to cells.",
            text=text,
            start=start,
            length=4,
        )


def parse_private(text: str) -> PrivateStatement:
    """Read SQL with or without the clause; without it, the call states the budget.

    Raises:
        QueryError: with line, column and a caret.
    """
    from halfmask.query.parsing.parse import select_of, tokens_of

    if not isinstance(text, str) or not text.strip():
        raise QueryError("there is no query.")
    plain = _without_explain(text)
    explain = plain != text
    tokens = tokens_of(plain)
    _refuse_guarantee(text, tokens)
    cut = _clause_start(tokens)
    if cut is None:
        end = len(text.rstrip())
        return PrivateStatement(text, select_of(text, plain), start=end, explain=explain)
    found = _Clause(text, tokens[cut:]).read()
    start = tokens[cut].start
    select = select_of(text, plain[:start])
    return PrivateStatement(text, select, **found, start=start, explain=explain)


def _without_explain(text: str) -> str:
    """The text with EXPLAIN blanked out, so that places in it stay as they are."""
    asked = re.match(r"\s*EXPLAIN\b", text, re.IGNORECASE)
    return text if asked is None else " " * asked.end() + text[asked.end() :]


def _clause_start(tokens: Sequence[Token]) -> int | None:
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


class _Clause:
    """A small parser of the clause."""

    def __init__(self, text: str, tokens: Sequence[Token]) -> None:
        self.text = text
        self.tokens = [t for t in tokens if t.text != ";" or t is not tokens[-1]]
        self.at = 1

    def read(self) -> dict[str, Any]:
        found: dict[str, Any] = {"personal": self._take("PERSONAL")}
        self._take("EPSILON")
        if not found["personal"]:
            found["epsilon"] = self._number("epsilon", "a number above 0, such as 1.0")
        while self.at < len(self.tokens):
            self._take(",")
            word = self._peek_text().upper()
            if word == "DELTA" and "delta" not in found:
                self.at += 1
                found["delta"] = self._number("delta", "a small number, such as 1e-6")
            elif word == "CONFIDENCE" and "confidence" not in found:
                self.at += 1
                found["confidence"] = self._share()
            elif word == "SHARE" and found["personal"] and "share" not in found:
                self.at += 1
                found["share"] = self._number("share", "above 0, at most 1, such as 0.1")
            elif word == "AT" and "rows_per_person" not in found:
                self.at += 1
                found["rows_per_person"] = self._bound()
            else:
                self._fail("expected DELTA, AT MOST, CONFIDENCE or the end of the query")
        return found

    def _number(self, name: str, what: str) -> str:
        from halfmask.dp.budget import exact
        from halfmask.errors import ParameterError

        self._take("=")
        written = self._peek_text()
        try:
            found = exact(name, written)
        except ParameterError:
            self._fail(f"{name} is {what}")
        if not found > 0 or (name == "delta" and found >= 1) or (name == "share" and found > 1):
            self._fail(f"{name} is {what}")
        self.at += 1
        return written

    def _share(self) -> float:
        written = self._number("confidence", "between 0 and 1, such as 0.95")
        if float(written) >= 1:
            self.at -= 1
            self._fail("confidence is between 0 and 1, such as 0.95")
        return float(written)

    def _bound(self) -> int:
        words = [t.text.upper() for t in self.tokens[self.at : self.at + 5]]
        shape = len(words) == 5 and words[0] == "MOST" and words[3:] == ["PER", "PERSON"]
        if not shape or words[2] not in ("ROW", "ROWS") or not words[1].isdigit():
            self._fail("write AT MOST number ROWS PER PERSON")
        if not 1 <= int(words[1]) < 2**31:
            self.at += 1
            self._fail("a person has at least 1 row")
        self.at += 5
        return int(words[1])

    def _peek(self) -> Token | None:
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    def _peek_text(self) -> str:
        token = self._peek()
        return token.text if token is not None else ""

    def _take(self, word: str) -> bool:
        if self._peek_text().upper() == word:
            self.at += 1
            return True
        return False

    def _fail(self, message: str) -> NoReturn:
        token = self._peek()
        start = len(self.text.rstrip()) if token is None else token.start
        length = 1 if token is None else token.end - token.start + 1
        raise QueryError(f"{message}.", text=self.text, start=start, length=length)
