"""Values that leave a co-clustering: as they went in, and never those that few people share."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from effort import THOROUGH

import halfmask as hm
from halfmask.errors import InternalError, ParameterError
from halfmask.release.doors import synthetic
from halfmask.release.doors.synthetic import interval_ends, require_shared
from halfmask.synthesize.shared_parts import shared_parts, shortest, support

ADULT = Path(__file__).parents[3] / "shared" / "data" / "adult" / "adult.parquet"


def drawn(column, k, *, bins=10, size=20_000, seed=0, owner=None):
    """Values of one column, its parts drawn as often as they occur."""
    table = hm.read(pa.table({"x": column}), {"x": "quasi"})
    parts = shared_parts(table, "x", k, owner, bins=bins)
    found = support(table, parts, k, owner)
    random = np.random.default_rng(seed)
    counts = np.bincount(parts.codes, minlength=len(parts.labels)) * found.drawn
    codes = random.choice(len(counts), size, p=counts / counts.sum()).astype(np.int32)
    values = found.draw(table, codes, random)
    require_shared(table, pa.table({"x": values}), k)
    return values


def test_zeros_and_the_mean_of_a_column_with_many_zeros_stay():
    random = np.random.default_rng(1)
    gains = np.where(random.random(20_000) < 0.91, 0, np.round(random.lognormal(8, 1, 20_000)))
    found = drawn(gains.astype(np.int64), 50).to_numpy()
    assert np.mean(found == 0) == pytest.approx(np.mean(gains == 0), abs=0.01)
    assert found.mean() == pytest.approx(gains.mean(), rel=0.08)
    assert found.std() == pytest.approx(gains.std(), rel=0.25)


def test_one_outlier_does_not_move_the_mean():
    incomes = np.random.default_rng(2).lognormal(11, 0.8, 20_000)
    mean = incomes.mean()
    incomes[7] = 1e9
    found = drawn(incomes, 50).to_numpy()
    assert found.mean() == pytest.approx(mean, rel=0.05)
    assert found.max() <= np.sort(incomes)[-50]
    assert np.quantile(found, [0.1, 0.5, 0.9]) == pytest.approx(
        np.quantile(incomes, [0.1, 0.5, 0.9]), rel=0.03
    )


def test_rounding_comes_out_as_it_went_in():
    random = np.random.default_rng(3)
    prices = np.round(random.uniform(0, 5000, 20_000), 2)
    heaped = np.where(random.random(20_000) < 0.5, np.round(prices / 100) * 100, prices)
    heaped[0] = 17.12345  # one person's digits
    found = drawn(heaped, 300).to_numpy()  # nobody's price is held by 300
    assert np.array_equal(np.round(found, 2), found)
    whole = np.mean(np.round(found / 100) * 100 == found)
    assert whole == pytest.approx(0.5, abs=0.05)


def test_dates_and_whole_numbers_keep_their_type_and_steps():
    random = np.random.default_rng(4)
    days = pa.array(random.integers(0, 20_000, 3000).astype("int32")).cast(pa.date32())
    assert drawn(days, 20).type == pa.date32()
    moments = pa.array(random.integers(0, 5000, 3000) * 86_400_000_000).cast(pa.timestamp("us"))
    found = drawn(moments, 20).cast(pa.int64()).to_numpy()
    assert (found % 86_400_000_000 == 0).all()
    small = pa.array(random.integers(0, 100, 3000).astype(np.int16))
    assert drawn(small, 20).type == pa.int16()


def test_people_with_several_rows_count_once():
    owner = np.concatenate([np.zeros(60), np.arange(1, 200)]).astype(np.int32)
    texts = pa.array(["mine"] * 60 + ["a", "b"] * 99 + ["a"])
    assert set(drawn(texts, 20, owner=owner).to_pylist()) == {"a", "b"}
    numbers = np.concatenate([np.full(60, 999.0), np.random.default_rng(0).uniform(0, 9, 199)])
    assert drawn(numbers, 20, owner=owner).to_numpy().max() < 9


def table_with(person):
    """900 people in two kinds; one more as given."""
    random = np.random.default_rng(5)
    kind = random.integers(0, 2, 900)
    rows = {
        "region": np.where(kind == 0, "north", "south").tolist(),
        "job": np.array(["cook", "clerk", "smith"])[kind + random.integers(0, 2, 900)].tolist(),
        "income": (20_000 + 15_000 * kind + random.integers(0, 15_000, 900)).tolist(),
    }
    for name, value in person.items():
        rows[name].append(value)
    return hm.read(pa.table(rows), dict.fromkeys(rows, "quasi"))


@pytest.mark.parametrize("intervals", ["equal-frequency", "equal-width"])
def test_the_one_person_of_a_region_and_the_largest_income_never_come_out(intervals, monkeypatch):
    monkeypatch.setattr(
        synthetic, "measure_synthetic", lambda *_, **__: {"likeness": {}}
    )  # slow, not asked
    planted = table_with({"region": "island", "job": "clerk", "income": 990_000})
    for seed in range(12 if THOROUGH else 5):
        rows = hm.synthesize(
            planted, method="cocluster", k=30, seed=seed, intervals=intervals, rows=3000
        ).to_arrow()
        assert "island" not in rows["region"].to_pylist()
        assert max(rows["income"].to_pylist()) < 50_000


def test_labels_leave_on_request_and_each_holds_k_people():
    table = table_with({"region": "island", "job": "clerk", "income": 990_000})
    release = hm.synthesize(table, method="cocluster", k=30, seed=0, labels=True)
    incomes = np.array(table.arrow["income"].to_pylist())
    for label in set(release.to_arrow()["income"].to_pylist()):
        low, high = interval_ends(label, pa.int64())
        assert ((incomes > low) & (incomes <= high)).sum() >= 30
    assert "likeness" in release.measured
    with pytest.raises(ParameterError, match="labels"):
        hm.synthesize(table, method="cocluster", k=30, labels=True, intervals="modl")


@pytest.mark.parametrize(
    ("column", "value"), [("region", "island"), ("income", 990_000), ("income", 100), ("job", None)]
)
def test_the_door_refuses_what_fewer_than_k_people_share(column, value):
    table = table_with({"region": "island", "job": None, "income": 990_000})
    rows = table.arrow.slice(0, 20)
    require_shared(table, rows, 1)
    place = rows.column_names.index(column)
    kind = rows[column].type
    bad = rows.set_column(place, column, pa.array([value] * 20, kind))
    with pytest.raises(InternalError, match=rf"'{column}'.*fewer than 30 people"):
        require_shared(table, bad, 30)


@pytest.mark.parametrize(
    ("label", "kind", "ends"),
    [
        ("]1,2.5]", pa.float64(), (1, 2.5)),
        ("<=2000-01-02", pa.date32(), (-np.inf, 10958)),
        (">00:01:00", pa.time32("s"), (60, np.inf)),
        ("any", pa.int64(), (-np.inf, np.inf)),
    ],
    ids=str,
)
def test_the_door_reads_intervals(label, kind, ends):
    assert interval_ends(label, kind) == ends


def test_the_shortest_number_near_a_bound():
    assert shortest(0.866, 0.91, 0.87) == 0.9
    assert shortest(-130.0, -118.0, -119.0) == -120.0
    assert shortest(5.0, 5.0, 5.0) == 5.0


@pytest.mark.skipif(not ADULT.exists(), reason="Adult is not there (make data)")
def test_gains_and_hours_of_adult():
    import pyarrow.parquet as pq

    rows = pq.read_table(ADULT).slice(0, 20_000)
    gains = drawn(rows["capital-gain"].combine_chunks(), 50).to_numpy()
    was = rows["capital-gain"].to_numpy()
    assert np.mean(gains == 0) == pytest.approx(np.mean(was == 0), abs=0.01)
    assert gains.mean() == pytest.approx(was.mean(), rel=0.15)
    hours = drawn(rows["hours-per-week"].combine_chunks(), 50).to_numpy()
    assert np.mean(hours == 40) == pytest.approx(
        np.mean(rows["hours-per-week"].to_numpy() == 40), abs=0.01
    )
