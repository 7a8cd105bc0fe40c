"""The certificate names the groups that lose most, and nobody who stands in a small one."""

from __future__ import annotations

import pytest

import halfmask as hm

SCHEMA = {"columns": {"street": "quasi", "served": "quasi", "ill": "sensitive"}}


def town(veterans, others, *, alike="none"):
    """30 people of each of 10 streets; and others, of whom each lives in a street of the own."""
    rows = [(f"s{i % 10}", "no", ("flu", "gout")[i % 2]) for i in range(300)]
    rows += [(f"v{i}", "yes", alike) for i in range(veterans)]
    rows += [(f"o{i}", "no", "flu") for i in range(others)]
    street, served, ill = zip(*rows, strict=True)
    return hm.read({"street": street, "served": served, "ill": ill}, schema=SCHEMA)


def released(table):
    return hm.anonymize(table, hm.KAnonymity(5), method="optimal", suppression=0.2)


def test_the_groups_that_lose_most_are_named(tmp_path):
    release = released(town(20, 15))
    assert release.suppressed == 35
    named = {(one.column, one.group): one.share for one in release.absent}
    assert named == {("served", "yes"): 1.0, ("ill", "none"): 1.0}
    release.report(tmp_path / "out.html")
    page = (tmp_path / "out.html").read_text()
    assert "Who was left out" in page
    assert ">served</th><td>yes</td>" in page
    assert release.to_dict()["absent"][0]["share"] == 1.0


@pytest.mark.parametrize(("veterans", "others"), [(9, 30), (30, 9), (30, 0), (5, 5)])
def test_no_group_is_named_where_few_are_inside_or_outside_of_it(veterans, others):
    release = released(town(veterans, others))
    assert release.suppressed == veterans + others
    assert release.absent == ()
    assert "absent" not in release.to_dict()


def test_rows_of_one_person_are_no_group():
    street = [f"s{i % 10}" for i in range(300)] + ["alone"] * 12 + [f"o{i}" for i in range(20)]
    who = list(range(300)) + [1000] * 12 + list(range(2000, 2020))
    ill = ["flu", "gout"] * 150 + ["plague"] * 12 + ["flu"] * 20
    schema = {"table": {"person": "id"}, "columns": {"street": "quasi", "ill": "sensitive"}}
    release = released(hm.read({"id": who, "street": street, "ill": ill}, schema=schema))
    assert release.suppressed == 32
    assert release.absent == ()


@pytest.mark.parametrize("method", ["optimal", "local", "auto"])
def test_whoever_cannot_be_served_counts_in_no_group(method):
    """Attacker: reads the certificate; 29 people and the victim demand more than all can give."""

    def told(victim, nine):
        rows = [(f"s{i % 10}", "no", ("flu", "gout")[i % 2], 2) for i in range(300)]
        rows += [(f"s{i % 10}", ("yes", "no")[i >= nine], "flu", 10**6) for i in range(29)]
        rows += [(f"v{i}", "yes", "gout", 2) for i in range(9)]
        rows += [(f"o{i}", "no", "flu", 2) for i in range(12)]
        rows.append(("s1", victim, "gout", 10**6))
        street, served, ill, own = zip(*rows, strict=True)
        columns = {"street": street, "served": served, "ill": ill, "own": own}
        schema = SCHEMA | {"policy": {"k": "own"}}
        table = hm.read(columns, schema=schema)
        more = {"on_infeasible": "suppress"} if method == "auto" else {}
        return hm.anonymize(table, method=method, suppression=0.3, **more).absent

    assert told("no", 9) == told("yes", 9) == told("yes", 20)
    assert told("no", 0) == told("yes", 0) == told("no", 1)
