"""The generator of the sample: one row per invented patient, deterministic for a seed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfmask.errors import ParameterError
from halfmask.sample import world

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Codes = NDArray[np.int64]

SEED = 20_240_229

_FIRST_DAY = np.datetime64("2022-01-01")
_DAYS = 1096


def people(rows: int = 2000, *, seed: int = SEED) -> pa.Table:
    """Invent a table of ``rows`` patients.

    Age shapes schooling, schooling shapes work, work and province shape the salary; age, sex and
    work shape the disease, the disease shapes the day of the visit and how much privacy the person
    asks for. Some schooling, occupations and salaries are missing.

    Example:
        >>> people(3).num_rows
        3
    """
    if rows < 1:
        raise ParameterError("rows", rows, "at least 1")
    rng = np.random.default_rng(seed)
    age = _ages(rng, rows)
    sex = _draw(rng, [[50.4, 49.0, 0.6]], np.zeros(rows, np.int64))
    postcodes, weights, province_of = _postcodes()
    place = _draw(rng, [weights], np.zeros(rows, np.int64))
    school = _schools(rng, age)
    work = _works(rng, age, school)
    salary = _salaries(rng, age, work, province_of[place])
    disease = _diseases(rng, age, sex, work)
    concern = _concerns(rng, disease)
    columns = {
        "id": _ids(rng, rows),
        "age": pa.array(age.astype(np.int16)),
        "sex": _text(sex, list(world.SEXES)),
        "postcode": _text(place, postcodes),
        "visit": pa.array(_visits(rng, disease)),
        "education": _text(
            school, [name for name, _, _ in world.EDUCATION], _lost(rng, rows, 0.03)
        ),
        "occupation": _text(work, _work_names(), _lost(rng, rows, 0.02)),
        "disease": _text(disease, [d.name for d in world.DISEASES]),
        "salary": pa.array(salary, mask=(salary < 0) | _lost(rng, rows, 0.02)),
        "k_i": pa.array(np.array([k for _, k, _ in world.CONCERN], np.int16)[concern]),
        "l_i": pa.array(np.array([el for _, _, el in world.CONCERN], np.int16)[concern]),
    }
    return pa.table(columns)


def _draw(rng: np.random.Generator, weights: object, group: Codes) -> Codes:
    """Draw one column of ``weights`` per row, from the distribution of the row's group."""
    table = np.atleast_2d(np.asarray(weights, dtype=np.float64))
    groups, size = table.shape
    steps = np.cumsum(table / table.sum(axis=1, keepdims=True), axis=1)
    steps[:, -1] = 1.0
    flat = (steps + np.arange(groups)[:, None]).ravel()
    found = np.searchsorted(flat, group + rng.random(len(group)), side="right") - group * size
    return np.minimum(found, size - 1)


def _text(codes: Codes, values: list[str], missing: NDArray[np.bool_] | None = None) -> pa.Array:
    indices = pa.array(codes.astype(np.int32), mask=missing)
    return pa.DictionaryArray.from_arrays(indices, pa.array(values))


def _lost(rng: np.random.Generator, rows: int, share: float) -> NDArray[np.bool_]:
    return rng.random(rows) < share


def _ids(rng: np.random.Generator, rows: int) -> pa.Array:
    """Patient numbers in no order, so that they say nothing about the row."""
    numbers = pc.cast(pa.array(rng.permutation(rows) + 1), pa.string())
    width = max(7, len(str(rows)))
    prefix = pa.scalar("P")
    return pc.binary_join_element_wise(prefix, pc.utf8_lpad(numbers, width, "0"), "")


def _ages(rng: np.random.Generator, rows: int) -> Codes:
    """Patients lean to the old side, with a hump of small children."""
    years = np.arange(98)
    living = 1 / (1 + np.exp((years - 82) / 6))
    care = 0.6 + 1.6 * np.exp(-years / 4) + 1.5 / (1 + np.exp(-(years - 58) / 9))
    return _draw(rng, [living * care], np.zeros(rows, np.int64))


def _postcodes() -> tuple[list[str], list[float], Codes]:
    """All postcodes (province, town, district), their weights, and the province of each."""
    codes: list[str] = []
    weights: list[float] = []
    provinces: list[int] = []
    for index, province in enumerate(world.PROVINCES):
        for town in range(8):
            districts = max(1, 12 // (town + 1))
            for district in range(districts):
                codes.append(f"{province.prefix}{town}{10 + 7 * district:02d}")
                weights.append(province.weight / (town + 1) / districts)
                provinces.append(index)
    return codes, weights, np.array(provinces)


def _schools(rng: np.random.Generator, age: Codes) -> Codes:
    adult = [weight for _, weight, _ in world.EDUCATION]
    old = [weight for _, _, weight in world.EDUCATION]
    done = np.eye(len(adult))
    pupils = [done[0], done[1] + 0.05 * done[0], done[2] + 0.3 * done[1], done[3] + 0.5 * done[2]]
    group = np.digitize(age, [7, 12, 16, 20, 66])
    return _draw(rng, [*pupils, adult, old], group)


def _work_names() -> list[str]:
    return [*world.NO_WORK, *(o.name for o in world.OCCUPATIONS)]


def _works(rng: np.random.Generator, age: Codes, school: Codes) -> Codes:
    """Work by schooling for adults; the young learn and the old rest."""
    child, student, retired, seeking, home = np.eye(len(_work_names()))[:5]
    jobs = np.array(
        [
            [o.weight * np.exp(-0.45 * (o.schooling - level) ** 2) for o in world.OCCUPATIONS]
            for level in range(len(world.EDUCATION))
        ]
    )
    jobs /= jobs.sum(axis=1, keepdims=True)
    jobs = np.hstack([np.zeros((len(jobs), len(world.NO_WORK))), jobs])
    adults = 0.88 * jobs + 0.06 * seeking + 0.06 * home
    stages = [
        np.tile(child, (len(jobs), 1)),
        0.75 * student + 0.25 * adults,
        adults,
        0.55 * adults + 0.45 * retired,
        0.03 * jobs + 0.97 * retired,
    ]
    stage = np.digitize(age, [16, 23, 60, 67])
    return _draw(rng, np.vstack(stages), stage * len(jobs) + school)


def _salaries(rng: np.random.Generator, age: Codes, work: Codes, province: Codes) -> Codes:
    """Yearly income in whole hundreds; -1 where there is none to tell."""
    base = np.array([-1, 6_000, 15_000, 9_000, -1, *(o.wage for o in world.OCCUPATIONS)])[work]
    wages = np.array([p.wages for p in world.PROVINCES])[province]
    seniority = 1 + 0.012 * np.clip(age - 25, 0, 35)
    income = base * wages * seniority * np.exp(rng.normal(0, 0.22, len(age)))
    return np.where(base < 0, -1, np.round(income / 100).astype(np.int64) * 100)


def _diseases(rng: np.random.Generator, age: Codes, sex: Codes, work: Codes) -> Codes:
    manual = np.array([name in world.MANUAL for name in _work_names()])[work]
    weights = [
        [
            d.weight
            * (d.young, d.young**0.3, 1.0, d.old**0.5, d.old)[band]
            * (d.female, 1.0, d.female**0.5)[who]
            * (d.manual if hard else 1.0)
            for d in world.DISEASES
        ]
        for band in range(5)
        for who in range(3)
        for hard in (False, True)
    ]
    band = np.digitize(age, [16, 30, 50, 66])
    return _draw(rng, weights, (band * 3 + sex) * 2 + manual)


def _visits(rng: np.random.Generator, disease: Codes) -> NDArray[np.datetime64]:
    """Days of visit: few on weekends, and winter for what winter brings."""
    days = _FIRST_DAY + np.arange(_DAYS)
    weekday = (days.astype("datetime64[D]").astype(np.int64) + 3) % 7
    open_ = np.where(weekday < 5, 1.0, 0.15)
    cold = (1 + np.cos(2 * np.pi * (np.arange(_DAYS) % 365.25 - 20) / 365.25)) / 2
    weights = [open_ * (1 + (d.winter - 1) * cold**2) for d in world.DISEASES]
    return days[_draw(rng, weights, disease)]


def _concerns(rng: np.random.Generator, disease: Codes) -> Codes:
    usual = [share for share, _, _ in world.CONCERN]
    delicate = np.array([d.name in world.DELICATE for d in world.DISEASES])[disease].astype(
        np.int64
    )
    return _draw(rng, [usual, list(world.DELICATE_CONCERN)], delicate)
