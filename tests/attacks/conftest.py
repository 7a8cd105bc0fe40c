"""What the attacks share: a table in which one person's salary is the secret, and an asker."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import halfmask as hm
from halfmask.errors import HalfmaskError

if TYPE_CHECKING:
    from collections.abc import Callable

# Known to the attacker: Ada is the only one aged 93, and the only one who used 8123 kWh.
AGE, KWH, WHO = 93, 8123.0, 17
SALARY = 48_517
MOST = 1 << 17
UNMEETABLE = 1_000_000


def make_rows(salary: int = SALARY, k: int = UNMEETABLE) -> dict[str, list[Any]]:
    """Sixty people; Ada demands ``k``, all others 2."""
    people = range(60)
    rows: dict[str, list[Any]] = {
        "id": list(people),
        "age": [30 + i % 20 for i in people],
        "city": ["Bourges" if i % 2 else "Lille" for i in people],
        "disease": [("flu", "asthma", "none")[i % 3] for i in people],
        "salary": [20_000 + 1_000 * (i % 10) for i in people],
        "kwh": [100.0 + i for i in people],
        "k_i": [2] * len(people),
    }
    rows["age"][WHO], rows["kwh"][WHO] = AGE, KWH
    rows["salary"][WHO], rows["k_i"][WHO] = salary, k
    return rows


SCHEMA: dict[str, Any] = {
    "table": {"person": "id"},
    "policy": {"k": "k_i"},
    "columns": {
        "id": "identifier",
        "age": "quasi",
        "city": "quasi",
        "disease": "sensitive",
        "salary": "sensitive",
        "kwh": "sensitive",
    },
}


@dataclass
class Asker:
    """Somebody who may ask anything, and sees rows or a refusal."""

    table: Any
    options: dict[str, Any] = field(default_factory=dict)
    asked: int = 0

    def rows(self, sql: str, table: Any = None) -> list[dict[str, Any]] | None:
        """The rows of the answer; None where it is refused."""
        self.asked += 1
        try:
            return (
                hm.query(self.table if table is None else table, sql, **self.options)
                .to_arrow()
                .to_pylist()
            )
        except HalfmaskError:
            return None

    def tells(self, question: Callable[[int], str]) -> bool:
        """Whether the last step of a search would succeed: the guess below and the right one."""
        below, right = self.rows(question(SALARY - 1)), self.rows(question(SALARY))
        return below != right

    def search(self, question: Callable[[int], str], low: int = 0, high: int = MOST) -> int:
        """Find a number by questions that are refused where the number is above a guess."""
        while high - low > 1:
            middle = (low + high) // 2
            if self.rows(question(middle - 1)) is None:
                low = middle
            else:
                high = middle
        return low


@pytest.fixture
def people() -> hm.Table:
    """The table in which nobody may learn anything of Ada."""
    return hm.read(pa.table(make_rows()), SCHEMA)


@pytest.fixture
def liberal() -> hm.Table:
    """The table in which Ada, like all others, may stand in groups of two."""
    return hm.read(pa.table(make_rows(k=2)), SCHEMA)


@pytest.fixture
def asker(people: hm.Table) -> Asker:
    """Who attacks the first table."""
    return Asker(people)
