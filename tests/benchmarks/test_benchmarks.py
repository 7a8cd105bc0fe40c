"""Every script in benchmarks/ runs to its end at its smallest size."""

from __future__ import annotations

import json
import sys
from contextlib import nullcontext
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
SCRIPTS = ROOT / "benchmarks"
ADULT, NOTHING = "Adult", "nothing"
HIERARCHIES = "hierarchies of ARX"
ARX = "with hierarchies of Adult where those of ARX are not there"
DATABASE = "PostgreSQL"
KHIOPS = "the extra khiops"
# Per script what it needs, its options, and those of its constants that make it long.
SMALLEST: dict[str, tuple[str, list[str], dict[str, object]]] = {
    "assess_speed": (NOTHING, ["--rows", "300"], {"SAMPLE": 100, "ALONE": False}),
    "auto_default": (
        NOTHING,
        ["--rows", "200", "--k", "2", "--tables", "sample", "--methods", "auto,personal"],
        {},
    ),
    "cells_scale": (NOTHING, ["--share", "10000"], {"TURNS": 1}),
    "checks_speed": (NOTHING, ["--rows", "500", "--pycanon-rows", "200"], {}),
    "coclustering_khiops": (KHIOPS, ["--tables", "1", "--kinds", "three categories"], {}),
    "coclustering_speed": (NOTHING, ["--rounds", "1"], {}),
    "complete_semantics": (NOTHING, ["--effort", "0.1"], {"SHAPES": ((90, 10, (5, 7, 10)),)}),
    "confidentiality": (ADULT, ["--rows", "600"], {}),
    "dp_quality": (
        ADULT,
        [
            "--rows",
            "300",
            "--columns",
            "3",
            "--epsilons",
            "1",
            "--tables",
            "adult",
            "network",
            "--methods",
            "marginals",
            "adaptive",
            "AIM as printed",
        ],
        {},
    ),
    "dp_speed": (ADULT, ["--runs", "1", "--rows", "500"], {"ASKED": 3, "EPSILONS": (1.0,)}),
    "exact_methods": (
        ADULT,
        ["--seconds", "5", "--method", "columns", "--method", "bounds", "--metric", "dbil"],
        {"SIZES": (8,)},
    ),
    "first_use": (NOTHING, ["--rows", "100", "--only", "describe"], {"SQUARES": 1000}),
    "frontier_speed": (ARX, ["--rows", "300"], {"KS": (2, 5), "LS": (2,), "SHARES": (0,)}),
    "mask_speed": (ADULT, ["--rows", "300"], {"SQUARES": 1000}),
    "noninterference": (
        NOTHING,
        ["--count", "1", "--workers", "1"],
        {"PER_WORLD": 1, "CHANGES": 1, "MANY": 1},
    ),
    "optimal_search": (ARX, ["--rows", "500", "--json"], {"RUNS": 1}),
    "personal_methods": (ADULT, ["--rows", "400"], {}),
    "population_models": (NOTHING, ["--repeats", "1"], {"FRACTIONS": (0.1,), "THOUSAND": 50}),
    "privbayes_tuning": (
        NOTHING,
        ["--runs", "1"],
        {"THETAS": (4.0,), "STRUCTURES": (Fraction(3, 10),), "EPSILONS": ("1",), "SIZES": (300,)},
    ),
    "query_overhead": (NOTHING, ["--rows", "500", "--repeat", "1"], {"TREES": (300, 100)}),
    "scale": (NOTHING, ["--rows", "500", "--memory-limit", "200MB"], {}),
    "scale_elsewhere": (DATABASE, ["postgres", "--rows", "500"], {}),
    "sets_peer": (HIERARCHIES, ["--k", "2", "--method", "mondrian"], {}),
    "series_game": (NOTHING, ["--plain", "2", "--met", "1", "--histories", "4"], {}),
    "series_speed": (NOTHING, ["--people", "300", "--releases", "2"], {}),
    "synthetic_values": (ADULT, ["--rows", "600", "--k", "5"], {}),
    "tabulate_speed": (NOTHING, ["--time-limit", "2"], {"SHAPE": (4, 4, 3), "FLAT": (4, 4)}),
    "thesis_coclustering": (ADULT, ["--k", "20", "--rounds", "1", "--recodings"], {"GROUPS": (2,)}),
    "thesis_dp": (ADULT, ["--runs", "1"], {"EPSILONS": ("1",), "BLOCK_ROWS": (2.0,)}),
    "thesis_rates": (NOTHING, [], {}),
    "two_cores": (
        HIERARCHIES,
        ["--rows", "500", "--methods", "optimal:500", "mondrian:500"],
        {"RUNS": 1},
    ),
    "thesis_personal": (
        ADULT,
        ["--seeds", "1", "--step", "50", "--k", "low", "--samples", "1", "--method", "mondrian"],
        {"SCALES": ((5, 2),)},
    ),
}
# What those write that take a folder.
PAGES = {"thesis_dp": "thesis_dp.html", "thesis_personal": "thesis.html"}


def test_every_script_is_run_here() -> None:
    assert {path.stem for path in SCRIPTS.glob("[a-z]*.py")} == set(SMALLEST)


@pytest.mark.parametrize("name", SMALLEST)
def test_the_script_runs(name: str, monkeypatch, capsys, tmp_path: Path, request) -> None:
    needs, options, constants = SMALLEST[name]
    if needs == DATABASE:
        options = [*options, "--address", request.getfixturevalue("postgres")]
    monkeypatch.syspath_prepend(SCRIPTS)
    adult = import_module("_adult")
    if needs in (ADULT, ARX) and adult.found() is None:
        pytest.skip("Adult is not there: run make data")
    if needs == KHIOPS:
        pytest.importorskip("khiops", reason="the extra khiops is not installed")
    if needs == HIERARCHIES and not (ROOT.parent / "shared" / "data" / "arx").is_dir():
        pytest.skip("the folder ../shared/data/arx with hierarchies of Adult is not there")
    if needs == ARX:
        options = [*options, "--data", str(tmp_path / "none")]
        monkeypatch.setattr(import_module("optimal_search"), "MOST", 300)
    if name in PAGES:
        options = [*options, "-o", str(tmp_path)]
    script = import_module(name)
    monkeypatch.setattr(import_module("halfmask.synthesize.dp_cocluster"), "DRAWN", 1 << 14)
    # Fewer rows show no structure to co-cluster.
    monkeypatch.setattr(adult, "MOST", 1500 if name == "thesis_coclustering" else 300)
    for constant, value in constants.items():
        assert hasattr(script, constant)
        monkeypatch.setattr(script, constant, value)
    for place, one in list(vars(script).items()):  # compiling takes longer than so few rows
        if hasattr(one, "py_func") and one.__module__ == name:
            monkeypatch.setattr(script, place, one.py_func)
    monkeypatch.setattr(sys, "argv", [name, *options])
    try:
        script.main()
    except SystemExit as end:
        assert not end.code, end.code  # noqa: PT017 - 0 or nothing is a good end
    assert capsys.readouterr().out.strip()
    if name in PAGES:
        page = (tmp_path / PAGES[name]).read_text(encoding="utf-8")
        assert "<figure>" in page
        assert all(json.loads(one.read_text(encoding="utf-8")) for one in tmp_path.glob("*.json"))


def test_adult_is_read_with_the_hierarchies_of_arx_too(monkeypatch) -> None:
    monkeypatch.syspath_prepend(SCRIPTS)
    script = import_module("optimal_search")
    if not script.ARX.is_dir():
        pytest.skip("the folder ../shared/data/arx with hierarchies of Adult is not there")
    monkeypatch.setattr(script, "MOST", 300)
    table = script.adult(script.ARX, ("occupation",))
    assert (len(table), len(table.schema.quasi)) == (300, 8)
    assert table.hierarchy("age").height == 4


def test_the_tables_of_the_thesis_on_rates_are_made_again(monkeypatch) -> None:
    monkeypatch.syspath_prepend(SCRIPTS)
    script = import_module("thesis_rates")
    made = {name: script.beside(make()) for name, make in script.TABLES.items()}
    assert sum(len(one["figures"]) for one in made.values()) == 134
    assert max(one["largest_difference"] for one in made.values()) < 1e-4
    by_print = [
        abs(figure["rate"] - figure["printed"])
        for one in made.values()
        for figure in one["figures"]
        if "print" not in figure
    ]
    assert (len(by_print), max(by_print) <= 0.0142) == (134 - 10, True)  # 0.6 for 0.6137
    assert script.stars()["differ"] == 0


def test_a_comparison_that_was_stopped_goes_on_where_it_was(monkeypatch, capsys, tmp_path) -> None:
    monkeypatch.syspath_prepend(SCRIPTS)
    script = import_module("dp_quality")
    state = tmp_path / "state.jsonl"
    short = ["dp_quality", "--rows", "300", "--columns", "3", "--tables", "network", "--state"]

    def run(*more: str) -> list[str]:
        monkeypatch.setattr(sys, "argv", [*short, str(state), *more])
        script.main()
        return [line for line in capsys.readouterr().out.splitlines() if line[:9] == "| network"]

    first = run("--methods", "marginals", "--epsilons", "1")
    both = run("--methods", "marginals", "--epsilons", "1", "3")
    assert (len(first), len(both), both[:1]) == (1, 2, first)
    assert len(state.read_text(encoding="utf-8").splitlines()) == 2
    assert run("--print") == both


def test_every_table_of_a_comparison_can_be_made(monkeypatch) -> None:
    monkeypatch.syspath_prepend(SCRIPTS)
    if import_module("_adult").found() is None:
        pytest.skip("Adult is not there: run make data")
    for make in import_module("_dp_tables").TABLES.values():
        sizes, ordered, codes = make(50, None)
        assert set(ordered) <= set(sizes) == set(codes)
        assert all(
            len(codes[name]) == 50 and codes[name].max() < size for name, size in sizes.items()
        )


def test_peers_that_cannot_run_are_told_as_such(monkeypatch, capsys, tmp_path) -> None:
    """A Python without the library: its reason stands in the table, and the run goes on."""
    monkeypatch.syspath_prepend(SCRIPTS)
    script = import_module("dp_quality")
    monkeypatch.setattr(script, "peers_of", lambda _: {"dpmm-mst": sys.executable})
    options = ["--rows", "300", "--columns", "3", "--tables", "network", "--epsilons", "1"]
    monkeypatch.setattr(sys, "argv", ["dp_quality", *options, "--methods", "dpmm-mst", "marginals"])
    script.main()
    told = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| network")]
    assert "dpmm" in told[0].split("|")[4]
    assert float(told[1].split("|")[4]) < 1


@pytest.mark.parametrize("name", ["NoiseFirst", "P-HPartition", "DPCube", "DiffGen"])
def test_comparators_of_chapter_5_come_near_where_there_is_no_noise(name: str, monkeypatch) -> None:
    """Blocks of equal counts at a huge epsilon: what a method averages is equal there."""
    monkeypatch.syspath_prepend(SCRIPTS)
    script = import_module("_dp_comparators")
    monkeypatch.setattr(script, "SPECIALIZATIONS", 5)
    counts = np.zeros((8, 4, 2))
    if name == "P-HPartition":  # few runs of equal cells on the line
        counts[:4], counts[4:6] = 30, 70
    else:
        counts[:4, :, 0], counts[4:, :2, 1] = 30, 70
    found = script.COMPARATORS[name](counts, 1e4, np.random.default_rng(0))
    assert found == pytest.approx(counts, abs=1)
    faint = script.COMPARATORS[name](counts, 1e-3, np.random.default_rng(0))
    assert faint.shape == counts.shape
    assert (faint >= 0).all()


@pytest.mark.parametrize(("words", "code", "ends"), [
    (["synthesize", "f", "-o", "out"], 2, True),  # refused, so that nothing was written
    (["check", "f"], 2, False),  # found out what was asked
    (["synthesize", "f", "-o", "out"], 0, False),
])  # fmt: skip
def test_a_refusal_is_no_first_use(words, code, ends, monkeypatch) -> None:
    monkeypatch.syspath_prepend(SCRIPTS)
    script = import_module("first_use")
    ran = SimpleNamespace(returncode=code, stderr=b"refused")
    monkeypatch.setattr(script.subprocess, "run", lambda *_, **__: ran)
    with pytest.raises(SystemExit, match="refused") if ends else nullcontext():
        script.seconds(words, "cache")
