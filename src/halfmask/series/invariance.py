"""m-invariant releases: everybody keeps the values to hide among, whoever comes and leaves.

What a series can be made of, the next release of it and the labels of its classes, which are made
in ``halfmask.series.division``.
Source: Xiao and Tao, "m-invariance: towards privacy preserving re-publication of dynamic datasets",
2007.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from halfmask.errors import InputError, ParameterError, PrivacyError
from halfmask.models.k_anonymity import KAnonymity
from halfmask.models.l_diversity import LDiversity, MInvariance
from halfmask.models.personal import PersonalKAnonymity, PersonalLDiversity
from halfmask.models.verdict import require_number
from halfmask.release.candidate import SeriesCandidate
from halfmask.release.doors.series import SeriesLedger
from halfmask.release.labels import Holders, Nodes, Ranges, encode_labels
from halfmask.release.partition import RowPartition
from halfmask.release.seal import published_columns, seal
from halfmask.series.division import SeriesDivision

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

    from numpy.typing import NDArray

    from halfmask.models.verdict import Model
    from halfmask.release.demands import DemandsChoice
    from halfmask.release.doors.series import SeriesRelease
    from halfmask.release.labels import ClassLabels
    from halfmask.table.table import Table

OPTIONS = ("counterfeits", "on_infeasible", "key")
MOST = 0.1  # counterfeits per row, unless more are allowed


def publish_series(
    table: Table,
    models: Sequence[Model],
    previous: str | PathLike[str] | SeriesLedger,
    *,
    demands: DemandsChoice = "keep",
    **options: Any,
) -> SeriesRelease:
    """The next release of a series, noted in its ledger.

    Args:
        table: the rows as they are now, one a person.
        models: ``MInvariance`` and others.
        previous: the ledger of the series; an absent file begins one.
        demands: whether people's own demands are kept.
        options: ``counterfeits``, the highest share of rows that stand for nobody (0.1);
            ``on_infeasible="suppress"`` leaves out whom nothing can serve; ``key``, the file of the
            secret that the ledger is sealed with.

    Raises:
        InputError: the ledger is of another table, or the table does not say who is who.
        PrivacyError: somebody's value or demand does not fit what was promised before.
    """
    unknown = [name for name in options if name not in OPTIONS]
    if unknown:
        raise ParameterError("option", unknown[0], f"one of {', '.join(OPTIONS)} with previous=")
    invariance, others = _split_models(models)
    ledger = SeriesLedger.open(previous, options.get("key"))
    _require_columns(table, invariance)
    ledger.require(table, invariance.column)
    unmet = options.get("on_infeasible", "error")
    if unmet not in ("error", "suppress"):
        raise ParameterError("on_infeasible", unmet, "'error' or 'suppress'")
    drop = unmet == "suppress"
    share = options.get("counterfeits", MOST)
    require_number("counterfeits", share, 0)
    work = _divide(table, (invariance, others), ledger, drop=drop)
    fake = len(work.counterfeits)
    if fake > share * len(work.table):
        raise PrivacyError(
            f"{fake:,} counterfeits would stand among {len(work.table):,} people, more than the "
            f"share of {share:g} that is allowed: allow more (counterfeits=), ask for a smaller m, "
            "or begin a new series."
        )
    lines = dict(zip(work.space.columns, work.space.ordered, strict=True))
    step = work.step.astype(np.int32)
    classes = np.array([one for one, _ in work.counterfeits], dtype=np.int32)
    texts = tuple(value for _, value in work.counterfeits)
    candidate = SeriesCandidate(
        table=work.table,
        invariance=invariance,
        models=others,
        partition=_without_rare(
            RowPartition.of(work.table, step, lines, work.shown), work.table, work.shown
        ),
        step=step,
        counterfeits=(classes, texts),
        ledger=ledger,
        parameters={"models": [one.to_dict() for one in models], "counterfeits": share},
        notes=work.notes,
        demands=demands,
        left_out=len(table) - len(work.table),
    )
    return seal(candidate)


def _divide(
    table: Table,
    models: tuple[MInvariance, Sequence[Model]],
    ledger: SeriesLedger,
    *,
    drop: bool,
) -> SeriesDivision:
    """The rows in classes, without those who cannot be served where these are dropped."""
    work = SeriesDivision.of(table, *models, ledger, drop=drop)
    while True:
        work.divide()
        # Counterfeits fill signatures but are no people: a personal k can still fail.
        short = work.short()
        if not short.any():
            return work
        work = work.without(short, ledger, drop=drop)


def _without_rare(partition: RowPartition, table: Table, need: NDArray[np.int64]) -> RowPartition:
    """Wider labels for classes that would publish a value itself which too few people hold.

    Somebody may stand among counterfeits alone, whose class has one value only then.
    """
    out: dict[str, ClassLabels] = {}
    everybody = np.arange(len(table))
    for name, labels in partition.labels.items():
        held = Holders.of(table, name, everybody, need)
        if isinstance(labels, Ranges):
            if len(held.rare) == 1 and held.rare.any():
                raise PrivacyError(
                    f"Column {name!r} has one value, which fewer people hold than a label may show "
                    "(m, or what they demand): add people, or give it the role identifier."
                )
            alone = (labels.low == labels.high) & held.rare[labels.low]
            low = labels.low - (alone & (labels.low > 0))
            high = labels.high + (alone & (labels.low == 0))
            out[name] = replace(labels, low=low, high=np.minimum(high, len(held.rare) - 1))
        elif isinstance(labels, Nodes):
            out[name] = replace(labels, level=_shared_levels(labels, table, name, held))
        else:
            out[name] = labels
    return replace(partition, labels=out)


def _shared_levels(labels: Nodes, table: Table, name: str, held: Holders) -> NDArray[np.int32]:
    """The levels of classes, higher where they publish a value that too few people hold."""
    hierarchy, level = table.hierarchy(name), labels.level.copy()
    open_ = (level == 0) & held.rare[labels.value]
    texts = encode_labels(table.encode(name).values).to_pylist()
    rare = {text for text, few in zip(texts, held.rare.tolist(), strict=True) if few}
    for one in range(1, hierarchy.height + 1):
        level[open_] = one
        node = hierarchy.maps[one]
        people = np.bincount(node, weights=held.people)
        most = np.zeros(len(people), dtype=np.int64)
        np.maximum.at(most, node, held.need)
        named = [None if text is None else str(text) for text in hierarchy.labels[one]]
        few = (people < most) | np.array([text in rare for text in named])[: len(people)]
        open_ &= few[node[labels.value]]
    level[open_] = hierarchy.height + 1
    return level


def _split_models(models: Sequence[Model]) -> tuple[MInvariance, list[Model]]:
    ours = [one for one in models if isinstance(one, MInvariance)]
    if len(ours) != 1:
        raise InputError(
            "A ledger keeps a promise over a series: name it once, --m-invariance COLUMN=M on the "
            "command line, hm.MInvariance(m, column) in Python."
        )
    others = [one for one in models if one is not ours[0]]
    for one in others:
        if not _is_kept(one, ours[0].column):
            raise ParameterError(
                "models", one.name, f"k or distinct l of {ours[0].column}, also people's own, "
                "beside m-invariance: a series keeps no other promise",
            )  # fmt: skip
    return ours[0], others


def _is_kept(model: Model, column: str) -> bool:
    """Whether enough people with a value each are all that a model asks of a class."""
    if isinstance(model, LDiversity):
        return model.kind == "distinct" and model.column == column
    if isinstance(model, PersonalLDiversity):
        return model.column == column
    return isinstance(model, KAnonymity | PersonalKAnonymity)


def _require_columns(table: Table, invariance: MInvariance) -> None:
    """Refuse a table that no series can be made of."""
    schema = table.schema
    if schema.person is None:
        raise InputError(
            "A series needs to know who is who: name the person column under [table] in the schema."
        )
    names = published_columns(table)
    more = [name for name in names if name not in (*schema.quasi, invariance.column)]
    if more:
        raise InputError(
            f"Column {more[0]!r} would leave beside {invariance.column!r}: a series publishes the "
            "quasi-identifiers and one sensitive column. Give it the role identifier, so that it "
            "stays."
        )
    people = table.encode(schema.person)
    rows = np.bincount(people.codes, minlength=len(people.values))
    nobody = 0
    if people.values.null_count:
        nobody, rows = int(rows[-1]), rows[:-1]
    several = int((rows > 1).sum())
    if nobody or several:
        raise InputError(
            f"A series publishes one row for each person, by column {schema.person!r}: {several:,} "
            f"people have several rows, and {nobody:,} rows name nobody. Whoever knows how many "
            "rows somebody has would tell classes apart: keep one row of each person (the latest), "
            "or join them."
        )
