"""What the page may ask for, one type a verb; nothing in them is a path."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

MOST_ROWS = 1_000_000  # of the sample


class Asked(BaseModel):
    """Types are taken as they are sent, and an unknown name is refused."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


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


class OwnDemands(Asked):
    """Whether people's own demands are kept, or set aside by whoever holds the table."""

    demands: Literal["keep", "ignore"] = "keep"


class OfColumns(Asked):
    """Models that are written alike whether one setting is meant or several."""

    personal_k: bool = False
    personal_l: list[str] = []
    personal_t: list[str] = []
    l: list[str] = []  # noqa: E741 - the literature's name
    alpha: list[str] = []
    t: list[str] = []
    delta_disclosure: list[str] = []
    beta: list[str] = []


class Promises(OfColumns):
    """Models, written as on the command line: ``disease=3:entropy``."""

    k: int | None = None
    k_map: int | None = None
    delta_presence: str | None = None
    average_risk: float | None = None
    sample_uniques: float | None = None


class Anonymize(Promises, OwnDemands):
    """The promises and the settings of ``hm.anonymize``; what is None is left to it."""

    method: str | None = None
    metric: str | None = None
    suppression: float | None = None
    time_limit: float | None = None
    seed: int | None = None
    labels: Literal["tight", "levels"] | None = None
    fallback: Literal["uniform"] | None = None
    on_infeasible: Literal["error", "suppress"] | None = None
    score: Literal["improved", "plain"] | None = None
    cut: Literal["sides", "whole"] | None = None
    block: int | None = None
    classes: int | None = None
    bins: int | None = None
    intervals: str | None = None
    link: str | None = None


class Frontier(OfColumns, OwnDemands):
    """Alternatives, written as on the command line (``k`` is ``2,5,10``), and how to try them."""

    k: str | None = None
    k_map: str | None = None
    delta_presence: list[str] = []
    average_risk: str | None = None
    sample_uniques: str | None = None
    methods: list[str] | None = None
    suppression: str | None = None
    metric: str | None = None
    risk: str | None = None
    utility: str | None = None
    seed: int | None = None
    time_limit: float | None = None


class Compare(Asked):
    """The options of ``hm.compare`` that name no file."""

    targets: list[str] | None = None
    limit: float = 0.09
    learn: bool | None = None
    attacks: int = 500
    seed: int = 0


class Noise(Asked):
    """What is spent of the budget of a table, and what is publicly known of its columns."""

    epsilon: str | float | None = None
    delta: str | float | None = None
    domains: dict[str, list[Any] | dict[str, Any]] | None = None
    rows_per_person: int | None = None


class Query(Noise):
    """A query with guarantees, or with noise; its plan or better guarantees only, where asked."""

    sql: str
    effort: float = Field(1.0, gt=0)
    explain: bool = False
    suggest: bool = False


class Synthesize(Noise):
    """The options of ``hm.synthesize`` that name no file; what is None is left to it."""

    demands: Literal["keep", "ignore"] | None = None

    method: str | None = None
    rows: int | None = None
    k: int | None = None
    bins: int | None = None
    intervals: str | None = None
    strategy: str | None = None
    mode: str | None = None
    holdout: float | None = None
    time_limit: float | None = None
    seed: int | None = None


class Grant(Asked):
    """The privacy budget that whoever holds the rows grants to the table."""

    epsilon: str | float
    delta: str | float = 0


class Link(Asked):
    """One of the files that can be had, by its name in the list of them."""

    file: str
    download: bool = False
