"""The masks by their names, as ``hm.masks.TopCode``, and as texts and documents state them."""

from __future__ import annotations

import shlex
from difflib import get_close_matches
from functools import cache
from importlib import metadata
from typing import TYPE_CHECKING, Any

from halfmask.errors import InputError, ParameterError
from halfmask.masking.methods.anatomy import Anatomy, Bucketize, estimate_count
from halfmask.masking.methods.cloaking import Cloak, geojson
from halfmask.masking.methods.coding import BottomCode, Round, TopCode
from halfmask.masking.methods.guarding import Guard
from halfmask.masking.methods.microaggregation import Microaggregate
from halfmask.masking.methods.noise import DateShift, Noise
from halfmask.masking.methods.pram import Pram
from halfmask.masking.methods.pseudonyms import Pseudonym
from halfmask.masking.methods.response import Randomize
from halfmask.masking.methods.sampling import Massc, Sample
from halfmask.masking.methods.suppression import LocalSuppression, Suppress
from halfmask.masking.methods.swapping import RankSwap, RecordSwap, Shuffle
from halfmask.masking.methods.synthetic import (
    CombinedEstimate,
    Hybrid,
    PartlySynthetic,
    combine_estimates,
    draw_tables,
)
from halfmask.masking.step import REGISTERED, MaskStep, mask_parameters
from halfmask.models.verdict import is_required

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from halfmask.models.verdict import Parameter

__all__ = [
    "Anatomy",
    "BottomCode",
    "Bucketize",
    "Cloak",
    "CombinedEstimate",
    "DateShift",
    "Guard",
    "Hybrid",
    "LocalSuppression",
    "MaskStep",
    "Massc",
    "Microaggregate",
    "Noise",
    "PartlySynthetic",
    "Pram",
    "Pseudonym",
    "Randomize",
    "RankSwap",
    "RecordSwap",
    "Round",
    "Sample",
    "Shuffle",
    "Suppress",
    "TopCode",
    "combine_estimates",
    "draw_tables",
    "estimate_count",
    "geojson",
    "read_step",
]


# In the order that the reference lists them; what is registered elsewhere stands behind.
_ORDER: tuple[type[MaskStep], ...] = (
    TopCode, BottomCode, Round, Noise, DateShift, RankSwap, RecordSwap, Shuffle, Pram, Randomize,
    Microaggregate, LocalSuppression, Suppress, Sample, Massc, PartlySynthetic, Hybrid,
    Anatomy, Bucketize, Guard, Cloak, Pseudonym,
)  # fmt: skip


def known_masks() -> tuple[type[MaskStep], ...]:
    """Every mask: those of this package and of others that name theirs under halfmask.masks."""
    _load_foreign()
    places = {one: place for place, one in enumerate(_ORDER)}
    return tuple(sorted(REGISTERED.values(), key=lambda one: places.get(one, len(places))))


@cache
def _load_foreign() -> None:
    for entry in metadata.entry_points(group="halfmask.masks"):
        entry.load()


def metavar(mask: type[MaskStep]) -> str:
    """The way to write it, such as ``top-code COLUMN [share=NUMBER]``."""
    parts = [mask.name]
    places = [one for one, p in mask_parameters(mask) if p.kind in ("column", "columns")]
    for one, parameter in mask_parameters(mask):
        if places and one is places[0]:
            word = "COLUMN" if parameter.kind == "column" else "COLUMN..."
            parts.append(word if is_required(one) else f"[{word}]")
        elif parameter.text:
            stated = f"{one.name.replace('_', '-')}={_example(parameter)}"
            parts.append(stated if is_required(one) else f"[{stated}]")
    return " ".join(parts)


def _example(parameter: Parameter) -> str:
    if parameter.kind == "word":
        return "|".join(parameter.words)
    kinds = {"number": "NUMBER", "whole": "NUMBER", "column": "COLUMN", "columns": "COLUMN,..."}
    return kinds.get(parameter.kind, "VALUE")


def read_step(text: str) -> MaskStep:
    """The mask that a text states, such as ``top-code income share=0.01``.

    Names of columns with blanks stand in quotes.

    Raises:
        InputError: the text is not written as it should be.

    Example:
        >>> read_step("top-code income share=0.01")
        TopCode(column='income', share=0.01, value=None, replace='threshold', least=3)
    """
    try:
        first, *words = shlex.split(text)
    except ValueError:
        raise InputError(
            'A step is a mask and its columns, such as "round income base=100".'
        ) from None
    mask = _mask_named(first)
    named = {one.name: (one, parameter) for one, parameter in mask_parameters(mask)}
    stated: dict[str, Any] = {}
    places: list[str] = []
    for word in words:
        name, equals, value = word.partition("=")
        key = name.replace("-", "_")
        if not equals or key not in named:
            places.append(word)
        elif not named[key][1].text:
            raise InputError(f"{mask.name} takes no {name}= as text: state it in Python.")
        else:
            stated[key] = _value(mask, key, named[key][1], value)
    if places:
        stated |= _columns_behind(mask, places, named)
    return _make(mask, stated)


def _columns_behind(
    mask: type[MaskStep], places: list[str], named: Mapping[str, Any]
) -> dict[str, Any]:
    """The columns that stand behind the name of a mask."""
    for key, (_, parameter) in named.items():
        if parameter.kind == "columns":
            return {key: tuple(places)}
        if parameter.kind == "column":
            if len(places) > 1:
                raise InputError(f"{mask.name} takes one column: write {metavar(mask)}.")
            return {key: places[0]}
    raise InputError(f"{mask.name} takes no column: write {metavar(mask)}.")


def _value(mask: type[MaskStep], key: str, parameter: Parameter, text: str) -> Any:
    if parameter.kind == "columns":
        return tuple(part for part in text.split(",") if part)
    if parameter.kind in ("number", "whole", "any"):
        try:
            number = float(text)
        except ValueError:
            if parameter.kind == "any":
                return text
            raise InputError(f"{mask.name} takes a number after {key}=.") from None
        return int(number) if number.is_integer() and "." not in text else number
    return text


def step_from_dict(given: Mapping[str, Any]) -> MaskStep:
    """The mask that ``to_dict`` wrote, or an entry of ``[mask]`` in a schema file."""
    rest = dict(given)
    mask = _mask_named(rest.pop("mask", None))
    if "secrets" in rest:
        raise _missing_secret(mask)
    known = {one.name for one, _ in mask_parameters(mask)}
    unknown = [name for name in rest if name.replace("-", "_") not in known]
    if unknown:
        raise InputError(
            f"{mask.name} takes no {unknown[0]!r}; it takes {', '.join(sorted(known))}."
        )
    return _make(mask, {name.replace("-", "_"): _as_tuples(value) for name, value in rest.items()})


def step_from_report(given: Mapping[str, Any]) -> MaskStep:
    """The mask that the report of a release tells; a report that brings a secret is not believed.

    No report of ours does: whoever put a key or the place of one there would know all tokens.
    """
    mask = _mask_named(given.get("mask"))
    secrets = {one.name for one, _ in mask_parameters(mask) if one.metadata.get("secret")}
    if any(name.replace("-", "_") in secrets for name in given):
        raise _missing_secret(mask)
    return step_from_dict(given)


def _missing_secret(mask: type[MaskStep]) -> InputError:
    return InputError(
        f"{mask.name} had a key or vault, which its release does not tell: state the steps "
        "themselves, with it."
    )


def _as_tuples(value: Any) -> Any:
    return tuple(_as_tuples(one) for one in value) if isinstance(value, list) else value


def read_steps(given: Sequence[Any]) -> tuple[MaskStep, ...]:
    """Masks as they are stated: themselves, their texts or their mappings."""
    out = []
    for one in given:
        if isinstance(one, MaskStep):
            out.append(one)
        elif isinstance(one, str):
            out.append(read_step(one))
        elif isinstance(one, dict):
            out.append(step_from_dict(one))
        elif isinstance(one, type) and issubclass(one, MaskStep):
            raise ParameterError("steps", one.__name__, "it its parameters, as TopCode('income')")
        else:
            raise ParameterError("steps", type(one).__name__, "masks, such as hm.masks.TopCode")
    return tuple(out)


def _mask_named(name: object) -> type[MaskStep]:
    known_masks()
    found = REGISTERED.get(name) if isinstance(name, str) else None
    if found is None:
        near = get_close_matches(str(name), REGISTERED, n=1)
        hint = f"did you mean '{near[0]}'?" if near else f"known are {', '.join(REGISTERED)}."
        raise InputError(f"There is no mask {str(name)!r}: {hint}")
    return found


def _make(mask: type[MaskStep], stated: Mapping[str, Any]) -> MaskStep:
    absent = [
        one.name for one, _ in mask_parameters(mask) if is_required(one) and one.name not in stated
    ]
    if absent:
        raise InputError(f"{mask.name} needs {' and '.join(absent)}: write {metavar(mask)}.")
    return mask(**stated)


def secret_places(steps: Sequence[MaskStep]) -> list[str]:
    """The files of keys and tokens that steps read."""
    return [
        place
        for one in steps
        for part, parameter in mask_parameters(type(one))
        if part.metadata.get("secret")
        and parameter.text
        and (place := getattr(one, part.name)) is not None
    ]


def __getattr__(name: str) -> Any:
    for mask in known_masks():  # those of other packages
        if mask.__name__ == name:
            return mask
    raise AttributeError(f"halfmask.masks has no {name!r}; it has {', '.join(__all__)}.")
