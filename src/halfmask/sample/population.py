"""An invented country: its provinces, schools, occupations, diseases, and its patients.

Weights are relative and made up; only their rough shape (few old people, small towns, seasonal
illness) follows the real world, so that anonymizing the sample is as hard as anonymizing such a
table.

One row per invented patient, deterministic for a seed; written as a user would have it: a CSV
file, its schema and hierarchy files.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfmask.errors import ParameterError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]


class Province(NamedTuple):
    """A province: the first two digits of its postcodes, its people, its wages."""

    prefix: str
    weight: float
    wages: float


class Occupation(NamedTuple):
    """An occupation: where it stands in the hierarchy, who takes it, what it pays."""

    name: str
    branch: str
    sector: str
    schooling: float
    wage: int
    weight: float


class Disease(NamedTuple):
    """A disease: its chapter, and how much likelier it is by age, sex, work and season."""

    name: str
    chapter: str
    weight: float
    young: float
    old: float
    female: float
    manual: float
    winter: float


PROVINCES = (
    Province("01", 22.0, 1.25),
    Province("02", 14.0, 1.10),
    Province("03", 11.0, 1.00),
    Province("04", 9.0, 0.95),
    Province("05", 8.0, 1.05),
    Province("07", 7.0, 0.90),
    Province("08", 6.5, 0.92),
    Province("10", 6.0, 1.00),
    Province("11", 5.5, 0.85),
    Province("14", 4.5, 0.88),
    Province("20", 4.0, 0.80),
    Province("21", 2.5, 0.82),
)

SEXES = ("female", "male", "other")

# In ascending order; an adult's weight, and the same for people above 65, who went to school less.
EDUCATION = (
    ("no school", 1.0, 4.0),
    ("primary", 6.0, 26.0),
    ("lower secondary", 17.0, 26.0),
    ("upper secondary", 24.0, 17.0),
    ("vocational", 22.0, 17.0),
    ("bachelor", 18.0, 6.0),
    ("master", 10.0, 3.0),
    ("doctorate", 2.0, 1.0),
)

SCHOOLING = {
    "basic": ("no school", "primary", "lower secondary"),
    "middle": ("upper secondary", "vocational"),
    "higher": ("bachelor", "master", "doctorate"),
}

NO_WORK = ("child", "student", "retired", "seeking work", "at home")

OCCUPATIONS = (
    Occupation("farmer", "land and sea", "working", 2.0, 24_000, 4.0),
    Occupation("fisher", "land and sea", "working", 1.5, 22_000, 0.7),
    Occupation("forester", "land and sea", "working", 2.5, 26_000, 0.8),
    Occupation("builder", "making", "working", 2.0, 29_000, 6.0),
    Occupation("electrician", "making", "working", 4.0, 36_000, 3.0),
    Occupation("machine operator", "making", "working", 2.5, 30_000, 6.0),
    Occupation("baker", "making", "working", 3.0, 25_000, 1.5),
    Occupation("driver", "moving", "working", 2.0, 28_000, 5.0),
    Occupation("warehouse worker", "moving", "working", 1.5, 25_000, 5.0),
    Occupation("pilot", "moving", "working", 6.0, 88_000, 0.1),
    Occupation("shop assistant", "serving", "working", 2.5, 23_000, 8.0),
    Occupation("cook", "serving", "working", 2.5, 24_000, 4.0),
    Occupation("cleaner", "serving", "working", 1.0, 20_000, 5.0),
    Occupation("police officer", "serving", "working", 4.0, 38_000, 1.5),
    Occupation("nurse", "caring", "working", 4.5, 37_000, 5.0),
    Occupation("physician", "caring", "working", 7.0, 92_000, 1.2),
    Occupation("social worker", "caring", "working", 5.0, 34_000, 2.0),
    Occupation("teacher", "teaching and research", "working", 5.5, 42_000, 5.0),
    Occupation("researcher", "teaching and research", "working", 7.0, 52_000, 0.8),
    Occupation("clerk", "office", "working", 3.5, 31_000, 9.0),
    Occupation("accountant", "office", "working", 5.0, 46_000, 3.0),
    Occupation("programmer", "office", "working", 5.5, 58_000, 3.5),
    Occupation("lawyer", "office", "working", 6.5, 74_000, 0.9),
    Occupation("manager", "office", "working", 5.5, 69_000, 4.0),
)

MANUAL = frozenset(
    {
        "farmer",
        "fisher",
        "forester",
        "builder",
        "electrician",
        "machine operator",
        "baker",
        "driver",
        "warehouse worker",
        "cook",
        "cleaner",
    }
)

DISEASES = (
    Disease("influenza", "respiratory", 9.0, 1.6, 1.2, 1.0, 1.0, 6.0),
    Disease("bronchitis", "respiratory", 7.0, 1.3, 1.6, 1.0, 1.3, 3.0),
    Disease("asthma", "respiratory", 5.0, 2.2, 0.8, 1.1, 1.1, 1.3),
    Disease("pneumonia", "respiratory", 2.5, 1.2, 3.0, 0.9, 1.0, 3.0),
    Disease("hypertension", "circulatory", 12.0, 0.05, 3.5, 0.9, 1.0, 1.0),
    Disease("heart failure", "circulatory", 2.0, 0.02, 6.0, 0.8, 1.0, 1.1),
    Disease("stroke", "circulatory", 1.2, 0.02, 5.0, 0.9, 1.0, 1.0),
    Disease("diabetes", "metabolic", 7.0, 0.2, 2.5, 0.9, 1.0, 1.0),
    Disease("thyroid disorder", "metabolic", 3.0, 0.2, 1.3, 4.0, 1.0, 1.0),
    Disease("obesity", "metabolic", 4.0, 0.8, 0.7, 1.1, 1.0, 1.0),
    Disease("back pain", "musculoskeletal", 11.0, 0.2, 1.2, 1.0, 2.2, 1.0),
    Disease("arthritis", "musculoskeletal", 5.0, 0.05, 3.5, 1.6, 1.4, 1.0),
    Disease("fracture", "musculoskeletal", 5.0, 2.0, 1.6, 0.9, 1.6, 1.2),
    Disease("depression", "mental", 5.0, 0.6, 0.8, 1.7, 1.0, 1.2),
    Disease("anxiety", "mental", 4.5, 1.0, 0.5, 1.7, 0.9, 1.0),
    Disease("addiction", "mental", 1.8, 0.3, 0.3, 0.5, 1.4, 1.0),
    Disease("hepatitis", "infectious", 1.0, 0.5, 0.8, 0.8, 1.0, 1.0),
    Disease("HIV", "infectious", 0.5, 0.1, 0.2, 0.4, 1.0, 1.0),
    Disease("breast cancer", "cancer", 0.06, 0.01, 2.0, 40.0, 1.0, 1.0),
    Disease("bowel cancer", "cancer", 1.2, 0.01, 3.5, 0.8, 1.0, 1.0),
)

DELICATE = frozenset(
    {
        "obesity",
        "depression",
        "anxiety",
        "addiction",
        "hepatitis",
        "HIV",
        "breast cancer",
        "bowel cancer",
    }
)

# How much privacy people ask for: the share of people, and their own k and l.
CONCERN = ((0.63, 3, 1), (0.28, 5, 2), (0.09, 10, 3))
DELICATE_CONCERN = (0.45, 0.36, 0.19)


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
        "sex": _text(sex, list(SEXES)),
        "postcode": _text(place, postcodes),
        "visit": pa.array(_visits(rng, disease)),
        "education": _text(school, [name for name, _, _ in EDUCATION], _missing(rng, rows, 0.03)),
        "occupation": _text(work, _work_names(), _missing(rng, rows, 0.02)),
        "disease": _text(disease, [d.name for d in DISEASES]),
        "salary": pa.array(salary, mask=(salary < 0) | _missing(rng, rows, 0.02)),
        "k_i": pa.array(np.array([k for _, k, _ in CONCERN], np.int16)[concern]),
        "l_i": pa.array(np.array([el for _, _, el in CONCERN], np.int16)[concern]),
    }
    return pa.table(columns)


def _draw(rng: np.random.Generator, weights: object, group: Ints) -> Ints:
    """Draw one column of ``weights`` per row, from the distribution of the row's group."""
    table = np.atleast_2d(np.asarray(weights, dtype=np.float64))
    groups, size = table.shape
    steps = np.cumsum(table / table.sum(axis=1, keepdims=True), axis=1)
    steps[:, -1] = 1.0
    flat = (steps + np.arange(groups)[:, None]).ravel()
    found = np.searchsorted(flat, group + rng.random(len(group)), side="right") - group * size
    return np.minimum(found, size - 1)


def _text(codes: Ints, values: list[str], missing: NDArray[np.bool_] | None = None) -> pa.Array:
    indices = pa.array(codes.astype(np.int32), mask=missing)
    return pa.DictionaryArray.from_arrays(indices, pa.array(values))


def _missing(rng: np.random.Generator, rows: int, share: float) -> NDArray[np.bool_]:
    return rng.random(rows) < share


def _ids(rng: np.random.Generator, rows: int) -> pa.Array:
    """Patient numbers in no order, so that they say nothing about the row."""
    numbers = pc.cast(pa.array(rng.permutation(rows) + 1), pa.string())
    width = max(7, len(str(rows)))
    prefix = pa.scalar("P")
    return pc.binary_join_element_wise(prefix, pc.utf8_lpad(numbers, width, "0"), "")


def _ages(rng: np.random.Generator, rows: int) -> Ints:
    """Patients lean to the old side, with a hump of small children."""
    years = np.arange(98)
    living = 1 / (1 + np.exp((years - 82) / 6))
    care = 0.6 + 1.6 * np.exp(-years / 4) + 1.5 / (1 + np.exp(-(years - 58) / 9))
    return _draw(rng, [living * care], np.zeros(rows, np.int64))


def _postcodes() -> tuple[list[str], list[float], Ints]:
    """All postcodes (province, town, district), their weights, and the province of each."""
    codes: list[str] = []
    weights: list[float] = []
    provinces: list[int] = []
    for index, province in enumerate(PROVINCES):
        for town in range(8):
            districts = max(1, 12 // (town + 1))
            for district in range(districts):
                codes.append(f"{province.prefix}{town}{10 + 7 * district:02d}")
                weights.append(province.weight / (town + 1) / districts)
                provinces.append(index)
    return codes, weights, np.array(provinces)


def _schools(rng: np.random.Generator, age: Ints) -> Ints:
    adult = [weight for _, weight, _ in EDUCATION]
    old = [weight for _, _, weight in EDUCATION]
    done = np.eye(len(adult))
    pupils = [done[0], done[1] + 0.05 * done[0], done[2] + 0.3 * done[1], done[3] + 0.5 * done[2]]
    group = np.digitize(age, [7, 12, 16, 20, 66])
    return _draw(rng, [*pupils, adult, old], group)


def _work_names() -> list[str]:
    return [*NO_WORK, *(o.name for o in OCCUPATIONS)]


def _works(rng: np.random.Generator, age: Ints, school: Ints) -> Ints:
    """Work by schooling for adults; the young learn and the old rest."""
    child, student, retired, seeking, home = np.eye(len(_work_names()))[:5]
    jobs = np.array(
        [
            [o.weight * np.exp(-0.45 * (o.schooling - level) ** 2) for o in OCCUPATIONS]
            for level in range(len(EDUCATION))
        ]
    )
    jobs /= jobs.sum(axis=1, keepdims=True)
    jobs = np.hstack([np.zeros((len(jobs), len(NO_WORK))), jobs])
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


def _salaries(rng: np.random.Generator, age: Ints, work: Ints, province: Ints) -> Ints:
    """Yearly income in whole hundreds; -1 where there is none to tell."""
    base = np.array([-1, 6_000, 15_000, 9_000, -1, *(o.wage for o in OCCUPATIONS)])[work]
    wages = np.array([p.wages for p in PROVINCES])[province]
    seniority = 1 + 0.012 * np.clip(age - 25, 0, 35)
    income = base * wages * seniority * np.exp(rng.normal(0, 0.22, len(age)))
    return np.where(base < 0, -1, np.round(income / 100).astype(np.int64) * 100)


def _diseases(rng: np.random.Generator, age: Ints, sex: Ints, work: Ints) -> Ints:
    manual = np.array([name in MANUAL for name in _work_names()])[work]
    weights = [
        [
            d.weight
            * (d.young, d.young**0.3, 1.0, d.old**0.5, d.old)[band]
            * (d.female, 1.0, d.female**0.5)[who]
            * (d.manual if hard else 1.0)
            for d in DISEASES
        ]
        for band in range(5)
        for who in range(3)
        for hard in (False, True)
    ]
    band = np.digitize(age, [16, 30, 50, 66])
    return _draw(rng, weights, (band * 3 + sex) * 2 + manual)


def _visits(rng: np.random.Generator, disease: Ints) -> NDArray[np.datetime64]:
    """Days of visit: few on weekends, and winter for what winter brings."""
    days = _FIRST_DAY + np.arange(_DAYS)
    weekday = (days.astype("datetime64[D]").astype(np.int64) + 3) % 7
    open_ = np.where(weekday < 5, 1.0, 0.15)
    cold = (1 + np.cos(2 * np.pi * (np.arange(_DAYS) % 365.25 - 20) / 365.25)) / 2
    weights = [open_ * (1 + (d.winter - 1) * cold**2) for d in DISEASES]
    return days[_draw(rng, weights, disease)]


def _concerns(rng: np.random.Generator, disease: Ints) -> Ints:
    usual = [share for share, _, _ in CONCERN]
    delicate = np.array([d.name in DELICATE for d in DISEASES])[disease].astype(np.int64)
    return _draw(rng, [usual, list(DELICATE_CONCERN)], delicate)


def sample_schema() -> str:
    """The schema of the sample, as TOML."""
    groups = (
        f"{name} = [{', '.join(f'{chr(34)}{leaf}{chr(34)}' for leaf in leaves)}]"
        for name, leaves in SCHOOLING.items()
    )
    return _SCHEMA % {"tree": ", ".join(groups)}


_SCHEMA = """\
# Invented patients of an invented country; see halfmask.sample.
[table]
person = "id"

[policy]                # what each person demands; these columns never leave
k = "k_i"
l = "l_i"

[columns.id]
role = "identifier"

[columns.age]
role = "quasi"
kind = "numeric"
hierarchy = { intervals = [5, 10, 20, 40] }

[columns.sex]
role = "quasi"

[columns.postcode]
role = "quasi"
hierarchy = { mask = 5 }

[columns.visit]
role = "quasi"
kind = "date"
hierarchy = { dates = ["month", "quarter", "year"] }

[columns.education]
role = "quasi"
hierarchy = { tree = { %(tree)s } }

[columns.occupation]
role = "quasi"
hierarchy = { csv = "occupation.csv" }

[columns.disease]
role = "sensitive"
hierarchy = { csv = "disease.csv" }

[columns.salary]
role = "sensitive"
kind = "numeric"
"""


def hierarchies() -> dict[str, str]:
    """The hierarchy files of the sample, in ARX's format, by file name."""
    work = [f"{name};not working;not working;*" for name in NO_WORK]
    work += [f"{o.name};{o.branch};{o.sector};*" for o in OCCUPATIONS]
    illness = [f"{d.name};{d.chapter};*" for d in DISEASES]
    return {"occupation.csv": _lines(work), "disease.csv": _lines(illness)}


def write(folder: str | Path, rows: int = 2000, *, seed: int = SEED) -> Path:
    """Write people.csv, people.toml and the hierarchy files; return the path of people.csv.

    Each file is written under a temporary name and then renamed, so that an interrupted run
    leaves no half file behind.
    """
    table = people(rows, seed=seed)
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in {**hierarchies(), "people.toml": sample_schema()}.items():
        part = folder / f".{name}.part"
        part.write_text(text, encoding="utf-8")
        part.replace(folder / name)
    path = folder / "people.csv"
    _write_csv(table, path)
    return path


def _write_csv(table: pa.Table, path: Path) -> None:
    from pyarrow import csv

    part = path.with_name(f".{path.name}.part")
    try:
        csv.write_csv(table, part)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _lines(rows: list[str]) -> str:
    return "\n".join(rows) + "\n"
