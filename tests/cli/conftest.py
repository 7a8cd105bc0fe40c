"""A folder with the sample, and the command line called as a user would call it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from halfmask.cli.main import run
from halfmask.sample import write

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str

    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def halfmask(capfd) -> Callable[..., Outcome]:
    def call(*arguments: object) -> Outcome:
        capfd.readouterr()
        with pytest.raises(SystemExit) as stop:
            run([str(argument) for argument in arguments])
        out, err = capfd.readouterr()
        assert isinstance(stop.value.code, int)
        return Outcome(stop.value.code, out, err)

    return call


@pytest.fixture(scope="session")
def sample(tmp_path_factory) -> Path:
    """The path of people.csv, 600 rows, with schema and hierarchies beside it."""
    return write(tmp_path_factory.mktemp("sample"), 600)


@pytest.fixture(scope="session")
def few(tmp_path_factory) -> Path:
    """The same of 60 rows, where their number is not the point."""
    return write(tmp_path_factory.mktemp("few"), 60)
