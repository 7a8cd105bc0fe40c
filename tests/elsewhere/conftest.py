"""What tests of rows elsewhere share: no row may be collected."""

from __future__ import annotations

import pytest

from halfmask.engines.spark import SparkRows
from halfmask.engines.stored import Storage


@pytest.fixture
def in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("rows were collected")

    monkeypatch.setattr(Storage, "collect", refuse)
    monkeypatch.setattr(SparkRows, "collect", refuse)
