"""Divisions of rows that stay elsewhere: the classes of memory, written by the engine."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from effort import turn
from places import FIGURES, MODELS, SCHEMA, multiset, people, stored

import halfmask as hm
from halfmask.engines.staging import Labeling
from halfmask.release.doors import stored_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

COUNTED = ["age", "sex", "zip", "ill", "k_i"]  # in the order in which they are counted


def alike(rows: int = 200) -> pa.Table:
    """People of whom many have the same values, so that classes have to share them."""
    found = people(rows)
    return found.set_column(2, "zip", pa.array(["00100", "00101"] * (rows // 2))).set_column(
        0, "age", pa.array([n % 3 + 30 if n % 17 else None for n in range(rows)])
    )


def in_order(rows: pa.Table) -> pa.Table:
    return rows.sort_by([(name, "ascending") for name in COUNTED])


def same_classes(memory: hm.Release, other: hm.Release) -> None:
    """All is the same but for which of the rows with the same values went to which class."""
    first, second = memory.to_dict(), other.to_dict()
    for figure in FIGURES:
        assert first[figure] == second[figure], figure
    assert first.get("demands") == second.get("demands")
    one, two = memory.to_arrow(), other.to_arrow()
    assert multiset(one.drop_columns(["pay"])) == multiset(two.drop_columns(["pay"]))
    assert sorted(one["pay"].to_pylist()) == sorted(two["pay"].to_pylist())


@pytest.mark.usefixtures("in_place")
def test_every_engine_writes_the_classes_of_memory(
    place: Callable[..., hm.Table], tmp_path: Path
) -> None:
    memory = hm.anonymize(hm.read(in_order(alike()), SCHEMA), *MODELS, method="mdav")
    with hm.anonymize(place(alike(), SCHEMA), *MODELS, method="mdav") as release:
        same_classes(memory, release)
        assert any("The rows stayed in" in note for note in release.notes)
        release.write(tmp_path / "out.parquet")
    assert all(one.holds for one in hm.check(tmp_path / "out.parquet"))


@pytest.mark.usefixtures("in_place")
def test_rows_that_differ_never_tie(place: Callable[..., hm.Table]) -> None:
    """Texts that are one when joined, and helpers' names: the door numbers the same rows alike."""
    notes = pa.array([("1", "11", None, "")[n % 4] for n in range(200)])
    more = pa.array([("11", "1", "", None)[n % 4] for n in range(200)])
    rows = alike().append_column("hm_rank", notes).append_column("hm_key_0", more)
    rows = rows.append_column("hm_n", more).append_column("hm_i", notes)
    mine = dict.fromkeys(("hm_rank", "hm_key_0", "hm_n", "hm_i"), "other")
    schema = {**SCHEMA, "columns": SCHEMA["columns"] | mine}
    with hm.anonymize(place(rows, schema), *MODELS, method="mdav") as release:
        out = release.to_arrow()
    for name in mine:
        kept = [row[name] for row in out.to_pylist()]
        assert sorted(map(str, kept)) == sorted(map(str, rows[name].to_pylist())), name


def test_the_secret_order_tells_all_rows_apart() -> None:
    """Engines break ties as they like: no two rows that differ may have the same place."""
    import duckdb

    pairs = [("1", "11"), ("11", "1"), ("111", ""), ("", "111"), (None, "111"), ("111", None)]
    rows = pa.table({"a": [a for a, _ in pairs], "b": [b for _, b in pairs]})
    query = Labeling({}, None, {}, ("a", "b"), frozenset())._number_repeats("rows_ r", ["1"])
    drawn = query.partition("ORDER BY ")[2].partition(") AS hm_rank")[0]
    with duckdb.connect() as connection:
        connection.register("rows_", rows)
        found = connection.sql(f"SELECT {drawn} FROM rows_ r").fetchall()  # noqa: S608 - ours
    assert len(set(found)) == len(pairs)


@pytest.mark.usefixtures("in_place")
@pytest.mark.parametrize("method", ["mondrian", "optimal", "local"])
def test_a_refusal_names_no_rows_that_it_cannot_number(tmp_path: Path, method: str) -> None:
    asked = [1000 if 50 <= n < 54 else 2 for n in range(90)]
    rows = people(90).drop_columns(["k_i"]).append_column("k_i", pa.array(asked))
    with pytest.raises(hm.errors.InfeasibleDemandsError) as refused:
        hm.anonymize(stored(tmp_path, rows), hm.KAnonymity(2), method=method)
    assert refused.value.rows == ()
    assert refused.value.feasible == 86
    assert "4 of 90 people" in str(refused.value)
    assert "counted from 0" not in str(refused.value)
    assert "suppression = 0.0445" in str(refused.value)
    assert "on_infeasible" not in str(refused.value)
    table = stored(tmp_path, rows)
    with hm.anonymize(table, hm.KAnonymity(2), method=method, suppression=0.0445) as release:
        assert len(release) == 86  # what was advised, in place
        pays = rows.filter(pa.array([one == 2 for one in asked]))["pay"].to_pylist()
        assert sorted(release.to_arrow()["pay"].to_pylist()) == sorted(pays)


@pytest.mark.usefixtures("in_place")
@pytest.mark.parametrize(
    ("method", "rows"),
    [
        (method, make(120))
        for i, method in enumerate(["personal", "mondrian", "k-member"])
        for make in turn([alike, people], i)
    ],
)
def test_other_divisions_stay_too(tmp_path: Path, rows: pa.Table, method: str) -> None:
    settings = {"method": method, "seed": 4}
    memory = hm.anonymize(hm.read(in_order(rows), SCHEMA), *MODELS, **settings)
    with hm.anonymize(stored(tmp_path, rows), *MODELS, **settings) as release:
        same_classes(memory, release)


@pytest.mark.usefixtures("in_place")
def test_the_proven_optimum_stays_too(tmp_path: Path) -> None:
    rows, settings = alike(16), {"method": "exact", "seed": 4}
    memory = hm.anonymize(hm.read(in_order(rows), SCHEMA), hm.KAnonymity(3), **settings)
    with hm.anonymize(stored(tmp_path, rows), hm.KAnonymity(3), **settings) as release:
        same_classes(memory, release)
        assert release.gap == 0.0


@pytest.mark.usefixtures("in_place")
def test_blind_cuts_are_made_where_the_rows_are(
    place: Callable[..., hm.Table], monkeypatch: pytest.MonkeyPatch
) -> None:
    from halfmask.anonymize.partition import confidential

    monkeypatch.setattr(confidential, "toss", lambda chance: chance >= 1)  # no luck
    schema = {"columns": {**SCHEMA["columns"], "k_i": "drop"}}
    promise, rows = hm.MConfidentiality(2, "ill"), people(240)
    rows = rows.set_column(3, "ill", rows["ill"].fill_null("none"))
    memory = hm.anonymize(hm.read(in_order(rows), schema), promise)
    with hm.anonymize(place(rows, schema), promise) as release:
        same_classes(memory, release)
        assert release.method == "confidential"
        assert release.classes.count > 1


@pytest.mark.usefixtures("in_place")
def test_people_with_several_rows_are_divided_alike(tmp_path: Path) -> None:
    rows = alike(120).append_column("who", pa.array([i % 50 for i in range(120)]))
    schema = {**SCHEMA, "table": {"person": "who"}}
    schema = {name: entry for name, entry in schema.items() if name != "policy"}
    schema["columns"] = {**SCHEMA["columns"], "k_i": "drop"}
    ordered = rows.sort_by([(name, "ascending") for name in ("age", "sex", "zip", "who")])
    memory = hm.anonymize(hm.read(ordered, schema), hm.KAnonymity(3), method="mondrian")
    table = stored(tmp_path, rows, schema)
    with hm.anonymize(table, hm.KAnonymity(3), method="mondrian") as release:
        first, second = memory.to_dict(), release.to_dict()
        assert [first[figure] for figure in FIGURES] == [second[figure] for figure in FIGURES]


def test_which_of_alike_rows_goes_where_is_told_by_no_column(tmp_path: Path) -> None:
    """The adversary knows the pay of all: the order among rows alike must not follow it."""
    rows = alike(200).set_column(4, "pay", pa.array([float(n) for n in range(200)]))
    found = set()
    for _ in range(2):
        with hm.anonymize(stored(tmp_path, rows), *MODELS, method="mdav") as release:
            found.add(frozenset(multiset(release.to_arrow())))
    assert len(found) == 2  # the same classes, other rows in them


def test_an_engine_that_numbers_rows_wrongly_releases_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = Labeling._number_repeats

    def across(self: Labeling, source: str, keys: Sequence[str]) -> str:
        return honest(self, source, keys).replace("PARTITION BY", "PARTITION BY 1 + 0 *")

    monkeypatch.setattr(Labeling, "_number_repeats", across)
    with pytest.raises(hm.errors.InternalError, match="other rows than those that were checked"):
        hm.anonymize(stored(tmp_path, alike()), *MODELS, method="mdav")


def test_of_no_row_nothing_is_to_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest, seen = stored_rows.propose_labeling, []

    def ask(candidate: Any, recoding: Any, labels: pa.Table, names: tuple[str, ...]) -> Labeling:
        nobody = replace(candidate, step=np.full_like(candidate.step, -1))
        seen.append(honest(nobody, recoding, labels.slice(0, 0), names).codes)
        return honest(candidate, recoding, labels, names)

    monkeypatch.setattr(stored_rows, "propose_labeling", ask)
    hm.anonymize(stored(tmp_path, people(60), SCHEMA), *MODELS, method="mdav").close()
    assert [len(one) for one in seen[0]] == [0] * len(seen[0])


def together() -> pa.Table:
    """People whose columns go together, a tenth of them not."""
    found = people(400)
    side = [(i * 7) % 2 if i % 10 else (i // 10) % 2 for i in range(400)]
    age = [20 + 20 * side[i] + i % 8 for i in range(400)]
    zips = [f"{100 + 8 * ((i * 7) % 2) + i % 5:05}" for i in range(400)]
    return found.set_column(0, "age", pa.array(age)).set_column(2, "zip", pa.array(zips))


@pytest.mark.usefixtures("in_place")
@pytest.mark.parametrize("method", ["cocluster", "cocluster-sets"])
def test_labels_of_clusters_are_written_where_the_rows_are(tmp_path: Path, method: str) -> None:
    plain = {"columns": {**SCHEMA["columns"], "k_i": "drop"}}
    names = ["age", "sex", "zip", "ill"]
    given = together()
    rows = given.sort_by([(name, "ascending") for name in names])
    settings = {"method": method, "seed": 3}
    memory = hm.anonymize(hm.read(rows, plain), *MODELS, **settings)
    with hm.anonymize(stored(tmp_path, given, plain), *MODELS, **settings) as release:
        first, second = memory.to_dict(), release.to_dict()
        for figure in ("rows", "verdicts", "loss", "columns", "classes", "risk", "statement"):
            assert first[figure] == second[figure], figure
        assert multiset(memory.to_arrow().select(names)) == multiset(
            release.to_arrow().select(names)
        )
        told = [Counter(one.to_arrow()["pay"].to_pylist()) for one in (memory, release)]
        assert told[0] == told[1]


@pytest.mark.usefixtures("in_place")
@pytest.mark.parametrize("method", ["optimal", "mondrian"])
def test_pseudonyms_are_written_where_the_rows_are(tmp_path: Path, method: str) -> None:
    rows = pa.table(
        {
            "who": [i % 60 for i in range(120)],
            "age": [20 + i % 60 // 20 for i in range(120)],
            "visit": [i // 60 for i in range(120)],
            "pay": [i * 1.5 for i in range(120)],
        }
    )
    schema = {
        "table": {"person": "who"},
        "columns": {"age": "quasi", "visit": "other", "pay": "other"},
    }
    settings = {"method": method, "pseudonym": b"0123456789abcdef0123456789"}
    memory = hm.anonymize(hm.read(rows, schema), hm.KAnonymity(5), **settings)
    with hm.anonymize(stored(tmp_path, rows, schema), hm.KAnonymity(5), **settings) as release:
        assert memory.to_dict()["columns"] == release.to_dict()["columns"]
        assert memory.to_dict()["verdicts"] == release.to_dict()["verdicts"]
        assert multiset(memory.to_arrow()) == multiset(release.to_arrow())
        assert any("The rows stayed in" in note for note in release.notes)
        assert any("holds pseudonyms" in note for note in release.notes)


@pytest.mark.usefixtures("in_place")
def test_a_frontier_of_divisions_is_that_of_memory(tmp_path: Path) -> None:
    settings = {"methods": ["mondrian", "optimal"], "suppression": [0.0], "seed": 1}
    names = ["age", "sex", "zip", "ill", "k_i"]
    rows = people().sort_by([(name, "ascending") for name in names])
    memory = hm.frontier(hm.read(rows, SCHEMA), hm.KAnonymity(3), **settings)
    found = hm.frontier(stored(tmp_path, people()), hm.KAnonymity(3), **settings)
    assert [p.risk for p in memory.points] == [p.risk for p in found.points]
    assert [p.loss for p in memory.points] == [p.loss for p in found.points]
    assert len(found.points) > 1
    assert any("The rows stayed in" in note for note in found.notes)
