"""A release of rows from cells: the center's release, everybody's demands, and who would pry."""

from __future__ import annotations

import os
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from memory_cell import MemoryCellStore
from tests.protocol.deaths import Nursery, ask_dying_relays
from tests.protocol.town import NOW, Town, row

import halfmask as hm
from halfmask.errors import InputError, ParameterError, PrivacyError, UnsupportedQueryError
from halfmask.protocol.cell_plan import plan_for_cells
from halfmask.protocol.common_schema import RELEASES, Policy, Terms, commons_from, permits_row
from halfmask.protocol.contribution import contribution
from halfmask.protocol.messages import Contribute, read_reply, read_request
from halfmask.protocol.publication import (
    join_rows,
    release_record,
    release_rows,
    release_text,
    sent_demands,
)
from halfmask.protocol.records.layout import combine_records
from halfmask.protocol.store.relay_sqlite import RelayStore
from halfmask.protocol.transport import drive
from halfmask.release.document import AS_IT_WAS

if TYPE_CHECKING:
    from pathlib import Path

TREE = {"east": ["w", "x"], "west": ["y", "z"]}
COLUMNS = {
    "age": {"type": "integer", "role": "quasi"},
    "town": {"role": "quasi", "values": list("wxyz"), "hierarchy": {"tree": TREE}},
    "illness": {"role": "sensitive"},
    "number": {"type": "integer", "role": "sensitive"},
}
COMMONS = commons_from({"tables": {"people": {"columns": COLUMNS}}})
TERMS = Terms(partition=8, frame=16, room=64, release="mondrian")
TEXT = release_text(COMMONS, ["age", "town", "number"], k=3)
Person = dict[str, Any]


def drawn(seed: int, count: int) -> list[Person]:
    """People whose numbers are all different, so that a row can be told to be theirs."""
    random = np.random.default_rng(seed)
    return [
        {
            "age": int(random.integers(18, 90)),
            "town": "wxyz"[int(random.integers(0, 4))],
            "illness": ["flu", "gout", "none"][int(random.integers(0, 3))],
            "number": 1000 + i,
            "k": int(random.choice([1, 2, 4, 6])),
            "l": int(random.choice([1, 2, 3])),
        }
        for i in range(count)
    ]


def central(people: list[Person], names: list[str], method: str) -> Any:
    """What a trusted center would release of the pooled rows."""
    rows = pa.Table.from_pylist([{n: p[n] for n in (*names, "k", "l")} for p in people])
    roles = {n: {x: y for x, y in COLUMNS[n].items() if x in ("role", "hierarchy")} for n in names}
    table = hm.read(rows, {"columns": roles, "policy": {"k": "k", "l": "l"}})
    return hm.anonymize(table, hm.KAnonymity(3), method=method, on_infeasible="suppress", seed=0)


def as_set(rows: pa.Table) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(r.values()) for r in rows.to_pylist())


def covers(shown: dict[str, Any], person: Person) -> bool:
    low, _, high = str(shown["age"]).partition("-")
    above = {
        "*",
        person["town"],
        *(name for name, below in TREE.items() if person["town"] in below),
    }
    wide = shown["age"] == "*" or int(low) <= person["age"] <= int(high or low)
    return wide and shown["town"] in above


def check(rows: list[dict[str, Any]], people: list[Person], floor: int = 3) -> None:
    """Everybody's own k and l, counted person by person; and no row of anybody else."""
    by_number = {p["number"]: p for p in people}
    assert len({r["number"] for r in rows}) == len(rows)
    sizes = Counter((r["age"], r["town"]) for r in rows)
    for shown in rows:
        person = by_number[shown["number"]]
        company = sizes[shown["age"], shown["town"]]
        assert company >= max(floor, person["k"], person["l"])  # numbers are all different
        assert covers(shown, person)


@pytest.mark.parametrize("method", RELEASES)
def test_cells_release_what_a_trusted_center_would(method: str) -> None:
    names = ["age", "town", "number"]
    for seed in range(4):
        people = drawn(seed, 40)
        people[0]["k"] = 90  # more than there are: left out
        people[1]["k"] = None  # states nothing: sends nothing
        terms = Terms(partition=16, frame=32, room=64, release=method)
        found = Town(people, COMMONS, terms).ask(TEXT) if seed == 0 else None
        made = plan_for_cells(COMMONS, TEXT, Terms(release=method))
        given = [
            contribution(
                made,
                {"people": row(COMMONS, p)},
                None if p["k"] is None else Policy(p["k"], p["l"]),
            ).record
            for p in people
        ]
        records = made.layout.read(b"".join(given))
        rows, document = release_rows(made, combine_records(made.layout, records))
        # Methods break ties by the order of rows: cells have the one of records.
        merged = combine_records(made.layout, records)
        order = made.layout.decode(merged, (), ())["g2"].to_pylist()
        stated = [next(p for p in people if p["number"] == number) for number in order]
        assert as_set(rows) == as_set(central(stated, names, method).to_arrow().select(names))
        assert rows.num_rows == 38
        check(rows.to_pylist(), stated)
        assert {v["model"] for v in document["verdicts"]} >= {"k-anonymity", "personal k-anonymity"}
        assert all(v["holds"] for v in document["verdicts"])
        if found is not None:
            assert found[0].rows == rows
            assert found[0].contributions == 40


def test_equal_rows_with_other_demands_stay_apart() -> None:
    people = [
        {"age": 30, "town": "x", "illness": "flu", "number": 1, "k": k, "l": 1}
        for k in (1, 5, 1, 4)
    ]
    text = release_text(COMMONS, ["age", "illness"], k=3)
    made = plan_for_cells(COMMONS, text, TERMS)
    given = [contribution(made, {"people": row(COMMONS, p)}, Policy(p["k"])).record for p in people]
    merged = combine_records(made.layout, made.layout.read(b"".join(given)))
    k, _ = sent_demands(made, merged)
    assert sorted(zip(k.tolist(), made.layout.people(merged).tolist(), strict=True)) == [
        (1, 2), (4, 1), (5, 1),
    ]  # fmt: skip
    # Whoever asks for five is left out, for there are four; the other three would be too few for
    # whoever asks for four, so that those two go.
    rows, _ = release_rows(made, merged)
    assert rows.num_rows == 0
    rows, document = release_rows(made, merged[k == 1])
    assert (rows.num_rows, document["verdicts"]) == (0, [])


def test_the_order_of_rows_tells_nothing_that_they_do_not_show() -> None:
    people = drawn(3, 30)
    shown = []
    for turned in (people, people[::-1]):
        made = plan_for_cells(COMMONS, TEXT, TERMS)
        given = [
            contribution(made, {"people": row(COMMONS, p)}, Policy(p["k"], p["l"])).record
            for p in turned
        ]
        rows, _ = release_rows(
            made, combine_records(made.layout, made.layout.read(b"".join(given)))
        )
        shown.append(rows)
    assert shown[0] == shown[1]
    listed = [tuple(r.values()) for r in shown[0].to_pylist()]
    assert listed == sorted(listed)


@pytest.mark.parametrize("method", RELEASES)
def test_the_asker_learns_nothing_of_whom_nothing_can_serve(method: str) -> None:
    others = [p | {"k": 3, "l": 1} for p in drawn(0, 29)]
    others[4]["k"] = 30  # 30 come, if one comes who has to go: that one may not decide it
    alone = {"age": 25, "town": "z", "illness": "none", "number": 7, "k": 90, "l": 1}
    odd = alone | {"age": 10**6, "town": None, "number": 10**9, "l": 60}
    same = alone | {"number": others[0]["number"], "k": 1, "l": 50}  # alone with any l
    made = plan_for_cells(COMMONS, TEXT, Terms(release=method))

    def released(people: list[Person]) -> tuple[pa.Table, dict[str, Any]]:
        given = [
            contribution(made, {"people": row(COMMONS, p)}, Policy(p["k"], p["l"])).record
            for p in people
        ]
        return release_rows(made, combine_records(made.layout, made.layout.read(b"".join(given))))

    rows, document = released(others)
    sizes = Counter((r["age"], r["town"]) for r in rows.to_pylist())
    assert (rows.num_rows, len(sizes) > 3) == (28, True)
    assert document == {
        "format": "halfmask.release/1",
        "method": method,
        "rows": {"published": 28},
        "verdicts": [
            {"model": "k-anonymity", "column": None, "holds": True, "required": 3,
             "achieved": min(sizes.values())},
            {"model": "personal k-anonymity", "column": None, "holds": True, "required": None,
             "achieved": None},
        ],
        "columns": document["columns"],
        "notes": [],
    }  # fmt: skip
    assert [(c["name"], c["role"], len(c)) for c in document["columns"]] == [
        ("age", "quasi", 3), ("town", "quasi", 3), ("number", "sensitive", 3),
    ]  # fmt: skip
    for person in (alone, odd, same):
        assert released([*others, person]) == (rows, document)
    # As it is sealed: a cell that sends a dummy looks the same, and counts as one that took part.
    terms = Terms(partition=16, frame=32, room=64, release=method)
    for person in (alone, alone | {"k": None}):
        found = Town([*others, person], COMMONS, terms).ask(TEXT)
        assert found is not None
        assert (found[0].rows, found[0].document, found[0].contributions) == (rows, document, 30)


def test_the_asker_promises_l_and_k_on_top() -> None:
    people = [p | {"k": 1, "l": 1} for p in drawn(8, 30)]
    text = release_text(COMMONS, ["age", "town", "illness"], k=6, l=2)
    assert text.endswith('GUARANTEE k = 6, l = 2 OF ("illness")')
    found = Town(people, COMMONS, TERMS).ask(text)
    assert found is not None
    classes: dict[Any, list[str]] = {}
    for r in found[0].rows.to_pylist():
        classes.setdefault((r["age"], r["town"]), []).append(r["illness"])
    assert sum(map(len, classes.values())) == 30
    assert len(classes) > 1
    assert all(len(c) >= 6 and len(set(c)) >= 2 for c in classes.values())


# -- the relay


def transcript(people: list[Person]) -> list[tuple[bytes, bytes]]:
    return Town(people, COMMONS, TERMS).transcript(TEXT)


def test_the_relay_sees_no_value_and_the_same_whoever_the_people_are() -> None:
    canary = [
        p | {"age": 7_700_000 + i, "number": 555_000_111 + i} for i, p in enumerate(drawn(1, 9))
    ]
    equal = [drawn(2, 1)[0]] * 9
    refusing = [p | {"k": None} for p in drawn(4, 9)]
    demanding = [p | {"k": 50} for p in drawn(5, 9)]  # nothing can be released
    shapes = []
    for people in (canary, equal, refusing, demanding):
        seen = transcript(people)
        shapes.append([
            (type(read_request(q)).__name__, len(q), type(read_reply(a)).__name__, len(a))
            for q, a in seen
        ])  # fmt: skip
        whole = b"".join(q + a for q, a in seen)
        for person in people:
            for number in (person["age"], person["number"]):
                if number > 10**6:
                    assert number.to_bytes(4, "little") not in whole
                    assert str(number).encode() not in whole
    assert shapes[0] == shapes[1] == shapes[2] == shapes[3]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills forked processes")
def test_a_relay_killed_at_every_step_gives_the_same_release(
    nursery: Nursery, tmp_path: Path
) -> None:
    path = tmp_path / "relay.sqlite"
    people = [p | {"k": 3, "l": 1} for p in drawn(6, 6)]
    right = Town(people, COMMONS, Terms("tree", 3, 16, 12, release="mondrian")).ask(TEXT)
    assert right is not None
    assert right[0].rows.num_rows == 6
    town = Town(
        people, COMMONS, Terms("tree", 3, 16, 12, release="mondrian"), store=RelayStore(path)
    )
    found, _ = ask_dying_relays(nursery, town, path, TEXT)
    assert found is not None
    assert found[0].rows == right[0].rows
    assert found[0].document["verdicts"] == right[0].document["verdicts"]


# -- the asker, and what a person demands


def sent(policy: Policy | None, text: str = TEXT, **values: Any) -> tuple[int | None, str]:
    person = {"age": 30, "town": "x", "illness": "flu", "number": 1} | values
    made = plan_for_cells(COMMONS, text, TERMS)
    given = contribution(made, {"people": row(COMMONS, person)}, policy)
    return given.level, given.reason


def test_who_contributes_a_row() -> None:
    assert sent(Policy(3)) == (0, "contributed")
    assert sent(Policy(10**6, 50)) == (0, "contributed")  # the demand travels along
    assert sent(None)[1] == "no policy"
    assert sent(Policy(columns={"age": (3, 1)}))[1] == "no policy"
    assert sent(Policy(columns={"age": (3, 1), "town": (2, 1), "number": (2, 1)}))[0] == 0
    # Nobody keeps an l of a column that is no sensitive one, or is not shown.
    assert sent(Policy(3, columns={"age": (3, 2)}))[1] == "no level satisfies the policy"
    hidden = release_text(COMMONS, ["age", "town"], where="illness = 'flu'", k=3)
    assert sent(Policy(3, 2), hidden)[1] == "no level satisfies the policy"
    assert sent(Policy(3), hidden) == (0, "contributed")
    assert sent(Policy(3), hidden, illness="gout")[1] == "the condition is not met"
    assert sent(Policy(3, 2), release_text(COMMONS, ["age", "town"], k=3)) == (0, "contributed")
    assert (
        sent(Policy(3), town="elsewhere")[1] == "a value is too long or outside the common values"
    )


def test_a_person_with_several_rows_stays_out() -> None:
    made = plan_for_cells(COMMONS, TEXT, TERMS)
    one = row(COMMONS, {"age": 30, "town": "x", "illness": "flu", "number": 1})
    given = contribution(made, {"people": pa.concat_tables([one, one])}, Policy(3))
    assert given.level is None
    assert "several rows" in given.reason


@pytest.mark.parametrize(("policy", "k", "l", "right"), [
    (Policy(5, 2), 5, 2, True),
    (Policy(5, 2), 4, 2, False),
    (Policy(5, 2), 5, 1, False),
    (Policy(5, columns={"number": (7, 3)}), 7, 3, True),
    (Policy(5, columns={"number": (7, 3)}), 7, 2, False),
    (Policy(5, columns={"age": (5, 2)}), 9, 9, False),
    (Policy(columns={"age": (2, 1)}), 9, 9, False),
    (None, 9, 9, False),
])  # fmt: skip
def test_the_last_look_at_a_row(policy: Policy | None, k: int, l: int, right: bool) -> None:  # noqa: E741
    assert permits_row(policy, COMMONS, TEXT, k, l) is right


def test_the_door_of_a_cell_does_not_believe_what_sent_the_demands(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    town = Town([drawn(0, 1)[0] | {"k": 6, "l": 3}], COMMONS, TERMS)
    monkeypatch.setattr(Policy, "demand", lambda _self, _touched: (1, 1))
    question = town.question(TEXT)
    drive(town.asker.ask(question), town.send)
    cell = town.cells[0]
    assert isinstance(next(cell.contribute(question, NOW)), Contribute)
    assert isinstance(cell.home, MemoryCellStore)
    assert [e.outcome for e in cell.home.log()] == ["the policy forbids it"]


def test_a_second_release_and_a_count_get_nothing_more() -> None:
    people = [p | {"k": 3, "l": 1} for p in drawn(9, 12)]
    town = Town(people, COMMONS, TERMS)
    first, second = town.ask(TEXT), town.ask(TEXT)
    assert first is not None
    assert second is not None
    assert (first[0].rows.num_rows, second[0].rows.num_rows) == (12, 0)
    fewer = town.ask(release_text(COMMONS, ["age", "town"], where="age > 20", k=3))
    assert fewer is not None
    assert fewer[0].rows.num_rows == 0


def test_groups_of_cells_release_by_themselves_and_their_rows_are_joined() -> None:
    people = [p | {"k": 3, "l": 1} for p in drawn(12, 24)]
    town = Town(people, COMMONS, TERMS, groups=2)
    found = town.ask(TEXT)
    assert found is not None
    assert len(found) == 2
    whole, reason = town.asker.join_answers(TEXT, found)
    assert reason == ""
    assert whole is not None
    assert whole.num_rows == 24
    check(whole.to_pylist(), people)
    texts = pa.table({"age": ["1-5"]})
    assert join_rows([texts, pa.table({"age": [7]})])["age"].to_pylist() == ["1-5", "7"]
    empty = pa.table({"age": pa.array([], pa.string())})
    numbers = [pa.table({"age": [10]}), empty, pa.table({"age": [9]})]
    assert join_rows(numbers)["age"].to_pylist() == [9, 10]
    assert join_rows([empty, empty]) == empty


def test_the_record_counts_what_the_asker_promised_on_the_rows_again() -> None:
    made = plan_for_cells(COMMONS, release_text(COMMONS, ["age", "illness"], k=3, l=2), TERMS)
    columns = [{"name": "age", "action": "ranges"}, {"name": "illness", "action": AS_IT_WAS}]
    verdicts = [{"model": "k-anonymity"}, {"model": "personal k-anonymity"}]
    document = {"verdicts": verdicts, "columns": columns}
    rows = pa.table({"age": ["1-5"] * 3 + ["6-9"] * 4, "illness": ["a", "a", "b"] * 2 + ["c"]})
    record = release_record(made, rows, [document, document])
    assert [(one["model"], one.get("k"), one.get("l")) for one in record.facts["promises"]] == [
        ("k-anonymity", 3, None), ("l-diversity", None, 2), ("personal k-anonymity", None, None),
    ]  # fmt: skip
    assert record.facts["smallest"] == 3
    assert record.facts["mean_risk"] == pytest.approx(2 / 7)
    assert not {"suppressed", "loss"} & set(record.facts)  # both tell of whoever was left out
    assert (record.schema.quasi, record.schema.sensitive) == (("age",), ("illness",))
    for broken in (rows.slice(1), rows.set_column(1, "illness", pa.array(["a"] * 7))):
        with pytest.raises(PrivacyError, match="do not keep"):
            release_record(made, broken, [document])
    with pytest.raises(PrivacyError, match="Too few"):
        release_record(made, rows.slice(0, 0), [document])


@pytest.mark.parametrize("text", [
    "SELECT age, COUNT(*) AS n FROM people GROUP BY age GUARANTEE k = 3 "
    "THEN age -> 10 GUARANTEE k = 4",
    "SELECT age, SUM(number) AS n FROM people GROUP BY age GUARANTEE k = 3",
    "SELECT age + 1 AS older, COUNT(*) AS n FROM people GROUP BY age + 1 GUARANTEE k = 3",
    "SELECT COUNT(*) AS n FROM people GUARANTEE k = 3",
    "SELECT age, COUNT(*) AS n FROM people GROUP BY age LIMIT 3 GUARANTEE k = 3",
    "SELECT number, COUNT(*) AS n FROM people GROUP BY number GUARANTEE k = 3",
])  # fmt: skip
def test_what_is_no_release_of_rows(text: str) -> None:
    with pytest.raises(UnsupportedQueryError):
        plan_for_cells(COMMONS, text, TERMS)


def test_a_schema_that_asks_for_k_1_needs_a_larger_one_stated() -> None:
    document = {
        "tables": {"people": {"columns": COLUMNS}},
        "query": {"k": 1, "single_people": True},
    }
    commons = commons_from(document)
    with pytest.raises(InputError, match=r"k = 2 or more.*common schema asks for k = 1 only.*--k"):
        release_text(commons, ["age", "town"])
    with pytest.raises(UnsupportedQueryError, match=r"k = 2 or more, and k = 1 is stated.*--k"):
        plan_for_cells(commons, release_text(commons, ["age", "town"], k=1), TERMS)
    made = plan_for_cells(commons, release_text(commons, ["age", "town"], k=2), TERMS)
    assert made.plan.request.guarantees[0][0] == 2


def test_an_l_of_the_asker_holds_for_every_sensitive_column() -> None:
    text = release_text(COMMONS, ["age", "illness", "number"], k=2, l=3)
    made = plan_for_cells(COMMONS, text, TERMS)
    assert made.plan.request.guarantees == ((2, 3),)
    assert made.diverse == ["illness", "number"]


def test_columns_in_other_letters_keep_their_roles() -> None:
    try:
        made = plan_for_cells(COMMONS, TEXT.replace('"number"', "NUMBER"), TERMS)
    except UnsupportedQueryError:
        return
    assert made.diverse == ["number"]


@pytest.mark.parametrize("given", [
    {"columns": ["age", "height"]}, {"columns": ["age"], "table": "animals"},
    {"columns": ["age"], "l": 2},
])  # fmt: skip
def test_questions_for_rows_that_cannot_be(given: dict[str, Any]) -> None:
    columns = given.pop("columns")
    with pytest.raises(ParameterError):
        release_text(COMMONS, columns, **given)
