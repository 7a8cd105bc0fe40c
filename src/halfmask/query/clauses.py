"""The clause behind a query that says what is promised: a chain of guarantees, or an epsilon."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from halfmask.dp.budget import exact_number
from halfmask.errors import ParameterError, QueryError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlglot.tokenizer_core import Token


Operation = Literal["interval", "up", "delete"]
Semantics = Literal["selective", "complete", "complete-greedy"]
SEMANTICS: tuple[Semantics, ...] = ("selective", "complete", "complete-greedy")


@dataclass(frozen=True, slots=True, order=True)
class TextPlace:
    """Where something stands in the text of the query."""

    start: int
    length: int = 1


@dataclass(frozen=True, slots=True)
class LevelGuarantee:
    """At least ``k`` people and ``l`` distinct values in every row.

    Example:
        >>> LevelGuarantee(10, 4).covers(9, 4), LevelGuarantee(10, 4).covers(9, 5)
        (True, False)
    """

    k: int
    l: int = 1

    def covers(self, k: float, l: float) -> bool:
        """Tell whether a person who demands ``k`` and ``l`` is content with this."""
        return k <= self.k and l <= self.l

    def __str__(self) -> str:
        return f"k={self.k} l={self.l}"


@dataclass(frozen=True, slots=True)
class Generalization:
    """One generalization of one grouping column.

    Attributes:
        column: the column's name as the asker wrote it.
        operation: to an interval, one level up its hierarchy, or away.
        width: the width of the interval.
        place: where it stands in the query.
    """

    column: str
    operation: Operation
    width: int = 0
    place: TextPlace = TextPlace(0)

    def __str__(self) -> str:
        what = {"interval": str(self.width), "up": "up", "delete": "del"}[self.operation]
        return f"{self.column} -> {what}"


@dataclass(frozen=True, slots=True)
class ChainLevel:
    """One entry of the chain: the step that leads to it (None: as grouped) and its guarantee."""

    guarantee: LevelGuarantee
    step: Generalization | None = None
    place: TextPlace = TextPlace(0)


@dataclass(frozen=True, slots=True)
class Chain:
    """The chain of guarantees: its levels from finest to coarsest.

    Definition: level i applies the steps 1..i to the grouping columns and promises, for every row
    published at that level, at least k_i people and at least l_i distinct values.
    Source: Michel, "Personalizing Privacy Constraints in Generalization-based Anonymization
    Models", 2019, section 4.3.

    Attributes:
        levels: at least one.
        diverse: further columns whose distinct values l counts (``l = 3 OF disease``).
        places: where each of them stands.
        semantics: what may move.
    """

    levels: tuple[ChainLevel, ...]
    diverse: tuple[str, ...] = ()
    places: tuple[TextPlace, ...] = ()
    semantics: Semantics = "selective"

    @property
    def first(self) -> int:
        """The number of the finest level: 1 where the chain starts with a generalization."""
        return 0 if self.levels[0].step is None else 1

    @property
    def guarantees(self) -> tuple[LevelGuarantee, ...]:
        """What is promised, level by level."""
        return tuple(level.guarantee for level in self.levels)


@dataclass(frozen=True, slots=True)
class EpsilonPromise:
    """What noise may cost.

    Attributes:
        epsilon: as written; empty where the call states it.
        delta: the chance that nothing is promised, as written.
        confidence: of each interval; None where it is not stated.
        personal: whether every person's own epsilon is to be kept.
        share: the share of everybody's own epsilon to spend, as written; None: all of it.
        start: where the clause begins, or would begin.
    """

    epsilon: str = ""
    delta: str = "0"
    confidence: float | None = None
    personal: bool = False
    share: str | None = None
    start: int = 0


def fold_name(name: str) -> str:
    """A name as it is compared: case, spaces and hyphens make no difference.

    Example:
        >>> fold_name("Native Country") == fold_name("native-country") == "native_country"
        True
    """
    return "_".join(name.replace("-", " ").lower().split())


class _Clause:
    """The tokens of a clause, read one after the other."""

    def __init__(self, text: str, tokens: Sequence[Token]) -> None:
        self.text = text
        self.tokens = [t for t in tokens if t.text != ";" or t is not tokens[-1]]
        self.at = 0

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

    def _place(self) -> TextPlace:
        token = self._peek()
        if token is None:
            return TextPlace(len(self.text.rstrip()))
        return TextPlace(token.start, token.end - token.start + 1)

    def _fail(self, message: str, *, back: int = 0) -> NoReturn:
        self.at -= back
        place = self._place()
        raise QueryError(f"{message}.", text=self.text, start=place.start, length=place.length)


class GuaranteeClause(_Clause):
    """What is promised exactly, level by level.

    GUARANTEE k = 5, l = 3
    THEN street -> del GUARANTEE k = 10, l = 3
    SEMANTICS complete
    AT MOST 3 ROWS PER PERSON
    """

    def __init__(self, text: str, tokens: Sequence[Token]) -> None:
        super().__init__(text, tokens)
        self.diverse: list[str] = []
        self.places: list[TextPlace] = []

    def read(self) -> tuple[Chain, int | None]:
        """The chain of guarantees, and the bound on the rows of one person."""
        levels: list[ChainLevel] = []
        if self._is("GUARANTEE"):
            place = self._place()
            self.at += 1
            levels.append(ChainLevel(self._guarantee(None), None, place))
        while self._take("THEN"):
            step = self._step()
            place = self._place()
            self._need("GUARANTEE")
            levels.append(
                ChainLevel(self._guarantee(levels[-1].guarantee if levels else None), step, place)
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
        named = tuple(self.diverse), tuple(self.places)
        return Chain(tuple(levels), *named, semantics or "selective"), bound

    def _guarantee(self, before: LevelGuarantee | None) -> LevelGuarantee:
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
        return LevelGuarantee(k, found.get("l", before.l if before else 1))

    def _of(self) -> None:
        several = self._take("(")
        while True:
            self.places.append(self._place())
            self.diverse.append(self._word("a column"))
            if not (several and self._take(",")):
                break
        if several:
            self._need(")")

    def _step(self) -> Generalization:
        place = self._place()
        column = self._word("the column to generalize")
        self._need("->")
        token = self._peek()
        word = token.text.lower() if token else ""
        if word in ("up", "del", "delete"):
            self.at += 1
            return Generalization(column, "up" if word == "up" else "delete", 0, place)
        if token is None or not token.text.isdigit() or int(token.text) < 1:
            self._fail("a column is generalized to a width (a whole number), up, or del")
        self.at += 1
        return Generalization(column, "interval", int(token.text), place)

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


class EpsilonClause(_Clause):
    """What noise may cost.

    ``WITH EPSILON 1.0 DELTA 1e-6 AT MOST 3 ROWS PER PERSON CONFIDENCE 0.9``, or
    ``WITH PERSONAL EPSILON SHARE 0.1``, which spends a part of everybody's own.
    """

    def read(self) -> tuple[EpsilonPromise, int | None]:
        """What is promised, and the bound on the rows of one person."""
        start = self._place().start
        self._need("WITH")
        personal = self._take("PERSONAL")
        self._need("EPSILON")
        found: dict[str, Any] = {}
        if not personal:
            found["epsilon"] = self._number(
                "epsilon",
                "a number above 0, such as 1.0; for everybody's own, write WITH PERSONAL EPSILON",
            )
        bound: int | None = None
        while self.at < len(self.tokens):
            self._take(",")
            if "delta" not in found and self._take("DELTA"):
                found["delta"] = self._number("delta", "a small number, such as 1e-6")
            elif "confidence" not in found and self._take("CONFIDENCE"):
                found["confidence"] = self._confidence()
            elif personal and "share" not in found and self._take("SHARE"):
                found["share"] = self._number("share", "above 0, at most 1, such as 0.1")
            elif bound is None and self._take("AT"):
                bound = self._bound()
            else:
                self._fail("expected DELTA, AT MOST, CONFIDENCE or the end of the query")
        return EpsilonPromise(**found, personal=personal, start=start), bound

    def _number(self, name: str, what: str) -> str:
        self._take("=")
        token = self._peek()
        written = "" if token is None else token.text
        try:
            found = exact_number(name, written)
        except ParameterError:
            self._fail(f"{name} is {what}")
        if not found > 0 or (name == "delta" and found >= 1) or (name == "share" and found > 1):
            self._fail(f"{name} is {what}")
        self.at += 1
        return written

    def _confidence(self) -> float:
        written = self._number("confidence", "between 0 and 1, such as 0.95")
        if float(written) >= 1:
            self._fail("confidence is between 0 and 1, such as 0.95", back=1)
        return float(written)
