"""Models as text states them, on the command line and on the page: ``disease=3:entropy``.

How a model is written follows from its parameters: the numbers that it needs, before them the
column that it speaks of (``disease=3``), behind them what may be chosen (``:entropy``). A model
without numbers is named alone or by its column. For a frontier, ``disease=2,3`` is two models.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

from halfmask.errors import InputError
from halfmask.models.verdict import is_required, known_models, parameters

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from halfmask.models.verdict import Model, Option, Parameter
    from halfmask.table.table import Table

    PopulationSource = Callable[[], Table | None]


@dataclass(frozen=True, slots=True)
class Form:
    """How one model is asked for.

    Attributes:
        model: the class of the model.
        option: what it is called there.
        numbers: the numbers that must be stated, by the model's name for them.
        choices: what may be stated behind them.
        shared: the numbers that another model's option states, and which.
        column: the model's name for the column that it speaks of.
        population: the model's name for the population that it compares with.
        alone: whether it can do without a population.
    """

    model: type[Model]
    option: Option
    numbers: Mapping[str, Parameter]
    choices: Mapping[str, Parameter]
    shared: Mapping[str, str]
    column: str | None
    population: str | None
    alone: bool

    @property
    def name(self) -> str:
        """The option, without what stands before it."""
        return self.option.name

    @property
    def key(self) -> str:
        """The option as a name in Python and JSON."""
        return self.name.replace("-", "_")

    @property
    def demand(self) -> str | None:
        """The demand of each person that it reads."""
        stated: Any = self.model.policy  # on a class that reads none, a property
        return stated[0] if isinstance(stated, tuple) and stated else None

    @property
    def is_flag(self) -> bool:
        """Whether there is nothing to state but that it is meant."""
        return self.column is None and not self.numbers

    @property
    def is_number(self) -> bool:
        """Whether it is one number."""
        return self.column is None and len(self.numbers) == 1

    def takes(self, *, several: bool = False) -> type:
        """What states it: a bool, a number, a text or, where each column has one, a list."""
        if self.is_flag:
            return bool
        if self.column is not None or (several and not self.is_number):
            return list
        if several or not self.is_number:
            return str
        (number,) = self.numbers.values()
        return int if number.kind == "whole" else float

    def metavar(self, *, several: bool = False) -> str:
        """The way to write it, such as ``COLUMN=NUMBER[:KIND[:C]]``."""
        number = ",".join(name.upper() for name in self.numbers)
        if len(self.numbers) == 1:
            number = "NUMBERS" if several else "NUMBER"
        if self.column is None:
            return number
        words = [f"[:{name.upper()}" for name in self.choices]
        stated = f"COLUMN={number}" if self.numbers else "COLUMN"
        return stated + "".join(words) + "]" * len(words)

    def read(self, entry: Any, mark: str, *, several: bool) -> tuple[dict[str, Any], list[Any]]:
        """Take an entry apart: what is the same for all its models, and the numbers of each."""
        if self.column is None:
            return {}, self._numbers(entry, mark, several=several)
        column, text, words = self._parts(entry, mark, several=several)
        return (
            {self.column: column, **self._words(words, mark)},
            self._numbers(text, mark, several=several),
        )

    def _numbers(self, stated: Any, mark: str, *, several: bool) -> list[tuple[float, ...]]:
        """Each choice of the numbers that must be stated."""
        if not self.numbers:
            return [()]
        if len(self.numbers) > 1:
            return [self._bounds(stated, mark)]
        if several:
            return [(value,) for value in read_numbers(self.name, stated, mark)]
        return [(self._number(stated, mark) if isinstance(stated, str) else stated,)]

    def _parts(self, entry: str, mark: str, *, several: bool) -> tuple[str, str, list[str]]:
        """The column, which may hold '=' itself, the numbers and the words of an entry."""
        if not self.numbers:
            column, *words = entry.split(":") if self.choices else [entry]
            right, text = bool(column), ""
        else:
            column, equals, rest = entry.rpartition("=")
            text, *words = rest.split(":")
            right = bool(equals and column)
        if not right or len(words) > len(self.choices):
            example = "disease=2,3" if several else f"{mark}{self.name} disease=3"
            such = f", such as {example}" if self.numbers else ""
            way = self.metavar(several=several).partition("[")[0] if self.numbers else "COLUMN"
            raise InputError(f"{mark}{self.name} takes {way}{such}.")
        return column, text, words

    def _words(self, words: Sequence[str], mark: str) -> dict[str, Any]:
        """What each text states: a word goes where it is one of the words, the others in order."""
        found: dict[str, Any] = {}
        for text in words:
            free = {name: one for name, one in self.choices.items() if name not in found}
            meant = (name for name, one in free.items() if text in one.words)
            name = next(meant, next(iter(free)))
            found[name] = text if free[name].kind == "word" else self._number(text, mark)
        return found

    def _bounds(self, entry: str, mark: str) -> tuple[float, ...]:
        try:
            found = tuple(map(float, entry.split(",")))
        except ValueError:
            found = ()
        if len(found) != len(self.numbers):
            count = {2: "two"}.get(len(self.numbers), str(len(self.numbers)))
            raise InputError(f"{mark}{self.name} takes {count} numbers: {self.metavar()}.")
        return found

    def _number(self, text: str, mark: str) -> float:
        try:
            return float(text)
        except ValueError:
            raise InputError(f"{mark}{self.name} takes a number after '='.") from None

    def make(self, fixed: Mapping[str, Any], values: Sequence[Any]) -> Model:
        """The model with these parameters."""
        stated = {**fixed, **dict(zip(self.numbers, values, strict=True))}
        for one, parameter in parameters(self.model):
            value = stated.get(one.name)
            if parameter.counts and isinstance(value, float) and value.is_integer():
                stated[one.name] = int(value)
        return self.model(**stated)


def forms(models: Sequence[type[Model]] | None = None) -> list[Form]:
    """How each model is asked for; all that are known, or these."""
    some = known_models() if models is None else models
    return [_form(model, model.option) for model in some if model.option is not None]


def _form(model: type[Model], option: Option) -> Form:
    """What the parameters of a model say of the way to write it."""
    known: dict[str, dict[str, Any]] = {"column": {}, "population": {}}
    numbers, choices, shared = {}, {}, {}
    for one, parameter in parameters(model):
        if parameter.kind in known:
            known[parameter.kind][one.name] = parameter
        elif parameter.option:
            shared[one.name] = parameter.option
        elif is_required(one):
            numbers[one.name] = parameter
        elif parameter.text:
            choices[one.name] = parameter
    column, population = (next(iter(found), None) for found in known.values())
    alone = all(
        not is_required(one) for one, found in parameters(model) if found.kind == "population"
    )
    return Form(model, option, numbers, choices, shared, column, population, alone)


def read_models(
    given: Mapping[str, Any],
    *,
    mark: str = "",
    population: PopulationSource = lambda: None,
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
        >>> read_models({"k": 5, "l": ["disease=2"]})[0]
        KAnonymity(k=5)
    """
    made = [model for found in _read(given, mark, population, several=False) for model in found]
    if not made and needed:
        some = ", ".join(f"{mark}{form.name}" for form in forms() if form.option.common)
        raise InputError(f"No promise is named: give {some} or another.")
    return made


def read_alternatives(
    given: Mapping[str, Any], *, mark: str = "", population: PopulationSource = lambda: None
) -> list[list[Model]]:
    """One list of alternatives per option and column; as ``read_models`` but for numbers.

    Example:
        >>> read_alternatives({"k": "2,5", "average_risk": "0.1"})
        [[KAnonymity(k=2), KAnonymity(k=5)], [AverageRisk(limit=0.1)]]
    """
    return _read(given, mark, population, several=True)


def read_numbers(option: str, listed: str, mark: str = "") -> list[float]:
    """The numbers in ``1,2``; at least one."""
    try:
        found = [float(part) for part in listed.split(",") if part.strip()]
    except ValueError:
        found = []
    if not found:
        raise InputError(f"{mark}{option} takes numbers separated by commas, such as 2,5.")
    return found


def _read(
    given: Mapping[str, Any], mark: str, population: PopulationSource, *, several: bool
) -> list[list[Model]]:
    """The models of each option and column that is stated."""
    stated = list(_requests(given))
    people = _population(stated, mark, population)  # one table, so that it is counted once
    taken = {option for form, _ in stated for option in form.shared.values()} if several else ()
    out: list[list[Model]] = []
    for form, entries in stated:
        if form.name in taken:
            continue
        same = {form.population: people} if form.population else {}
        combinations = _combinations(form, given, mark, len(entries), several=several)
        lists = []
        for entry in entries:
            fixed, choices = form.read(entry, mark, several=several)
            pairs = product(combinations, choices)
            lists.append([form.make({**same, **fixed, **more}, found) for more, found in pairs])
        # Without a column, several entries are alternatives of one another.
        out += lists if form.column else [[model for models in lists for model in models]]
    return out


def _requests(given: Mapping[str, Any]) -> Iterator[tuple[Form, Sequence[Any]]]:
    """The models that are asked for, with what is said of each."""
    for form in forms():
        stated = given.get(form.key)
        entries = stated if isinstance(stated, list | tuple) else [stated]
        if entries and not any(one is None or one is False or one == "" for one in entries):
            yield form, entries


def _population(
    stated: Sequence[tuple[Form, Sequence[Any]]], mark: str, population: PopulationSource
) -> Table | None:
    """The population that a promise is about; None where none is."""
    if not any(form.population for form, _ in stated):
        return None
    table = population()
    if table is None and not all(form.alone for form, _ in stated):
        needing = " and ".join(f"{mark}{form.name}" for form in forms() if not form.alone)
        raise InputError(f"{needing} need {mark}population FILE.")
    return table


def _combinations(
    form: Form, given: Mapping[str, Any], mark: str, entries: int, *, several: bool
) -> list[dict[str, Any]]:
    """Each choice of the numbers that other options state."""
    listed = []
    for option in form.shared.values():
        stated = given.get(option.replace("-", "_"))
        if stated is None or stated == "":
            raise InputError(f"{mark}{form.name} needs {mark}{option}.")
        listed.append(read_numbers(option, stated, mark) if several else [stated])
        if entries > 1 and len(listed[-1]) > 1:
            alone = f"{mark}{form.name} for several columns takes one {mark}{option}"
            raise InputError(f"{alone}: give one.")
    return [dict(zip(form.shared, values, strict=True)) for values in product(*listed)]
