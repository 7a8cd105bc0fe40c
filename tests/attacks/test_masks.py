"""A reader of a masked table or of a table of figures who wants one person's value.

Each test recovers the value, or who the person is, where masks are taken at their word.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

import halfmask as hm
from halfmask.errors import PrivacyError, SchemaError

SCHEMA: dict[str, Any] = {
    "table": {"person": "id"},
    "policy": {"k": "k_i", "l": "l_i"},
    "columns": {
        "id": "identifier", "age": "quasi", "city": "quasi",
        "salary": "sensitive", "disease": "sensitive",
    },
}  # fmt: skip
OTHERS = 40


def people(age: int = 97, *, k: int | None = 5, **more: Any) -> hm.Table:
    rows = {
        "id": [f"p{i}" for i in range(OTHERS)] + ["planted"],
        "age": [20 + i % 4 * 10 for i in range(OTHERS)] + [age],
        "city": ["AB"[i % 2] for i in range(OTHERS)] + ["A"],
        "salary": [1000 + i * 10 for i in range(OTHERS)] + [5000],
        "disease": [("flu", "cold", "hiv")[i % 3] for i in range(OTHERS)] + ["flu"],
        "k_i": [2] * OTHERS + [k],
        "l_i": [None] * (OTHERS + 1),
    }
    return hm.read({**rows, **more}, SCHEMA)


@pytest.mark.parametrize("step", ["sample share=0.9 age", "massc sample=0.9 substitute=0"])
def test_weights_split_no_class(step):
    """The weight of the only 97-year-old was 1, and stood beside the blanked age."""
    for seed in range(5):
        rows = hm.mask(people(), step, "local-suppression k=5", seed=seed).to_arrow().to_pylist()
        sizes = Counter((one["age"], one["city"], one["weight"]) for one in rows)
        assert min(sizes.values()) >= 5


def test_weights_added_last_are_looked_at():
    with pytest.raises(PrivacyError):
        hm.mask(people(), "local-suppression k=5", "sample share=0.9 disease", seed=1)


@pytest.mark.parametrize("step", ["sample share=0.9 k_i", "massc calibrate=k_i"])
def test_weights_tell_nothing_of_columns_that_never_leave(step):
    with pytest.raises(SchemaError, match="never leaves"):
        hm.mask(people(), step, "local-suppression k=5")


@pytest.mark.parametrize(
    "steps",
    [
        ("local-suppression k=5",),
        ("top-code age value=60", "local-suppression k=5"),
        ("microaggregate age k=5 aggregate=median", "local-suppression k=5"),
        ("round age base=1000",),
    ],
)
def test_documents_do_not_follow_a_cell_that_does_not_leave(steps):
    """A correlation that moved told the blanked age to a year."""
    seen = set()
    for age in (70, 83, 99):
        release = hm.mask(people(age), *steps, seed=1)
        rows = sorted(map(str, release.to_arrow().to_pylist()))
        document = release.to_dict()
        document.pop("created", None)
        seen.add(json.dumps([rows, document], default=str))
    assert len(seen) == 1


@pytest.mark.parametrize(
    "step", ["noise salary level=0.0000001", "noise salary level=0.0000001 kind=multiplicative"]
)
def test_noise_makes_no_values(step):
    ages = [20 + i % 2 * 10 for i in range(OTHERS + 1)]
    pay = [5000.0 if age == 20 else 1000.0 + i for i, age in enumerate(ages)]
    table = hm.read(
        {
            "id": [f"p{i}" for i in range(OTHERS + 1)], "age": ages, "city": ["A"] * (OTHERS + 1),
            "salary": pay, "disease": [("flu", "cold", "hiv")[i // 2 % 3] for i in range(41)],
            "k_i": [2] * (OTHERS + 1), "l_i": [None] * OTHERS + [3],
        },
        SCHEMA,
    )  # fmt: skip
    with pytest.raises(PrivacyError, match="l-diversity"):
        hm.mask(table, step)


def test_cells_of_a_map_do_not_follow_the_outermost_place():
    def cells(lat: float, lon: float) -> Any:
        table = hm.read(
            {"lat": [48.1] * 30 + [lat], "lon": [2.1] * 30 + [lon]},
            {"lat": "quasi", "lon": "quasi"},
        )
        return hm.mask(table, "cloak lat longitude=lon k=2").tables["cells"].to_pylist()

    assert cells(-33.3, 151.2) == cells(-61.9, 93.4)


def test_an_l_that_no_cell_can_give_withholds_no_cell():
    """The one cell that was withheld was the person's own."""
    with pytest.raises(PrivacyError, match="more values"):
        hm.tabulate(people(l_i=[None] * OTHERS + [50]), ["city", "age"], sum="salary")


def test_the_refusal_of_a_mask_does_not_follow_who_cannot_be_served() -> None:
    # Before, the message counted the class of the person with k = 1,000,000: 5, 9 or 1 rows.
    seen = set()
    for age in (20, 21, 33, None):
        people = hm.read(
            {"age": [20] * 4 + [21] * 8 + [age], "k_i": [None] * 12 + [1_000_000]},
            schema={"policy": {"k": "k_i"}, "columns": {"age": "quasi"}},
        )
        with pytest.raises(PrivacyError) as refused:
            hm.mask(people, hm.masks.Round("age", base=1))
        seen.add((refused.value.code, str(refused.value)))
    assert len(seen) == 1


def coded(values, step, **more):
    """What leaves of column x, row by row by its companion n."""
    data = {"n": list(range(len(values))), "x": values, **more}
    table = {"table": {"person": "id"}} if "id" in more else {}
    release = hm.mask(
        hm.read(data, schema={**table, "columns": {"n": "quasi", "x": "sensitive"}}), step
    )
    rows = release.to_arrow()
    found = dict(zip(rows["n"].to_pylist(), rows["x"].to_pylist(), strict=True))
    return [found[n] for n in range(len(values))], release.steps[0]["facts"]


SMALL = [1 + place % 9 for place in range(40)]


def test_a_mean_of_coded_values_is_nobodys_own():
    """One person, or two of whom each knows the own value, do not leave as their mean."""
    found, facts = coded([*SMALL, 5000], "top-code x value=10 replace=mean")
    assert found == [*SMALL, 10]
    assert facts["replaced by"].startswith("threshold")
    found, _ = coded([*SMALL, -5000], "bottom-code x value=0 replace=mean")
    assert found == [*SMALL, 0]
    found, _ = coded([*SMALL, 48, 5000], "top-code x share=0.05 replace=mean")
    assert found == [*SMALL, 9, 9]
    # Three rows of one person are one person's.
    ids = [*range(40), 40, 40, 40]
    found, _ = coded([*SMALL, 20, 30, 40], "top-code x value=10 replace=mean", id=ids)
    assert found == [*SMALL, 10, 10, 10]


def test_a_mean_of_three_people_is_theirs_alone():
    found, facts = coded([*SMALL, 20, 30, 40], "top-code x value=9 replace=mean")
    assert found == [*SMALL, 30, 30, 30]  # the threshold itself is not coded
    assert (facts["coded"], facts["people coded"], facts["replaced by"]) == (3, 3, "mean")
    found, _ = coded([*SMALL, 20, 30, 40], "top-code x value=9 replace=mean least=4")
    assert found == [*SMALL, 9, 9, 9]
    with pytest.raises(hm.errors.ParameterError):
        hm.masks.TopCode("x", value=9, replace="mean", least=2)


@pytest.mark.parametrize("verb", ["top-code", "bottom-code"])
@pytest.mark.parametrize("replace", ["mean", "threshold", "missing"])
def test_no_more_than_the_share_is_coded(verb, replace):
    values = [*SMALL, 10, 11, 13, 20]
    if verb == "bottom-code":
        values = [-value for value in values]
    found, facts = coded(values, f"{verb} x share=0.1 replace={replace}")
    changed = sum(a != b for a, b in zip(values, found, strict=True))
    assert changed == facts["coded"] == 4  # a tenth of 44
