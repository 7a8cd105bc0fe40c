"""What the invented country is like: provinces, schools, occupations and diseases.

Weights are relative and made up; only their rough shape (few old people, small towns, seasonal
illness) follows the real world, so that anonymizing the sample is as hard as anonymizing such a
table.
"""

from __future__ import annotations

from typing import NamedTuple


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
