"""Documents follow from the fields of results."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pytest

from halfmask.table.document import Result, document_field, plain_value


@dataclass(frozen=True)
class Part:
    share: float


@dataclass(frozen=True, slots=True)
class Found(Result):
    derived: ClassVar[tuple[str, ...]] = ("twice",)

    rows: int
    keys_: tuple[str, ...] = field(metadata=document_field("keys"))
    by_size: tuple[tuple[int, float], ...] = field(metadata=document_field(parts=("size", "share")))
    part: Part | None = None
    scores: Any = field(default=None, metadata=document_field(hidden=True))
    _places: int = 7

    @property
    def twice(self) -> int:
        return 2 * self.rows


def test_fields_are_written_as_their_declaration_says():
    found = Found(2, ("a",), ((1, 0.5), (2, float("nan"))), Part(0.25), scores=np.ones(3))
    assert found.to_dict() == {
        "rows": 2,
        "keys": ["a"],
        "by_size": [{"size": 1, "share": 0.5}, {"size": 2, "share": None}],
        "part": {"share": 0.25},
        "twice": 4,
    }


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.float64(0.5), 0.5),
        (np.int64(3), 3),
        (float("inf"), None),
        ({1: (2, None)}, {"1": [2, None]}),
        (True, True),
        (Part(1.0), {"share": 1.0}),
        (object(), "object"),
        ([Found(1, (), ())], [{"rows": 1, "keys": [], "by_size": [], "part": None, "twice": 2}]),
    ],
    ids=["a float", "an integer", "infinity", "a mapping", "yes", "a dataclass", "what JSON does "
         "not know", "results"],
)  # fmt: skip
def test_values_become_what_json_knows(value, expected):
    assert plain_value(value) == expected


def test_parts_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="zip"):
        Found(1, (), ((1,),)).to_dict()
