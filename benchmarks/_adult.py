"""Adult as the thesis on personal privacy uses it: eight quasi-identifiers, 30,162 rows.

Age and education (as a number) are numeric. The thesis prints no hierarchy but part of workclass;
these are ours.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv

import halfmask as hm

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "arx"
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
}  # fmt: skip


def adult(folder: Path = DATA) -> hm.Table:
    """The table, without demands."""
    options = pa.csv.ParseOptions(delimiter=";")
    rows = pa.csv.read_csv(folder / "adult.csv", parse_options=options)
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
            hierarchy=hm.hierarchies.Csv("adult_hierarchy_native-country.csv", folder=folder),
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
