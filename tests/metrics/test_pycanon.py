"""Agreement with pycanon's measures on Adult, where both define the same.

Left out: its average re-identification risk is the mean over classes of 1 / size, ours the mean
over people. Where several values of a class are the most frequent, its classification metric takes
none of them for a minority; ours takes one of them for the majority.
"""

from __future__ import annotations

import math
from collections import Counter

import pyarrow as pa
import pytest

import halfmask as hm
from halfmask.metrics.discrimination.rate import discriminate_tuples
from halfmask.metrics.partition_measures import published_measures
from halfmask.metrics.sides import sides
from halfmask.metrics.utility.tables import class_utility

theirs = pytest.importorskip("pycanon.metrics")
pandas = pytest.importorskip("pandas")
QUASI = ["sex", "race", "marital-status"]


@pytest.fixture(scope="module")
def both(data):
    """Adult, and what is left of it where classes below 5 are taken out."""
    raw = pandas.read_csv(data / "arx" / "adult_subset.csv", sep=";")[[*QUASI, "education"]]
    sizes = raw.groupby(QUASI)["education"].transform("size")
    return raw, raw[sizes >= 5].reset_index(drop=True)


def tables(both):
    schema = dict.fromkeys(QUASI, "quasi") | {"education": "sensitive"}
    return [hm.read(pa.Table.from_pandas(f, preserve_index=False), schema=schema) for f in both]


def test_class_sizes_and_discernibility(both):
    raw, kept = both
    paired = sides(*tables(both))
    assert len(kept) < len(raw)
    found = published_measures(paired)
    assert found.average_class == pytest.approx(theirs.average_ecsize(raw, kept, QUASI))
    assert found.discernibility == theirs.discernability_metric(raw, kept, QUASI)
    share = class_utility(paired).discernibility
    assert share * len(raw) ** 2 == pytest.approx(theirs.discernability_metric(raw, kept, QUASI))
    sizes = theirs.sizes_ec(kept, QUASI)
    utility = class_utility(paired)
    assert utility.classes_released == found.classes == sizes["n_ec"]
    assert utility.mean_class_released == pytest.approx(sizes["mean_ec"])
    assert found.k == sizes["min_ec"]


def test_the_classification_metric_but_for_ties(both):
    raw, kept = both
    ((_, found),) = class_utility(sides(*tables(both))).classification
    tied = 0
    for _, rows in kept.groupby(QUASI):
        counts = Counter(rows["education"])
        top = max(counts.values())
        tied += (sum(count == top for count in counts.values()) - 1) * top
    mine = theirs.classification_metric(raw, kept, QUASI, ["education"])
    assert found == pytest.approx(mine + tied / len(raw))


def test_risk_and_entropy(both):
    _, kept = both
    table = tables(both)[1]
    risk = hm.assess(table, size=1).reidentification
    assert risk.prosecutor == pytest.approx(theirs.max_rir(kept, QUASI))
    bits = discriminate_tuples(table, "education", "sex").entropy
    assert bits * math.log(2) == pytest.approx(theirs.sa_entropy(kept, "education"))
