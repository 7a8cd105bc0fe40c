"""What m-confidentiality costs on Adult, beside l-diversity, with occupation as sensitive column.

    python benchmarks/confidentiality.py

The method draws coins, so figures differ a little from run to run.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace

import numpy as np

import _adult
import halfmask as hm

QUASI = ("age", "workclass", "education-num", "marital-status", "race", "sex")


def people(rows: int | None) -> hm.Table:
    """Adult with six quasi-identifiers; the other columns stay inside."""
    table = _adult.adult()
    roles = dict.fromkeys(QUASI, "quasi") | {"occupation": "sensitive"}
    columns = {
        name: replace(one, role=roles.get(name, "drop"))
        for name, one in table.schema.columns.items()
    }
    some = table.keep(np.arange(len(table)) < (rows or len(table)))
    return replace(some, schema=replace(table.schema, columns=columns))


def main() -> None:
    """Print the loss and the classes of each promise."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rows", type=int, default=None)
    table = people(options.parse_args().rows)
    for m in (2, 3):
        kinds = {
            "distinct l-diversity, k = 5, mondrian": (
                [hm.KAnonymity(5), hm.LDiversity(m, "occupation")], {"method": "mondrian"},
            ),
            "m-confidentiality": ([hm.MConfidentiality(m, "occupation")], {}),
        }  # fmt: skip
        for name, (models, more) in kinds.items():
            began = time.process_time()
            release = hm.anonymize(table, *models, **more)
            seconds, sizes = time.process_time() - began, release.classes
            print(
                f"{m}: {name}: loss {release.loss:.3f}, {sizes.count:,} classes, "
                f"smallest {sizes.smallest:,}, {seconds:.1f} s"
            )


if __name__ == "__main__":
    main()
