"""What the page may ask for, one type a verb; nothing in them is a path."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

MOST_ROWS = 1_000_000  # of the sample


class Asked(BaseModel):
    """Types are taken as they are sent, and an unknown name is refused."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Sample(Asked):
    """How many people to invent."""

    rows: int = 2000


class NewSchema(Asked):
    """A schema as a mapping of the schema file's shape, or as the file's text."""

    columns: dict[str, Any] | None = None
    table: dict[str, Any] | None = None
    policy: dict[str, Any] | None = None
    toml: str | None = None


class Assess(Asked):
    """The options of ``hm.assess`` that name no file."""

    size: int = 3
    limit: float = 0.09
    fraction: float | None = None
    weights: str | None = None


class Diversity(Asked):
    """l-diversity of one column."""

    column: str
    l: int | float  # noqa: E741 - the literature's name
    kind: Literal["distinct", "entropy", "recursive"] = "distinct"
    c: float | None = None


class Closeness(Asked):
    """t-closeness of one column."""

    column: str
    t: float
    distance: Literal["equal", "ordered", "hierarchical"] = "equal"


class Anonymize(Asked):
    """The promises and the settings of ``hm.anonymize``; what is None is left to it."""

    k: int | None = None
    personal_k: bool = False
    personal_l: list[str] = []
    l: list[Diversity] = []  # noqa: E741 - the literature's name
    t: list[Closeness] = []
    method: str | None = None
    suppression: float = 0.0
    metric: str | None = None
    time_limit: float | None = None
    seed: int | None = None
    on_infeasible: Literal["error", "suppress"] | None = None


class Compare(Asked):
    """The options of ``hm.compare`` that name no file."""

    targets: list[str] | None = None
    limit: float = 0.09
    learn: bool | None = None
    attacks: int = 500
    seed: int = 0


class Query(Asked):
    """A query with guarantees, or with noise."""

    sql: str
    time_limit: float = 10.0


class Synthesize(Asked):
    """The options of ``hm.synthesize`` that name no file; what is None is left to it."""

    method: str | None = None
    epsilon: str | float | None = None
    delta: str | float | None = None
    domains: dict[str, list[Any] | dict[str, Any]] | None = None
    rows: int | None = None
    rows_per_person: int | None = None
    k: int | None = None
    seed: int | None = None


class Link(Asked):
    """One of the files that can be had, by its name in the list of them."""

    file: str
    download: bool = False
