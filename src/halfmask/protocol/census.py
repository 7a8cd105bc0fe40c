"""An invented census to simulate with: the columns and the ten levels of the thesis' query.

Source: Michel 2019, Figure 4.5. The trees and people are our own.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from halfmask.errors import ParameterError
from halfmask.protocol.commons import Commons, commons_from

if TYPE_CHECKING:
    import pyarrow as pa

TREES: dict[str, dict[str, list[str]]] = {
    "workclass": {
        "Self": ["Self-emp-inc", "Self-emp-not-inc"],
        "Government": ["Federal-gov", "Local-gov", "State-gov"],
        "Company": ["Private"],
        "Unpaid": ["Never-worked", "Without-pay"],
    },
    "marital_status": {
        "Married": ["AF-spouse", "Civ-spouse", "Spouse-absent"],
        "Alone": ["Divorced", "Never-married", "Separated", "Widowed"],
    },
    "occupation": {
        "White": ["Adm-clerical", "Exec-managerial", "Prof-specialty", "Sales", "Tech-support"],
        "Blue": ["Craft-repair", "Farming-fishing", "Handlers-cleaners", "Machine-op", "Transport"],
        "Service": ["Armed-Forces", "Other-service", "Priv-house-serv", "Protective-serv"],
    },
    "race": {"*": ["A", "B", "C", "D", "E"]},
}
GENDERS = ["F", "M"]
COUNTRIES = [f"Country {i:02}" for i in range(41)]
QUERY = """
GB = Age, Workclass, Education, Marital_status, Occupation, Race, Gender, Native_Country
OP = AVG(fnlwgt)
MD = : k=5 l=3,
     age->20: k=6 l=3,
     workclass->up: k=8 l=4,
     education->5: k=9 l=4,
     marital_status->up: k=9 l=4,
     occupation->up: k=10 l=4,
     race->up: k=11 l=5,
     gender->del: k=14 l=6,
     native_country->del: k=15 l=7,
     age->40: k=17 l=8;
"""
PLAIN = QUERY.split("MD")[0] + "MD = : k=5 l=3;"


@cache
def commons() -> Commons:
    """The common schema of the census."""
    columns: dict[str, object] = {
        "age": {"type": "integer", "role": "quasi"},
        "education": {"type": "integer", "role": "quasi"},
        "fnlwgt": {"type": "integer", "role": "sensitive"},
        "gender": {"role": "quasi", "values": GENDERS},
        "native_country": {"role": "quasi", "values": COUNTRIES},
    }
    for name, tree in TREES.items():
        values = [value for group in tree.values() for value in group]
        columns[name] = {"role": "quasi", "values": values, "hierarchy": {"tree": tree}}
    return commons_from({"tables": {"census": {"columns": columns}}})


def population(cells: int, groups: int, seed: int = 0) -> pa.Table:
    """People of a census, with demands ``k`` and ``l``, who fall into about so many groups."""
    import pyarrow as pa

    if cells < 1 or groups < 1:
        raise ParameterError("cells or groups", min(cells, groups), "at least 1")
    random = np.random.default_rng(seed)
    kinds = min(groups, cells)
    keys = {
        "age": random.integers(17, 91, kinds),
        "education": random.integers(1, 17, kinds),
        "gender": random.integers(0, 2, kinds),
        "native_country": np.minimum(random.geometric(0.35, kinds) - 1, len(COUNTRIES) - 1),
    }
    for name, tree in TREES.items():
        keys[name] = random.integers(0, sum(map(len, tree.values())), kinds)
    kind = np.concatenate((np.arange(kinds), random.integers(0, kinds, cells - kinds)))
    random.shuffle(kind)
    names = {"gender": GENDERS, "native_country": COUNTRIES} | {
        name: [v for group in tree.values() for v in group] for name, tree in TREES.items()
    }
    columns = {
        name: pa.DictionaryArray.from_arrays(pa.array(codes[kind].astype(np.int32)), names[name])
        if name in names
        else pa.array(codes[kind])
        for name, codes in keys.items()
    }
    columns["fnlwgt"] = pa.array(random.integers(12_000, 1_500_000, cells))
    # Of a hundred people 82 are content with the finest level, one with none at all.
    chance = random.random(cells)
    columns["k"] = pa.array(np.select([chance < 0.82, chance < 0.99], [5, 9], 20))
    columns["l"] = pa.array(np.select([chance < 0.82, chance < 0.99], [3, 4], 4))
    return pa.table(columns)
