"""A reader of a release looks for what somebody holds who was left out of it."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from effort import turn

import halfmask as hm
from halfmask.errors import InternalError
from halfmask.release import seal
from halfmask.release.candidate import Candidate
from halfmask.release.partition import RowPartition
from halfmask.release.recoding import Recoding

UNMEETABLE = 1_000_000
MASK = {"mask": True}
AGES = [20 + (7 * i) % 40 for i in range(40)]
DIVISIONS = ("mondrian", "personal", "mdav", "k-member")
RECODINGS = ("optimal", "local")


def release(method: str, columns: dict[str, list[Any]], schema: dict[str, Any]) -> hm.Release:
    """Forty people who demand 2 and, last, one whom nobody can serve, left out by any method."""
    n = len(next(iter(columns.values())))
    rows = {
        "id": list(range(n)),
        **columns,
        "ill": [("flu", "gout")[i % 2] for i in range(n)],
        "k_i": [2] * (n - 1) + [UNMEETABLE],
    }
    table = hm.read(
        pa.table(rows),
        {
            "table": {"person": "id"},
            "policy": {"k": "k_i"},
            "columns": {**schema, "ill": "sensitive"},
        },
    )
    if method in DIVISIONS:
        return hm.anonymize(table, method=method, on_infeasible="suppress", seed=3)
    if method == "levels":
        return hm.anonymize(table, method="mondrian", on_infeasible="suppress", labels="levels")
    if method == "exact":
        return hm.anonymize(table, method="exact", on_infeasible="suppress", seed=3)
    if method == "auto":
        return hm.anonymize(table, on_infeasible="suppress", seed=3)
    if method == "sets":
        return hm.anonymize(table, labels="sets", on_infeasible="suppress", seed=3)
    return hm.anonymize(table, hm.KAnonymity(3), method=method, suppression=0.3, seed=3)


def shown(found: hm.Release) -> str:
    """Everything that a reader sees: the document, the rows in any order, and their types."""
    document = found.to_dict()
    del document["versions"]
    rows = sorted(map(str, found.to_arrow().to_pylist()))
    return json.dumps([document, rows, str(found.to_arrow().schema), found.levels, found.loss])


@pytest.mark.parametrize("method", DIVISIONS)
@pytest.mark.parametrize("secret", [93, 71, 12])
def test_a_value_of_the_document_does_not_tell_the_range_of_all(method: str, secret: int) -> None:
    """The widths of all labels, divided by what they lose, are the range that they were held to."""
    age = {"role": "quasi", "kind": "numeric", "hierarchy": {"intervals": [5, 10]}}
    found = release(method, {"age": [*AGES, secret]}, {"age": age})
    ends = [re.findall(r"\d+", str(label)) for label in found.to_arrow()["age"].to_pylist()]
    widths = sum(int(one[-1]) - int(one[0]) for one in ends)
    whole = widths / found.to_dict()["parameters"]["value"]
    guesses = {round(min(AGES) + whole), round(max(AGES) - whole)}
    assert secret not in guesses


@pytest.mark.parametrize("method", [*RECODINGS, "personal", "levels"])
def test_labels_show_no_neighbor_and_no_length_of_the_left_out(method: str) -> None:
    ordered = {"role": "quasi", "kind": "ordinal", "hierarchy": {"ordered": {"groups": [2, 4]}}}
    mask = {"role": "quasi", "hierarchy": {"mask": True}}
    words, codes = ["bb", "dd", "ff", "hh"] * 10, [str(10 + i % 20) for i in range(40)]
    found = release(
        method,
        {"word": [*words, "aa"], "code": [*codes, "7777777"]},
        {"word": ordered, "code": mask},
    )
    assert "aa" not in json.dumps(found.to_arrow()["word"].to_pylist())
    assert max(len(str(code)) for code in found.to_arrow()["code"].to_pylist()) == 2
    heights = {one["name"]: one["height"] for one in found.to_dict()["columns"]}
    assert heights["code"] == 2


KINDS: dict[str, tuple[dict[str, Any], list[Any], tuple[Any, ...]]] = {
    "intervals": ({"hierarchy": {"intervals": [5, 10, 40]}}, AGES, (45, 900, None)),
    "ranges": ({"kind": "numeric"}, AGES, (45, -3, None)),
    "mask": ({"hierarchy": {"mask": True}}, [str(10 + i % 8) for i in range(40)], ("11", "x" * 9)),
    "ordered": (
        {"kind": "ordinal", "hierarchy": {"ordered": {"groups": [2, 4]}}},
        ["bb", "dd", "ff", "hh"] * 10,
        ("bb", "aa", "c-c", None),
    ),
    "flat": ({"hierarchy": {"flat": True}}, ["x", "y", "z", "x"] * 10, ("x", "w")),
    "texts": (
        {"kind": "nominal", "hierarchy": {"intervals": [10]}},
        [str(age) for age in AGES],
        ("33", "33.5"),
    ),
    "auto": (
        {"hierarchy": "auto"},
        [("a", "b", "c", "d")[(7 * i) % 40 // 10] for i in range(40)],
        ("a", "q"),
    ),
    "tree": (
        {"hierarchy": {"tree": {"s": ["x", "y"], "n": ["z", "w"]}}},
        ["x", "y", "z", "x"] * 10,
        ("x", "w", "stranger"),
    ),
}
METHODS = (*RECODINGS, *DIVISIONS, "levels", "exact", "auto", "sets")


@pytest.mark.parametrize(
    ("method", "kind"),
    [(method, kind) for i, method in enumerate(METHODS) for kind in turn([*KINDS], i, 3)],
)
def test_a_release_is_the_same_whatever_the_left_out_hold(method: str, kind: str) -> None:
    """A second quasi-identifier varies too: with several, all distances once hung on one person."""
    declared, values, secrets = KINDS[kind]
    seconds, told = [10 * (value // 10) for value in AGES], set()
    for place, secret in enumerate(secrets):
        found = release(
            method,
            {"one": [*values, secret], "two": [*seconds, (30, 777)[place % 2]]},
            {"one": {"role": "quasi", **declared}, "two": {"role": "quasi", "kind": "numeric"}},
        )
        assert found.suppressed >= 1
        told.add(shown(found))
    assert len(told) == 1


@pytest.mark.parametrize("method", ["optimal", "personal"])
def test_a_left_out_illness_is_in_no_figure(method: str) -> None:
    told = set()
    for ill in ("flu", "cholera"):
        table = pa.table(
            {
                "age": [*AGES, 33],
                "ill": [*(("flu", "gout", "mumps")[i % 3] for i in range(40)), ill],
                "k_i": [2] * 40 + [UNMEETABLE],
                "l_i": [2] * 40 + [1],
            }
        )
        people = hm.read(
            table,
            {
                "policy": {"k": "k_i", "l": "l_i"},
                "columns": {
                    "age": {"role": "quasi", "hierarchy": {"intervals": [10]}},
                    "ill": "sensitive",
                },
            },
        )
        more = {"suppression": 0.1} if method == "optimal" else {"on_infeasible": "suppress"}
        told.add(shown(hm.anonymize(people, method=method, **more)))
    assert len(told) == 1


def test_that_demands_were_kept_is_told_where_nobody_is_left_who_states_one() -> None:
    people = hm.read(
        {"age": [*AGES, 93], "k_i": [None] * 40 + [UNMEETABLE]},
        {"policy": {"k": "k_i"}, "columns": {"age": "quasi"}},
    )
    found = hm.anonymize(people, hm.KAnonymity(2), method="mondrian", on_infeasible="suppress")
    assert found.to_dict()["demands"] == {"kept": True}
    assert (found.rows, found.suppressed) == (40, 1)


GROUPS = [i // 30 for i in range(90)]


@pytest.mark.parametrize("method", ["cocluster", "cocluster-sets", "cocluster-mode"])
def test_a_grid_of_rows_is_the_same_whatever_the_left_out_hold(method: str) -> None:
    told = set()
    for age, word in ((45, "b0"), (900, "aa")):
        found = release(
            method,
            {
                "age": [*(20 * group + i % 5 for i, group in enumerate(GROUPS)), age],
                "word": [*(f"b{2 * group + i % 2}" for i, group in enumerate(GROUPS)), word],
            },
            {"age": {"role": "quasi", "kind": "numeric"}, "word": "quasi"},
        )
        assert found.suppressed == 1
        told.add(shown(found))
    assert len(told) == 1


@pytest.mark.parametrize("method", ["cocluster", "cocluster-sets"])
def test_rows_that_a_grid_suppresses_are_in_no_label_and_no_cut(method: str) -> None:
    """The last group has one illness, so that its rows do not leave."""
    rows = pa.table(
        {
            "age": [20 * group + i % 5 for i, group in enumerate(GROUPS)],
            "word": [f"b{2 * group + i % 2}" for i, group in enumerate(GROUPS)],
            "ill": [("flu", "gout")[group < 2 and i // 2 % 2] for i, group in enumerate(GROUPS)],
        }
    )
    schema = {"age": {"role": "quasi", "kind": "numeric"}, "word": "quasi", "ill": "sensitive"}
    promises = (hm.KAnonymity(5), hm.LDiversity(2, "ill"))
    found = hm.anonymize(hm.read(rows, schema), *promises, method=method, suppression=0.34, seed=1)
    assert found.suppressed == 30
    alone = hm.anonymize(hm.read(rows.slice(0, 60), schema), *promises, method=method, seed=1)
    assert labels_of(found) == labels_of(alone)
    assert "b4" not in str(labels_of(found))
    assert found.to_dict()["parameters"]["cost"] == alone.to_dict()["parameters"]["cost"]


def labels_of(found: hm.Release) -> list[str]:
    return sorted(map(str, found.to_arrow().to_pylist()))


@pytest.mark.parametrize("method", ["optimal", "local"])
@pytest.mark.parametrize(
    ("hierarchy", "values", "secret"),
    [
        ({"ordered": {"groups": [2]}}, ["bb", "dd", "ff", "hh"] * 10, "aa"),
        ({"mask": True}, ["10", "11", "20", "21"] * 10, "7777777"),
    ],
    ids=["ordered", "mask"],
)
def test_rows_that_the_search_suppresses_are_in_no_label(
    method: str, hierarchy: Any, values: list[str], secret: str
) -> None:
    """Nobody states a demand: one row stands alone, and the search leaves it out."""
    table = hm.read(
        pa.table({"one": [*values, secret], "two": [*("m", "f") * 20, "z"]}),
        {"one": {"role": "quasi", "hierarchy": hierarchy}, "two": "quasi"},
    )
    found = hm.anonymize(table, hm.KAnonymity(15), method=method, suppression=0.03, seed=1)
    assert (found.rows, found.suppressed) == (40, 1)
    alone = hm.anonymize(table.keep(np.arange(41) < 40), hm.KAnonymity(15), method=method, seed=1)
    assert labels_of(found) == labels_of(alone)
    assert [one["height"] for one in found.to_dict()["columns"]] == [
        one["height"] for one in alone.to_dict()["columns"]
    ]
    assert found.loss > alone.loss  # whoever does not leave is lost in full


def test_a_hierarchy_that_was_found_follows_only_rows_that_leave() -> None:
    rows = pa.table(
        {
            "age": [*(20 * group + i % 5 for i, group in enumerate(GROUPS)), 900],
            "word": [*(f"b{2 * group + i % 2}" for i, group in enumerate(GROUPS)), "aa"],
        }
    )
    schema = {name: {"role": "quasi", "hierarchy": "auto"} for name in rows.column_names}
    found = hm.anonymize(
        hm.read(rows, schema), hm.KAnonymity(5), method="optimal", suppression=0.02
    )
    assert found.suppressed == 1
    alone = hm.anonymize(hm.read(rows.slice(0, 90), schema), hm.KAnonymity(5), method="optimal")
    assert labels_of(found) == labels_of(alone)


def test_a_declared_hierarchy_is_searched_once_as_before() -> None:
    """Suppressed rows count in the loss that is proven least, and no second search is made."""
    ages = [30] * 20 + [90]
    table = hm.read({"age": ages}, {"age": {"role": "quasi", "hierarchy": {"intervals": [10]}}})
    found = hm.anonymize(table, hm.KAnonymity(3), method="optimal", suppression=0.1)
    assert (found.suppressed, found.gap, found.levels) == (1, 0.0, {"age": 0})
    assert found.loss == pytest.approx(1 / 21)
    assert found.to_dict()["notes"] == []


PAIRS = {
    "word": {"role": "quasi", "hierarchy": {"ordered": {"groups": [2]}}},
    "sex": "quasi",
}


def test_a_recoding_applied_to_new_rows_shows_none_of_those_that_it_suppresses() -> None:
    first = hm.read({"word": ["b", "c"] * 3, "sex": ["m"] * 6}, PAIRS)
    recoding = Recoding.of(first, [{"word": 1, "sex": 0}])
    more = hm.read({"word": ["aa", *["bb", "dd"] * 3], "sex": ["z", *["m"] * 6]}, PAIRS)
    found = recoding.apply(more, hm.KAnonymity(2), suppression=0.3)
    assert set(found.to_arrow()["word"].to_pylist()) == {"bb to dd"}
    assert (found.rows, found.suppressed) == (6, 1)


def forget(table: hm.Table, levels: dict[str, int]) -> Candidate:
    """A search that forgot the rule: the first row does not leave, its value is in a label."""
    step = np.zeros(len(table), dtype=np.int32)
    step[0] = -1
    made = Recoding.of(table, [levels])
    return Candidate(table, [hm.AverageRisk(1)], made, step, parameters={"suppression": 1})


def test_the_door_reads_labels_again() -> None:
    pairs = hm.read({"word": ["aa", "bb", "bb"], "sex": ["z", "m", "m"]}, PAIRS)
    codes = hm.read({"code": ["long", "bb", "bc"]}, {"code": {"role": "quasi", "hierarchy": MASK}})
    for forgot in (forget(pairs, {"word": 1, "sex": 0}), forget(codes, {"code": 3})):
        with pytest.raises(InternalError, match="published labels are made of values that no row"):
            seal(forgot)


def words(column: dict[str, Any]) -> hm.Table:
    """Five words, of which the last is held twice."""
    return hm.read(
        {"word": ["aa", "bb", "cc", "dd", "ee", "ee"]}, {"word": {"role": "quasi", **column}}
    )


def test_the_door_reads_ranges_again() -> None:
    table = words({"kind": "ordinal"})
    ids = np.zeros(6, dtype=np.int32)
    made = RowPartition.of(table, ids, {"word": True})
    ids[0] = -1
    with pytest.raises(InternalError, match="published labels are made of values that no row"):
        seal(Candidate(table, [hm.KAnonymity(2)], made, ids))


def test_the_door_takes_no_hierarchy_that_was_found_from_rows_that_stay() -> None:
    table = replace(words({"hierarchy": {"flat": True}}), found=frozenset({"word"}))
    with pytest.raises(InternalError, match="made of rows that do not leave"):
        seal(forget(table, {"word": 0}))


TOKEN_KEY = b"a secret of more than 16 bytes"


@pytest.mark.parametrize(
    ("method", "share", "more"),
    [("optimal", 0.3, {}), ("auto", 0.2, {"on_infeasible": "suppress"})],
)
def test_tokens_tell_nothing_of_whoever_cannot_be_served(method, share, more):
    """Attacker: reads a release with tokens, or its refusal; the victim demands k = 10^6."""

    def told(age, sex, ill):
        people = [
            (i // 2, 20 + i * 7 % 4 * 10, "fm"[i % 3 % 2], "ab"[i % 5 % 2], 2) for i in range(300)
        ]
        people += [(999, age, sex, ill, 10**6)] * 2
        names = ("id", "age", "sex", "ill", "own")
        table = hm.read(
            dict(zip(names, zip(*people, strict=True), strict=True)),
            schema={
                "table": {"person": "id"},
                "columns": {
                    "age": {"role": "quasi", "hierarchy": {"intervals": [10, 20]}},
                    "sex": "quasi",
                    "ill": "sensitive",
                },
                "policy": {"k": "own"},
            },
        )
        try:
            release = hm.anonymize(
                table,
                hm.KAnonymity(3),
                method=method,
                pseudonym=TOKEN_KEY,
                suppression=share,
                **more,
            )
        except hm.errors.HalfmaskError as error:
            return str(error)
        rows = sorted(map(str, release.to_arrow().to_pylist()))
        return rows, release.notes, release.suppressed, release.loss, release.levels

    assert told(30, "f", "a") == told(97, "x", "b") == told(20, "m", "unheard of")
