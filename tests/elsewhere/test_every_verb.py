"""Every verb of docs/engines.md on every engine: what memory gives, with the rows where it says.

One case a line of the table at least. In place means that no row is collected; where the table says
that rows are read into memory, they are.
"""

from __future__ import annotations

import importlib.util
import json
import resource
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from places import SCHEMA, multiset, people, stored

import halfmask as hm
from halfmask.engines.spark import SparkRows
from halfmask.engines.stored import Storage

if TYPE_CHECKING:
    from collections.abc import Callable

PAGE = Path(__file__).parents[2] / "scripts" / "engine_reference.py"
PLAIN = {"columns": {**SCHEMA["columns"], "k_i": "drop", "name": "drop"}}
ORDER = ("age", "sex", "zip", "ill", "pay")
MODELS = (hm.KAnonymity(3), hm.LDiversity(2, "ill"))
QUERY = "SELECT sex, AVG(pay) AS pay FROM the_table GROUP BY sex GUARANTEE k = 10, l = 2"
DOMAINS: dict[str, Any] = {
    "sex": ["f", "m", "F"],
    "ill": ["flu", "gout", "o'hara", None],
    "zip": [f"{n:05}" for n in range(100, 115)],
    "age": {"low": 20, "high": 60, "bins": 4, "missing": True},
    "pay": {"low": 0, "high": 100, "bins": 4},
}
FEW = {"learn": False, "attacks": 20}


def told(release: Any) -> Any:
    """What a release says and holds, its order and its engine apart."""
    document = release.to_dict()
    names = ("rows", "verdicts", "loss", "levels", "columns", "classes", "steps", "suppressed")
    with release:
        rows = multiset(release.to_arrow())
    return [document.get(name) for name in names], rows


def anonymized(method: str, **more: Any) -> Callable[[hm.Table], Any]:
    given = {"method": method, "suppression": 0.1, **more}
    return lambda table: told(hm.anonymize(table, *MODELS, **given))


def classes_of(release: Any) -> Any:
    """How large the classes of a division are; which of alike rows stand in one is drawn."""
    with release:
        quasi = release.to_arrow().select(["age", "sex", "zip"]).to_pylist()
    sizes = Counter(tuple(row.values()) for row in quasi)
    return release.to_dict()["verdicts"], round(release.loss, 9), Counter(sizes.values())


def frontier(table: hm.Table, **given: Any) -> Any:
    found = hm.frontier(table, hm.KAnonymity(3), suppression=[0.0], seed=1, **given)
    return [(one.risk, one.loss) for one in found.points]


def compared(table: hm.Table) -> Any:
    made = hm.anonymize(hm.read(people(), PLAIN), *MODELS, method="optimal", suppression=0.1)
    found = json.loads(json.dumps(hm.compare(table, made, **FEW).to_dict(), default=str))
    return sorted(found), found.get("rows"), found.get("loss")


def mapped(table: hm.Table) -> Any:
    town = hm.read(
        people(600).select(["age", "sex", "zip"]), dict.fromkeys(("age", "sex", "zip"), "quasi")
    )
    made = hm.anonymize(table, hm.KMap(3, town), method="optimal", suppression=0.5)
    return made.to_dict()["verdicts"], made.levels


def masked(table: hm.Table) -> Any:
    """Which of the rows that look alike to the steps takes which of their cells is drawn."""
    with hm.mask(table, "round age base=5", "pram sex keep=0.7", seed=5) as made:
        return made.to_dict()["steps"], multiset(made.to_arrow().select(ORDER[:4]))


def private(table: hm.Table) -> Any:
    made = hm.synthesize(table, "histogram", epsilon=1.0, domains=DOMAINS, rows=40)
    return made.to_arrow().column_names, made.to_arrow().num_rows, dict(made.parameters)


# The lines of the table with what is asked; each line is named as it begins there.
CASES: dict[str, dict[str, Callable[[hm.Table], Any]]] = {
    "read": {"read": lambda t: (len(t), sorted(t.column_names))},
    "describe": {"describe": lambda t: [(c.name, c.role, c.kind) for c in hm.describe(t).columns]},
    "check, assess, risks, compare, frontier (optimal), discriminate": {
        "check": lambda t: [(v.model, v.holds, v.achieved) for v in hm.check(t, *MODELS)],
        "assess": lambda t: hm.assess(t).to_dict()["findings"],
        "risks": lambda t: hm.row_risks(t).summary(0.2),
        "compare": compared,
        "frontier": lambda t: frontier(t, methods=["optimal"]),
        "discriminate": lambda t: round(hm.discrimination_rate(t, "ill", ["age", "sex"]), 9),
    },
    "query": {"query": lambda t: multiset(hm.query(t, QUERY).to_arrow())},
    "anonymize: optimal, local, auto (of these two)": {
        "optimal": anonymized("optimal"),
        "local": anonymized("local"),
    },
    "anonymize: personal, mondrian, k-member, mdav, exact, confidential, co-clustering": {
        "mondrian": lambda t: classes_of(hm.anonymize(t, *MODELS, method="mondrian")),
        "personal": lambda t: classes_of(hm.anonymize(t, *MODELS, method="personal")),
    },
    "anonymize with a pseudonym": {
        "pseudonym": lambda t: told(
            hm.anonymize(
                t, hm.KAnonymity(3), method="optimal", suppression=0.5, pseudonym=b"k" * 20
            )
        )
    },
    "anonymize with previous, a population, weights": {"population": mapped},
    "synthesize with epsilon": {"private": private},
    "recode": {
        "recode": lambda t: told(
            hm.Recoding.of(hm.read(people(), PLAIN), [{"age": 3, "sex": 0, "zip": 2}]).apply(
                t, *MODELS, suppression=0.3
            )
        )
    },
    "tabulate": {
        "tabulate": lambda t: multiset(hm.tabulate(t, ["sex", "ill"], threshold=3).to_arrow())
    },
    "cocluster": {"cocluster": lambda t: hm.cocluster(t, ["sex", "ill"], seed=3).to_dict()},
    "synthesize by cocluster": {
        "drawn": lambda t: multiset(hm.synthesize(t, "cocluster", k=5, seed=2, rows=40).to_arrow())
    },
    "mask, randomize": {
        "mask": masked,
    },
    "frontier of other methods": {"divisions": lambda t: frontier(t, methods=["mdav"])},
    "frontier with finished tables or epsilons, series, check --against": {
        "epsilons": lambda t: len(
            hm.frontier(t, epsilons=[1.0], synthesizer="histogram", domains=DOMAINS, seed=1).points
        )
    },
}


PERSON = {**PLAIN, "table": {"person": "name"}}
WORK = dict.fromkeys(("job", "shift"), "quasi")


def asked_of(name: str) -> tuple[pa.Table, Any]:
    """The rows and the schema of a case, in the order of the columns that are counted."""
    if name == "drawn":  # of columns that go together
        jobs = [i * 8 // 400 for i in range(400)]
        shifts = ["day" if job < 4 else "night" for job in jobs]
        return pa.table({"job": [f"j{job}" for job in jobs], "shift": shifts}), WORK
    rows = people().sort_by([(one, "ascending") for one in ORDER])
    return rows, PERSON if name == "pseudonym" else PLAIN


WRITES = {
    "write to a folder of Parquet files": "out/",
    "write to a file, also the risks of rows": "out.csv",
    "write to PostgreSQL": "postgres",
    "write to DuckDB (.duckdb, .ddb)": "out.duckdb",
    "write to Delta or Iceberg (11)": "delta",
}


@pytest.fixture
def collected(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Which tables were read into memory."""
    found: list[str] = []
    for kind in (Storage, SparkRows):
        usual = kind.collect
        monkeypatch.setattr(
            kind,
            "collect",
            lambda one, schema, usual=usual: found.append(one.engine) or usual(one, schema),
        )
    return found


def verbs() -> tuple[tuple[str, ...], ...]:
    """The lines of the table."""
    spec = importlib.util.spec_from_file_location("engine_reference", PAGE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.VERBS  # type: ignore[no-any-return]


def test_every_line_of_the_table_is_asked() -> None:
    assert {line[0] for line in verbs()} == {*CASES, *WRITES}
    for line in verbs():
        for cell in line[1:]:
            in_place = "in place" in cell
            assert line[0] in WRITES or in_place or "into memory" in cell
            assert line[0] in WRITES or in_place == (line[0] not in READ)


READ = (
    "anonymize with previous, a population, weights",
    "frontier with finished tables or epsilons, series, check --against",
)


@pytest.mark.parametrize(
    ("line", "name"), [(line, name) for line, cases in CASES.items() for name in cases]
)
def test_a_verb_gives_what_memory_gives(
    place: Callable[..., hm.Table], collected: list[str], line: str, name: str
) -> None:
    (rows, schema), ask = asked_of(name), CASES[line][name]
    expected = ask(hm.read(rows, schema))
    assert not collected
    shuffled = rows.take(np.random.default_rng(3).permutation(len(rows)))
    assert ask(place(shuffled, schema)) == expected
    assert bool(collected) == (line in READ)


@pytest.mark.usefixtures("in_place")
@pytest.mark.parametrize("line", WRITES)
def test_what_is_written_is_what_memory_gives(
    place: Callable[..., hm.Table], request: pytest.FixtureRequest, tmp_path: Path, line: str
) -> None:
    settings = {"method": "optimal", "suppression": 0.1}
    expected = multiset(hm.anonymize(hm.read(people(), PLAIN), *MODELS, **settings).to_arrow())
    target = WRITES[line]
    with hm.anonymize(place(people(), PLAIN), *MODELS, **settings) as release:
        if target == "delta":
            with pytest.raises(hm.errors.InputError, match=r"[dD]elta"):
                release.write(target, table="out")
            return
        if target == "postgres":
            address = request.getfixturevalue("postgres")
            release.write(address, table="every_verb")
            with psycopg.connect(address) as connection:
                rows = connection.execute("SELECT * FROM every_verb").fetchall()
                connection.execute("DROP TABLE every_verb")
            assert Counter(rows) == expected
            return
        more = {"table": "out"} if target == "out.duckdb" else {}
        release.write(f"{tmp_path}/{target}", **more)
    if more:
        with duckdb.connect(f"{tmp_path}/{target}") as connection:
            assert Counter(connection.sql("FROM out").fetchall()) == expected
    elif target == "out/":
        assert multiset(pq.read_table(tmp_path / "out")) == expected
    else:
        assert len((tmp_path / target).read_text().splitlines()) == expected.total() + 1


@pytest.mark.usefixtures("in_place")
@pytest.mark.parametrize(
    ("verb", "target"),
    [
        (verb, target)
        for verb in ("anonymize", "recode", "mask", "risks", "private")
        for target in ("out.parquet", "out.csv", "out/", "out.duckdb")
        if verb not in ("risks", "private") or target in ("out.parquet", "out.csv")
    ],
)
def test_a_full_disk_leaves_nothing_of_any_verb(tmp_path: Path, verb: str, target: str) -> None:
    """A file may not grow beyond a few bytes, as on a disk without room."""
    table = stored(tmp_path, people(4000), PLAIN)
    made = {
        "anonymize": lambda: hm.anonymize(table, *MODELS, method="optimal", suppression=0.1),
        "recode": lambda: hm.Recoding.of(
            hm.read(people(), PLAIN), [{"age": 3, "sex": 0, "zip": 2}]
        ).apply(table, *MODELS, suppression=0.3),
        "mask": lambda: hm.mask(table, "round age base=5", seed=5),
        "risks": lambda: hm.row_risks(table),
        "private": lambda: hm.synthesize(
            table, "histogram", epsilon=1.0, domains=DOMAINS, rows=40_000
        ),
    }[verb]()
    given = {"table": "out"} if target == "out.duckdb" else {}
    usual = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, usual[1]))
    try:
        with pytest.raises(hm.errors.HalfmaskError) as refused:
            made.write(f"{tmp_path}/{target}", **given)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, usual)
    assert len(str(refused.value).splitlines()) == 1
    assert [one.name for one in tmp_path.iterdir()] == ["people.parquet"]
