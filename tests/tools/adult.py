"""Adult as the thesis on personal privacy queries it: 30,162 complete rows, our hierarchies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from pathlib import Path

TREES: dict[str, dict[str, Any]] = {
    "workclass": {
        "Employed": {
            "Private": ["Private"],
            "Self": ["Self-emp-inc", "Self-emp-not-inc"],
            "gov": ["Federal-gov", "State-gov", "Local-gov"],
        },
        "Unpaid": {"Unpaid.": ["Without-pay", "Never-worked"]},
    },
    "marital_status": {
        "Married": ["Married-civ-spouse", "Married-AF-spouse", "Married-spouse-absent"],
        "Alone": ["Divorced", "Never-married", "Separated", "Widowed"],
    },
    "occupation": {
        "White": ["Tech-support", "Exec-managerial", "Prof-specialty", "Adm-clerical", "Sales"],
        "Blue": [
            "Craft-repair",
            "Machine-op-inspct",
            "Transport-moving",
            "Handlers-cleaners",
            "Farming-fishing",
        ],
        "Serv": ["Other-service", "Protective-serv", "Priv-house-serv", "Armed-Forces"],
    },
    "race": {"*": ["White", "Black", "Asian-Pac-Islander", "Amer-Indian-Eskimo", "Other"]},
}
PLACES = {
    "age": 0,
    "workclass": 1,
    "fnlwgt": 2,
    "education": 4,
    "marital_status": 5,
    "occupation": 6,
    "race": 8,
    "gender": 9,
    "native_country": 13,
}
NUMBERS = ("age", "fnlwgt", "education")


def adult_rows(data: Path) -> pa.Table:
    """The columns that the query of Figure 4.5 names, of all rows without a missing value."""
    lines = (data / "adult" / "adult.data").read_text().splitlines()
    rows = [[c.strip() for c in line.split(",")] for line in lines if line.count(",") == 14]
    rows = [r for r in rows if "?" not in r]
    return pa.table(
        {n: [int(r[i]) if n in NUMBERS else r[i] for r in rows] for n, i in PLACES.items()}
    )
