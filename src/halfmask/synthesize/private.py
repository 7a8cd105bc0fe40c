"""Private synthesis: from a table, public domains and a budget to a sealed synthetic table."""

from __future__ import annotations

import importlib
import inspect
import secrets
from math import prod
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa

from halfmask.dp.accountant import Accountant
from halfmask.dp.budget import Number, budget
from halfmask.dp.declared import declared_domains, given_domains
from halfmask.dp.domain import Bins, Domain, public_domains, require_fitting
from halfmask.dp.personal.table import PersonalSample, personal_sample
from halfmask.dp.sampling import Sampler
from halfmask.dp.vault import vault
from halfmask.errors import ParameterError, SchemaError
from halfmask.release.seal_private import Draft, seal_private
from halfmask.table.table import require_table

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from os import PathLike

    from halfmask.release.private import PrivateRelease
    from halfmask.table.table import Table

# A private method is a module with ``learn(views, *, ordered, ...) -> model``; the model has
# ``rows`` and ``draw(rows, random)``. New ones are one line here.
PRIVATE = {
    "dp-cocluster": "halfmask.synthesize.dp_cocluster",
    "histogram": "halfmask.synthesize.histogram",
    "marginals": "halfmask.synthesize.marginals",
    "privbayes": "halfmask.synthesize.privbayes",
}
FEW_CELLS = 128  # up to here the histogram is the better method


def synthesize_privately(
    table: Table,
    method: str = "auto",
    *,
    epsilon: Number | Literal["personal"],
    delta: Number = 0,
    domains: Mapping[str, object] | str | PathLike[str] | None = None,
    rows: int | None = None,
    rows_per_person: int = 1,
    accountant: Accountant | None = None,
    **options: Any,
) -> PrivateRelease:
    """A synthetic table under differential privacy.

    Args:
        table: the rows.
        method: ``"marginals"``, ``"histogram"``, ``"privbayes"``, ``"dp-cocluster"``, or ``"auto"``
            (the histogram where all columns together have few combinations, else marginals).
        epsilon: the budget to spend; ``"personal"`` keeps every person's own, which the schema's
            policy names: people stay in the sample the less often the less they allow.
        delta: 0 for pure differential privacy; a small delta buys accuracy.
        domains: per column its public values, or its bounds and number of intervals; must be known
            without looking at the rows. A path is read as TOML.
        rows: how many rows to draw; by default the noisy number of rows.
        rows_per_person: how many rows one person can have; further ones are left out.
        accountant: who keeps the budget of this table over several releases.
        options: what the method itself takes.

    Raises:
        SchemaError: a column has no public domain.
        BudgetExceededError: the accountant has less than ``epsilon`` left.
    """
    require_table(table)
    if rows is not None and rows < 1:
        raise ParameterError("rows", rows, "at least 1")
    columns = _columns(table)
    stated = {n: d for n, d in declared_domains(table.schema).items() if n in columns}
    known = public_domains(columns, {**stated, **given_domains(domains)})
    random = np.random.default_rng(secrets.randbits(128))  # draws from models, never noise
    require_fitting(table, known, random)
    chosen = _method(method, known)
    learn = importlib.import_module(PRIVATE[chosen]).learn
    _require_options(learn, options)
    people = None
    if epsilon == "personal":
        people = personal_sample(table, numbers=sum(len(domain) for domain in known.values()))
        epsilon = people.threshold
    promise = budget(epsilon, delta)
    keeper = accountant or Accountant(promise)
    allowance = keeper.allow(promise, f"synthesize ({chosen})", rows_per_person=rows_per_person)
    views = vault(table if people is None else people.draw(Sampler()), known, allowance)
    ordered = [n for n, d in known.items() if isinstance(d, Bins) or d.ordered]
    model = learn(views, ordered=ordered, **options)
    about = model.rows if people is None else round(model.rows / people.share)
    codes = model.draw(rows or max(1, about), random)
    arrow = pa.table(
        {n: d.decode(codes[n], random, table.arrow.schema.field(n).type) for n, d in known.items()}
    )
    draft = Draft(
        arrow,
        {name: len(domain) for name, domain in known.items()},
        chosen,
        {
            "method": method,
            "rows": rows,
            "rows_per_person": rows_per_person,
            **({} if people is None else {"personal": people.to_dict()}),
            **options,
        },
        (*_notes(known, accountant), *_personal_notes(people)),
        table.origin,
    )
    return seal_private(draft, allowance.receipt())


def _personal_notes(people: PersonalSample | None) -> tuple[str, ...]:
    if people is None:
        return ()
    low, high = float(people.smallest), float(min(people.largest, people.threshold))
    notes = [
        f"Every person has the own epsilon, from {low:g} to {high:g} at most: the bounds are those "
        "of the most liberal people."
    ]
    if people.silent:
        notes.append("People who state no epsilon were left out.")
    return tuple(notes)


def _columns(table: Table) -> list[str]:
    """The columns that a synthetic table has: no identifiers, person or policy columns."""
    schema = table.schema
    hidden = {schema.person, *schema.policy_names, *schema.names("identifier")}
    found = [name for name in table.arrow.column_names if name not in hidden]
    if not found:
        raise SchemaError("No column is left to synthesize: all are identifiers or policies.")
    return found


def _require_options(learn: Callable[..., Any], options: Mapping[str, Any]) -> None:
    """Refuse what the method does not take, before anything is spent; no seed is among it."""
    taken = set(inspect.signature(learn).parameters) - {"views", "ordered"}
    for name in options:
        if name not in taken:
            raise ParameterError(name, "(given)", f"only {', '.join(sorted(taken)) or 'nothing'}")


def _method(method: str, domains: Mapping[str, Domain]) -> str:
    if method == "auto":
        cells = prod(len(domain) for domain in domains.values())
        return "histogram" if cells <= FEW_CELLS else "marginals"
    if method not in PRIVATE:
        raise ParameterError("method", method, f"auto, {', '.join(sorted(PRIVATE))}")
    return method


def _notes(domains: Mapping[str, Domain], accountant: Accountant | None) -> tuple[str, ...]:
    notes = ["Comparisons with the original table are internal: they are not private."]
    if any(isinstance(domain, Bins) for domain in domains.values()):
        notes.append("Numbers are drawn evenly inside their public intervals.")
    if accountant is None:
        notes.append("No ledger was given: other releases of this table add to its epsilon.")
    return tuple(notes)
