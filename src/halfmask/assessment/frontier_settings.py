"""The settings that a frontier tries: promises, methods, shares left out, from weak to strong."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np
import pyarrow as pa

from halfmask.anonymize.auto import AUTO, suitable_methods
from halfmask.anonymize.run import METHODS, PERTURBING, RECODINGS
from halfmask.errors import InputError, ParameterError, SchemaError
from halfmask.metrics.sides import ReleasedRows
from halfmask.models.requirements import refuse_keywords, require_models
from halfmask.models.verdict import known_models, parameters, require_number, require_whole
from halfmask.report.frontier import RISKS, UTILITIES
from halfmask.table.hierarchies.builders import Auto
from halfmask.table.schema import NO_ROWS
from halfmask.table.table import Table, require_table

if TYPE_CHECKING:
    from halfmask.anonymize.auto import Clock
    from halfmask.models.verdict import Model
    from halfmask.table.schema import Schema
    from halfmask.table.tuples import Tuples


class FrontierSettings(TypedDict, total=False):
    """Which settings are tried and how they are compared; ``frontier`` explains each."""

    methods: Sequence[str]
    suppression: Sequence[float]
    metric: str
    risk: str
    utility: str | None
    seed: int
    time_limit: float | None
    epsilons: Sequence[float]
    synthesizer: str
    domains: Any
    draws: int


@dataclass(frozen=True, slots=True)
class FrontierOptions:
    """Which settings are tried and how they are compared, checked."""

    methods: Sequence[str] = (AUTO,)
    suppression: Sequence[float] = (0.0, 0.02, 0.05)
    metric: str = "loss"
    risk: str = "mean"
    utility: str | None = None
    seed: int = 0
    time_limit: float | None = None
    epsilons: Sequence[float] = ()
    synthesizer: str = "auto"
    domains: Any = None
    draws: int = 5

    @classmethod
    def of(cls, settings: FrontierSettings) -> FrontierOptions:
        """Read settings.

        Raises:
            ParameterError: there is no such setting, or it cannot be so.
        """
        given: dict[str, Any] = dict(settings)
        refuse_keywords("frontier", [name for name in given if name not in cls.__slots__])
        found = cls(**given)
        if found.risk not in RISKS:
            raise ParameterError("risk", found.risk, "one of " + ", ".join(RISKS))
        if found.utility is not None and found.utility not in UTILITIES:
            allowed = f"{', '.join(UTILITIES)} or None"
            raise ParameterError("utility", found.utility, allowed)
        require_effort(found.seed, found.time_limit)
        require_whole("draws", found.draws, 2)
        return found


@dataclass(frozen=True, slots=True)
class Setting:
    """One promise for each list of alternatives, and how it is kept.

    Attributes:
        method: as for ``anonymize``.
        suppression: the share of rows that may be left out; 0 for divisions.
        models: the promises.
        auto: whether it stands for ``"auto"``: of these, only what loses least is shown.
    """

    method: str
    suppression: float
    models: tuple[Model, ...]
    auto: bool = False

    @property
    def name(self) -> str:
        """The setting in words."""
        left = f", {_percent(self.suppression)} suppressed" if self.suppresses else ""
        promises = dict.fromkeys(map(_describe, self.models))
        return f"{', '.join(promises)}; {self.method}{left}"

    @property
    def suppresses(self) -> bool:
        """Whether the method may leave rows out."""
        return self.method in (AUTO, *RECODINGS, *PERTURBING)

    @property
    def recodes(self) -> bool:
        """Whether it is found on statistics alone."""
        return self.method in RECODINGS


def chains(
    models: Sequence[Model | Sequence[Model]], methods: Sequence[str], suppression: Sequence[float]
) -> list[list[Setting]]:
    """All settings; each chain varies one list of alternatives, from weak to strong.

    Raises:
        ParameterError: something is no model, no method or no share.
    """
    choices = [_alternatives(choice) for choice in models]
    _require_methods(methods, suppression)
    if not choices:
        return []
    longest = max(range(len(choices)), key=lambda i: len(choices[i]))
    runs = _runs(choices[longest])
    rest = [c for i, c in enumerate(choices) if i != longest]
    out = []
    for method in dict.fromkeys(methods):
        # More suppression first: what is found there bounds what is found with less.
        suppresses = method in (AUTO, *RECODINGS, *PERTURBING)
        shares = sorted(set(suppression), reverse=True) if suppresses else [0.0]
        for share, others, run in product(shares, product(*rest), runs):
            promised = [(*others[:longest], model, *others[longest:]) for model in run]
            out.append([Setting(method, float(share), together) for together in promised])
    return out


def spread_auto(
    wanted: Sequence[Sequence[Setting]], table: Table, metric: str, clock: Clock | None = None
) -> list[list[Setting]]:
    """The chains, in place of ``"auto"`` those of the methods that ``anonymize`` would try.

    Divisions, which leave nobody out, are tried once.
    """
    out = [list(chain) for chain in wanted if chain[0].method != AUTO]
    divided = set()
    for chain in wanted:
        if chain[0].method != AUTO:
            continue
        models = [m for one in chain for m in one.models]
        for method in suitable_methods(table, models, metric, clock):
            if method in RECODINGS:
                out.append([replace(one, method=method, auto=True) for one in chain])
                continue
            key = (method, *(id(model) for one in chain for model in one.models))
            if key not in divided:
                divided.add(key)
                out.append(
                    [replace(one, method=method, suppression=0.0, auto=True) for one in chain]
                )
    return out


def at_least(strong: Setting, weak: Setting) -> bool:
    """Whether whatever satisfies ``strong`` satisfies ``weak`` too."""
    pairs = zip(strong.models, weak.models, strict=True)
    return strong.suppression <= weak.suppression and all(_implies(a, b) for a, b in pairs)


def _implies(strong: Model, weak: Model) -> bool:
    return _kind(strong) == _kind(weak) and all(
        a >= b for a, b in zip(_strength(strong), _strength(weak), strict=True)
    )


def _kind(model: Model) -> tuple[Any, ...]:
    """What two models must share to be compared."""
    facts, directed = model.to_dict(), _directions(model.family)
    rest = tuple((key, repr(value)) for key, value in facts.items() if key not in directed)
    return (type(model), id(model.population), *rest)


def _strength(model: Model) -> tuple[float, ...]:
    return strength([model.to_dict()])


def strength(models: Sequence[Mapping[str, Any]]) -> tuple[float, ...]:
    """The parameters of models given as plain values, so that more is stronger."""
    return tuple(
        sign * facts[name] for facts in models for name, sign in _directions(facts["model"]).items()
    )


def _directions(family: str) -> dict[str, int]:
    """The numbers by which a model grows stronger: as they rise (1) or as they fall (-1)."""
    return {
        one.name: parameter.stronger
        for model in known_models()
        if model.family == family
        for one, parameter in parameters(model)
        if parameter.stronger
    }


def _runs(models: Sequence[Model]) -> list[list[Model]]:
    """The models that can be compared with each other, weak ones first."""
    runs: dict[tuple[Any, ...], list[Model]] = {}
    for model in models:
        runs.setdefault(_kind(model), []).append(model)
    return [sorted(run, key=_strength) for run in runs.values()]


def _alternatives(choice: Model | Sequence[Model]) -> tuple[Model, ...]:
    """The different models of one list, or one model alone."""
    listed = tuple(choice) if isinstance(choice, Sequence) else (choice,)
    require_models(listed)
    return tuple({(_kind(model), _strength(model)): model for model in listed}.values())


def _require_methods(methods: Sequence[str], suppression: Sequence[float]) -> None:
    if isinstance(methods, str) or not methods:
        raise ParameterError("methods", methods, 'a list of methods, such as ["auto"]')
    for method in methods:
        if method not in METHODS:
            raise ParameterError("methods", method, "one of " + ", ".join(METHODS))
    if not isinstance(suppression, Sequence) or isinstance(suppression, str) or not suppression:
        raise ParameterError("suppression", suppression, "a list of shares, such as [0.0, 0.05]")
    for share in suppression:
        require_number("suppression", share, 0, 1)


def require_effort(seed: int, time_limit: float | None) -> None:
    """Refuse a seed or a time limit that is none."""
    require_whole("seed", seed, 0)
    if time_limit is not None:
        require_number("time_limit", time_limit, 0, open_low=True)


def _describe(model: Model) -> str:
    """A model in few words; where its parameter is its own, without its name."""
    if model.policy and getattr(model, "default", None) == 1:  # it demands nothing of others
        return "own demands"
    stated = [
        (one, parameter, getattr(model, one.name)) for one, parameter in parameters(type(model))
    ]
    numbers = {
        one.name: value
        for one, parameter, value in stated
        if parameter.kind in ("whole", "number") and value is not None
    }
    words = [
        value
        for one, parameter, value in stated
        if parameter.kind == "word" and value != one.default
    ]
    own = model.population is None and set(numbers) & set(re.findall(r"\w+", model.family))
    said = [] if own else [model.family]
    said += [*words, ", ".join(f"{name} = {value:g}" for name, value in numbers.items())]
    said += [f"({column})" for column in model.columns]
    return " ".join(part for part in said if part)


def _percent(share: float) -> str:
    return f"up to {100 * share:.6g}%" if share else "none"


def columns_read(schema: Schema, models: Sequence[Model]) -> list[str]:
    """The columns that every figure is counted from."""
    schema.require_quasi()
    names = [*schema.quasi, *schema.sensitive]
    names += [column for model in models for column in model.columns]
    names += schema.policy_names
    return names if schema.person is None else [*names, schema.person]


def require_tables(epsilons: Sequence[float], releases: Mapping[str, Any] | None) -> None:
    """Refuse budgets that are none and finished tables that are none."""
    if not isinstance(epsilons, Sequence) or isinstance(epsilons, str):
        raise ParameterError("epsilons", epsilons, "a list of budgets, such as [0.5, 1]")
    for epsilon in epsilons:
        require_number("epsilons", epsilon, 0, open_low=True)
    if releases is not None and not isinstance(releases, Mapping):
        raise ParameterError("releases", type(releases).__name__, "tables by name, as a mapping")
    for made in (releases or {}).values():
        if not isinstance(made, ReleasedRows):
            require_table(made)


def needs_rows(schema: Schema, wanted: Sequence[Sequence[Setting]]) -> bool:
    """Whether counts are not enough: for divisions, and where hierarchies are found from rows."""
    automatic = any(isinstance(column.hierarchy, Auto) for column in schema.columns.values())
    return automatic or any(not chain[0].recodes and chain[0].method != AUTO for chain in wanted)


def require_risk(held: Tuples, risk: str) -> None:
    """Refuse a table without people, quasi-identifiers or what the risk needs."""
    schema = held.table.schema
    schema.require_quasi()
    if not len(held.table):
        raise InputError(NO_ROWS)
    if risk == "inference" and not schema.sensitive:
        raise SchemaError(
            "risk = 'inference' needs a sensitive column: give one the role sensitive in the "
            "schema or by --sensitive."
        )


def sort_tuples(held: Tuples) -> Tuples:
    """Counted tuples by their values: an engine gives them in any order, which heuristics see."""
    if held.in_order:
        return held
    order = np.lexsort([held.table.encode(name).codes for name in held.table.schema.quasi[::-1]])
    table = Table(held.table.arrow.take(pa.array(order)), held.table.schema)
    return replace(held, table=table, counts=held.counts[order])
