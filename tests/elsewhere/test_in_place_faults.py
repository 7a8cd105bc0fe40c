"""What was told otherwise of rows elsewhere than of the same rows in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from places import SCHEMA, people, stored

import halfmask as hm

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PLAIN = {"columns": {**SCHEMA["columns"], "k_i": "drop"}}
UNDECLARED = {"columns": {n: c for n, c in SCHEMA["columns"].items() if n not in ("pay", "k_i")}}


def outcome(ask: Callable[[hm.Table], Any], table: hm.Table) -> Any:
    """What came of it, or the kind of error and its sentence."""
    try:
        return ask(table)
    except hm.errors.HalfmaskError as error:
        return type(error), str(error)


def both(ask: Callable[[hm.Table], Any], schema: Any, place: Path) -> tuple[Any, Any]:
    rows = people()
    return outcome(ask, hm.read(rows, schema)), outcome(ask, stored(place, rows, schema))


def cells(release: hm.TableRelease) -> list[str]:
    return sorted(map(str, release.to_arrow().to_pylist()))


@pytest.mark.usefixtures("in_place")
@pytest.mark.parametrize(
    ("demand", "by", "withheld"), [("k_i", ["age", "sex"], 24), (500, ["sex"], 0)]
)
def test_demands_of_columns_that_are_not_shown(
    tmp_path: Path, demand: Any, by: list[str], withheld: int
) -> None:
    columns = {n: c for n, c in PLAIN["columns"].items() if n != "k_i" or demand != "k_i"}
    schema = {"columns": columns, "policy": {"columns": {"pay": {"k": demand}}}}

    def ask(table: hm.Table) -> Any:
        release = hm.tabulate(table, by, threshold=2)
        held = release.to_arrow()["withheld"].to_pylist()
        return sum(map(bool, held)), cells(release), release.to_dict().get("demands")

    memory, there = both(ask, schema, tmp_path)
    assert there == memory
    assert memory[0] == withheld

    memory, there = both(lambda t: ask(t) and hm.tabulate(t, by, sum="pay"), schema, tmp_path)
    assert str(there) == str(memory)  # a demand of a column that is shown


@pytest.mark.parametrize(
    "ask",
    [
        lambda t: cells(hm.tabulate(t, "sex", sum="pay", threshold=3, p=10.0)),
        lambda t: cells(hm.tabulate(t, "pay", threshold=3)),
        lambda t: hm.tabulate(t, ["sex", "ill"], method="cell-key", record_keys="pay"),
    ],
)
def test_columns_that_nobody_declared(tmp_path: Path, ask: Callable[[hm.Table], Any]) -> None:
    memory, there = both(ask, UNDECLARED, tmp_path)
    assert there == memory
    assert issubclass(memory[0], hm.errors.HalfmaskError)


def test_a_memory_limit_binds_where_rows_are_unfolded(tmp_path: Path) -> None:
    table = stored(tmp_path, people(), PLAIN)
    vars(table.stored)["_count"] = 40_000_000  # 160 MB a column, of 200 MB
    for ask in (
        lambda: hm.tabulate(table, ["sex", "ill"], threshold=3),
        lambda: hm.cocluster(table, seed=1),
        lambda: hm.anonymize(table, hm.KAnonymity(3), method="mondrian"),
        lambda: hm.mask(table, "round pay base=10"),
    ):
        with pytest.raises(hm.errors.InputError, match="more than memory_limit = '200MB'"):
            ask()


def test_methods_and_options_are_looked_at_before_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from halfmask.tabulate import run

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("rows were counted")

    monkeypatch.setattr(run, "read_columns", refuse)
    table = stored(tmp_path, people(), PLAIN)
    with pytest.raises(hm.errors.ParameterError, match="method"):
        hm.tabulate(table, "sex", method="x")
    with pytest.raises(hm.errors.ParameterError, match="foo"):
        hm.tabulate(table, "sex", threshold=3, foo=1)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"sex": "other"}, "generalizes 'sex', which the table calls 'other'"),
        ({"pay": "quasi"}, "the quasi-identifier 'pay', which the recoding does not"),
    ],
)
def test_a_recoding_of_other_columns(tmp_path: Path, changed: dict[str, str], words: str) -> None:
    recoding = hm.Recoding.of(hm.read(people(), PLAIN), [{"age": 3, "sex": 0, "zip": 4}])
    schema = {"columns": {**PLAIN["columns"], **changed}}
    memory, there = both(
        lambda t: recoding.apply(t, hm.KAnonymity(3), suppression=0.3), schema, tmp_path
    )
    assert there == memory
    assert memory[0] is hm.errors.SchemaError
    assert words in memory[1]


def test_the_notes_of_rows_that_belong_together(tmp_path: Path) -> None:
    rows = pa.table(
        {
            "job": [f"j{i % 8}" for i in range(400)],
            "shift": ["night" if i % 8 < 4 else "day" for i in range(400)],
            "who": [f"n{i}" for i in range(400)],
            "home": [f"h{i % 99}" for i in range(400)],
        }
    )
    table = {"person": "who", "household": "home"}
    schema = {"columns": {"job": "quasi", "shift": "quasi"}, "table": table}
    release = hm.synthesize(stored(tmp_path, rows, schema), "cocluster", k=5, seed=1, rows=50)
    assert any("household (who, home)" in note for note in release.notes)
