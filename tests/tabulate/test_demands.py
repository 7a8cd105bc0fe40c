"""What people demand for themselves is kept, refused with their number, or set aside aloud."""

from __future__ import annotations

import pytest

import halfmask as hm
from halfmask.errors import PrivacyError

ROWS = {
    "who": list(range(1, 13)),
    "city": ["a"] * 6 + ["b"] * 6,
    "ill": ["flu", "no"] * 3 + ["flu"] * 3 + ["no"] * 3,
    "k_i": [2] * 12,
}


def table(policy=None, **columns):
    rows = {**ROWS, **columns}
    schema = {
        "table": {"person": "who"},
        "policy": policy or {"k": "k_i"},
        "columns": {"who": "identifier", "city": "quasi", "ill": "sensitive"},
    }
    return hm.read(rows, schema=schema)


def test_an_own_k_is_a_floor_of_the_threshold():
    asked = [4] + [2] * 11
    assert hm.tabulate(table(), ["city", "ill"]).withheld == 0
    release = hm.tabulate(table(k_i=asked), ["city", "ill"])
    shown = {(r["city"], r["ill"]): r["count"] for r in release.to_arrow().to_pylist()}
    assert shown["a", "flu"] is None  # three people, and one of them asks for four
    assert release.demands.kept
    assert hm.audit_table(release, threshold=2).holds


def test_a_demand_where_a_column_is_shown():
    policies = {"columns": {"ill": {"k": 4}}}
    people = table()
    assert hm.tabulate(people, "city", policies=policies).withheld == 0
    with pytest.raises(PrivacyError, match="12 people ask for a k above the 12 people"):
        hm.tabulate(people, ["city", "ill"], policies={"columns": {"ill": {"k": 13}}})


def test_demands_keyed_by_person():
    policies = {"people": {"1": {"k": 4}}}
    assert hm.tabulate(table(), ["city", "ill"], policies=policies).withheld > 0


def test_who_asks_for_more_than_there_are_people_is_counted():
    with pytest.raises(PrivacyError, match="2 people ask for a k above the 12 people"):
        hm.tabulate(table(k_i=[99, 99] + [2] * 10), ["city", "ill"])


def test_demands_set_aside_are_said_first():
    release = hm.tabulate(table(k_i=[99] * 12), ["city", "ill"], threshold=2, demands="ignore")
    assert release.notes[0].startswith("The own demands of 12 people were set aside")
    assert next(iter(release.to_dict())) == "demands"
    assert "DEMANDS SET ASIDE" in repr(release)


def test_an_own_l_withholds_lines_that_tell_too_little():
    rows = {"ill": ["flu"] * 6 + ["flu", "no"] * 3}
    people = table({"k": "k_i", "l": "l_i"}, l_i=[2] * 12, **rows)
    release = hm.tabulate(people, ["city", "ill"])
    shown = {(r["city"], r["ill"]): r["count"] for r in release.to_arrow().to_pylist()}
    assert shown["a", "flu"] is None
    assert shown["a", "no"] is None
    assert shown["a", "Total"] == 6
    # Whoever reads it is not told that withheld cells hold somebody: here one does not.
    assert release.statement["empty_cells"] == "some may be withheld"
    ends = {tuple(one.cell.values()): one for one in hm.audit_table(release).intervals}
    assert (ends["a", "no"].low, ends["a", "no"].high) == (0, 3)


def test_an_own_t_is_refused_with_their_number():
    people = table({"t": "t_i"}, t_i=[0.2] * 3 + [None] * 9)
    with pytest.raises(PrivacyError, match="3 people state an own t"):
        hm.tabulate(people, ["city", "ill"], threshold=2)
    assert hm.tabulate(people, "city", threshold=2).withheld == 0  # nothing sensitive is shown


def test_an_own_epsilon_alone_is_refused():
    people = table({"epsilon": "e"}, e=[0.5] * 12)
    with pytest.raises(PrivacyError, match="12 people state an own epsilon"):
        hm.tabulate(people, "city", threshold=2)
