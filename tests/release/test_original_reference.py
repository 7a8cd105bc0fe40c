"""Promises against the original table, as the door sees them: by hand on ten rows.

Town a: 3 flu, 1 gout; town b: 2 flu, 2 gout; town c: 2 gout. In all rows 5 of 10 have flu. Towns
lie 0.25, 0 and 0.5 away from that, so that at t = 0.25 town c goes. Among the eight rows that are
left 5 of 8 have flu: there both towns lie 0.125 away. A share that grows from 5/10 to 3/4 gains
0.5, and its logarithm grows by log2 1.5; among the eight rows gout grows from 3/8 to 1/2: 1/3.
"""

import math
from itertools import product

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from effort import turn

import halfmask as hm
from halfmask.errors import InternalError, PrivacyError
from halfmask.release.candidate import Candidate
from halfmask.release.recoding import Recoding, RecodingStep
from halfmask.release.seal import seal

ROWS = {
    "town": ["a"] * 4 + ["b"] * 4 + ["c"] * 2,
    "ill": ["flu"] * 3 + ["gout"] + ["flu"] * 2 + ["gout"] * 2 + ["gout"] * 2,
}
SCHEMA = {"town": "quasi", "ill": "sensitive"}
PROMISES = {
    "t": lambda reference: hm.TCloseness(0.25, "ill", "equal", reference=reference),
    "delta": lambda reference: hm.DeltaDisclosure(1.1, "ill", base=2, reference=reference),
    "beta": lambda reference: hm.BetaLikeness(0.5, "ill", reference=reference),
}
FAR = {
    ("t", "release"): 1 / 8,
    ("t", "original"): 1 / 4,
    ("delta", "release"): math.log2(1.5),  # gout in town a: 3/8 to 1/4
    ("delta", "original"): 1.0,  # gout in town a: 1/2 to 1/4
    ("beta", "release"): 1 / 3,
    ("beta", "original"): 0.5,
}


def people(place=None):
    if place is None:
        return hm.read(pa.table(ROWS), schema=SCHEMA)
    pq.write_table(pa.table(ROWS), place / "people.parquet")
    return hm.read(str(place / "people.parquet"), schema=SCHEMA, engine="duckdb")


@pytest.mark.parametrize(
    ("name", "reference", "method", "stored"),
    [
        (name, reference, *how)
        for i, (name, reference) in enumerate(product(PROMISES, ["release", "original"]))
        for how in turn([*product(["optimal", "local"], [False, True])], i, 2)
    ],
)
def test_the_release_states_the_distance_to_its_reference(
    name, reference, method, stored, tmp_path
):
    table = people(tmp_path if stored else None)
    release = hm.anonymize(table, PROMISES[name](reference), method=method, suppression=0.2)
    (verdict,) = release.verdicts
    assert len(release) == 8
    assert verdict.achieved == pytest.approx(FAR[name, reference])
    original = reference == "original"
    release.report(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    for text in (verdict.model, str(release.to_dict()["verdicts"]), page):
        assert ("against the original table" in text) == original
    assert ("the release alone cannot show it" in verdict.note) == original


def _candidate(**more):
    table, promise = people(), PROMISES["t"]("original")
    step = pa.array([0] * 8 + [-1] * 2).to_numpy().astype("int32")
    given = {"parameters": {"suppression": 1.0}, **more}
    return Candidate(
        table=table, models=[promise], recoding=Recoding.of(table, [RecodingStep({"town": 0})]),
        step=step, loss=None, method="optimal", metric="loss", **given,
    )  # fmt: skip


def test_the_door_counts_the_original_itself():
    assert seal(_candidate()).verdicts[0].achieved == 0.25
    with pytest.raises(InternalError, match="left out"):
        seal(_candidate(left_out=1))


def test_rows_that_leave_before_the_search_are_no_original():
    rows = {**ROWS, "own": [2] * 9 + [99]}
    schema = {"columns": {**SCHEMA, "own": "drop"}, "policy": {"k": "own"}}
    table = hm.read(pa.table(rows), schema=schema)
    with pytest.raises(PrivacyError, match="1 rows have to be left out before the search"):
        hm.anonymize(table, PROMISES["t"]("original"), method="optimal", suppression=0.2)


@pytest.mark.parametrize("method", ["cocluster"])
def test_labels_that_may_be_false_are_refused(method):
    with pytest.raises(PrivacyError, match="original table"):
        hm.anonymize(people(), PROMISES["t"]("original"), method=method)
