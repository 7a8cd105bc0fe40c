"""What models need of a table, the class statistics that give it to them, and whom they can serve.

Whoever demands more than all rows together give leaves no trace: such rows are taken out before
anything else is computed, so that nothing which leaves depends on what they hold.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from halfmask.errors import InfeasibleDemandsError, InputError, ParameterError, SchemaError
from halfmask.models.statistics import own_demands
from halfmask.models.verdict import Model, known_models
from halfmask.table.classes import classes_by_id, distinct_classes, value_facts
from halfmask.table.demands import demand_key, states
from halfmask.table.schema import NO_QUASI, NO_ROWS
from halfmask.table.table import require_table
from halfmask.table.tuples import Tuples, pick_counts, rows_in, tally
from halfmask.table.weights import widen

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from halfmask.table.classes import Classes
    from halfmask.table.table import Table

# What verbs have for people whose demands nothing can meet; each names what it takes.
LEAVE_OUT = "give on_infeasible='suppress' (--on-infeasible suppress) to leave the rest out"
ALLOW = "allow suppression = {share} or more (--suppression {share})"


def prepare(table: Table, models: Sequence[Model], *, blind: bool = False) -> Table:
    """The table made ready for ``models``: everything they need is there.

    Where a model compares with a population, the table that comes back also knows the
    population's values; its codes and hierarchies are the ones to go on with. ``blind`` is said by
    the one method whose classes are chosen without a look at sensitive values.

    Raises:
        ParameterError: there are no models, or something that is none.
        InputError: a promise about how classes are chosen, where that is not known.
        SchemaError: with all that the table lacks.
    """
    table = require_table(table)
    require_models(models)
    for model in models:
        if model.blind and not blind:
            raise InputError(
                f"{model.name} speaks of how classes are chosen, which rows do not show: only "
                f"anonymize keeps it, by its method for that. Of rows ask how often a value stands "
                "in a class, as by (alpha, k)-anonymity."
            )
    found = _table_faults(table)
    for model in models:
        found += [f"{model.name}: {fault}" for fault in _model_faults(table, model)]
    populations = _populations(models)
    if len(populations) > 1:
        found.append("The models compare with different populations: give all the same table.")
    elif populations and any(model.weighted for model in models):
        found.append("Some models have a population and some go by weights: give all the same.")
    if found:
        raise SchemaError(*dict.fromkeys(found))
    return widen(table, populations[0], table.schema.quasi) if populations else table


def with_demanded_models(table: Table, models: Sequence[Model]) -> tuple[Model, ...]:
    """``models``, and beside them what keeps every demand that people state.

    Personal k-anonymity, and personal l-diversity and t-closeness of every sensitive column: where
    one of them is named already, that one is taken. People who state nothing have nothing to keep.

    Example:
        >>> import halfmask as hm
        >>> people = hm.read({"age": [30, 30], "k_i": [2, 1]},
        ...     schema={"policy": {"k": "k_i"}, "columns": {"age": "quasi"}})
        >>> with_demanded_models(people, [])
        (PersonalKAnonymity(default=1),)
    """
    models = [model.settle(table) if isinstance(model, Model) else model for model in models]
    named = {(type(model), model.columns) for model in models if isinstance(model, Model)}
    own = [model for kind in known_models() for model in kind.own(table)]
    wanted = [model for model in own if (type(model), model.columns) not in named]
    return (*models, *(model for model in wanted if _is_stated(table, model)))


def _is_stated(table: Table, model: Model) -> bool:
    """Whether anybody states what ``model`` reads, and for l and t whether it asks for anything."""
    for key in demand_keys(table, model):
        numbers = value_facts(table, key)["numbers"]
        assert numbers is not None  # noqa: S101 - demands are numbers
        if model.policy == ("k",) and not np.isnan(numbers).all():
            return True
        if (numbers < 1 if model.policy == ("t",) else numbers > 1).any():
            return True
    return False


def require_models(models: Sequence[Model]) -> None:
    """Refuse what is no model; a class such as ``KAnonymity`` wants its parameters first."""
    if not models:
        raise ParameterError("models", (), "at least one model, such as KAnonymity(5)")
    for model in models:
        if isinstance(model, type):
            raise ParameterError("models", model.__name__, "it its parameters, as KAnonymity(5)")
        if not isinstance(model, Model):
            raise ParameterError("models", type(model).__name__, "models, such as KAnonymity(5)")


KEYWORDS = {  # what people write for it in Python
    "k": "hm.KAnonymity(5)",
    "l": 'hm.LDiversity(3, "disease")',
    "t": 'hm.TCloseness(0.2, "disease")',
    "personal_k": "hm.PersonalKAnonymity()",
    "personal_l": 'hm.PersonalLDiversity("disease")',
    "personal_t": 'hm.PersonalTCloseness("disease")',
    "policy": 'policies="demands.toml"',
    "ignore_demands": 'demands="ignore"',
}


def refuse_keywords(verb: str, given: Iterable[str]) -> None:
    """Refuse names that a verb does not take, and say what to write for those that are near.

    Raises:
        InputError: there is one.
    """
    for name in given:
        write = KEYWORDS.get(name)
        if write is None:
            raise InputError(
                f"{verb} takes no {name}=: promises are models, as "
                f"hm.{verb}(table, hm.KAnonymity(5)); see help(hm.{verb})."
            )
        raise InputError(f"{verb} takes no {name}=: write hm.{verb}(table, {write}).")


def refuse_contradiction(models: Sequence[Model], demands: str) -> None:
    """Refuse to set people's demands aside and to keep them by a model at once.

    Raises:
        ParameterError: ``demands`` is neither "keep" nor "ignore".
        InputError: a model that reads demands is named, and they are ignored.
    """
    if demands not in ("keep", "ignore"):
        raise ParameterError("demands", demands, "'keep' or 'ignore'")
    own = [model.name for model in models if model.policy]
    if own and demands == "ignore":
        raise InputError(
            f"{own[0].capitalize()} keeps people's own demands, and demands='ignore' "
            "(--ignore-demands) sets them aside: ask for one of the two."
        )


def statistics(
    tuples: Tuples, models: Sequence[Model], *, tied: bool = False
) -> tuple[Classes, NDArray[np.int32]]:
    """The classes of a prepared table with what ``models`` read, and the class of each entry.

    Histograms of sensitive columns are keyed by the column's name, those of personal demands by
    ``demand_key``. ``tied``: where tokens of a release tie rows together, that counts.
    """
    table = tuples.table
    names = [name for model in models for name in (*model.columns, *demand_keys(table, model))]
    populations = _populations(models)
    return distinct_classes(
        tuples,
        table.schema.quasi,
        columns=list(dict.fromkeys(names)),
        population=populations[0] if populations else None,
        weighted=any(model.weighted for model in models),
        tied=tied,
    )


def demand_keys(table: Table, model: Model) -> list[str]:
    """What a model reads of people's demands, where anybody can state them, and of their units."""
    of = model.columns[0] if model.columns else ""
    stated = [demand_key(demand, of) for demand in model.policy if states(table.schema, demand)]
    return [*stated, *model.units]


def demands_of_model(table: Table, model: Model) -> NDArray[np.float64]:
    """What each row's person asks ``model`` for, or its default."""
    of = model.columns[0] if model.columns else ""
    default: float | None = getattr(model, "default", None)
    return own_demands(table, model.policy[0], default, of)


def _populations(models: Sequence[Model]) -> list[Table]:
    """The different population tables of ``models``."""
    # By identity: whether two tables are equal would take reading both.
    tables = [model.population for model in models if model.population is not None]
    return list({id(table): table for table in tables}.values())


def _table_faults(table: Table) -> list[str]:
    known = table.arrow.column_names
    found = [
        f"The quasi-identifier '{name}' is not in the table, which has: {', '.join(known)}."
        for name in table.schema.quasi
        if name not in known
    ]
    if not table.schema.quasi:
        found.append(NO_QUASI)
    if len(table) == 0:
        found.append(NO_ROWS)
    return found


def _model_faults(table: Table, model: Model) -> list[str]:
    known = table.arrow.column_names
    found = []
    for name in model.columns:
        if name not in known:
            found.append(f"column '{name}' is not in the table, which has: {', '.join(known)}.")
        elif name in table.schema.quasi:
            found.append(f"column '{name}' is a quasi-identifier: name a sensitive column.")
    if getattr(model, "default", None) is None:
        found += [
            f"the schema does not say where people's own {demand} stands: "
            f'add {demand} = "<column>" under [policy], or give default=.'
            for demand in model.policy
            if not states(table.schema, demand)
        ]
    if model.policy:
        found += [
            f"the policy column '{column}' is not in the table."
            for column in table.schema.policy_names
            if column not in known
        ]
    if not found and len(table):
        found += model.faults(table)
    return found


def group_statistics(
    tuples: Tuples,
    models: Sequence[Model],
    entries: NDArray[np.int64],
    ids: NDArray[np.int64],
) -> Classes:
    """The statistics that ``models`` read of ``entries`` in the classes that ``ids`` states."""
    columns = {name: name for model in models for name in model.columns}
    columns |= {key: key for model in models for key in demand_keys(tuples.table, model)}
    weighted = any(model.weighted for model in models)
    return classes_by_id(tuples, entries, ids, columns=columns, weighted=weighted)


def largest_feasible(tuples: Tuples, models: Sequence[Model]) -> NDArray[np.bool_]:
    """The largest set of entries whose own demands can all be met, as a mask.

    Whoever demands more than all rows together give must go; then the others have fewer, so this
    repeats. Every set that can be served survives each round, so what remains is the largest. It
    depends on nothing that the others hold, but for the values that some demand to be many; these
    are counted among other people, so that nobody's own value decides whether this person stays.
    """
    keep = np.ones(len(tuples), dtype=np.bool_)
    asked = [(model, demands_of_model(tuples.table, model)) for model in models if model.policy]
    while True:
        before = int(keep.sum())
        for model, demands in asked:
            here = np.flatnonzero(keep)
            if len(here):
                one = np.zeros(len(here), dtype=np.int64)
                classes = group_statistics(tuples, (model,), here, one)
                wanted = demands[here]
                if model.policy == ("l",):
                    alone = lone_values(tuples, model.columns[0], here)
                    wanted = np.where(wanted > 1, wanted + alone, wanted)
                keep[here] = ~model.unmet(classes, one, wanted)
        if int(keep.sum()) == before:
            return keep


def lone_values(tuples: Tuples, column: str, entries: NDArray[np.int64]) -> NDArray[np.int64]:
    """Per entry, how many values of ``column`` its person alone holds among ``entries``.

    Whether people can have as many values as they ask for is decided without these: else it would
    tell what the person holds.

    Example:
        >>> import halfmask as hm
        >>> from halfmask.table.tuples import Tuples
        >>> people = hm.read({"ill": ["flu", "flu", "gout", None]}, schema={"ill": "sensitive"})
        >>> lone_values(Tuples.of(people), "ill", np.arange(4)).tolist()
        [0, 0, 1, 0]
    """
    table = tuples.table
    encoded, person = table.encode(column), table.schema.person
    size = len(encoded.values)
    codes = encoded.codes[entries].astype(np.int64)
    known = encoded.values.is_valid().to_numpy(zero_copy_only=False)
    if person is None or person not in table.arrow.column_names:
        held = tally(codes, size, pick_counts(tuples.counts, entries))
        return np.asarray((held == 1) & known)[codes].astype(np.int64)
    owners = table.encode(person).codes[entries].astype(np.int64)
    pairs = np.unique(owners * size + codes)
    holders = np.bincount(pairs % size, minlength=size)
    alone = pairs[((holders == 1) & known)[pairs % size]] // size
    found: NDArray[np.int64] = np.bincount(alone, minlength=int(owners.max(initial=0)) + 1)[owners]
    return found


def leave_out_unmet(
    table: Table, models: Sequence[Model], most: int, remedy: str
) -> tuple[Table, int]:
    """The table without the people whose demands nothing can meet, and how many rows that takes.

    Where all of them would have to go and may, the table stays whole: what comes after refuses it
    and says why.

    Args:
        table: the rows.
        models: the promises.
        most: how many rows may go.
        remedy: what the verb has for those whom it cannot serve, such as ``ALLOW``.

    Raises:
        InfeasibleDemandsError: more than ``most`` rows would have to go. It is said before anything
            else is looked at, so that no error depends on what these people hold.
    """
    found, out = leave_out_entries(Tuples.of(table), models, most, remedy)
    return found.table, out


def leave_out_entries(
    tuples: Tuples, models: Sequence[Model], most: int, remedy: str
) -> tuple[Tuples, int]:
    """The same for entries that stand for rows."""
    own = [model for model in models if model.policy]
    if not own:
        return tuples, 0
    table, rows = tuples.table, tuples.rows
    keep = largest_feasible(replace(tuples, table=prepare(table, own)), own)
    out = rows - rows_in(pick_counts(tuples.counts, keep))
    if not out or out == rows <= most:
        return tuples, 0
    if out > most:
        named = np.flatnonzero(~keep).tolist() if tuples.in_order else out
        raise InfeasibleDemandsError(table.schema.policy_names, named, rows, remedy)
    return tuples.keep(keep), out
