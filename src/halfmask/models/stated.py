"""Models as text states them, on the command line and on the page: ``disease=3:entropy``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from halfmask.errors import InputError
from halfmask.models.alpha_k_anonymity import AlphaKAnonymity
from halfmask.models.average_risk import AverageRisk
from halfmask.models.beta_likeness import BetaLikeness
from halfmask.models.delta_disclosure import DeltaDisclosure
from halfmask.models.delta_presence import DeltaPresence
from halfmask.models.k_anonymity import KAnonymity
from halfmask.models.k_map import KMap
from halfmask.models.l_diversity import LDiversity
from halfmask.models.personal_k_anonymity import PersonalKAnonymity
from halfmask.models.personal_l_diversity import PersonalLDiversity
from halfmask.models.personal_t_closeness import PersonalTCloseness
from halfmask.models.sample_uniques import SampleUniques
from halfmask.models.t_closeness import TCloseness

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from halfmask.models.verdict import Model
    from halfmask.table.table import Table

Entry = tuple[str, float, list[str]]


def stated_models(
    given: Mapping[str, Any],
    *,
    mark: str = "",
    population: Callable[[], Table | None] = lambda: None,
    needed: bool = True,
) -> list[Model]:
    """The models that options name, in their order; at least one where one is needed.

    Args:
        given: what was stated, by the name of the option with ``_`` for ``-``; the options of
            ``halfmask anonymize``, of which each may be absent.
        mark: what stands before an option's name where people write it.
        population: gives the population table, where there is one.
        needed: whether there must be a model; people's own demands promise something without one.

    Raises:
        InputError: an entry is not written as it should be, or no model is named.

    Example:
        >>> stated_models({"k": 5, "l": ["disease=3:entropy"]})
        [KAnonymity(k=5), LDiversity(l=3, column='disease', kind='entropy', c=None)]
    """
    made = [
        *_counting(given, mark),
        *_sensitive(given, mark),
        *_against_population(given, mark, population),
        *_risk(given),
    ]
    if not made and needed:
        some = ", ".join(f"{mark}{name}" for name in ("k", "personal-k", "l"))
        raise InputError(f"No promise is named: give {some}, {mark}t or another.")
    return made


def _counting(given: Mapping[str, Any], mark: str) -> list[Model]:
    made: list[Model] = []
    if given.get("k") is not None:
        made.append(KAnonymity(given["k"]))
    if given.get("personal_k"):
        made.append(PersonalKAnonymity())
    for column, value, _ in entries(given, "alpha", mark):
        if given.get("k") is None:
            raise InputError(f"{mark}alpha needs {mark}k.")
        made.append(AlphaKAnonymity(value, given["k"], column))
    return made


def _sensitive(given: Mapping[str, Any], mark: str) -> list[Model]:
    made: list[Model] = []
    for column, value, extra in entries(given, "l", mark, extras=2):
        c = _number("l", extra[1], mark) if len(extra) > 1 else None
        kind: Any = extra[0] if extra else "distinct"
        made.append(LDiversity(int(value) if value.is_integer() else value, column, kind=kind, c=c))
    for column, value, extra in entries(given, "t", mark, extras=1):
        distance: Any = extra[0] if extra else "equal"
        made.append(TCloseness(value, column, distance=distance))
    made += [PersonalLDiversity(column) for column in given.get("personal_l") or ()]
    for entry in given.get("personal_t") or ():
        column, _, apart = entry.partition(":")
        own: Any = apart or "equal"
        made.append(PersonalTCloseness(column, own))
    for column, value, extra in entries(given, "delta-disclosure", mark, extras=1):
        absent: Any = extra[0] if extra else "fails"
        made.append(DeltaDisclosure(value, column, absent=absent))
    for column, value, extra in entries(given, "beta", mark, extras=1):
        kind = extra[0] if extra else "basic"
        made.append(BetaLikeness(value, column, kind=kind))
    return made


def _against_population(
    given: Mapping[str, Any], mark: str, population: Callable[[], Table | None]
) -> list[Model]:
    table = stated_population(given, mark, population)
    if table is None:
        return []
    made: list[Model] = [] if given.get("k_map") is None else [KMap(given["k_map"], table)]
    if given.get("delta_presence"):
        made.append(DeltaPresence(*stated_bounds(given["delta_presence"], mark), table))
    return made


def stated_population(
    given: Mapping[str, Any], mark: str, population: Callable[[], Table | None]
) -> Table | None:
    """The population that a promise is about; None where none is."""
    if given.get("k_map") is None and not given.get("delta_presence"):
        return None
    table = population()
    if table is None:
        raise InputError(f"{mark}k-map and {mark}delta-presence need {mark}population FILE.")
    return table


def stated_bounds(entry: str, mark: str) -> tuple[float, float]:
    """The two numbers of delta-presence."""
    try:
        low, high = map(float, entry.split(","))
    except ValueError:
        raise InputError(f"{mark}delta-presence takes two numbers: LOW,HIGH.") from None
    return low, high


def _risk(given: Mapping[str, Any]) -> list[Model]:
    made: list[Model] = []
    if given.get("average_risk") is not None:
        made.append(AverageRisk(given["average_risk"]))
    if given.get("sample_uniques") is not None:
        made.append(SampleUniques(given["sample_uniques"]))
    return made


def entries(given: Mapping[str, Any], option: str, mark: str, *, extras: int = 0) -> list[Entry]:
    """Take ``column=number[:word...]`` apart; the column's name may hold '=' itself."""
    stated: Sequence[str] = given.get(option.replace("-", "_")) or ()
    out = []
    for entry in stated:
        column, equals, rest = entry.rpartition("=")
        value, *extra = rest.split(":")
        if not equals or not column or len(extra) > extras:
            raise InputError(
                f"{mark}{option} takes COLUMN=NUMBER, such as {mark}{option} disease=3."
            )
        out.append((column, _number(option, value, mark), extra))
    return out


def _number(option: str, text: str, mark: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(f"{mark}{option} takes a number after '='.") from None
