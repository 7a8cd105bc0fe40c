"""Tables that several tests need; those that are not part of the project are skipped if absent."""

from __future__ import annotations

from pathlib import Path

import pytest

import halfmask as hm

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
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
def arx_folder() -> Path:
    folder = DATA / "arx"
    if not (folder / "adult.csv").is_file():
        pytest.skip("Adult and its hierarchies are not on this machine (../shared/data/arx)")
    return folder


def _adult(folder: Path, sensitive: tuple[str, ...]) -> hm.Table:
    columns = {
        name: {
            "role": "sensitive" if name in sensitive else "quasi",
            "hierarchy": {"csv": f"adult_hierarchy_{name}.csv"},
        }
        for name in ADULT_COLUMNS
    }
    schema = hm.Schema.from_dict({"columns": columns}, folder=folder)
    return hm.read(folder / "adult.csv", schema)


@pytest.fixture(scope="session")
def adult(arx_folder: Path) -> hm.Table:
    """Adult with all nine columns as quasi-identifiers."""
    return _adult(arx_folder, ())


@pytest.fixture(scope="session")
def adult_occupation(arx_folder: Path) -> hm.Table:
    """Adult with eight quasi-identifiers and occupation sensitive."""
    return _adult(arx_folder, ("occupation",))
