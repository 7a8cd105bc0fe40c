"""The second look at a release: classes counted again from the very rows that leave.

Nothing here shares code with the search or its kernels; rows are grouped by Arrow.
"""

from __future__ import annotations

import secrets
from bisect import bisect_left, bisect_right
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfmask.errors import InternalError, PrivacyError
from halfmask.metrics.risk.reidentification import reidentification
from halfmask.models.requirements import demand_keys
from halfmask.release.labels import Ranges, Sets, encode_labels
from halfmask.release.partition import Perturbation, RowPartition, label_texts
from halfmask.release.pseudonyms import tied_classes
from halfmask.table.classes import Classes, Histogram, people_by_demand, value_facts
from halfmask.table.demands import HOUSEHOLD
from halfmask.table.hierarchies import Csv, Flat, Mask, Ordered, Tree
from halfmask.table.hierarchy import TOP, canonical
from halfmask.table.labels import MISSING, SIGN, range_ends, value_places
from halfmask.table.table import encode_column
from halfmask.table.tuples import Tuples, distinct_numbers, pick_counts, tally

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from halfmask.metrics.risk.reidentification import Reidentification
    from halfmask.models.verdict import Model, Verdict
    from halfmask.release.labels import Label
    from halfmask.release.recoding import Recoding
    from halfmask.table.hierarchy import Hierarchy, HierarchyBuilder
    from halfmask.table.table import Table

_ID = "id"


def recheck_models(
    models: Sequence[Model],
    quasi: pa.Table,
    rows: Table | Tuples,
    kept: NDArray[np.int64],
    recoding: Recoding | RowPartition | Perturbation,
    *,
    tied: NDArray[Any] | None = None,
) -> tuple[list[Verdict], NDArray[Any]]:
    """Check every model on published rows; returns the verdicts and the class of each row.

    Args:
        models: what must hold.
        quasi: the published quasi-identifiers, one row per published row.
        rows: the original rows, or entries that stand for them.
        kept: which of them leave, in the order of ``quasi``.
        recoding: how a population table is generalized alongside.
        tied: whose row each is, where something that leaves ties the rows of a person together.
    """
    entries = Tuples.of(rows)
    # Classes are what a reader sees: labels that are spelled alike are one, whatever their level.
    labels = [encode_labels(column) for column in quasi.columns]
    alone = class_ids(labels, len(kept))
    if tied is not None:
        if any(model.population is not None for model in models):
            raise PrivacyError(
                "A promise about a population cannot be checked where rows of a person are tied."
            )
        alone = tied_classes(alone[0], tied)
    found = []
    for model in models:
        classes, _ = count_published(labels, entries, kept, model, recoding, alone)
        found.append(model.check(classes))
        if found[-1].holds:
            _require_known_values(model, entries.table, kept, alone[0])
    return found, alone[0]


def _require_known_values(
    model: Model, table: Table, kept: NDArray[np.int64], ids: NDArray[Any]
) -> None:
    """Demand as many values in each class as a model states, by Arrow's own count of known ones.

    Raises:
        InternalError: missing values were counted that protect nobody; nothing leaves.
    """
    demand = model.kernel_demand(table)
    if demand is None or demand.column is None or not np.any(np.asarray(demand.values) > 1):
        return
    name = str(table.schema.household if demand.column == HOUSEHOLD else demand.column)
    cells = table.arrow[name].combine_chunks().take(pa.array(kept))
    pairs = pa.table({_ID: ids, "value": cells})
    if not demand.missing:
        pairs = pairs.filter(pc.is_valid(pairs["value"]))
    held = pairs.group_by([_ID, "value"]).aggregate([]).group_by(_ID).aggregate([([], "count_all")])
    values = np.zeros(int(ids.max(initial=-1)) + 1, dtype=np.int64)
    values[held[_ID].to_numpy()] = held["count_all"].to_numpy()
    asked = np.broadcast_to(np.asarray(demand.values), len(table))[kept]
    short = (values[ids] < asked) & (asked > 1)
    if short.any():
        raise InternalError(
            f"Column {name!r}: {int(short.sum())} rows would leave in classes of fewer "
            "known values than promised; nothing was released."
        )


def count_published(
    labels: list[pa.Array],
    entries: Tuples,
    kept: NDArray[np.int64],
    model: Model,
    recoding: Recoding | RowPartition | Perturbation,
    alone: tuple[NDArray[Any], int] | None = None,
) -> tuple[Classes, NDArray[Any]]:
    """Group published rows by their labels, with what ``model`` reads; gives each row's class.

    ``alone`` is the grouping of these rows without a population, where it is known already.
    """
    table, own, unplaced = entries.table, len(kept), 0
    if entries.engine and (model.population is not None or model.weighted):
        raise InternalError("Rows that stay elsewhere cannot be held against a population.")
    if model.population is not None:
        if isinstance(recoding, RowPartition | Perturbation):
            raise InternalError("Without a recoding nobody of a population can be placed.")
        alone = None
        population, unplaced = _population(recoding, model.population)
        labels = [pa.concat_arrays(pair) for pair in zip(labels, population, strict=True)]
    ids, count = alone or class_ids(labels, len(labels[0]))
    count += unplaced > 0  # people of the population whom no class takes stand in one of their own
    everyone = np.bincount(ids, minlength=count)
    everyone[count - 1] += unplaced
    ids = ids[:own]
    rows = tally(ids, count, pick_counts(entries.counts, kept))
    needed = {name: name for name in model.columns}
    needed |= {key: key for key in demand_keys(table, model)}
    classes = Classes(
        keys=np.arange(count, dtype=np.uint64).reshape(-1, 1),
        rows=rows,
        people=_people(table, kept, ids, rows),
        histograms={
            key: _histogram(entries, kept, name, (ids, count)) for key, name in needed.items()
        },
        population=None if model.population is None else (everyone - rows).astype(np.int64),
    )
    if model.weighted:
        classes = replace(classes, population=_stood_for(table, kept, ids, count))
    return classes, ids


def _stood_for(
    table: Table, kept: NDArray[np.int64], ids: NDArray[Any], count: int
) -> NDArray[np.int64]:
    """Per class, the whole people for whom its people stand by their weights, each once."""
    schema = table.schema
    weights = table.arrow[schema.weight].take(pa.array(kept))
    whole = pc.floor(weights.cast(pa.string()).cast(pa.float64()))
    person = pa.array(kept) if schema.person is None else table.encode(schema.person).codes[kept]
    pairs = pa.table({_ID: ids, "person": person, "stands": whole})
    once = pairs.group_by([_ID, "person"]).aggregate([("stands", "min")])
    sums = once.group_by(_ID).aggregate([("stands_min", "sum")])
    found = np.zeros(count, dtype=np.int64)
    found[sums[_ID].to_numpy()] = sums["stands_min_sum"].to_numpy().astype(np.int64)
    return found


def require_cover(
    recoding: Recoding | RowPartition, table: Table, quasi: pa.Table, step: NDArray[np.int32]
) -> None:
    """Demand that every published label covers the value that it stands for.

    With a recoding it is the value's label at the level of its step; with a partition any label of
    the value's hierarchy or a range that holds it.
    """
    if isinstance(recoding, RowPartition):
        for name in recoding.columns:
            _require_cover(
                table, name, encode_labels(quasi[name]), table.encode(name).codes[step >= 0]
            )
        return
    kept = np.flatnonzero(step >= 0)
    for name in recoding.columns:
        codes, levels = table.encode(name).codes, {one.levels[name] for one in recoding.steps}
        codes = codes if len(kept) == len(codes) else codes[kept]
        one = next(iter(levels))
        if len(levels) > 1:  # else each row has that one, whatever its step
            one = np.array([one.levels[name] for one in recoding.steps], dtype=np.int32)[step[kept]]
        values, found, texts = _seen_together(codes, one, encode_labels(quasi[name]))
        wrong = 0
        for level in np.unique(found).tolist():
            level_map, right = label_texts(table, name, level)
            at = np.flatnonzero(found == level)
            wrong += sum(texts[i] != right[level_map[values[i]]] for i in at)
        if wrong:
            raise InternalError(
                f"Column {name!r}: {wrong} published labels do not cover their value."
            )


def _seen_together(
    values: NDArray[np.int32], levels: NDArray[np.int32] | int, labels: pa.DictionaryArray
) -> tuple[NDArray[np.int64], NDArray[np.int64], list[Label]]:
    """The different triples of a value, the level of its row, and the text that is published."""
    texts: list[Label] = [*labels.dictionary.to_pylist(), None]
    label = labels.indices.fill_null(len(texts) - 1).to_numpy(zero_copy_only=False)
    least = int(np.min(levels))
    depth = int(np.max(levels)) - least + 1
    triples = (values.astype(np.int64) * depth + (levels - least)) * len(texts) + label
    pairs, label = np.divmod(distinct_numbers(triples), len(texts))
    return pairs // depth, pairs % depth + least, [texts[i] for i in label.tolist()]


def _require_cover(table: Table, name: str, labels: pa.Array, codes: NDArray[np.int32]) -> None:
    """Demand that each label, as it is written, covers the value behind it."""
    pairs = pa.table({"value": codes, "label": labels})
    seen = pairs.group_by(pairs.column_names).aggregate([])
    encoded = table.encode(name).values
    values: list[Label] = encode_labels(encoded).to_pylist()
    hierarchy, known = table.hierarchy(name), value_places(values)
    coded = seen["label"].combine_chunks().dictionary_encode()
    texts: list[Label] = coded.dictionary.cast(pa.string()).to_pylist()
    ranges = _label_places([t for t in texts if t is not None], known, encoded)
    low, high = np.array([ranges.get(text, _NOWHERE) for text in (*texts, None)]).T
    held = seen["value"].to_numpy()
    label = coded.indices.fill_null(len(texts)).to_numpy()
    inside = (low[label] <= held) & (held <= high[label])
    above = _labels_above(hierarchy)
    wrong = 0
    for place in np.flatnonzero(~inside).tolist():
        code, text = int(held[place]), [*texts, None][label[place]]
        if text in (values[code], TOP) or text in above[code]:
            continue
        own = MISSING if values[code] is None else values[code]
        pieces = [] if text is None else text.split(SIGN)
        wrong += len(pieces) < 2 or (own not in pieces and not above[code] & set(pieces))
    if wrong:
        raise InternalError(f"Column {name!r}: {wrong} published labels do not cover their value.")


_NOWHERE = (1, 0)  # no place lies between these


def _label_places(
    labels: Sequence[str], known: Mapping[str, int], values: pa.Array
) -> dict[Label, tuple[int, int]]:
    """The codes of the first and the last value inside each label that is a range.

    Nobody may hold its ends. The missing value, which stands last, is in no range.
    """
    present = values.drop_null().to_pylist()
    ends = _all_bounds((one for one in labels if SIGN not in one), values.type)
    found: dict[Label, tuple[int, int]] = {}
    for label, both in ends.items():
        places = range_ends(label, known)
        if places is None and both is not None:
            places = bisect_left(present, both[0]), bisect_right(present, both[1]) - 1
        found[label] = places or _NOWHERE
    return found


def _bounds(label: str, kind: pa.DataType) -> tuple[Any, Any] | None:
    """The ends of a range as values of the column's type; None where it cannot be read."""
    for sign in (" to ", "-"):
        at = label.find(sign, 1)
        while at > 0:
            try:
                low, high = pa.array([label[:at], label[at + len(sign) :]]).cast(kind).to_pylist()
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
                at = label.find(sign, at + 1)
                continue
            if low <= high:
                return low, high
            at = label.find(sign, at + 1)
    return None


def _all_bounds(labels: Iterable[str], kind: pa.DataType) -> dict[str, tuple[Any, Any] | None]:
    """``_bounds`` of every label; in one go where the first sign of each parts two ends."""
    texts = list(labels)
    signs = [" to " if one.find(" to ", 1) > 0 else "-" for one in texts]
    cuts = [one.find(sign, 1) for one, sign in zip(texts, signs, strict=True)]
    found: dict[str, tuple[Any, Any] | None] = dict.fromkeys(texts)
    parted = [i for i, at in enumerate(cuts) if at > 0]
    low = [texts[i][: cuts[i]] for i in parted]
    high = [texts[i][cuts[i] + len(signs[i]) :] for i in parted]
    try:
        ends = pa.array([*low, *high], pa.string()).cast(kind).to_pylist()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return {**found, **{texts[i]: _bounds(texts[i], kind) for i in parted}}
    for i, first, last in zip(parted, ends[: len(parted)], ends[len(parted) :], strict=True):
        found[texts[i]] = (first, last) if first <= last else _bounds(texts[i], kind)
    return found


def _labels_above(hierarchy: Hierarchy) -> list[set[str]]:
    """For each value the labels of its hierarchy above it."""
    found: list[set[str]] = [set() for _ in range(hierarchy.maps.shape[1])]
    for labels, codes in zip(hierarchy.labels[1:], hierarchy.maps[1:].tolist(), strict=True):
        texts = [None if one is None else str(one) for one in labels]
        for own, code in zip(found, codes, strict=True):
            if (text := texts[code]) is not None:
                own.add(text)
    return found


def require_round_bounds(
    recoding: RowPartition, table: Table, quasi: pa.Table, kept: NDArray[np.int64],
    models: Sequence[Model], *, floor: int = 1,
) -> None:  # fmt: skip
    """Demand that no label shows a value that too few people hold, where it holds others too.

    Too few are fewer than anybody who holds it is promised, or than ``floor``.

    Raises:
        InternalError: a bound or a member of a set shows such a value; nothing leaves.
    """
    for name in recoding.columns:
        texts = {
            text for text in encode_labels(quasi[name]).unique().to_pylist() if text is not None
        }
        kind = table.encode(name).values.type
        values = {text for text in encode_labels(table.encode(name).values).to_pylist() if text}
        # Where a cell is a value itself, all of its class hold it: only bounds and members count.
        inside = {text for text in texts if text not in values and text != TOP}
        if not inside or recoding.labels[name].levels(table, name) is not None:
            continue
        rare = _too_few(table, name, kept, models, floor)
        written = _as_written(_all_bounds(inside, kind), kind)
        shown = 0
        for label in inside:
            pieces = label.split(SIGN)
            if len(pieces) > 1:
                shown += any(piece in rare for piece in pieces)
                continue
            if isinstance(recoding.labels[name], Sets):
                continue  # a label of the hierarchy, which others wrote
            shown += any(text in rare for text in written.get(label, label.split(" to ")))
        if shown:
            raise InternalError(
                f"Column {name!r}: {shown} published labels show a value that too few people hold."
            )


def _as_written(
    ends: Mapping[str, tuple[Any, Any] | None], kind: pa.DataType
) -> dict[str, tuple[str, str]]:
    """The ends of ranges as values of the column are written."""
    known = {label: both for label, both in ends.items() if both is not None}
    flat = pa.array([end for both in known.values() for end in both], kind)
    texts = flat.cast(pa.string()).to_pylist()
    return dict(zip(known, zip(texts[::2], texts[1::2], strict=True), strict=True))


def require_shared_values(
    table: Table, quasi: pa.Table, kept: NDArray[np.int64], models: Sequence[Model], floor: int
) -> None:
    """Demand that no cell is a value itself which too few people hold, alone among counterfeits.

    Raises:
        InternalError: a cell shows such a value; nothing leaves.
    """
    for name in quasi.column_names:
        texts = {
            MISSING if t is None else t for t in encode_labels(quasi[name]).unique().to_pylist()
        }
        if texts & _too_few(table, name, kept, models, floor):
            raise InternalError(f"Column {name!r}: cells show a value that too few people hold.")


def _too_few(
    table: Table, name: str, kept: NDArray[np.int64], models: Sequence[Model], floor: int
) -> set[str]:
    """The values of a column that fewer people hold than one of them is promised, as text."""
    least = max(floor, 1 if any(model.policy for model in models) else 2)
    need = pa.array(np.full(len(kept), least, dtype=np.int64))
    for model in models:
        demand = model.kernel_demand(table)
        for asked in () if demand is None else (demand.rows, demand.values):
            every = np.broadcast_to(np.asarray(asked, dtype=np.int64), len(table))
            need = pc.max_element_wise(need, pa.array(every[kept]))
    person = table.schema.person
    who = np.arange(len(kept)) if person is None else table.encode(person).codes[kept]
    rows = pa.table({"value": table.encode(name).codes[kept], "who": who, "need": need})
    held = rows.group_by("value").aggregate([("who", "count_distinct"), ("need", "max")])
    few = held.filter(pc.less(held["who_count_distinct"], held["need_max"]))["value"]
    texts = encode_labels(table.encode(name).values).take(few).to_pylist()
    return {MISSING if text is None else text for text in texts}


def require_own_values(
    recoding: Recoding | RowPartition | Perturbation,
    table: Table,
    quasi: pa.Table,
    kept: NDArray[np.int64],
    models: Sequence[Model],
) -> None:
    """Demand that labels which follow the values of rows show none that no leaving row holds.

    Such are ranges of classes, and labels of hierarchies that are made of the rows: masks as long
    as the longest code, groups of neighbors without an order, those that were found. People of a
    population, who are known, may hold the value too.

    Raises:
        InternalError: a label shows more; nothing leaves.
    """
    together = isinstance(recoding, Perturbation) or bool(table.found)
    if together and len(kept) < len(table):
        raise InternalError("Labels were made of rows that do not leave.")
    if isinstance(recoding, Perturbation):
        return
    populations = [model.population for model in models if model.population is not None]
    for name, column in recoding.columns.items():
        labels = recoding.labels[name] if isinstance(recoding, RowPartition) else None
        ranges, sets = isinstance(labels, Ranges), isinstance(labels, Sets)
        rule = column.hierarchy
        written = rule is None or isinstance(rule, Csv | Flat | Tree)
        if not ranges and not sets and written:
            continue  # written by somebody, value by value
        encoded = table.encode(name)
        held = [encoded.values.take(pa.array(np.unique(encoded.codes[kept])))]
        held += [population.encode(name).values for population in populations]
        texts = encode_labels(quasi[name]).unique().to_pylist()
        shown = {text for text in texts if text is not None}
        if sets:
            shown = {piece for text in shown for piece in text.split(SIGN)} - {MISSING}
            if written:
                shown -= _inner_labels(table.hierarchy(name))
        if isinstance(labels, Ranges) and labels.bounds is not None and labels.bounds.step:
            # On the grid of the column, which only rows that leave decide.
            ends = _all_bounds(shown, encoded.values.type)
            shown = {text for text in shown if ends[text] is None}
        strange = len(shown - _own_labels(None if ranges or written else rule, shown, held))
        if strange:
            raise InternalError(
                f"Column {name!r}: {strange} published labels are made of values that no row holds "
                "which leaves."
            )


def _inner_labels(hierarchy: Hierarchy) -> set[str]:
    """The labels of a hierarchy above its values."""
    return {str(one) for labels in hierarchy.labels[1:] for one in labels if one is not None}


def _own_labels(
    rule: HierarchyBuilder | None, labels: set[str], held: Sequence[pa.Array]
) -> set[str]:
    """Those of ``labels`` that show ``held`` values only, as they are written; no rule: ranges."""
    bare = {canonical(value) for one in held for value in one.to_pylist() if value is not None}
    known = bare | {
        text for one in held for text in encode_labels(one).to_pylist() if text is not None
    }
    top = getattr(rule, "top", True)
    plain = {TOP, *([top] if isinstance(top, str) else []), *known}
    if rule is None or (isinstance(rule, Ordered) and not rule.order):
        return {one for one in labels if one in plain or _is_between(one, known)}
    if isinstance(rule, Mask) and rule.length is None:
        longest = max(map(len, bare), default=1)
        return {one for one in labels if one in plain or len(one) == longest}
    return labels & (plain | _rebuilt(rule, held))


def _is_between(label: str, known: set[str]) -> bool:
    """Whether a range can be read as one from a known value to another."""
    for sign in ("-", " to "):
        at = label.find(sign, 1)
        while at > 0:
            if label[:at] in known and label[at + len(sign) :] in known:
                return True
            at = label.find(sign, at + 1)
    return False


def _rebuilt(rule: HierarchyBuilder, held: Sequence[pa.Array]) -> set[str]:
    """The labels that a rule makes of values that leave, where they cannot be read."""
    values = held[0]
    if len(held) > 1:
        values = encode_column(pa.chunked_array([one.cast(values.type) for one in held])).values
    levels = rule.build("", values).labels
    return {str(label) for labels in levels for label in labels if label is not None}


@dataclass(frozen=True, slots=True)
class CellTruth:
    """What the labels of one column do to its cells: loss, and how many of them are true."""

    loss: Fraction
    true: int
    rows: int
    classes: int
    true_classes: int


def cell_truth(
    given: Perturbation, table: Table, kept: NDArray[np.int64], ids: NDArray[Any], name: str
) -> CellTruth:
    """Count the true cells of a column, from what each label means; ``ids``: each row's class.

    Raises:
        InternalError: a label is published whose meaning is not stated.
    """
    meaning, labels = given.meaning[name], encode_column(given.labels[name])
    codes, domain = table.encode(name).codes[kept], len(table.encode(name).values)
    texts = labels.values.to_pylist()
    if any(text not in meaning for text in texts):
        raise InternalError(f"Column {name!r} publishes a label whose meaning is not stated.")
    covered = np.zeros((len(texts), domain), dtype=bool)
    for place, text in enumerate(texts):
        covered[place, meaning[text]] = True
    true = covered[labels.codes, codes]
    hierarchy = table.hierarchy(name)
    wide = hierarchy.size  # as for every release: values that nobody holds count too
    sizes = np.array([_width(hierarchy, text, meaning[text]) for text in texts])
    rows, everyone = len(codes), len(table)
    leaves = int(sizes[labels.codes].sum()) + (everyone - rows) * wide
    loss = Fraction(leaves - everyone, everyone * (wide - 1)) if wide > 1 else Fraction(0)
    false_in = np.zeros(int(ids.max()) + 1, dtype=bool)
    false_in[ids[~true]] = True
    return CellTruth(loss, int(true.sum()), rows, len(false_in), int((~false_in).sum()))


def _width(hierarchy: Hierarchy, text: str, covered: NDArray[np.int64]) -> int:
    """How many values a label stands for: all under its node, or those of the table it names."""
    if text == TOP:
        return hierarchy.size
    for level in range(1, hierarchy.height + 1):
        nodes = np.unique(hierarchy.maps[level][covered])
        if len(nodes) == 1 and str(hierarchy.labels[level][nodes[0]]) == text:
            return int(hierarchy.leaves[level][nodes[0]])
    return len(covered)


def class_ids(labels: list[pa.Array], rows: int) -> tuple[NDArray[Any], int]:
    """The class of each row, by Arrow's own grouping; the missing value is a group of its own."""
    if not labels:  # nothing tells rows apart
        return np.zeros(rows, dtype=np.int32), min(rows, 1)
    names = [str(i) for i in range(len(labels))]
    place = np.arange(rows, dtype=np.int32 if rows < 2**31 else np.int64)
    table = pa.table([*labels, place], names=[*names, _ID])
    groups = pa.concat_arrays(table.group_by(names).aggregate([(_ID, "list")])[-1].chunks)
    ids = np.empty(rows, dtype=place.dtype)
    members = groups.flatten().to_numpy(zero_copy_only=False)
    ids[members] = np.repeat(
        np.arange(len(groups), dtype=place.dtype), np.diff(groups.offsets.to_numpy())
    )
    return ids, len(groups)


def class_risk(
    table: Table, kept: NDArray[np.int64], ids: NDArray[Any], counts: NDArray[np.int64]
) -> Reidentification:
    """How likely people are found in the classes ``ids`` of the rows ``kept`` that leave."""
    rows = tally(ids, 0, counts)
    return reidentification(rows, _people(table, kept, ids, rows))


def _people(
    table: Table, kept: NDArray[np.int64], ids: NDArray[Any], rows: NDArray[np.int64]
) -> NDArray[np.int64]:
    """How many different people stand in each class."""
    if table.schema.person is None:
        return rows
    person = table.encode(table.schema.person).codes[kept]
    pairs = pa.table({_ID: ids, "person": person})
    distinct = pairs.group_by([_ID, "person"]).aggregate([])
    counts = distinct.group_by(_ID).aggregate([([], "count_all")])
    people = np.zeros(len(rows), dtype=np.int64)
    people[counts[_ID].to_numpy()] = counts["count_all"].to_numpy()
    return people


def _histogram(
    entries: Tuples, kept: NDArray[np.int64], name: str, grouped: tuple[NDArray[Any], int]
) -> Histogram:
    table, (ids, count) = entries.table, grouped
    rows = pa.array(pick_counts(entries.counts, kept))
    pairs = pa.table({_ID: ids, "value": table.encode(name).codes[kept], "rows": rows})
    found = pairs.group_by([_ID, "value"]).aggregate([("rows", "sum")])
    counted = found.sort_by([(_ID, "ascending"), ("value", "ascending")])
    owners = counted[_ID].to_numpy()
    facts = value_facts(table, name)
    return Histogram(
        starts=np.searchsorted(owners, np.arange(count + 1)).astype(np.int64),
        values=counted["value"].to_numpy().astype(np.int32),
        counts=counted["rows_sum"].to_numpy().astype(np.int64),
        **facts,
        people=people_by_demand(table, name, kept),
        reference=_everyone(entries, name, facts["domain"]),
    )


def _everyone(entries: Tuples, name: str, domain: int) -> NDArray[np.int64]:
    """How many rows of the whole table hold each value, those that do not leave among them."""
    codes = pa.array(entries.table.encode(name).codes)
    rows = pa.array(entries.counts)
    each = pa.table({"value": codes, "rows": rows}).group_by("value").aggregate([("rows", "sum")])
    found = np.zeros(domain, dtype=np.int64)
    found[each["value"].to_numpy()] = each["rows_sum"].to_numpy()
    return found


def _population(recoding: Recoding, population: Table) -> tuple[list[pa.Array], int]:
    """The labels that the people of a population table would get, and how many get none."""
    step = recoding.assign(population)
    if recoding.full_domain:
        step = np.zeros(len(population), dtype=np.int32)
    quasi = recoding.published(population, step)
    return [encode_labels(column) for column in quasi.columns], int(np.count_nonzero(step < 0))


def require_verdicts(found: Sequence[Verdict], *, expected: int) -> None:
    """Let nothing leave that breaks a promise or was not checked on all rows."""
    broken = [v for v in found if not v.holds or v.rows != expected]
    if broken:
        words = ", ".join(f"{v.model} ({v.failing_classes} classes fail)" for v in broken)
        raise InternalError(f"The rows that would leave break {words}; nothing was released.")


def secret_order(size: int) -> pa.Array:
    """An order of so many rows that tells nothing of the table's."""
    # From the system's secure source: a seed could be guessed, and the order of the table undone.
    random = np.frombuffer(secrets.token_bytes(8 * size), dtype=np.uint64)
    return pa.array(np.argsort(random))  # equal numbers may stand either way


def repack(column: pa.ChunkedArray) -> pa.Array:
    """One chunk whose dictionary, if any, holds the column's own values in ascending order."""
    if pa.types.is_dictionary(column.type):
        encoded = encode_column(column)
        present = encoded.values.drop_null()
        missing, codes = None, encoded.codes
        if len(present) < len(encoded.values):
            missing = codes == len(present)
            codes = np.where(missing, 0, codes).astype(np.int32)
        indices = pa.array(codes, pa.int32(), mask=missing)
        return pa.DictionaryArray.from_arrays(indices, present)
    array = column.combine_chunks()
    return array if isinstance(array, pa.Array) else pa.concat_arrays(array.chunks)
