"""Whether a table keeps promises as it stands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa

from halfmask.engines.counting.tuples import add_policies, count_tuples
from halfmask.engines.read import as_table
from halfmask.errors import InputError
from halfmask.models.blank_cells import WildcardAnonymity
from halfmask.models.k_anonymity import KAnonymity
from halfmask.models.requirements import (
    demands_of_model,
    prepare,
    refuse_contradiction,
    refuse_keywords,
    require_models,
    statistics,
    with_demanded_models,
)
from halfmask.models.verdict import Verdict, is_required, known_models, parameters
from halfmask.table.demands import HOUSEHOLD, leaving_columns, resolve_demand, states
from halfmask.table.policies import EXACT

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

    from numpy.typing import NDArray

    from halfmask.models.verdict import Model
    from halfmask.table.classes import Classes
    from halfmask.table.schema import Schema
    from halfmask.table.table import Table
    from halfmask.table.tuples import Tuples


def check(
    table: Table | str | PathLike[str],
    *models: Model,
    policies: object = None,
    demands: Literal["keep", "ignore"] = "keep",
    **wrong: Any,
) -> tuple[Verdict, ...]:
    """Check ``models`` on a table, grouped by its quasi-identifiers as they stand.

    What people demand for themselves is checked beside them, or alone. Where tokens of a release
    tie the rows of a person together, a class is of people all of whose rows are alike.

    Args:
        table: rows with a schema that names the quasi-identifiers, wherever they are (see
            ``read``); or the name of a file with a schema beside it.
        models: the promises, such as ``KAnonymity(5)``; none: people's own demands, or, of a
            release file, the promises and claims that it states of itself.
        policies: more demands of people, as for ``query``; they add to those of the schema.
        demands: ``"ignore"`` leaves people's demands out; models that are named are checked.
        wrong: nothing else; says what to write in place of ``k=5``.

    Returns:
        One verdict per model, in the order given, then those on people's demands. ``failing`` of a
        personal one names those whose demand is not met, by the person column or by their row (from
        0): for the controller only.

    Raises:
        SchemaError: the table lacks what a model needs; lists everything.

    Example:
        >>> import pyarrow as pa
        >>> from halfmask.models.k_anonymity import KAnonymity
        >>> from halfmask.table.schema import Column, Schema
        >>> from halfmask.table.table import Table
        >>> rows = pa.table({"age": [30, 30, 40]})
        >>> (verdict,) = check(Table(rows, Schema({"age": Column("quasi")})), KAnonymity(2))
        >>> verdict.holds, verdict.achieved
        (False, 1)
    """
    refuse_keywords("check", wrong)
    if models:
        require_models(models)
    refuse_contradiction(models, demands)
    stated = add_policies(as_table(table).name_people(), policies)
    claims = () if models else recorded_claims(stated)
    models = models or recorded_models(stated.schema)
    demanded = demands == "keep" and any(
        states(stated.schema, demand) for demand in (*EXACT, "epsilon")
    )
    # Such a claim says more than the classes of rows with blank cells could.
    if claims and not models and not demanded and claims_everybody(stated.schema):
        return claims
    unseen = () if models or demanded else unseen_promises(stated.schema)
    if unseen:
        said = "; ".join(f"{name} ({why})" for name, why in unseen)
        raise InputError(
            f"Nothing that this release promises can be looked at in its rows: {said}. Name what "
            "to check, such as KAnonymity(5)."
        )
    held = count_tuples(stated, lambda declared: columns_counted(declared, models, demands=demands))
    if demands == "keep":
        models = with_demanded_models(held.table, models)
    noise = _noise_alone(held) if demands == "keep" else ()
    if noise and not models:
        return (*noise, *claims)
    ready = prepare(held.table, models)
    classes, ids = statistics(replace(held, table=ready), models, tied=True)
    found = [model.check(classes) for model in models]
    judged = (
        replace(verdict, failing=_failing(ready, model, classes, ids, held))
        for model, verdict in zip(models, found, strict=True)
    )
    return (*judged, *noise, *claims)


def recorded_claims(table: Table) -> tuple[Verdict, ...]:
    """What a masked file claims by its own reading of blank cells, held to its rows again."""
    found = WildcardAnonymity.recorded(table.schema)
    rows = table.collect() if found else table
    return tuple(one.check(rows) for one in found)


def claims_everybody(schema: Schema) -> bool:
    """Whether a claim speaks of all quasi-identifiers, so that it is a promise to check."""
    found = WildcardAnonymity.recorded(schema)
    return any(set(schema.quasi) <= set(one.columns) for one in found)


def stated_models(entries: object) -> list[Model]:
    """The promises that a document states; those that it does not state whole are left out.

    Raises:
        InputError: the document is damaged.
    """
    known = {model.family: model for model in known_models()}
    out = []
    for entry in entries if isinstance(entries, list | tuple) else (None,):
        if not isinstance(entry, Mapping):
            raise InputError(
                "The record of this release is damaged: its promises are not as halfmask writes "
                "them. Take the released file and its record again."
            )
        family, given = entry.get("model"), {n: v for n, v in entry.items() if n != "model"}
        if family not in known:  # of a package that is not installed here, or of a later version
            continue
        names = {one.name for one, _ in parameters(known[family])}
        needed = {one.name for one, _ in parameters(known[family]) if is_required(one)}
        if needed <= set(given) <= names:
            out.append(known[family](**given))
    return out


def recorded_models(schema: Schema) -> tuple[Model, ...]:
    """The promises that a release file states of itself and that its rows can be held to.

    Where there is no such promise it is the size of the smallest class; ``unseen_promises`` are
    the others.
    """
    out = stated_models(schema.release.get("promises", ()))
    found = tuple(one for one in out if not _needs_more(one, schema))
    smallest = schema.release.get("smallest")
    if found or not isinstance(smallest, int) or smallest < 2:
        return found
    return (KAnonymity(smallest),)


def unseen_promises(schema: Schema) -> tuple[tuple[str, str], ...]:
    """The promises that a release file states and that its rows do not show, each with the reason.

    Example:
        >>> from halfmask.table.schema import Schema
        >>> promises = [{"model": "household k-anonymity", "k": 3}]
        >>> unseen_promises(Schema(release={"promises": promises}))
        (('household k-anonymity', 'who lives with whom did not leave with the rows'),)
    """
    found: dict[str, str] = {}
    promises = schema.release.get("promises", ())
    stated_models(promises)  # refuses a damaged record
    for entry in promises:
        known = stated_models([entry])
        name = str(entry.get("model"))
        why = _needs_more(known[0], schema) if known else _unread(name)
        if why:
            found[name] = why
    return tuple(found.items())


def _needs_more(model: Model, schema: Schema) -> str:
    """What ``model`` reads that stands in no row of a release; nothing where rows suffice."""
    if model.policy:
        return "what people demand for themselves did not leave with the rows"
    if model.original:
        return "the original table did not leave with the rows"
    if model.blind:
        return "how classes were chosen does not show in rows"
    if HOUSEHOLD in model.units and schema.household is None:
        return "who lives with whom did not leave with the rows"
    if model.weighted and schema.weight is None:
        return "the people for whom rows stand did not leave with them"
    return ""


def _unread(family: str) -> str:
    if any(model.family == family for model in known_models()):
        return "what it compares the rows with did not leave with them"
    return "this version of halfmask does not know it"


def columns_counted(schema: Schema, models: Sequence[Model], *, demands: str = "keep") -> list[str]:
    """The columns that the statistics of ``models`` are counted from, demands among them."""
    schema.require_quasi()
    names = [*schema.quasi, *(name for model in models for name in model.columns)]
    if schema.household is not None and any(model.units for model in models):
        names.append(schema.household)
    if schema.weight is not None and any(model.weighted for model in models):
        names.append(schema.weight)
    if demands == "keep":
        if any(states(schema, demand) for demand in ("l", "t")):
            names += schema.sensitive
        names += schema.policy_names
    return [*names, *([] if schema.person is None else [schema.person]), *schema.ties]


def _failing(
    table: Table, model: Model, classes: Classes, ids: NDArray[np.int32], held: Tuples
) -> tuple[object, ...]:
    """Who states a demand that ``model`` finds not met."""
    if not model.policy:
        return ()
    return _name_failing(table, model.unmet(classes, ids, demands_of_model(table, model)), held)


def _name_failing(table: Table, rows: NDArray[np.bool_], held: Tuples) -> tuple[object, ...]:
    """The people behind the marked rows, or these rows."""
    if table.schema.person is not None:
        people = table.encode(table.schema.person)
        return tuple(people.values.take(pa.array(np.unique(people.codes[rows]))).to_pylist())
    return tuple(np.flatnonzero(rows).tolist()) if held.in_order else ()


def _noise_alone(held: Tuples) -> tuple[Verdict, ...]:
    """What to say of people who state an epsilon and nothing that exact rows could keep."""
    table, schema = held.table, held.table.schema
    if not states(schema, "epsilon"):
        return ()
    noise = resolve_demand(table, "epsilon", leaving_columns(schema, "epsilon"))
    exact = [
        resolve_demand(table, one, leaving_columns(schema, one))
        for one in EXACT
        if states(schema, one)
    ]
    alone = ~np.isnan(noise) & np.all([np.isnan(one) for one in exact], axis=0)
    if not alone.any():
        return ()
    verdict = Verdict(
        model="personal epsilon",
        holds=False,
        required=float(noise[alone].min()),
        achieved=float("inf"),
        failing_classes=0,
        failing_rows=int(held.counts[alone].sum()),
        classes=0,
        rows=held.rows,
        note="People who state an epsilon and no k, l or t are kept by noise only.",
        failing=_name_failing(table, alone, held),
    )
    return (verdict,)
