"""Adult, which ``make data`` fetches, without its incomplete rows: 30,162 of nine columns.

``adult`` is as the thesis on personal privacy uses it: eight quasi-identifiers, of which age and
education (as a number) are numeric. The thesis prints no hierarchy but part of workclass; these are
ours.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa

import halfmask as hm

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = (ROOT / ".data", ROOT.parent / "shared" / "data" / "adult")
MOST: int | None = None  # rows to read; a test of the scripts takes a few
FIELDS = {  # their places in the file
    "sex": 9, "age": 0, "race": 8, "marital-status": 5, "education": 3, "native-country": 13,
    "workclass": 1, "occupation": 6, "salary-class": 14,
}  # fmt: skip
EDUCATION = (
    "Preschool", "1st-4th", "5th-6th", "7th-8th", "9th", "10th", "11th", "12th", "HS-grad",
    "Some-college", "Assoc-voc", "Assoc-acdm", "Bachelors", "Masters", "Prof-school", "Doctorate",
)  # fmt: skip
TREES = {
    "workclass": {
        "Employed": {
            "Private": ["Private"],
            "Self": ["Self-emp-inc", "Self-emp-not-inc"],
            "gov": ["Federal-gov", "State-gov", "Local-gov"],
        },
        "Unpaid": {"Unpaid": ["Without-pay", "Never-worked"]},
    },
    "marital-status": {
        "Married": ["Married-civ-spouse", "Married-AF-spouse", "Married-spouse-absent"],
        "Alone": ["Divorced", "Never-married", "Separated", "Widowed"],
    },
    "occupation": {
        "White": ["Tech-support", "Exec-managerial", "Prof-specialty", "Adm-clerical", "Sales"],
        "Blue": [
            "Craft-repair", "Machine-op-inspct", "Transport-moving", "Handlers-cleaners",
            "Farming-fishing",
        ],
        "Serv": ["Other-service", "Protective-serv", "Priv-house-serv", "Armed-Forces"],
    },
    "native-country": {
        "Africa": ["South"],
        "Asia": [
            "Cambodia", "China", "Hong", "India", "Iran", "Japan", "Laos", "Philippines", "Taiwan",
            "Thailand", "Vietnam",
        ],
        "Europe": [
            "England", "France", "Germany", "Greece", "Holand-Netherlands", "Hungary", "Ireland",
            "Italy", "Poland", "Portugal", "Scotland", "Yugoslavia",
        ],
        "North America": [
            "Canada", "Cuba", "Dominican-Republic", "El-Salvador", "Guatemala", "Haiti", "Honduras",
            "Jamaica", "Mexico", "Outlying-US(Guam-USVI-etc)", "Puerto-Rico", "United-States",
        ],
        "South America": ["Columbia", "Ecuador", "Nicaragua", "Peru", "Trinadad&Tobago"],
    },
}  # fmt: skip


def found(folder: Path | None = None) -> Path | None:
    """Where Adult is; None where it is not."""
    places = FOLDERS if folder is None else (folder,)
    return next((place for place in places if (place / "adult.data").exists()), None)


def place(folder: Path | None = None) -> Path:
    """Where Adult is, or the end."""
    return found(folder) or sys.exit("Adult is not there: run make data.")


def complete_rows(folder: Path | None = None) -> pa.Table:
    """The complete rows of ``adult.data``, nine columns."""
    lines = (place(folder) / "adult.data").read_text(encoding="utf-8").splitlines()
    cells = [line.split(", ") for line in lines if line and "?" not in line][:MOST]
    columns = {name: [row[i] for row in cells] for name, i in FIELDS.items()}
    return pa.table({**columns, "age": [int(age) for age in columns["age"]]})


def adult(folder: Path | None = None) -> hm.Table:
    """The table, without demands."""
    rows = complete_rows(folder)
    number = {name: i + 1 for i, name in enumerate(EDUCATION)}
    coded = pa.array([number[name] for name in rows["education"].to_pylist()])
    rows = rows.set_column(rows.column_names.index("education"), "education-num", coded)
    flat = hm.hierarchies.Flat()
    columns: dict[str, hm.Column] = {
        "age": hm.Column("quasi", "numeric"),
        "workclass": hm.Column("quasi", hierarchy=hm.hierarchies.Tree(TREES["workclass"])),
        "education-num": hm.Column("quasi", "numeric"),
        "marital-status": hm.Column(
            "quasi", hierarchy=hm.hierarchies.Tree(TREES["marital-status"])
        ),
        "occupation": hm.Column("quasi", hierarchy=hm.hierarchies.Tree(TREES["occupation"])),
        "race": hm.Column("quasi", hierarchy=flat),
        "sex": hm.Column("quasi", hierarchy=flat),
        "native-country": hm.Column(
            "quasi",
            hierarchy=hm.hierarchies.Tree(TREES["native-country"]),
        ),
        "salary-class": hm.Column("sensitive"),
    }
    return hm.Table(rows, hm.Schema(columns))


def beside(table: hm.Table, copies: int) -> hm.Table:
    """So many copies of ``table`` in different regions, as far apart as rows can be.

    Nothing is gained by mixing regions, so that the least loss per row is that of ``table`` itself:
    what a method loses more per row, it loses by the size.
    """
    rows = pa.concat_tables([table.arrow] * copies).combine_chunks()
    region = pa.array(np.repeat(np.arange(copies), len(table)).astype(str))
    weight = float(len(table.schema.quasi))
    columns = {
        **table.schema.columns,
        "region": hm.Column("quasi", "nominal", hm.hierarchies.Flat(), weight=weight),
    }
    return hm.Table(rows.append_column("region", region), hm.Schema(columns))


def enlarged(table: hm.Table, rows: int, seed: int = 0) -> hm.Table:
    """Rows drawn from ``table``; ages and schooling are moved a little, countries redrawn."""
    rng = np.random.default_rng(seed)
    pick = rng.integers(0, len(table), rows)
    arrays = {name: table.arrow[name].take(pa.array(pick)) for name in table.arrow.column_names}
    age = arrays["age"].to_numpy() + rng.integers(-3, 4, rows)
    arrays["age"] = pa.array(np.clip(age, 17, 90))
    school = arrays["education-num"].to_numpy() + rng.integers(-1, 2, rows)
    arrays["education-num"] = pa.array(np.clip(school, 1, 16))
    return hm.Table(pa.table(arrays), table.schema)
