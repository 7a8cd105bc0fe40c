"""The guarantee clause behind a query, and a small recursive parser of it.

GUARANTEE k = 5, l = 3
THEN street -> del GUARANTEE k = 10, l = 3
SEMANTICS complete
AT MOST 3 ROWS PER PERSON
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from halfmask.errors import QueryError
from halfmask.query.parsing.chain import SEMANTICS, Chain, Guarantee, Level, Place, Semantics, Step

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlglot.tokenizer_core import Token


class GuaranteeClause:
    """The tokens of a clause, read one after the other."""

    def __init__(self, text: str, tokens: Sequence[Token]) -> None:
        self.text = text
        self.tokens = [t for t in tokens if t.text != ";" or t is not tokens[-1]]
        self.at = 0
        self.diverse: list[str] = []
        self.places: list[Place] = []

    def read(self) -> tuple[Chain, Semantics, int | None]:
        """The chain of guarantees, the semantics, and the bound on the rows of one person."""
        levels: list[Level] = []
        if self._is("GUARANTEE"):
            place = self._place()
            self.at += 1
            levels.append(Level(self._guarantee(None), None, place))
        while self._take("THEN"):
            step = self._step()
            place = self._place()
            self._need("GUARANTEE")
            levels.append(
                Level(self._guarantee(levels[-1].guarantee if levels else None), step, place)
            )
        semantics: Semantics | None = None
        bound: int | None = None
        while self.at < len(self.tokens):
            if semantics is None and self._take("SEMANTICS"):
                semantics = self._semantics()
            elif bound is None and self._take("AT"):
                bound = self._bound()
            else:
                self._fail("expected THEN, SEMANTICS, AT MOST or the end of the query")
        chain = Chain(tuple(levels), tuple(self.diverse), tuple(self.places))
        return chain, semantics or "selective", bound

    def _guarantee(self, before: Guarantee | None) -> Guarantee:
        found: dict[str, int] = {}
        while True:
            name = self._word("k = number or l = number").lower()
            if name not in ("k", "l"):
                self._fail("a guarantee is k = number and l = number", back=1)
            if name in found:
                self._fail(f"{name} is stated twice", back=1)
            if not (self._take("=") or self._take(">=")):
                self._fail(f"expected = behind {name}")
            found[name] = self._integer()
            if name == "l" and self._take("OF"):
                self._of()
            if not self._take(","):
                break
        if "k" not in found and before is None:
            self._fail("the first guarantee must state k")
        k = found["k"] if "k" in found or before is None else before.k
        return Guarantee(k, found.get("l", before.l if before else 1))

    def _of(self) -> None:
        several = self._take("(")
        while True:
            self.places.append(self._place())
            self.diverse.append(self._word("a column"))
            if not (several and self._take(",")):
                break
        if several:
            self._need(")")

    def _step(self) -> Step:
        place = self._place()
        column = self._word("the column to generalize")
        self._need("->")
        token = self._peek()
        word = token.text.lower() if token else ""
        if word in ("up", "del", "delete"):
            self.at += 1
            return Step(column, "up" if word == "up" else "delete", 0, place)
        if token is None or not token.text.isdigit() or int(token.text) < 1:
            self._fail("a column is generalized to a width (a whole number), up, or del")
        self.at += 1
        return Step(column, "interval", int(token.text), place)

    def _semantics(self) -> Semantics:
        start = self.at
        word = self._word("selective, complete or complete-greedy").lower()
        while self._take("-") or self._take("_"):
            word += "-" + self._word("the rest of the word").lower()
        word = word.replace("_", "-")
        for known in SEMANTICS:
            if word == known:
                return known
        self.at = start
        return self._fail(f"the semantics is one of {', '.join(SEMANTICS)}")

    def _bound(self) -> int:
        self._need("MOST")
        number = self._integer()
        for words in (("ROW", "ROWS"), ("PER",), ("PERSON",)):
            if not any(self._take(word) for word in words):
                self._fail("write AT MOST number ROWS PER PERSON")
        return number

    def _peek(self) -> Token | None:
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    def _is(self, word: str) -> bool:
        token = self._peek()
        return token is not None and token.text.upper() == word

    def _take(self, word: str) -> bool:
        if self._is(word):
            self.at += 1
            return True
        return False

    def _need(self, word: str) -> None:
        if not self._take(word):
            self._fail(f"expected {word}")

    def _word(self, what: str) -> str:
        token = self._peek()
        if token is None or not (
            token.text[:1].isalpha()
            or token.text[:1] == "_"
            or token.token_type.name == "IDENTIFIER"
        ):
            self._fail(f"expected {what}")
        self.at += 1
        return token.text

    def _integer(self) -> int:
        token = self._peek()
        if token is None or not token.text.isdigit() or not 1 <= int(token.text) < 2**31:
            self._fail("expected a whole number, at least 1")
        self.at += 1
        return int(token.text)

    def _place(self) -> Place:
        token = self._peek()
        if token is None:
            return Place(len(self.text.rstrip()))
        return Place(token.start, token.end - token.start + 1)

    def _fail(self, message: str, *, back: int = 0) -> NoReturn:
        self.at -= back
        place = self._place()
        raise QueryError(f"{message}.", text=self.text, start=place.start, length=place.length)
