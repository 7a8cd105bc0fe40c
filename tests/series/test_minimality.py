"""The minimality attack: what a reader learns who runs the search on every table it may have seen.

Source: Wong, Fu, Wang, Pei, "Minimality attack in privacy preserving data publishing", 2007.
"""

from __future__ import annotations

from itertools import combinations

import halfmask as hm

AGES = [30, 30, 31, 31, 31, 31]


def published(ill):
    rows = {"age": AGES, "ill": ["hiv" if i in ill else f"other {i}" for i in range(len(AGES))]}
    schema = {"columns": {"age": {"role": "quasi", "hierarchy": {"intervals": [10]}},
                          "ill": {"role": "sensitive"}}}  # fmt: skip
    release = hm.anonymize(
        hm.read(rows, schema), hm.KAnonymity(2), hm.LDiversity(2, "ill"), method="optimal"
    )
    shown = release.to_arrow()
    return sorted(zip(map(str, shown["age"].to_pylist()),
                      ["hiv" if v == "hiv" else "other" for v in shown["ill"].to_pylist()],
                      strict=True))  # fmt: skip


def test_who_runs_the_search_again_learns_what_the_class_hides():
    # Two people of 30 are ill, nobody of 31 is: kept apart, the first class would tell both.
    seen = published({0, 1})
    assert len({age for age, _ in seen}) == 1
    assert [value for _, value in seen].count("hiv") == 2  # of six: a reader's guess is 1/3
    worlds = [set(ill) for ill in combinations(range(6), 2)]
    possible = [ill for ill in worlds if published(ill) == seen]
    chance = sum(0 in ill for ill in possible) / len(possible)
    prior = sum(0 in ill for ill in worlds) / len(worlds)
    assert prior == 1 / 3
    assert len(worlds) == 15
    # The only table that is not published finer is the true one: docs/anonymize.md says so.
    assert possible == [{0, 1}]
    assert chance == 1.0
