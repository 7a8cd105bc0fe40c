"""What all tests share: where the real tables stand, and hypothesis without a deadline."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings

# Compiled kernels make the first call slow.
settings.register_profile("halfmask", deadline=None, max_examples=60)
settings.load_profile("halfmask")

DATA = Path(__file__).parents[2] / "shared" / "data"


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
