"""What all tests share: where the real tables stand, and hypothesis without a deadline."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings

import halfmask as hm

# Compiled kernels make the first call slow.
settings.register_profile("halfmask", deadline=None, max_examples=60)
settings.load_profile("halfmask")

DATA = Path(__file__).parents[2] / "shared" / "data"
ADULT_COLUMNS = (
    "sex",
    "age",
    "race",
    "marital-status",
    "education",
    "native-country",
    "workclass",
    "occupation",
    "salary-class",
)


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of real tables; the test skips where there is none."""
    if not DATA.is_dir():
        pytest.skip("the folder ../shared/data with the real tables is not there")
    return DATA


@pytest.fixture(scope="session")
def adult(data: Path) -> Path:
    """Adult as 30,162 complete records of nine columns, separated by semicolons."""
    return data / "arx" / "adult.csv"


def _read_adult(path: Path, sensitive: tuple[str, ...]) -> hm.Table:
    columns = {
        name: {
            "role": "sensitive" if name in sensitive else "quasi",
            "hierarchy": {"csv": f"adult_hierarchy_{name}.csv"},
        }
        for name in ADULT_COLUMNS
    }
    return hm.read(path, hm.Schema.from_dict({"columns": columns}, folder=path.parent))


@pytest.fixture(scope="session")
def adult_table(adult: Path) -> hm.Table:
    """Adult with all nine columns as quasi-identifiers, and their hierarchies."""
    return _read_adult(adult, ())


@pytest.fixture(scope="session")
def adult_occupation(adult: Path) -> hm.Table:
    """Adult with eight quasi-identifiers and occupation sensitive, and their hierarchies."""
    return _read_adult(adult, ("occupation",))
