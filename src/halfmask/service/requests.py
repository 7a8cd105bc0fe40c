"""What the page may ask for, one type a verb; nothing in them is a path."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, create_model

from halfmask.anonymize.partition.run import DIVISIONS, OPTIONS
from halfmask.models.options import forms

if TYPE_CHECKING:
    from halfmask.models.options import Form
    from halfmask.models.verdict import Parameter

MOST_ROWS = 1_000_000  # of the sample


class PageRequest(BaseModel):
    """Types are taken as they are sent, and an unknown name is refused."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class SampleRequest(PageRequest):
    """How many people to invent."""

    rows: int = 2000


class SchemaRequest(PageRequest):
    """A schema as a mapping of the schema file's shape, or as the file's text."""

    columns: dict[str, Any] | None = None
    table: dict[str, Any] | None = None
    policy: dict[str, Any] | None = None
    toml: str | None = None


class AssessRequest(PageRequest):
    """The options of ``hm.assess`` that name no file; what is None is left to it."""

    size: int | None = None
    limit: float | None = None
    fraction: float | None = None
    weights: str | None = None


class DemandsRequest(PageRequest):
    """Whether people's own demands are kept, or set aside by whoever holds the table."""

    demands: Literal["keep", "ignore"] = "keep"


def _models(name: str, doc: str, *, several: bool) -> Any:
    """A type with one field for each model."""
    fields: dict[str, Any] = {}
    for form in forms():
        kind = form.takes(several=several)
        usual: dict[type, tuple[Any, Any]] = {bool: (bool, False), list: (list[str], [])}
        fields[form.key] = usual.get(kind, (kind | None, None))
    return create_model(name, __base__=PageRequest, __doc__=doc, **fields)


Promises: Any = _models(
    "Promises", "Models, written as on the command line: ``disease=3:entropy``.", several=False
)
Alternatives: Any = _models(
    "Alternatives", "The same with several numbers each: ``k`` is ``2,5,10``.", several=True
)


def promise_fields() -> list[dict[str, Any]]:
    """How the page asks for each model."""
    return [
        {
            "name": form.key,
            "label": form.option.label,
            "help": form.option.note or None,
            "common": form.option.common,
            "column": form.column is not None,
            "demand": form.demand,
            "population": form.population is not None,
            "kind": _kind(form),
            **_range(*form.numbers.values()),
            "choices": [
                {
                    "label": choice.label,
                    "words": list(choice.words.items()) or None,
                    **_range(choice),
                }
                for choice in form.choices.values()
            ],
        }
        for form in forms()
    ]


def _kind(form: Form) -> str:
    """The kind of field that takes what must be stated."""
    if not form.numbers:
        return "check"
    number, *others = form.numbers.values()
    if others:
        return "bounds"
    return "share" if number.percent else number.kind


def _range(*numbers: Parameter) -> dict[str, Any]:
    """What a field of one number accepts."""
    if len(numbers) != 1 or numbers[0].kind == "word":
        return {}
    (number,) = numbers
    scale = 100 if number.percent else 1
    high = {} if number.high is None else {"max": scale * number.high}
    return {"min": scale * number.low, **high}


def _division_options() -> Any:
    """A type with one field for each option of divisions: words, whole numbers, columns."""
    known: dict[str, tuple[str | None, ...] | None] = dict(OPTIONS)
    for method in DIVISIONS.values():
        known |= method.options
    fields: dict[str, Any] = {}
    for name, values in known.items():
        words = tuple(one for one in values or () if one is not None)
        kind = Literal[words] if words else str if values is None else int
        fields[name] = (kind | None, None)
    return create_model("DivisionOptions", __base__=PageRequest, **fields)


DivisionOptions: Any = _division_options()


class AnonymizeRequest(Promises, DemandsRequest, DivisionOptions):  # type: ignore[misc]
    """The promises and the settings of ``hm.anonymize``; what is None is left to it."""

    method: str | None = None
    metric: str | None = None
    suppression: float | None = None
    time_limit: float | None = None
    seed: int | None = None
    bins: int | None = None
    intervals: str | None = None
    link: str | None = None


class MaskRequest(Promises, DemandsRequest):  # type: ignore[misc]
    """Masks as their texts, in order, and promises to check; no steps: those of the schema."""

    steps: list[str] = []


class FrontierRequest(Alternatives, DemandsRequest):  # type: ignore[misc]
    """Alternatives, and how to try them; what is None is left to ``hm.frontier``."""

    methods: list[str] | None = None
    suppression: str | None = None
    metric: str | None = None
    risk: str | None = None
    utility: str | None = None
    seed: int | None = None
    time_limit: float | None = None


class CompareRequest(PageRequest):
    """The options of ``hm.compare`` that name no file; what is None is left to it."""

    targets: list[str] | None = None
    limit: float | None = None
    learn: bool | None = None
    attacks: int | None = None
    seed: int | None = None


class NoiseRequest(PageRequest):
    """What is spent of the budget of a table, and what is publicly known of its columns."""

    epsilon: str | float | None = None
    delta: str | float | None = None
    domains: dict[str, list[Any] | dict[str, Any]] | None = None
    rows_per_person: int | None = None


class QueryRequest(NoiseRequest):
    """A query with guarantees, or with noise; its plan or better guarantees only, where asked."""

    sql: str
    effort: float = Field(1.0, gt=0)
    explain: bool = False
    suggest: bool = False


class SynthesizeRequest(NoiseRequest):
    """The options of ``hm.synthesize`` that name no file; what is None is left to it."""

    demands: Literal["keep", "ignore"] | None = None

    method: str | None = None
    rows: int | None = None
    k: int | None = None
    bins: int | None = None
    intervals: str | None = None
    strategy: str | None = None
    mode: str | None = None
    combinations: int | None = None
    given: dict[str, Any] | list[str] | None = None
    holdout: float | None = None
    time_limit: float | None = None
    seed: int | None = None


class BudgetRequest(PageRequest):
    """The privacy budget that whoever holds the rows grants to the table."""

    epsilon: str | float
    delta: str | float = 0


class FileRequest(PageRequest):
    """One of the files that can be had, by its name in the list of them."""

    file: str
    download: bool = False


@dataclass(frozen=True, slots=True)
class PageStep:
    """A verb of the page that leaves a result.

    Attributes:
        request: what it is asked.
        needs: what it is given of the workspace beside the table.
    """

    request: type[PageRequest]
    needs: Literal["population", "made", "ledgers"] | None = None


# Each is a function of its name in ``halfmask.service.verbs``.
STEPS = {
    "assess": PageStep(AssessRequest, "population"),
    "anonymize": PageStep(AnonymizeRequest, "population"),
    "mask": PageStep(MaskRequest),
    "frontier": PageStep(FrontierRequest, "population"),
    "compare": PageStep(CompareRequest, "made"),
    "query": PageStep(QueryRequest, "ledgers"),
    "synthesize": PageStep(SynthesizeRequest, "ledgers"),
}
