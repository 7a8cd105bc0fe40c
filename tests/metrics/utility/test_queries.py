"""Counting queries and a user's own queries, counted in plain Python."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import halfmask as hm
from halfmask.errors import InputError
from halfmask.metrics.sides import sides
from halfmask.metrics.utility import queries
from halfmask.metrics.utility.queries import counting_queries, sql_queries, statements

TREE = {"tree": {"v": ["a", "b", "c"], "w": ["d", "e"]}}
SCHEMA = {"columns": {"n": "quasi", "t": {"role": "quasi", "hierarchy": TREE}}}
UNDER = {"v": "abc", "w": "de", "*": "abcde"} | {one: one for one in "abcde"}


def both():
    random = np.random.default_rng(1)
    n, t = random.integers(0, 30, 300), random.choice(list("abcde"), 300)
    labels = [str(random.choice(["v" if x in "abc" else "w", "*", x])) for x in t[:280]]
    original = hm.read(pa.table({"n": n, "t": t}), schema=SCHEMA)
    released = hm.read(pa.table({"n": n[:280], "t": labels}), schema={})
    return sides(original, released), n.tolist(), t.tolist(), labels


@pytest.mark.parametrize("scaled", [False, True], ids=["as counted", "scaled"])
def test_errors_are_those_of_counting_row_by_row(monkeypatch, scaled):
    shared, n, t, labels = both()
    asked = []

    def spied(column, *rest, ask=queries._condition):
        wanted = ask(column, *rest)
        values = shared.original.encode(column.name).values.to_pylist()
        asked.append({v for v, inside in zip(values, wanted, strict=True) if inside})
        return wanted

    monkeypatch.setattr(queries, "_condition", spied)
    found = counting_queries(shared, queries=60, scaled=scaled)
    errors = []
    for numbers, texts in zip(asked[::2], asked[1::2], strict=True):
        if not isinstance(next(iter(numbers)), int):
            numbers, texts = texts, numbers
        truth = sum(a in numbers and b in texts for a, b in zip(n, t, strict=True))
        answer = sum(
            (a in numbers) * sum(v in texts for v in UNDER[b]) / len(UNDER[b])
            for a, b in zip(n[:280], labels, strict=True)
        )
        answer *= 300 / 280 if scaled else 1
        errors.append(abs(answer - truth) / max(truth, 1))
    assert found.error.value == pytest.approx(np.mean(errors))
    assert found.median == pytest.approx(np.median(errors))
    assert found.q95 == pytest.approx(np.quantile(errors, 0.95))


def test_small_counts_are_divided_by_a_thousandth_of_the_rows(monkeypatch):
    rows = pa.table({"n": [0] * 3999 + [1]})
    original = hm.read(rows, schema={"n": "quasi"})
    released = hm.read(rows.slice(0, 3999), schema={})

    def last(*_):
        return np.array([False, True])

    monkeypatch.setattr(queries, "_condition", last)
    # One row instead of none: 1 / (0.001 * 4000).
    found = counting_queries(sides(original, released), queries=2, columns=1)
    assert found.error.value == pytest.approx(1 / 4)


def test_own_queries_by_hand(tmp_path):
    original = hm.read(pa.table({"n": [1, 3, 5, 8], "t": list("aabd")}), schema=SCHEMA)
    released = hm.read(pa.table({"n": [1, 3, 7], "t": list("aab")}), schema={})
    file = tmp_path / "own.sql"
    file.write_text("select t, sum(n), count(*) from people group by t")
    (found,) = sql_queries(sides(original, released), statements(file))
    # a: 4 and 2 stay; b: 5 to 7, 1 stays; d: 8 and 1 are gone.
    assert found.error.value == pytest.approx((0 + 0 + 2 / 5 + 0 + 1 + 1) / 6)
    assert (found.cells, found.missing, found.added) == (6, pytest.approx(1 / 3), 0)


def test_groups_of_numbers_are_matched_by_their_number(tmp_path):
    original = hm.read(pa.table({"n": [9, 3, 3], "t": list("abc")}), schema=SCHEMA)
    released = hm.read(pa.table({"n": [3, 3, 3, 9], "t": list("abca")}), schema={})
    file = tmp_path / "own.sql"
    file.write_text("select n, count(*) from people group by n order by count(*)")
    (found,) = sql_queries(sides(original, released), statements(file))
    # 9: 1 stays; 3: 2 to 3.
    assert found.error.value == pytest.approx((0 + 1 / 2) / 2)
    assert found.cells == 2


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("select 1 from people; drop table people", "Statement 2"),
        ("select * from read_csv('secret.csv')", "another table"),
        ("select count(*) from others", "another table"),
        (";", "none"),
    ],
)
def test_what_is_no_query_on_people_is_refused(tmp_path, text, fault):
    file = tmp_path / "own.sql"
    file.write_text(text)
    with pytest.raises(InputError, match=fault) as refused:
        statements(file)
    assert "secret" not in str(refused.value)


def test_steps_of_a_query_may_have_names(tmp_path):
    file = tmp_path / "own.sql"
    file.write_text("with old as (select * from people where n > 3) select count(*) from old;\n")
    assert len(statements(file)) == 1


def test_groups_that_come_and_go_are_shares_of_either_answer(tmp_path):
    original = hm.read(pa.table({"n": [9, 3, 3], "t": list("abc")}), schema=SCHEMA)
    released = hm.read(pa.table({"n": [3, 5, 7, 3], "t": list("abca")}), schema={})
    file = tmp_path / "own.sql"
    file.write_text("select n, count(*) from people group by n")
    (found,) = sql_queries(sides(original, released), statements(file))
    # 9 of 9 and 3 is gone, and its count with it; 5 and 7 of 3, 5 and 7 are new.
    assert (found.missing, found.added) == (pytest.approx(1 / 2), pytest.approx(2 / 3))
    assert found.error.value == pytest.approx((1 + 0) / 2)


@pytest.mark.parametrize(
    "text",
    ["select 'canary' from people where (", "select sum(t) from people where t <> 'canary'"],
    ids=["no SQL", "cannot be run"],
)
def test_the_text_of_a_query_is_not_told(tmp_path, text):
    original = hm.read(pa.table({"n": [1, 3], "t": ["canary", "b"]}), schema={"n": "quasi"})
    file = tmp_path / "own.sql"
    file.write_text(text)
    with pytest.raises(InputError) as caught:
        sql_queries(sides(original, original), statements(file))
    assert "canary" not in str(caught.value)
