"""``mask``: from a table and steps to a sealed release."""

from __future__ import annotations

import secrets
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from halfmask.dp.sampling import Sampler
from halfmask.errors import InputError, PrivacyError, UnsatisfiableError
from halfmask.masking.masks import read_steps, step_from_report
from halfmask.masking.methods.response import Randomize
from halfmask.masking.risk_utility import linkage_rate, step_figures
from halfmask.masking.step import Rows, require_fit, require_there, with_columns
from halfmask.models.check import stated_models
from halfmask.models.requirements import (
    leave_out_entries,
    prepare,
    refuse_contradiction,
    require_models,
    with_demanded_models,
)
from halfmask.models.verdict import Model, require_whole
from halfmask.release.candidate import MaskedCandidate
from halfmask.release.demands import SET_ASIDE, state_demands
from halfmask.release.doors.claims import AnatomyClaim, PseudonymClaim, drawn_copies
from halfmask.release.doors.masked import refuse_compared_models, with_true_values
from halfmask.release.doors.responses import refuse_true_answers
from halfmask.release.files import read_document
from halfmask.release.partition import Perturbation
from halfmask.release.seal import published_columns, seal
from halfmask.release.stored_entries import count_rows, read_note, why_read
from halfmask.release.verification import recheck_models
from halfmask.table.demands import with_policies
from halfmask.table.schema import NO_ROWS
from halfmask.table.table import Table, require_table
from halfmask.table.tuples import Tuples

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

    from numpy.typing import NDArray

    from halfmask.masking.step import MaskStep, Outcome
    from halfmask.models.verdict import Verdict
    from halfmask.release.demands import DemandsChoice
    from halfmask.release.doors.masked import MaskedRelease

FORMAT = "halfmask.masked/"
_REMEDY = "leave the rest out of the table, for masks leave nobody out"


def mask(
    table: Table,
    *steps: MaskStep | str,
    models: Model | Sequence[Model] = (),
    seed: int | None = None,
    policies: object = None,
    demands: DemandsChoice = "keep",
) -> MaskedRelease:
    """Apply masks in order and release what they give, measured step by step.

    Masks promise nothing by themselves; ``models`` are checked on the rows that leave, and what
    people demand for themselves is kept or the table refused.

    Args:
        table: the rows.
        steps: masks, or their texts such as ``"top-code income share=0.01"``; where none is named,
            those of ``[mask]`` in the schema.
        models: promises that must hold of the rows that leave, one or several.
        seed: for repeatable tests; None draws from the system's secure source. Whoever knows it can
            undo what was drawn.
        policies: more demands of people, as for ``query``; they add to those of the schema.
        demands: ``"ignore"`` sets people's demands aside; the release says so first.

    Raises:
        SchemaError: a column is not declared, is not there, or is of the wrong kind for a step.
        UnsatisfiableError: the masked rows do not keep a model or what people demand.

    Example:
        >>> import halfmask as hm
        >>> people = hm.read({"age": [20, 30, 40, 90], "pay": [1, 2, 3, 4]},
        ...                  schema={"age": "quasi", "pay": "sensitive"})
        >>> release = hm.mask(people, hm.masks.TopCode("age", value=50), "round pay base=2")
        >>> [step["mask"] for step in release.steps]
        ['top-code', 'round']
    """
    if not isinstance(table, Table):
        table = require_table(table)
    chosen = read_steps(steps or table.schema.mask)
    if not chosen:
        raise InputError(
            "No step is named: give some, such as 'top-code income share=0.01' (with --step on the "
            "command line), or list them under [mask] steps in the schema."
        )
    promises = (models,) if isinstance(models, Model) else tuple(models)
    if promises:
        require_models(promises)
    refuse_contradiction(promises, demands)
    if seed is not None:
        require_whole("seed", seed, 0)
    randomized = randomized_columns(chosen)
    published_columns(table, randomized)
    reason = why_masked_here(table, chosen, promises)
    with ExitStack() as held:
        if reason is None:
            entries = _entries(table, chosen, promises, held, policies)
        else:
            entries = Tuples.of(with_policies(table.collect(), policies), note=reason)
        return _release_rows(entries, chosen, promises, seed, demands)


def why_masked_here(table: Table, steps: Sequence[MaskStep], models: Sequence[Model]) -> str | None:
    """Why rows are masked in memory, in words for the release; None: they stay where they are."""
    if table.stored is None:
        return ""
    foreign = [one for one in steps if not type(one).__module__.startswith("halfmask.masking.")]
    if foreign:
        return read_note(table, f"{foreign[0].name} may look at any column")
    reason = why_read(table, models, table.schema.columns.values())
    return None if reason is None else read_note(table, reason)


def _entries(
    table: Table,
    steps: Sequence[MaskStep],
    models: Sequence[Model],
    held: ExitStack,
    policies: object,
) -> Tuples:
    """One entry a row, of the columns that the steps and the promises look at."""
    schema = table.schema
    require_there(steps[0], table.column_names)
    absent = [n for one in steps for n in one.reads if n not in table.column_names]
    names = [name for one in steps for name in one.reads]
    # They learn from all other columns.
    if absent or any(getattr(one, "given", ()) is None for one in steps):
        names += [name for name in table.column_names if name not in schema.private]
    keyed = any(getattr(one, key, None) for one in steps for key in ("key", "key_file", "vault"))
    if schema.household is not None:
        names.append(schema.household)
    return count_rows(
        table, [*names, *schema.sensitive], models, held, policies=policies, owners=keyed
    )


def _release_rows(
    entries: Tuples,
    chosen: Sequence[MaskStep],
    promises: tuple[Model, ...],
    seed: int | None,
    demands: DemandsChoice,
) -> MaskedRelease:
    """The release of rows, or of entries that stand for one row each elsewhere."""
    table, named = entries.table, len(promises)
    randomized = randomized_columns(chosen)
    # Refuses before the work what the door would refuse after it.
    state_demands(table, demands, noisy=bool(randomized))
    if not len(table):
        raise InputError(NO_ROWS)
    random = np.random.default_rng(secrets.randbits(128) if seed is None else seed)
    if demands == "keep":
        promises = with_demanded_models(table, promises)
    refuse_true_answers(randomized, promises)
    if demands == "keep":
        leave_out_entries(entries, promises, 0, _REMEDY)  # alike, whatever these people hold
    sampler = Sampler() if seed is None else Sampler(random.bytes)
    done = _apply_steps(table, chosen, random, sampler, demands)
    _require_kept(done, table, promises, len(promises) - named)
    linked = linkage_rate(table, done.rows, done.source, random)
    notes = [*done.notes, *_notes(promises, seed, randomized, done.claims)]
    if entries.note:
        notes.append(entries.note)
    return seal(
        MaskedCandidate(
            table=table,
            rows=done.rows,
            source=done.source,
            tables=done.tables,
            steps=done.steps,
            models=promises,
            claims=done.claims,
            measured={"linked": linked.to_dict()},
            figures=done.figures,
            parameters={"seeded": seed is not None},
            notes=notes,
            demands=demands,
            order=None if seed is None else int(random.integers(2**62)),
            tuples=None if entries.origin is None else entries,
        )
    )


def randomize(
    table: Table,
    *columns: str,
    epsilon: float,
    policies: object = None,
    demands: DemandsChoice = "keep",
) -> MaskedRelease:
    """Tell the answers in some columns by randomized response, and release the rows.

    It is ``mask`` with the step ``Randomize`` for each column; other columns leave as they are.

    Args:
        table: the rows.
        columns: whose answers are told by chance; the schema lists the answers of each.
        epsilon: what one answer costs; a person pays it for each own row and each column.
        policies: more demands of people, as for ``mask``.
        demands: ``"ignore"`` sets people's demands aside; the release says so first.

    Raises:
        SchemaError: the schema does not list the answers of a column.
        PrivacyError: somebody demands less epsilon than the answers cost.

    Example:
        >>> import halfmask as hm
        >>> people = hm.read({"age": [30, 40], "smokes": ["yes", "no"]}, schema={"columns": {
        ...     "age": "quasi", "smokes": {"role": "sensitive", "domain": ["yes", "no"]}}})
        >>> release = hm.randomize(people, "smokes", epsilon=1)
        >>> round(release.statement["randomized"][0]["truth"], 3)
        0.731
    """
    if not columns:
        raise InputError("No column is named: randomize(table, 'smokes', epsilon=1).")
    steps = [Randomize(name, epsilon) for name in columns]
    return mask(table, *steps, policies=policies, demands=demands)


class _MaskedState:
    """The rows after some steps, and what is known of these."""

    def __init__(self, table: Table) -> None:
        self.rows = table
        self.source: NDArray[np.int64] = np.arange(len(table))
        self.tables: dict[str, pa.Table] = {}
        self.steps: list[dict[str, Any]] = []
        self.figures: list[dict[str, Any]] = []
        self.claims: list[Any] = []
        self.notes: list[str] = []

    def add(self, one: MaskStep, outcome: Outcome) -> None:
        """Take over what a step made."""
        before = self.rows
        groups = [one.group for one in outcome.claims if isinstance(one, AnatomyClaim)]
        after = with_columns(
            before, outcome.columns, outcome.removed, groups, drawn_copies(outcome.claims)
        )
        public, private = step_figures(before, after, list(outcome.columns))
        shown: dict[str, dict[str, Any]] = public["columns"]
        if outcome.keep is not None:
            kept = pa.array(outcome.keep)
            after = after.with_schema(after.schema, after.arrow.take(kept))
            self.source = self.source[outcome.keep]
        self.rows = after
        self.tables |= outcome.tables
        self.claims += outcome.claims
        self.notes += outcome.notes
        self.steps.append(
            {
                **one.to_dict(),
                "sentence": one.sentence,
                "protects": one.words.protects,
                "open": one.words.open,
                "changes": [*outcome.columns, *outcome.removed],
                **({"told": dict(outcome.told)} if outcome.told else {}),
                "facts": dict(outcome.facts),
                "figures": public,
            }
        )
        columns = {n: {**found, **private["columns"].get(n, {})} for n, found in shown.items()}
        self.figures.append(
            {"mask": one.name, "facts": dict(outcome.facts), **private, "columns": columns}
        )


def randomized_columns(steps: Sequence[MaskStep]) -> list[str]:
    """The columns whose answers are randomized.

    Raises:
        InputError: another step would see true answers before, or a column is randomized twice.
    """
    places = [place for place, one in enumerate(steps) if isinstance(one, Randomize)]
    names = [name for place in places for name in steps[place].changes]
    if places != list(range(len(places))):
        raise InputError("randomize comes first: a step before it would see the true answers.")
    if len(set(names)) < len(names):
        raise InputError("randomize takes a column once: twice costs its people twice.")
    return names


def _apply_steps(
    table: Table,
    steps: Sequence[MaskStep],
    random: np.random.Generator,
    sampler: Sampler,
    demands: DemandsChoice,
) -> _MaskedState:
    done, seen = _MaskedState(table), table
    for one in steps:
        require_fit(one, done.rows)
        original = seen
        if len(done.source) < len(seen):
            original = seen.with_schema(seen.schema, seen.arrow.take(pa.array(done.source)))
        outcome = one.apply(Rows(done.rows, random, original, sampler, demands == "keep"))
        if isinstance(one, Randomize):
            seen = with_columns(seen, outcome.columns)
        done.add(one, outcome)
        if not len(done.rows):
            raise PrivacyError(f"{one.name}: no row would leave.")
    return done


def _require_kept(done: _MaskedState, table: Table, models: Sequence[Model], own: int) -> None:
    """Refuse masked rows that break a promise, before the door would have to.

    Raises:
        UnsatisfiableError: says which promise, and how many people state what is not kept.
    """
    rows = done.rows
    if not models:
        return
    if not rows.schema.quasi:
        aside = f", or set people's demands aside; {SET_ASIDE}" if own else ""
        raise PrivacyError(
            "The steps take every quasi-identifier out of the rows, and a promise speaks of those "
            f"who share them: keep one in the rows, or name no promise{aside}."
        )
    gone = [n for model in models for n in model.columns if n not in rows.arrow.column_names]
    if gone:
        raise PrivacyError(
            f"A promise, or people's own l or t, speaks of column '{gone[0]}', which a step takes "
            f"out of the rows: use anonymize; {SET_ASIDE}."
        )
    refuse_compared_models(models)
    found: list[Verdict] = []
    for one in (rows, with_true_values(table, rows, done.source, models)):
        ready = prepare(one, models)
        quasi = ready.arrow.select(list(ready.schema.quasi))
        places = np.arange(len(ready))
        found = recheck_models(models, quasi, ready, places, Perturbation({}, quasi, {}))[0]
        if not all(verdict.holds for verdict in found):
            break
    broken = [one for one in found if not one.holds]
    if not broken:
        return
    names = ", ".join(f"{v.model} ({v.failing_rows:,} rows)" for v in broken)
    advice = ["add local-suppression or microaggregate with a larger k, or use anonymize"]
    stated = state_demands(rows, "keep", noisy=True) if own else None
    if stated is not None and any(v in broken for v in found[len(found) - own :]):
        advice.append(
            f"{stated.people:,} people state demands of their own, which these rows do not keep: "
            f"give steps the highest k that anybody demands; {SET_ASIDE}"
        )
    raise UnsatisfiableError(
        f"The masked rows do not keep {names}.", verdicts=broken, advice=tuple(advice)
    )


def _notes(
    models: Sequence[Model], seed: int | None, randomized: Sequence[str], claims: Sequence[Any]
) -> list[str]:
    notes = []
    if not models and not randomized:
        formal = any(not isinstance(one, PseudonymClaim) for one in claims)
        none = "No formal guarantee is claimed"
        start = f"{none} but what the steps claim" if formal else none
        notes.append(f"{start}: the figures speak of the attacks that were tried.")
    if seed is not None:
        notes.append(
            "The draws came from a seed: whoever knows it can undo them. Leave it out of tables "
            "that leave."
        )
    return notes


def read_like(path: str | PathLike[str]) -> tuple[MaskStep, ...]:
    """The steps of an earlier release, from its JSON report.

    Raises:
        InputError: the file is no such report, or a step had a secret key that it does not hold.
    """
    document = _masked_document(path)
    told = ("sentence", "protects", "open", "changes", "facts", "figures", "told")
    return tuple(
        step_from_report({name: value for name, value in step.items() if name not in told})
        for step in document["steps"]
    )


def read_like_models(path: str | PathLike[str]) -> tuple[Model, ...]:
    """The promises of an earlier release, from its JSON report; people's own demands are not its.

    Raises:
        InputError: the file is no such report, or a promise in it cannot be read.
    """
    entries = _masked_document(path).get("models", [])
    found = stated_models(entries)
    if len(found) < len(entries):  # a list, or it was refused
        raise InputError(
            "A promise of that release cannot be read from its report: name the promises for "
            "these rows."
        )
    return tuple(one for one in found if not one.policy)


def _masked_document(path: str | PathLike[str]) -> dict[str, Any]:
    file = Path(path)
    document: Any = read_document(path, "release")
    known = isinstance(document, dict) and str(document.get("format", "")).startswith(FORMAT)
    steps = document.get("steps") if known else None
    if not isinstance(steps, list) or not all(isinstance(one, dict) for one in steps):
        raise InputError(f"{str(file)!r} is no report of a masked release: give its .json report.")
    found: dict[str, Any] = document
    return found
