"""A found recoding: which level each row's values take, apart from the rows it was found on."""

from __future__ import annotations

import json
from contextlib import ExitStack
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from halfmask.engines.counting.tuples import add_policies
from halfmask.errors import (
    HierarchyError,
    InputError,
    PrivacyError,
    SchemaError,
    UnsatisfiableError,
)
from halfmask.models.requirements import (
    ALLOW,
    leave_out_entries,
    refuse_contradiction,
    require_models,
    with_demanded_models,
)
from halfmask.models.verdict import require_number
from halfmask.release.candidate import Candidate
from halfmask.release.demands import state_demands
from halfmask.release.files import private_file, read_document
from halfmask.release.labels import Label, encode_labels
from halfmask.release.partition import as_type, label_texts
from halfmask.release.seal import published_columns, seal
from halfmask.release.stored_entries import count_entries, read_note, why_read
from halfmask.release.verification import count_published, recheck_models
from halfmask.table.demands import with_policies
from halfmask.table.hierarchies import Csv
from halfmask.table.hierarchies.builders import columns_following, labels_stay
from halfmask.table.schema import Schema, column_to_dict, schema_from_dict
from halfmask.table.table import Table, require_table
from halfmask.table.tuples import Tuples, pack_tuples, pick_counts, rows_in

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from os import PathLike

    from numpy.typing import NDArray

    from halfmask.models.verdict import Model, Verdict
    from halfmask.release.demands import DemandsChoice
    from halfmask.release.release import Release
    from halfmask.table.columns import Column
    from halfmask.table.hierarchy import Hierarchy


@dataclass(frozen=True, slots=True)
class RecodingStep:
    """One decision: generalize to ``levels`` the rows that fall into ``classes``.

    Attributes:
        levels: the level per column; the hierarchy's height + 1 means that the cell is suppressed.
        classes: the label texts of each published class in order of the recoding's columns
            (``None`` inside a class is the missing value); ``None`` means any class.
    """

    levels: Mapping[str, int]
    classes: tuple[tuple[Label, ...], ...] | None = None


@dataclass(frozen=True, slots=True)
class Recoding:
    """How quasi-identifiers are generalized; holds no row and no value but published labels.

    It is a decision list. A row takes the first step whose published classes contain its
    generalized labels; a row that no step takes is suppressed. Full-domain recoding is one step.

    Attributes:
        columns: the quasi-identifiers with their hierarchies, in order.
        steps: the decisions, first match wins.
    """

    columns: Mapping[str, Column]
    steps: tuple[RecodingStep, ...]

    @classmethod
    def of(cls, table: Table, steps: Sequence[RecodingStep | Mapping[str, int]]) -> Recoding:
        """Make a recoding of the quasi-identifiers of ``table`` from steps or plain levels."""
        columns = {name: table.schema.columns[name] for name in table.schema.quasi}
        made = tuple(s if isinstance(s, RecodingStep) else RecodingStep(dict(s)) for s in steps)
        return cls(columns, made)

    def __repr__(self) -> str:
        kind = "full-domain" if self.full_domain else f"{len(self.steps)} steps"
        return f"Recoding({', '.join(self.columns)}; {kind})"

    @property
    def full_domain(self) -> bool:
        """Whether every row gets the same levels."""
        return len(self.steps) == 1

    @property
    def levels(self) -> dict[str, int] | None:
        """The level per column where the recoding is full-domain, else None."""
        return dict(self.steps[0].levels) if self.full_domain else None

    def bind(self, table: Table) -> Table:
        """Give ``table`` this recoding's columns and hierarchies, all faults reported together."""
        table = require_table(table)
        missing = [name for name in self.columns if name not in table.arrow.column_names]
        if missing:
            raise SchemaError(
                *(
                    f"The recoding needs the column {name!r}: add it to the table."
                    for name in missing
                )
            )
        own = {name: table.schema.columns.get(name) for name in self.columns}
        same = own == dict(self.columns)
        bound = table if same else Table(table.arrow, Schema(dict(self.columns)), table.origin)
        faults: list[str] = []
        for name in self.columns:
            try:
                bound.hierarchy(name)
            except HierarchyError as error:
                faults.extend(error.faults)
        if faults:
            raise HierarchyError(*faults)
        return bound

    def published(self, table: Table, step: NDArray[np.int32]) -> pa.Table:
        """The generalized quasi-identifiers of the rows that ``step`` keeps, in their order.

        Args:
            table: the original rows.
            step: per row, the index of the step it takes; -1 leaves the row out.
        """
        bound = self.bind(table)
        kept = np.flatnonzero(step >= 0)
        taken = step[kept]
        arrays = {name: self._column(bound, name, taken, kept) for name in self.columns}
        return pa.table(arrays)

    def _column(
        self, table: Table, name: str, taken: NDArray[np.int32], kept: NDArray[np.int64]
    ) -> pa.Array:
        encoded, hierarchy = table.encode(name), table.hierarchy(name)
        per_step = np.array([s.levels[name] for s in self.steps], dtype=np.int64)
        alike = bool((per_step == per_step[0]).all()) and len(taken) > 0
        used = per_step[:1] if alike else np.unique(per_step[np.flatnonzero(np.bincount(taken))])
        codes = encoded.codes if len(kept) == len(encoded.codes) else encoded.codes[kept]
        kind = table.arrow.schema.field(name).type
        if used.tolist() in ([], [0]):
            return as_type(kind, encoded.values, codes)
        texts = [label_texts(table, name, int(level)) for level in used]
        words = pa.array(sorted({t for _, labels in texts for t in labels if t is not None}))
        place: dict[Label, int] = {t: i for i, t in enumerate(words.to_pylist())}
        place[None] = len(words)
        look = np.empty((len(used), len(encoded.values)), dtype=np.int32)
        for i, (level_map, labels) in enumerate(texts):
            look[i] = np.array([place[t] for t in labels], dtype=np.int32)[level_map]
        assert hierarchy.maps.shape[1] == len(encoded.values)  # noqa: S101 - bound to these values
        values = pa.concat_arrays([words.cast(pa.string()), pa.nulls(1, pa.string())])
        text = pa.dictionary(pa.int32(), pa.string()) if pa.types.is_dictionary(kind) else None
        # Where all rows get one level, nothing hangs on the step that each takes.
        texts_of = look[0][codes] if alike else look[np.searchsorted(used, per_step)[taken], codes]
        return as_type(text or pa.string(), values, texts_of)

    def assign(self, table: Table) -> NDArray[np.int32]:
        """The step that each row takes; -1 where no step's classes hold the row's labels."""
        bound = self.bind(table)
        if self.steps[0].classes is None:
            return np.zeros(len(table), dtype=np.int32)
        names = list(self.columns)
        tuples = pack_tuples(Tuples.of(bound), names)
        units = [tuples.codes(c).astype(np.int32) for c in range(len(names))]
        labels = [_labels(bound, name, {one.levels[name] for one in self.steps}) for name in names]
        taken = np.full(len(units[0]), -1, dtype=np.int32)
        for index, step in enumerate(self.steps):
            open_ = np.flatnonzero(taken < 0)
            if step.classes is None:
                taken[open_] = index
                break
            hit = _match(names, step, labels, [codes[open_] for codes in units])
            taken[open_[hit]] = index
        return np.asarray(taken[tuples.of_entry])

    def with_classes(self, table: Table, step: NDArray[np.int32]) -> Recoding:
        """State the published classes of every step, as ``step`` assigns the rows of ``table``."""
        labels = [encode_labels(column) for column in self.published(table, step).columns]
        names = [str(i) for i in range(len(labels))]
        taken = pa.array(step[step >= 0], type=pa.int32())
        named = pa.table([*labels, taken], names=[*names, "step"])
        unique = named.group_by(named.column_names).aggregate([])
        found: list[list[tuple[Label, ...]]] = [[] for _ in self.steps]
        columns = [unique[name].to_pylist() for name in names]
        key = _none_last if any(unique[name].null_count for name in names) else None  # it is slow
        for index, labels_ in zip(
            unique["step"].to_pylist(), zip(*columns, strict=True), strict=True
        ):
            found[index].append(labels_)
        steps = [
            replace(one, classes=tuple(sorted(classes, key=key)))
            for one, classes in zip(self.steps, found, strict=True)
        ]
        return replace(self, steps=tuple(steps))

    def apply(self, table: Table, *models: Model, **settings: Any) -> Release:
        """Recode new rows, suppress classes that fail up to the limit, check them, release them.

        Args:
            table: the new rows.
            models: the promises; what people demand for themselves is kept beside them.
            settings: ``suppression``, ``policies`` and ``demands``, as for ``anonymize``.
        """
        return apply_recoding(self, table, *models, **settings)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the recoding as JSON."""
        _save(self, path)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Recoding:
        """Read a recoding that ``save`` wrote."""
        return _load(path)

    def to_csv(self, folder: str | PathLike[str], table: Table) -> list[str]:
        """Write one value mapping per column for the values of ``table``; returns the paths.

        The files name original values: they are for whoever holds the table, not for publication.
        """
        from halfmask.release.export import write_mappings

        return write_mappings(self, table, folder)

    def to_sql(self, table: Table, *, name: str, dialect: str = "duckdb") -> str:
        """One SQL statement that recodes the table ``name`` inside a database.

        Args:
            table: the rows, for their values and types; the statement names these values.
            name: the table's name in the database, with dots between its parts.
            dialect: duckdb, postgres or spark.
        """
        from halfmask.release.export import sql_statement

        return sql_statement(self, table, name=name, dialect=dialect)


def _labels(
    table: Table, name: str, levels: set[int]
) -> tuple[dict[Label, int], dict[int, NDArray[np.int64]]]:
    """A number for each label text of a column, and per level the number of each value's label."""
    place: dict[Label, int] = {}
    look = {}
    for level in sorted(levels):
        level_map, labels = label_texts(table, name, level)
        numbers = np.array([place.setdefault(t, len(place)) for t in labels], dtype=np.int64)
        look[level] = numbers[level_map]
    return place, look


def _match(
    names: list[str],
    step: RecodingStep,
    labels: list[tuple[dict[Label, int], dict[int, NDArray[np.int64]]]],
    units: list[NDArray[np.int32]],
) -> NDArray[np.bool_]:
    """Which tuples fall into the classes of ``step``."""
    classes = step.classes or ()
    alive, key = np.arange(len(units[0])), np.zeros(len(units[0]), dtype=np.int64)
    open_, apart = np.zeros(len(classes), dtype=np.int64), len(classes) == 1
    for position, (name, (place, look)) in enumerate(zip(names, labels, strict=True)):
        listed = np.array([place.get(c[position], -1) for c in classes], dtype=np.int64)
        # Only what agrees with a class so far is looked at further: columns may be many.
        own = look[step.levels[name]][units[position][alive]]
        if apart:  # each tuple is left with one class that it may fall into
            agrees = listed[key] == own
        else:
            classes = tuple(c for c, at in zip(classes, listed, strict=True) if at >= 0)
            span = len(place)
            begun, open_ = np.unique(
                open_[listed >= 0] * span + listed[listed >= 0], return_inverse=True
            )
            own += key * span
            key = np.searchsorted(begun, own)
            agrees = key < len(begun)
            agrees[agrees] = begun[key[agrees]] == own[agrees]
            if len(begun) == len(classes):
                apart, classes = True, tuple(classes[i] for i in np.argsort(open_).tolist())
        alive, key = alive[agrees], key[agrees]
        if not len(alive):
            break
    hit = np.zeros(len(units[0]), dtype=np.bool_)
    hit[alive] = True
    return hit


def _none_last(labels: tuple[Label, ...]) -> tuple[tuple[bool, str], ...]:
    return tuple((label is None, label or "") for label in labels)


def apply_recoding(
    recoding: Recoding,
    table: Table,
    *models: Model,
    suppression: float = 0.0,
    policies: object = None,
    demands: DemandsChoice = "keep",
) -> Release:
    """Recode ``table`` as ``recoding`` says, and release it if the models hold on its own rows.

    What its people demand for themselves is kept too, unless the controller sets it aside.

    Classes that fail are taken by a later step of the recoding or suppressed.

    Raises:
        HierarchyError: the table holds values that the hierarchies lack.
        UnsatisfiableError: more than the share ``suppression`` of the rows would be suppressed.
    """
    require_number("suppression", suppression, 0, 1)
    if models:
        require_models(models)
    if isinstance(table, Table):
        _require_roles(recoding, table)
    with ExitStack() as held:
        if not isinstance(table, Table) or table.stored is None:
            entries = Tuples.of(with_policies(require_table(table), policies))
        elif (reason := why_read(table, models, recoding.columns.values())) is not None:
            rows = with_policies(require_table(table), policies)
            entries = Tuples.of(rows, note=read_note(table, reason))
        else:
            demanded = add_policies(table, policies)
            entries = count_entries(demanded, models, held, raised=False, demands=demands)
        return _apply(recoding, entries, models, suppression, demands)


def _require_roles(recoding: Recoding, table: Table) -> None:
    """Refuse a table whose quasi-identifiers are others than those of the recoding."""
    declared = table.schema.columns
    roles = {name: declared[name].role for name in recoding.columns if name in declared}
    faults = [
        f"The recoding generalizes {name!r}, which the table calls {role!r}: call it a "
        "quasi-identifier there, or find a recoding without it."
        for name, role in roles.items()
        if role != "quasi"
    ]
    faults += [
        f"The table has the quasi-identifier {name!r}, which the recoding does not generalize: "
        "find a recoding with it, or give the column another role."
        for name in table.schema.quasi
        if name not in recoding.columns
    ]
    if faults:
        raise SchemaError(*faults)


def _apply(
    recoding: Recoding,
    entries: Tuples,
    models: Sequence[Model],
    suppression: float,
    demands: DemandsChoice,
) -> Release:
    """The release of entries that stand for rows, wherever these are."""
    refuse_contradiction(models, demands)
    state_demands(entries, demands)
    if demands == "keep":
        models = with_demanded_models(entries.table, models)
    if not models:
        raise PrivacyError("No promise was asked for: name at least one model.")
    require_models(models)
    published_columns(entries.table if entries.origin is None else entries.origin)
    everybody = entries.rows
    most = int(Fraction(str(suppression)) * everybody)
    entries, left_out = leave_out_entries(entries, models, most, ALLOW)
    while True:
        stated, step = _place(recoding, entries, models)
        keep = step >= 0
        suppressed = rows_in(pick_counts(entries.counts, ~keep)) + left_out
        if suppressed > most or suppressed == everybody:
            raise _too_many(recoding, entries, models, (suppressed, everybody))
        if keep.all() or _labels_stay(recoding, entries.table, keep):
            break
        # Labels would follow rows that do not leave.
        entries, left_out = entries.keep(keep), suppressed
    note = "These rows were recoded by a recoding found on other rows."
    return seal(
        Candidate(
            table=entries.table,
            models=models,
            recoding=recoding if keep.all() and recoding.full_domain else stated,
            step=step,
            method="recoding",
            parameters={"suppression": suppression},
            notes=(note, *((entries.note,) if entries.note else ())),
            demands=demands,
            left_out=left_out,
            tuples=entries if entries.engine else None,
        )
    )


def _place(
    recoding: Recoding, entries: Tuples, models: Sequence[Model]
) -> tuple[Recoding, NDArray[np.int32]]:
    """The recoding without classes that fail a model, and the step that each entry then takes."""
    table = entries.table
    stated = _with_all_classes(recoding, table)
    step = stated.assign(table)
    while (failing := _failing(stated, entries, step, models)).any():
        # Rows that an early step gives up may complete the classes of a later one.
        first = failing & (step == step[failing].min())
        stated = _without(stated, table, np.where(first, step, np.int32(-1)))
        step = stated.assign(table)
    return stated, step


def _labels_stay(recoding: Recoding, table: Table, keep: NDArray[np.bool_]) -> bool:
    """Whether the rows that leave would have the same labels without the others."""
    bound = recoding.bind(table)
    names = columns_following(bound, list(recoding.columns))
    return not names or labels_stay(bound, recoding.bind(table.keep(keep)), keep, names)


def _with_all_classes(recoding: Recoding, table: Table) -> Recoding:
    """The recoding with every step's classes listed; a full-domain one takes any class."""
    steps = list(recoding.steps)
    for index, one in enumerate(steps):
        if one.classes is None or recoding.full_domain:
            everyone = np.full(len(table), index, dtype=np.int32)
            steps[index] = recoding.with_classes(table, everyone).steps[index]
    return replace(recoding, steps=tuple(steps))


def _failing(
    recoding: Recoding, entries: Tuples, step: NDArray[np.int32], models: Sequence[Model]
) -> NDArray[np.bool_]:
    """The entries whose class breaks a model."""
    table, kept = entries.table, np.flatnonzero(step >= 0)
    failing = np.zeros(len(table), dtype=np.bool_)
    if not len(kept):
        return failing
    labels = [encode_labels(column) for column in recoding.published(table, step).columns]
    for model in models:
        classes, ids = count_published(labels, entries, kept, model, recoding)
        failing[kept] |= ~model.passes(classes)[ids]
    return failing


def _without(recoding: Recoding, table: Table, step: NDArray[np.int32]) -> Recoding:
    """The recoding without the classes that the rows of ``step`` fall into."""
    steps = []
    for one, out in zip(recoding.steps, recoding.with_classes(table, step).steps, strict=True):
        gone = set(out.classes or ())
        steps.append(replace(one, classes=tuple(c for c in one.classes or () if c not in gone)))
    return replace(recoding, steps=tuple(steps))


def _too_many(
    recoding: Recoding, entries: Tuples, models: Sequence[Model], counts: tuple[int, int]
) -> UnsatisfiableError:
    (suppressed, everybody), table = counts, entries.table
    step = _with_all_classes(recoding, table).assign(table)
    kept = np.flatnonzero(step >= 0)
    found: list[Verdict] = []
    if len(kept):
        labels = recoding.published(table, step)
        found, _ = recheck_models(models, labels, entries, kept, recoding)
    return UnsatisfiableError(
        f"{suppressed:,} of {everybody:,} new rows would have to be suppressed.",
        verdicts=found,
        levels=recoding.levels,
        suppressed=suppressed,
        advice=("Allow more suppression, or anonymize the new rows on their own.",),
    )


FORMAT = "halfmask.recoding/1"


@dataclass(frozen=True, slots=True)
class StoredCsv:
    """A hierarchy file whose content travels with the recoding."""

    rule: Csv
    content: str

    def build(self, column: str, values: pa.Array) -> Hierarchy:
        """Bind the stored file to the values of ``column``."""
        with TemporaryDirectory() as folder:
            file = Path(folder) / Path(self.rule.path).name
            file.write_text(self.content, encoding="utf-8")
            rule = replace(self.rule, path=file.name, folder=file.parent, encoding="utf-8")
            return rule.build(column, values)

    def to_dict(self) -> dict[str, object]:
        """What stands behind ``hierarchy =`` in the schema file."""
        return self.rule.to_dict()


def _save(recoding: Recoding, path: str | PathLike[str]) -> None:
    """Write ``recoding``, whose hierarchies may list original values, to a private file."""
    document = {
        "format": FORMAT,
        "columns": {name: _plain(column) for name, column in recoding.columns.items()},
        "steps": [{"levels": dict(s.levels), "classes": s.classes} for s in recoding.steps],
    }
    text = json.dumps(document, indent=1, ensure_ascii=False)
    with private_file(path) as temporary:
        temporary.write_text(text + "\n", encoding="utf-8")


def _load(path: str | PathLike[str]) -> Recoding:
    """Read what ``save`` wrote."""
    file, document = Path(path), read_document(path, "recoding")
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise InputError(f"{str(file)!r} is not a recoding that this version reads ({FORMAT}).")
    damaged = InputError(f"The recoding {str(file)!r} is damaged: save it again.")
    try:
        steps = tuple(_step(step) for step in document["steps"])
        columns = _columns(document["columns"])
        sound = bool(steps) and all(_fits(step, columns) for step in steps)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise damaged from error
    if not sound:
        raise damaged
    return Recoding(columns, steps)


def _plain(column: Column) -> dict[str, Any]:
    entry = column_to_dict(column)
    if isinstance(column.hierarchy, StoredCsv):
        entry["content"] = column.hierarchy.content
    elif isinstance(column.hierarchy, Csv):
        from halfmask.table.files.text_file import read_text

        rule = column.hierarchy
        entry["content"] = read_text(rule.folder / rule.path, rule.encoding)
    return entry


def _columns(entries: dict[str, dict[str, Any]]) -> dict[str, Column]:
    contents = {name: entry.pop("content") for name, entry in entries.items() if "content" in entry}
    columns = dict(schema_from_dict({"columns": entries}, Path()).columns)
    for name, content in contents.items():
        rule = columns[name].hierarchy
        if not isinstance(rule, Csv):
            raise TypeError(name)
        columns[name] = replace(columns[name], hierarchy=StoredCsv(rule, content))
    return columns


def _step(step: dict[str, Any]) -> RecodingStep:
    levels = {str(name): int(level) for name, level in step["levels"].items()}
    classes = step["classes"]
    return RecodingStep(levels, None if classes is None else tuple(tuple(one) for one in classes))


def _fits(step: RecodingStep, columns: dict[str, Column]) -> bool:
    width = all(len(one) == len(columns) for one in step.classes or ())
    return width and set(step.levels) == set(columns) and min(step.levels.values(), default=0) >= 0
