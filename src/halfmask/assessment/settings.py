"""The settings of a frontier: what is asked for, in which order, and what each is called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

from halfmask.anonymize.run import METHODS, PERTURBING, RECODINGS
from halfmask.errors import ParameterError
from halfmask.models.exact import require_number, require_whole
from halfmask.models.needs import require_models

if TYPE_CHECKING:
    from halfmask.models.verdict import Model

# Parameters by which a promise grows stronger: as they rise (1) or as they fall (-1).
_STRONGER = {"k": 1, "l": 1, "t": -1, "alpha": -1, "beta": -1, "delta": -1, "limit": -1}
_NUMBERS = (*_STRONGER, "c", "base", "lower", "upper", "default")
_PLAIN = (None, "distinct", "basic", "equal")  # what is meant where nothing is said
_KNOWN_BY_NUMBER = (
    "k-anonymity", "(alpha, k)-anonymity", "l-diversity", "t-closeness", "beta-likeness",
    "delta-disclosure",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Setting:
    """One promise for each list of alternatives, and how it is kept.

    Attributes:
        method: as for ``anonymize``.
        suppression: the share of rows that may be left out; 0 for divisions.
        models: the promises.
    """

    method: str
    suppression: float
    models: tuple[Model, ...]

    @property
    def name(self) -> str:
        """The setting in words."""
        left = f", {_percent(self.suppression)} suppressed" if self.suppresses else ""
        promises = dict.fromkeys(map(_said, self.models))
        return f"{', '.join(promises)}; {self.method}{left}"

    @property
    def suppresses(self) -> bool:
        """Whether the method may leave rows out."""
        return self.method in (*RECODINGS, *PERTURBING)

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
    _require(methods, suppression)
    if not choices:
        return []
    longest = max(range(len(choices)), key=lambda i: len(choices[i]))
    runs = _runs(choices[longest])
    rest = [c for i, c in enumerate(choices) if i != longest]
    out = []
    for method in dict.fromkeys(methods):
        # More suppression first: what is found there bounds what is found with less.
        shares = (
            sorted(set(suppression), reverse=True) if method in (*RECODINGS, *PERTURBING) else [0.0]
        )
        for share, others, run in product(shares, product(*rest), runs):
            promised = [(*others[:longest], model, *others[longest:]) for model in run]
            out.append([Setting(method, float(share), together) for together in promised])
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
    facts = model.to_dict()
    rest = tuple((key, repr(value)) for key, value in facts.items() if key not in _STRONGER)
    return (type(model), id(model.population), *rest)


def _strength(model: Model) -> tuple[float, ...]:
    return strength([model.to_dict()])


def strength(models: Sequence[Mapping[str, Any]]) -> tuple[float, ...]:
    """The parameters of models given as plain values, so that more is stronger."""
    return tuple(sign * m[key] for m in models for key, sign in _STRONGER.items() if key in m)


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


def _require(methods: Sequence[str], suppression: Sequence[float]) -> None:
    if isinstance(methods, str) or not methods:
        raise ParameterError("methods", methods, 'a list of methods, such as ["optimal"]')
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


def _said(model: Model) -> str:
    """A model in few words; where its parameter is its own, without its name."""
    facts = model.to_dict()
    if facts.get("default") == 1:  # for those who state nothing it demands nothing
        return "own demands"
    numbers = [f"{key} = {facts[key]:g}" for key in _NUMBERS if facts.get(key) is not None]
    words = [facts[key] for key in ("kind", "distance") if facts.get(key) not in _PLAIN]
    named = [] if facts["model"] in _KNOWN_BY_NUMBER else [facts["model"]]
    column = [f"({facts['column']})"] if facts.get("column") else []
    return " ".join(map(str, [*named, *words, ", ".join(numbers), *column])).replace("  ", " ")


def _percent(share: float) -> str:
    return f"up to {100 * share:.6g}%" if share else "none"
