"""How much a test tries: all of it under ``HYPOTHESIS_PROFILE=thorough``, else a part.

What repeats one path with other numbers is cut in the ordinary run; no promise, oracle or attack is
left out of it.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence

T = TypeVar("T")
THOROUGH = os.environ.get("HYPOTHESIS_PROFILE") == "thorough"


def examples(all_of_them: int) -> int:
    """Of so many random examples a fifth, but eight; other ones in every run."""
    return all_of_them if THOROUGH else min(all_of_them, max(8, all_of_them // 5))


def ends(cases: Sequence[T]) -> Sequence[T]:
    """Of cases in order the first, the middle one and the last."""
    return cases if THOROUGH else (cases[0], cases[len(cases) // 2], cases[-1])


def turn(cases: Sequence[T], number: int, few: int = 1) -> Sequence[T]:
    """Of cases in a circle a few, for each number the next ones: by and by every one has its turn.

    For the product of two lists, where each case of one meets some of the other.
    """
    start = number * few % len(cases)
    return cases if THOROUGH else [*cases[start:], *cases[:start]][:few]
