"""Combinations that cannot occur, and rows drawn given something: declared, kept, and checked."""

from __future__ import annotations

import datetime

import numpy as np
import pyarrow as pa
import pytest

import halfmask as hm
from halfmask.dp.budget import Pure
from halfmask.dp.conditions import ColumnCondition, condition_words, conditions_of, occurs
from halfmask.dp.domain import Bins, Values
from halfmask.errors import InternalError, ParameterError, SchemaError, UnsatisfiableError
from halfmask.release.candidate import NoiseCandidate
from halfmask.release.seal import seal
from halfmask.synthesize.constraints import DrawLimits, draw_limits
from halfmask.synthesize.fallback import SHORT
from halfmask.synthesize.private import PRIVATE

IMPOSSIBLE = [
    {"sex": "male", "pregnant": "yes"},
    {"age": {"below": 15}, "state": ["married", "widowed"]},
]
DOMAINS = {
    "sex": ["female", "male"],
    "pregnant": ["no", "yes"],
    "age": {"low": 0, "high": 90, "bins": 18},
    "state": ["single", "married", "widowed"],
}


def people(rows=3000, impossible=IMPOSSIBLE):
    """Nobody holds what cannot be; half are female, a third of the adults is single."""
    random = np.random.default_rng(5)
    female, age = random.random(rows) < 0.5, random.integers(0, 90, rows)
    state = np.where(age < 15, 0, random.integers(0, 3, rows))
    pregnant = female & (age > 18) & (age < 45) & (random.random(rows) < 0.4)
    columns = {
        "sex": np.where(female, "female", "male"),
        "pregnant": np.where(pregnant, "yes", "no"),
        "age": age,
        "state": np.array(DOMAINS["state"])[state],
    }
    schema = {"columns": dict.fromkeys(columns, "quasi")}
    return hm.read(pa.table(columns), schema | ({"impossible": impossible} if impossible else {}))


def count_impossible(rows):
    """By plain Python on the rows that left, nothing of the library."""
    return sum(
        (one["sex"] == "male" and one["pregnant"] == "yes")
        or (one["age"] < 15 and one["state"] in ("married", "widowed"))
        for one in rows.to_pylist()
    )


@pytest.mark.parametrize("method", sorted(PRIVATE))
def test_no_private_method_draws_what_cannot_be(method):
    made = hm.synthesize(people(), method, epsilon=1, domains=DOMAINS)
    rows = made.to_arrow()
    assert rows.num_rows == pytest.approx(3000, abs=300)
    assert count_impossible(rows) == 0
    assert made.parameters["impossible"][0] == {"sex": "male", "pregnant": "yes"}
    assert any("sex = male and pregnant = yes" in note for note in made.notes)


def test_without_the_declaration_noise_makes_some():
    """What the test above sees is the declaration's doing."""
    made = hm.synthesize(people(impossible=None), "marginals", epsilon="0.05", domains=DOMAINS)
    assert count_impossible(made.to_arrow()) > 0


def test_the_model_itself_gives_them_no_mass(people_views):
    from halfmask.synthesize import marginals

    views, limits = people_views
    model = marginals.learn(views, ordered=["age"], zeros=limits.impossible, rounds=4)
    drawn = model.draw(20_000, np.random.default_rng(0))
    assert limits.wrong(drawn).sum() == 0
    joint = model.beliefs.marginal(("sex", "pregnant"))
    assert joint[1, 1] < 1e-12
    # And the columns for themselves keep their shares: half are male.
    assert joint.sum(axis=1)[1] == pytest.approx(0.5, abs=0.08)


@pytest.fixture
def people_views(make_views):
    from halfmask.dp.domain import public_domains

    table = people()
    known = public_domains(list(DOMAINS), DOMAINS)
    return make_views(table, DOMAINS, 5), draw_limits(IMPOSSIBLE, None, known)[0]


@pytest.mark.usefixtures("unmeasured")
def test_cocluster_keeps_them_too():
    made = hm.synthesize(people(), method="cocluster", k=20, seed=1, rows=2000)
    assert made.to_arrow().num_rows == 2000
    assert count_impossible(made.to_arrow()) == 0


def test_a_codebook_declares_them(tmp_path):
    book = tmp_path / "codebook.toml"
    book.write_text(
        'sex = ["female", "male"]\npregnant = ["no", "yes"]\n'
        'state = ["single", "married", "widowed"]\nage = { low = 0, high = 90, bins = 18 }\n'
        '[[impossible]]\nsex = "male"\npregnant = "yes"\n'
        '[[impossible]]\nage = { below = 15 }\nstate = ["married", "widowed"]\n'
    )
    made = hm.synthesize(people(impossible=None), "privbayes", epsilon="0.1", domains=book)
    assert count_impossible(made.to_arrow()) == 0


def test_a_schema_file_reads_back(tmp_path):
    schema = people().schema
    path = tmp_path / "people.toml"
    path.write_text(schema.to_toml())
    assert hm.Schema.read(path).impossible == tuple(IMPOSSIBLE)
    assert hm.Schema.from_dict(schema.to_dict()).impossible == tuple(IMPOSSIBLE)


GIVEN = [
    ({"sex": "female"}, lambda one: one["sex"] == "female"),
    ({"state": ["single", "widowed"]}, lambda one: one["state"] in ("single", "widowed")),
    ({"age": {"from": 20, "below": 40}}, lambda one: 20 <= one["age"] < 40),
    ({"sex": "female", "pregnant": "yes"}, lambda one: one["pregnant"] == "yes"),
]


@pytest.mark.usefixtures("unmeasured")
@pytest.mark.parametrize(("given", "right"), GIVEN)
@pytest.mark.parametrize("method", ["marginals", "histogram", "privbayes", "cocluster"])
def test_every_row_holds_what_is_given(method, given, right):
    how = {"k": 20, "seed": 2} if method == "cocluster" else {"epsilon": 2, "domains": DOMAINS}
    made = hm.synthesize(people(), method, rows=700, given=given, **how)
    rows = made.to_arrow().to_pylist()
    assert len(rows) == 700
    assert all(right(one) for one in rows)
    assert count_impossible(made.to_arrow()) == 0
    assert list(made.parameters["given"]) == list(given)
    assert any("drawn given" in note for note in made.notes)


def test_the_rest_of_a_row_follows_what_is_given():
    """Of women two in fifteen are pregnant here; given "yes", ages lie between 18 and 45."""
    made = hm.synthesize(
        people(20_000), "marginals", epsilon=20, delta=1e-6, domains=DOMAINS,
        rows=3000, given={"pregnant": "yes"},
    ).to_arrow()  # fmt: skip
    ages = made["age"].to_numpy()
    assert np.mean((ages >= 15) & (ages < 50)) > 0.97
    assert set(made["sex"].to_pylist()) == {"female"}


class OneValue:
    """A model that knows one value of the first column."""

    rows = 4000

    def draw(self, rows, random):
        return {"a": np.zeros(rows, np.int64), "b": random.integers(0, 2, rows)}


def test_a_value_that_the_model_has_none_of_is_still_delivered(monkeypatch):
    """The budget is spent: rows leave, and the note says how."""
    table = hm.read(pa.table({"a": ["x"] * 4000, "b": ["u", "v"] * 2000}))

    def learn(views, *, ordered=()):
        del ordered
        views.count(("a", "b"), views.limit)
        return OneValue()

    monkeypatch.setitem(PRIVATE, "privbayes", learn)
    keeper = hm.Accountant(Pure(8))
    made = hm.synthesize(
        table, "privbayes", epsilon=8, accountant=keeper, rows=300, given={"a": "y"},
        domains={"a": ["x", "y"], "b": ["u", "v"]},
    )  # fmt: skip
    rows = made.to_arrow()
    assert set(rows["a"].to_pylist()) == {"y"}
    assert rows.num_rows == 300
    assert 60 < rows["b"].to_pylist().count("u") < 240
    assert made.notes[0] == SHORT


WRONG = [
    ({"given": {"sex": "other"}}, "does not list"),
    ({"given": {"nowhere": 1}}, "no column that leaves"),
    ({"given": {"age": {"from": 21}}}, "cuts an interval"),
    ({"given": {"age": 20}}, "cut into intervals"),
    ({"given": {"age": {"from": 40, "below": 20}}}, "condition on column 'age' is none"),
    ({"given": {"age": {"above": 40}}}, "condition on column 'age' is none"),
    ({"given": {"sex": "male", "pregnant": "yes"}}, "No row is possible"),
    ({"given": []}, "takes columns with conditions"),
]


@pytest.mark.parametrize(("options", "message"), WRONG)
def test_what_cannot_be_given_is_refused_before_anything_is_spent(options, message):
    keeper = hm.Accountant(Pure(1))
    with pytest.raises(SchemaError, match=message):
        hm.synthesize(people(), epsilon=1, domains=DOMAINS, accountant=keeper, rows=5, **options)
    assert keeper.remaining == Pure(1)


@pytest.mark.parametrize("method", ["marginals", "cocluster"])
def test_given_needs_a_number_of_rows(method):
    how = {"k": 20} if method == "cocluster" else {"epsilon": 1, "domains": DOMAINS}
    with pytest.raises(ParameterError, match="rows"):
        hm.synthesize(people(), method, given={"sex": "male"}, **how)


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ([{"sex": "male"}], "columns together"),
        ([{"sex": "male", "nowhere": 1}], "no column that leaves"),
        ([{"sex": ["male", "female"], "pregnant": ["yes", "no"]}], "No row is possible"),
        ([{"sex": "male", "pregnant": ["yes", "no"]}, {"sex": "female", "pregnant": ["yes", "no"]}],
         "No row is possible"),
        ([{"sex": "m", "pregnant": "yes"}], "does not list"),
        ([{"age": {"below": 17}, "state": "married"}], "cuts an interval"),
    ],
)  # fmt: skip
def test_declarations_that_cannot_be_kept_are_refused_before_anything_is_spent(declared, message):
    keeper = hm.Accountant(Pure(1))
    with pytest.raises(SchemaError, match=message):
        hm.synthesize(people(impossible=declared), epsilon=1, domains=DOMAINS, accountant=keeper)
    assert keeper.remaining == Pure(1)


def test_a_schema_section_of_another_shape_is_a_fault():
    with pytest.raises(SchemaError, match=r"\[\[impossible\]\]"):
        hm.Schema.from_dict({"columns": {"a": "quasi"}, "impossible": {"a": 1}})


def test_cocluster_refuses_what_few_people_share():
    table = people(300)
    few = [{"sex": "female", "age": {"from": 44, "below": 45}}]
    assert occurs(table.arrow, conditions_of(few[0], table.arrow.column_names, "given")).sum() < 20
    with pytest.raises(UnsatisfiableError, match="Fewer than 20 people"):
        hm.synthesize(table, method="cocluster", k=20, rows=10, given=few[0])


def test_the_door_refuses_such_rows(monkeypatch):
    """A method that draws them, and code that does not draw again: nothing leaves."""
    from halfmask.synthesize import constraints

    def blind(self, draw, rows, random):
        codes = draw(rows, random)
        codes["sex"][:], codes["pregnant"][:] = 1, 1
        return codes, 0.0

    monkeypatch.setattr(constraints.DrawLimits, "draw", blind)
    with pytest.raises(InternalError, match="declared impossible"):
        hm.synthesize(people(), epsilon=1, domains=DOMAINS)
    with pytest.raises(InternalError, match="what is given"):
        hm.synthesize(
            people(impossible=None), epsilon=1, domains=DOMAINS, rows=5, given={"sex": "female"}
        )


@pytest.mark.parametrize(
    ("written", "values", "expected"),
    [
        (1, pa.array([1, 2, None]), [True, False, False]),
        ("1", pa.array([1.0, 2.5]), [True, False]),
        ([True], pa.array(["true", "false"]), [True, False]),
        ({"below": 15}, pa.array([14.9, 15.0, None]), [True, False, False]),
        ({"from": 15}, pa.array(["15", "14", "x"]), [True, False, False]),
        ({"from": datetime.date(2000, 1, 1)}, pa.array([datetime.date(1999, 12, 31)]), [False]),
        ({"below": "2000-01-01"}, pa.array(["1999-12-31", "2000-01-01"]), [True, False]),
        (None, pa.array(["a", None]), [False, True]),
    ],
)
def test_conditions_hold_of_values(written, values, expected):
    assert ColumnCondition.of("c", written).holds(values).tolist() == expected


INCOME = Bins((1, 10, 20), missing=True, special=(0, 99))


@pytest.mark.parametrize(
    ("written", "domain", "expected"),
    [
        ("b", Values(("a", "b")), [False, True]),
        ({"below": 2}, Values((0, 1, 2, None)), [True, True, False, False]),
        ({"below": 20}, Bins((0, 10, 20, 30)), [True, True, False]),
        ({"from": 20}, Bins((0, 10, 20, 30), missing=True), [False, False, True, False]),
        (None, Bins((0, 10, 20), missing=True), [False, False, True]),
        ({"from": 1, "below": 10}, INCOME, [False, True, False, False, False]),
        ({"below": 10}, INCOME, [True, True, False, False, False]),
        ({"from": 10}, INCOME, [False, False, True, True, False]),
        (0, INCOME, [True, False, False, False, False]),
        ([99, "0"], INCOME, [True, False, False, True, False]),
        ([None, 99], INCOME, [False, False, False, True, True]),
        (None, INCOME, [False, False, False, False, True]),
        ({"from": 0, "below": 10}, Bins((0, 10, 20), special=(3,)), [True, False, True]),
    ],
)
def test_conditions_hold_of_codes(written, domain, expected):
    assert ColumnCondition.of("c", written).codes(domain).tolist() == expected


@pytest.mark.parametrize("written", [1, [0, 5], [0, "x"]])
def test_single_values_that_do_not_stand_alone_are_refused(written):
    with pytest.raises(SchemaError, match="cut into intervals"):
        ColumnCondition.of("c", written).codes(INCOME)
    with pytest.raises(SchemaError, match="cut into intervals"):
        ColumnCondition.of("c", [0, None]).codes(Bins((1, 10), special=(0,)))


def earners(impossible=None):
    """Three in ten earn nothing; the others from 1 to 99."""
    random = np.random.default_rng(0)
    earns = np.where(random.random(500) < 0.3, 0, random.integers(1, 100, 500))
    columns = {"sex": random.choice(["m", "f"], 500), "income": earns}
    schema = {"columns": dict.fromkeys(columns, "quasi")}
    return hm.read(pa.table(columns), schema | ({"impossible": impossible} if impossible else {}))


EARNED = {"sex": ["m", "f"], "income": {"low": 1, "high": 100, "bins": 9, "special": [0]}}


@pytest.mark.parametrize("method", ["marginals", "histogram"])
@pytest.mark.parametrize(
    ("given", "least", "most"),
    [({"from": 1, "below": 12}, 1, 11), ({"below": 12}, 0, 11), ({"from": 1}, 1, 100), (0, 0, 0)],
)
def test_numbers_that_stand_alone_are_told_from_the_range(method, given, least, most):
    made = hm.synthesize(
        earners(), method, epsilon=1, domains=EARNED, rows=50, given={"income": given}
    )
    rows = made.to_arrow()["income"].to_pylist()
    assert len(rows) == 50
    assert all(least <= one <= most for one in rows)


@pytest.mark.parametrize("income", [{"from": 1}, 0])
def test_numbers_that_stand_alone_may_be_impossible(income):
    table = earners([{"sex": "m", "income": income}])
    made = hm.synthesize(table, epsilon=1, domains=EARNED).to_arrow().to_pylist()
    assert {one["income"] == 0 for one in made if one["sex"] == "m"} == {income != 0}
    assert {one["income"] == 0 for one in made if one["sex"] == "f"} == {False, True}


def parents(impossible=None):
    random = np.random.default_rng(1)
    columns = {"sex": random.choice(["m", "f"], 500), "kids": random.integers(0, 11, 500)}
    schema = {"columns": dict.fromkeys(columns, "quasi")}
    return hm.read(pa.table(columns), schema | ({"impossible": impossible} if impossible else {}))


@pytest.mark.parametrize("method", ["histogram", "marginals"])
def test_more_intervals_than_whole_numbers(method):
    """20 intervals from 0 to 10: nothing is drawn for one that would hold no whole number."""
    domains = {"sex": ["m", "f"], "kids": {"low": 0, "high": 10}}
    made = hm.synthesize(
        parents(), method, epsilon=1, domains=domains, rows=200, given={"kids": {"below": 1}}
    )
    assert set(made.to_arrow()["kids"].to_pylist()) == {0}
    table = parents([{"sex": "m", "kids": {"from": 1}}])
    made = hm.synthesize(table, method, epsilon=3, domains=domains).to_arrow()
    assert {one["kids"] for one in made.to_pylist() if one["sex"] == "m"} == {0}


@pytest.mark.parametrize(
    "kids",
    [
        {"edges": [0, 0.5, 1, 10], "integer": True},
        {"low": 1, "high": 10, "bins": 3, "special": [0.5], "integer": True},
    ],
)
@pytest.mark.parametrize("impossible", [None, [{"sex": "m", "kids": {"from": 1}}]])
def test_a_condition_that_no_whole_number_could_keep_costs_nothing(kids, impossible):
    keeper = hm.Accountant(Pure(1))
    how = {} if impossible else {"rows": 5, "given": {"kids": {"from": 1}}}
    with pytest.raises(SchemaError, match="'kids' has whole numbers"):
        hm.synthesize(
            parents(impossible), epsilon=1, accountant=keeper,
            domains={"sex": ["m", "f"], "kids": kids}, **how,
        )  # fmt: skip
    assert keeper.remaining == Pure(1)


@pytest.mark.parametrize(
    ("domain", "written"),
    [
        ({"low": "1980-01-01", "high": "2000-01-01", "bins": 10}, {"from": 1990}),
        ({"low": 20, "high": 80, "bins": 6}, {"from": "1970-01-01"}),
        ({"low": 20, "high": 80, "bins": 6}, {"below": datetime.date(1970, 1, 21)}),
        (["1980-01-01", "1990-01-01"], {"from": 1985}),
        ([1980, 1990], {"from": "1985-01-01"}),
    ],
    ids=str,
)
@pytest.mark.parametrize("declared", [False, True])
def test_a_range_of_another_kind_than_its_domain_costs_nothing(domain, written, declared):
    schema = {"columns": {"sex": "quasi", "born": "quasi"}}
    how = {"impossible": [{"sex": "m", "born": written}]} if declared else {}
    table = hm.read(pa.table({"sex": ["m", "f"] * 50, "born": [30, 40] * 50}), schema | how)
    keeper = hm.Accountant(Pure(1))
    given = {} if declared else {"rows": 5, "given": {"born": written}}
    with pytest.raises(SchemaError, match="condition on column 'born' is of"):
        hm.synthesize(
            table, epsilon=1, accountant=keeper, domains={"sex": ["m", "f"], "born": domain},
            **given,
        )  # fmt: skip
    assert keeper.remaining == Pure(1)


def test_a_search_that_is_too_long_does_not_say_that_no_row_is_possible(monkeypatch):
    from halfmask.synthesize import constraints

    domains = {name: Values((0, 1)) for name in "abc"}
    declared = [{"a": 0, "b": 0}, {"a": 0, "b": 1}]  # a = 1 is possible
    assert draw_limits(declared, {"c": 0}, domains)[0].row["a"] == 1
    monkeypatch.setattr(constraints, "_STEPS", 1)
    with pytest.raises(SchemaError, match="was not found within 1 steps") as caught:
        draw_limits(declared, {"c": 0}, domains)
    assert "No row is possible" not in str(caught.value)


def test_a_mask_of_another_length_is_not_used(monkeypatch):
    monkeypatch.setattr(ColumnCondition, "codes", lambda *_: np.array([True]))
    with pytest.raises(InternalError, match="every code"):
        draw_limits([], {"a": 1}, {"a": Values((0, 1))})


def test_the_end_of_the_last_interval_belongs_to_it():
    with pytest.raises(SchemaError, match="cuts an interval"):
        ColumnCondition.of("c", {"below": 30}).codes(Bins((0, 10, 20, 30)))


def test_conditions_in_words():
    given = {"sex": "f", "age": {"from": 18, "below": 65}, "job": ["a", "b"]}
    assert condition_words(given) == "sex = f and age from 18 and age below 65 and job = a or b"


@pytest.mark.parametrize("seed", range(5))
def test_whether_any_row_is_possible_agrees_with_trying_all(seed):
    """Brute force over all rows of three columns with three values."""
    from itertools import product

    random = np.random.default_rng(seed)
    domains = {name: Values((0, 1, 2)) for name in "abc"}
    for _ in range(40):
        declared = []
        for _ in range(random.integers(1, 9)):
            names = random.choice(list("abc"), 2, replace=False)
            declared.append(
                {
                    str(n): random.choice(3, random.integers(1, 4), replace=False).tolist()
                    for n in names
                }
            )
        possible = any(
            not any(all(row["abc".index(n)] in held for n, held in one.items()) for one in declared)
            for row in product(range(3), repeat=3)
        )
        if not possible:
            with pytest.raises(SchemaError, match="No row is possible"):
                draw_limits(declared, None, domains)
            continue
        row = draw_limits(declared, None, domains)[0].row
        assert not any(all(row[n] in held for n, held in one.items()) for one in declared)


def test_a_person_with_several_rows_is_told_what_is_not_kept():
    table = hm.read(
        pa.table({"id": [1, 1, 2, 2] * 50, "a": ["x", "y"] * 100}),
        {"table": {"person": "id"}, "columns": {"a": "quasi"}},
    )
    made = hm.synthesize(table, epsilon=1, rows_per_person=2, domains={"a": ["x", "y"]})
    assert any("one by one" in note and "(id)" in note for note in made.notes)


def test_the_command_line_reads_conditions(tmp_path):
    from halfmask.dp.conditions import read_conditions

    assert read_conditions(["sex=f", "sex=m", "age>=18", "age<65", "note=a=b"]) == {
        "sex": ["f", "m"], "age": {"from": "18", "below": "65"}, "note": ["a=b"],
    }  # fmt: skip
    assert read_conditions(["sex=", 'note=""', "pay=<=50K"]) == {
        "sex": [None], "note": [""], "pay": ["<=50K"],
    }  # fmt: skip
    for wrong, said in (
        (["sex"], "such as"),
        (["age=3", "age<5"], "not both"),
        (["age>=18", "age>=30"], "one bound"),
        (["age<65", "age >= 18", "age< 70"], "one bound"),
        (["age<=65"], "age<66"),
    ):
        with pytest.raises(ParameterError, match=said):
            read_conditions(wrong)


def test_rows_are_drawn_given_a_missing_value():
    table = hm.read(pa.table({"sex": ["f", "m", None] * 40, "ill": ["yes", "no", "no"] * 40}))
    made = hm.synthesize(
        table,
        epsilon=5,
        rows=30,
        given={"sex": [None]},
        domains={"sex": ["f", "m", None], "ill": ["yes", "no"]},
    )
    assert made.to_arrow()["sex"].null_count == 30
    assert any("sex = (missing)" in note for note in made.notes)


def test_a_model_without_a_possible_row_ends_soon():
    """However few rows are asked for, those drawn in vain have a bound of their own."""
    drawn = []

    def draw(rows, random):
        drawn.append(rows)
        return {"a": random.integers(0, 1, rows), "b": random.integers(0, 1, rows)}

    wrong = {"a": np.array([True, False]), "b": np.array([True, False])}
    limits = DrawLimits((wrong,), {}, {"a": 1, "b": 0})
    codes, short = limits.draw(draw, 3, np.random.default_rng(1))
    assert short == 1.0
    assert len(codes["a"]) == 3
    assert not limits.wrong(codes).any()
    assert sum(drawn) < 1_000_000


def test_a_candidate_is_checked_on_values_not_codes(monkeypatch):
    """The door reads the rows themselves: a candidate of another making is refused."""
    made = hm.synthesize(people(impossible=None), epsilon=1, domains=DOMAINS)
    rows = pa.table({"sex": ["male"], "pregnant": ["yes"]})
    rule = conditions_of(IMPOSSIBLE[0], rows.column_names, "x")
    candidate = NoiseCandidate(rows, made.receipt, {}, "marginals", impossible=[rule])
    with pytest.raises(InternalError, match="declared impossible"):
        seal(candidate)
