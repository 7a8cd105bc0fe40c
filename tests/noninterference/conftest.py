"""The counts of the harness: each test counts its own, and the end of the run prints the sum."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from interference import Count

if TYPE_CHECKING:
    from collections.abc import Iterator

COUNTED = ("asked", "answers", "with_rows", "with_figures", "refused")
TOTAL = dict.fromkeys(COUNTED, 0)


@pytest.fixture
def count() -> Iterator[Count]:
    """What one test asked and found."""
    mine = Count()
    yield mine
    for name in COUNTED:
        TOTAL[name] += getattr(mine, name)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many comparisons were made, where any were."""
    if TOTAL["asked"]:
        terminalreporter.write_line(
            "non-interference: {asked:,} comparisons of {answers:,} answers; {with_rows:,} with "
            "rows, {with_figures:,} with figures, {refused:,} refused".format(**TOTAL)
        )
