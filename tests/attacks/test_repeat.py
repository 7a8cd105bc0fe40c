"""The same question, asked again, on a busy machine, elsewhere, or of shuffled rows.

Answers that differ for one question tell more than one answer: whoever asks often enough could
subtract them. So an answer may follow from the groups that can be published, and nothing else.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from effort import THOROUGH

import halfmask as hm
from halfmask.query import integer_program
from halfmask.query import semantics as complete
from halfmask.query.groups import DROPPED, Groups, collect, groups_of
from halfmask.query.run import Session
from halfmask.query.semantics import choose_levels, publish_groups

place = Path(__file__).parents[1] / "query" / "trees.py"
spec = importlib.util.spec_from_file_location("trees", place)
assert spec is not None
assert spec.loader is not None
trees = importlib.util.module_from_spec(spec)
spec.loader.exec_module(trees)

SEMANTICS = ("selective", "complete", "complete-greedy")
ASKED = (
    "SELECT town, age, AVG(salary) AS mean, COUNT(*) AS people FROM people GROUP BY town, age "
    "GUARANTEE k = 3, l = 2 THEN age -> 20 GUARANTEE k = 4, l = 3 THEN town -> up "
    "GUARANTEE k = 6, l = 4 THEN age -> 60 GUARANTEE k = 7, l = 4 SEMANTICS {}"
)
REGIONS = {"north": list("abcd"), "south": list("efgh")}
TOWNS = sorted(REGIONS["north"] + REGIONS["south"])
ALONE = """
import hashlib, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import trees
from halfmask.query.semantics import choose_levels
groups = trees.random_tree(3, 400, 5, [5, 7, 9, 14], 9, 0.6)
print(hashlib.sha256(choose_levels(groups, "complete", effort=0.1).target.tobytes()).hexdigest())
"""


def hard() -> Groups:
    return trees.random_tree(3, 400, 5, [5, 7, 9, 14], 9, 0.6)


def rows(seed: int = 4, n: int = 400) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "person": np.arange(n),
            "town": [TOWNS[i] for i in rng.integers(0, 8, n)],
            "age": rng.integers(20, 80, n),
            "salary": rng.integers(0, 5, n) * 1000,
            "k_i": rng.choice([2, 3, 4, 6, 7, 1_000], n),
        }
    )


def people(table: pa.Table) -> hm.Table:
    rule = hm.hierarchies.Tree(REGIONS)
    columns = {
        "town": hm.Column("quasi", hierarchy=rule),
        "age": hm.Column("quasi"),
        "salary": hm.Column("sensitive"),
    }
    return hm.read(table, hm.Schema(columns=columns, person="person", policy={"k": "k_i"}))


def answered(source: object, semantics: str, **how: object) -> list[dict[str, object]]:
    answer = hm.query(source, ASKED.format(semantics), **how)  # type: ignore[arg-type]
    return answer.to_arrow().to_pylist()  # type: ignore[no-any-return]


def burn(seconds: int) -> subprocess.Popen[bytes]:
    code = f"import time\nend = time.monotonic() + {seconds}\nwhile time.monotonic() < end: pass"
    return subprocess.Popen([sys.executable, "-c", code])  # noqa: S603


def test_a_busy_machine_answers_alike() -> None:
    quiet = complete.choose_complete(hard(), effort=0.1)
    assert quiet.gap  # the limit is felt: a clock would cut elsewhere
    busy = [burn(20) for _ in range(4)]
    try:
        again = complete.choose_complete(hard(), effort=0.1)
    finally:
        for process in busy:
            process.kill()
            process.wait()
    assert (again.target == quiet.target).all()
    assert again.gap == quiet.gap


def test_no_clock_reaches_the_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    import scipy.optimize

    solve, seen = scipy.optimize.milp, []

    def watched(*given: object, **how: object) -> object:
        seen.append(dict(how["options"]))  # SciPy fills it in
        return solve(*given, **how)

    monkeypatch.setattr(scipy.optimize, "milp", watched)
    complete.choose_complete(hard(), effort=0.1)
    assert seen
    assert all(set(options) == {"mip_rel_gap", "node_limit"} for options in seen)


def test_a_fresh_process_answers_alike() -> None:
    here = choose_levels(hard(), "complete", effort=0.1).target.tobytes()
    for seed in ("0", "17"):
        told = subprocess.run(  # noqa: S603
            [sys.executable, "-c", ALONE, str(place.parent)],
            capture_output=True,
            check=True,
            text=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        )
        assert told.stdout.strip() == hashlib.sha256(here).hexdigest()


@pytest.mark.parametrize("semantics", SEMANTICS)
def test_shuffled_rows_and_another_engine_answer_alike(semantics: str) -> None:
    table = rows()
    first = answered(people(table), semantics)
    assert len({row["level"] for row in first}) > 1
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(len(table))
        assert answered(people(table.take(order)), semantics) == first
    assert answered(people(table), semantics, engine="reference") == first


@pytest.mark.parametrize("semantics", SEMANTICS)
def test_a_database_answers_alike(postgres: str, semantics: str) -> None:
    import psycopg

    table = rows()
    with psycopg.connect(postgres, autocommit=True) as base:
        base.execute("DROP TABLE IF EXISTS people")
        base.execute("CREATE TABLE people (person int, town text, age int, salary int, k_i int)")
        with base.cursor().copy("COPY people FROM STDIN") as copy:
            for row in table.to_pylist():
                copy.write_row(list(row.values()))
    schema = people(table).schema
    assert answered(postgres, semantics, schema=schema, tables=["people"]) == answered(
        people(table), semantics
    )


@pytest.mark.parametrize("seed", range(10 if THOROUGH else 4))
@pytest.mark.parametrize("semantics", SEMANTICS)
def test_whatever_order_an_engine_gives_its_groups_in(semantics: str, seed: int) -> None:
    with Session(people(rows(seed))) as session:
        plan = session.prepare(ASKED.format(semantics)).plan
        given = session.engine.collect(plan.request)
    first = groups_of(plan, given)
    chosen = published(first, semantics)
    rng = np.random.default_rng(seed)
    for _ in range(3):
        shuffled = given.take(rng.permutation(len(given)))
        lists = [name for name in given.column_names if name.endswith("_values")]
        for name in lists:
            turned = [
                None if v is None else rng.permutation(v).tolist()
                for v in shuffled[name].to_pylist()
            ]
            column = pa.array(turned, shuffled[name].type)
            shuffled = shuffled.set_column(shuffled.column_names.index(name), name, column)
        assert published(groups_of(plan, shuffled), semantics) == chosen


def published(groups: Groups, semantics: str) -> list[tuple[object, ...]]:
    """The rows in their order: level, labels and how many people."""
    found = publish_groups(groups, choose_levels(groups, semantics, effort=0.05))  # type: ignore[arg-type]
    told: list[tuple[object, ...]] = []
    for level, first, count in zip(found.level, found.first, found.people, strict=True):
        at = np.array([first])
        labels = [k.labels[k.depths[level]][int(k.at(int(level), at)[0])] for k in groups.keys]
        told.append((int(level), *labels, int(count)))
    return told


@pytest.mark.parametrize("semantics", SEMANTICS)
def test_who_is_left_out_changes_nothing(semantics: str) -> None:
    """One whom no level satisfies, with any town, age and salary."""
    table = rows()
    asked = set()
    for town, age, salary in (("a", 20, 0), ("h", 79, 4000), ("d", 41, 9999), (None, None, None)):
        planted = pa.table(
            {"person": [-1], "town": [town], "age": [age], "salary": [salary], "k_i": [10**6]},
            schema=table.schema,
        )
        whole = people(pa.concat_tables([planted, table]))
        answer = hm.query(whole, ASKED.format(semantics))
        asked.add((str(answer.to_arrow().to_pylist()), str(answer.to_dict())))
    assert len(asked) == 1


def test_a_withheld_group_does_not_reorder_the_others() -> None:
    """Labels stand in an order of their own, not in that of the values that happen to be there."""
    with_it, without = {}, {}
    for kept, extra in ((with_it, [("a", 1)]), (without, [])):
        towns = [t for t, n in (*extra, ("b", 3), ("e", 3), ("f", 3)) for _ in range(n)]
        # In the order of values, 'a' would put its region z before y.
        rule = hm.hierarchies.Tree({"z": ["a", "f"], "y": ["b", "e"]})
        table = pa.table({"town": towns, "age": [1] * len(towns)})
        read = hm.read(table, hm.Schema(columns={"town": hm.Column("quasi", hierarchy=rule)}))
        with Session(read) as session:
            asked = (
                "SELECT town, COUNT(*) FROM people GROUP BY town GUARANTEE k = 4, l = 1 "
                "THEN town -> up GUARANTEE k = 4, l = 1 SEMANTICS complete"
            )
            groups = collect(session.prepare(asked).plan, session.engine)
        kept["labels"] = groups.keys[0].labels[1]
    assert with_it["labels"] == without["labels"] == ["y", "z"]


def test_what_happens_elsewhere_does_not_change_a_part() -> None:
    """Each node has its own limit: a hard part takes nothing from an easy one."""
    parents, thresholds = (
        [[i // 4 for i in range(40)], [i // 20 for i in range(40)]],
        [[5], [7], [9]],
    )
    rng = np.random.default_rng(1)
    members = [(0, leaf, int(rng.integers(1, 6))) for leaf in range(40)]
    first = trees.groups_of(parents, thresholds, members)
    target = complete.choose_complete(first, effort=0.02).target
    assert (target != DROPPED).all()
    for leaf in range(20):
        other = [*members]
        other[leaf] = (0, leaf, members[leaf][2] % 5 + 1)
        changed = complete.choose_complete(
            trees.groups_of(parents, thresholds, other), effort=0.02
        ).target
        assert (changed[20:] == target[20:]).all()


def test_the_effort_bounds_the_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []
    run = integer_program._Model.run

    def watched(self: integer_program._Model, limit: int, effort: float | None) -> object:
        sizes.append(self.rows.entries)
        return run(self, limit, effort)

    monkeypatch.setattr(integer_program._Model, "run", watched)
    complete.choose_complete(hard(), effort=0.03)
    assert max(sizes) <= 30
    complete.choose_complete(hard(), effort=3)
    assert 300 < max(sizes) <= 3000


def test_the_clock_is_no_option_any_more() -> None:
    with pytest.raises(hm.errors.ParameterError, match="effort"):
        hm.query(people(rows()), ASKED.format("complete"), time_limit=5.0)
