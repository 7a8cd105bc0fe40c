"""``hm.compare``: what a release is still good for, and what it still tells about people.

It works for generalized, suppressed, perturbed and synthetic rows alike; see
``halfmask.metrics.sides`` for the common ground.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from halfmask.assessment.comparison import Comparison, Finding
from halfmask.assessment.opened import How, open_sides
from halfmask.assessment.parameters import require_limit
from halfmask.errors import InputError
from halfmask.metrics.discrimination.meaning import (
    meaning_of,
    original_blocks,
    released_blocks,
)
from halfmask.metrics.discrimination.need import Need, need_met
from halfmask.metrics.discrimination.needs_file import stated_needs
from halfmask.metrics.discrimination.partition_file import stated_partitions
from halfmask.metrics.discrimination.release_rates import release_rates
from halfmask.metrics.partition_measures import published_measures
from halfmask.metrics.risk.control import same_people
from halfmask.metrics.risk.criterion import LIMIT
from halfmask.metrics.risk.differencing import differencing, singling_out_together
from halfmask.metrics.risk.disclosure import disclosure
from halfmask.metrics.risk.doubts import doubts
from halfmask.metrics.risk.inference import inference
from halfmask.metrics.risk.linkability import linkability, linkability_by_names
from halfmask.metrics.risk.linkage import linkage
from halfmask.metrics.risk.membership import membership
from halfmask.metrics.risk.minimality import minimality
from halfmask.metrics.risk.reidentification import reidentification
from halfmask.metrics.risk.several_rows import chance_of_people, released_people
from halfmask.metrics.risk.singling_out import singling_out
from halfmask.metrics.risk.targets import targets as whom
from halfmask.metrics.sides import sides
from halfmask.metrics.utility import learning
from halfmask.metrics.utility.association import pairs_of
from halfmask.metrics.utility.classes import class_utility
from halfmask.metrics.utility.distributions import column_distance, joint_distances
from halfmask.metrics.utility.likeness import likeness
from halfmask.metrics.utility.moments import class_mean_error, moments
from halfmask.metrics.utility.prediction import predict
from halfmask.metrics.utility.queries import counting_queries
from halfmask.metrics.utility.regression import regress
from halfmask.metrics.utility.sql_queries import columns_named, sql_queries, statements
from halfmask.metrics.weighted import mean
from halfmask.models.exact import require_whole
from halfmask.table.classes import classes_of
from halfmask.table.schema import Column, Schema
from halfmask.table.table import Table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from os import PathLike

    from halfmask.engines.counted import Counted
    from halfmask.metrics.discrimination.release_rates import ReleaseRates
    from halfmask.metrics.risk.reidentification import Reidentification
    from halfmask.metrics.risk.several_rows import People
    from halfmask.metrics.risk.targets import Targets
    from halfmask.metrics.sides import Published, Sides
    from halfmask.metrics.utility.prediction import Prediction
    from halfmask.metrics.utility.regression import Regression
    from halfmask.metrics.weighted import Counts

_PAIRS = 50_000_000  # pairs of rows inside classes whose distance is looked at
_FITTED = 3  # numeric sensitive columns that are fitted without being named


def compare(
    original: Table | str | PathLike[str],
    release: Published | Table | Any,
    *,
    schema: object = None,
    engine: str | None = None,
    source_table: str | None = None,
    release_table: str | None = None,
    control_table: str | None = None,
    earlier_table: str | None = None,
    weaker_table: str | None = None,
    memory_limit: str | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    control: Table | Any | None = None,
    earlier: Published | Table | Any | None = None,
    suppressed: str | None = None,
    same_order: bool = False,
    targets: Sequence[str] | None = None,
    needs: Sequence[Need] | str | PathLike[str] = (),
    partition: object = None,
    weaker: Published | Table | str | PathLike[str] | None = None,
    queries: str | PathLike[str] | None = None,
    learn: bool | None = None,
    attacks: int = 500,
    seed: int = 0,
    limit: float = LIMIT,
) -> Comparison:
    """Measure what ``release`` lost against ``original`` and what it still gives away.

    Args:
        original: the rows it was made from; its schema and hierarchies count. Each of the tables
            may also be the name of a file or the address of a PostgreSQL database, whose rows stay
            where they are if ``engine`` says so or the file is large.
        release: a release, or a table or frame of its rows.
        schema: the schema of an original that is a file or stands in a database, as for ``read``.
        engine: ``"duckdb"`` counts CSV and Parquet files and DuckDB databases within
            ``memory_limit`` (such as ``"500MB"``), spilling to disk; ``"memory"`` reads them.
        source_table: which table of a database the original is.
        release_table: the same for the release.
        control_table: the same for the control.
        earlier_table: the same for the earlier release.
        weaker_table: the same for the weaker release.
        memory_limit: how much memory DuckDB may take.
        delimiter: what stands between the fields of an original that is a text file; ``None``:
            detected, as it is for the other tables.
        encoding: the character encoding of that file; ``None``: detected.
        control: rows of people who are not in the original, with the same columns; a frame too.
        earlier: another release of the same people, which an attacker may have too.
        suppressed: what stands for a suppressed quasi-identifier in the releases, if it is not
            ``*``: a text such as ``"NA"``, or ``"missing"`` for missing cells.
        same_order: whether both tables hold the same people in the same order (perturbed rows).
        targets: columns to predict; None: the first sensitive column. Linear models are fitted for
            the numeric ones of them; None: for the first three numeric sensitive columns.
        needs: what analysts want to learn, as discrimination rates, or a TOML file of needs.
        partition: per sensitive column, which of its values mean the same: blocks by column, or a
            TOML file; else the first level of its hierarchy, else tenths of the range of numbers.
        weaker: a release under a weaker promise; where this one tells more is listed.
        queries: a file of SQL on a table called people, run on both.
        learn: whether to train models; None: if scikit-learn is installed. Linear models are fitted
            without it too.
        attacks: how many people each attack is tried on.
        seed: repeats the random choices of attacks and queries.
        limit: the highest acceptable risk.

    Example:
        >>> import halfmask as hm
        >>> people = hm.read({"age": [30, 30, 41, 41]}, schema={"age": "quasi"})
        >>> hm.compare(people, hm.anonymize(people, hm.KAnonymity(2)), learn=False).suppressed
        0
    """
    require_whole("attacks", attacks, 1)
    require_whole("seed", seed, 0)
    require_limit(limit)
    targets = [targets] if isinstance(targets, str) else targets
    asked = [] if queries is None else statements(queries)
    wishes, meanings = stated_needs(needs), stated_partitions(partition)
    if not all(isinstance(wish, Need) for wish in wishes):
        raise InputError(
            "A need is written as Need(target, keys): what is to be learned from what."
        )
    more = [*columns_named(asked), *_spoken_of(targets, wishes)]
    how = How(engine, memory_limit, suppressed)
    opened = open_sides(
        (original, release, control, earlier, weaker),
        (source_table, release_table, control_table, earlier_table, weaker_table),
        schema=schema,
        more=more,
        how=how,
        delimiter=delimiter,
        encoding=encoding,
    )
    paired = sides(opened.original, opened.release)
    attacked = whom(
        opened.original, opened.release, opened.control, attacks=attacks, seed=seed, known=paired
    )
    wanted = learning.available() if learn is None else learn
    sensitive = [c.name for c in paired.sensitive]
    # Without a sensitive column, one that others may know is guessed from the rest of them.
    secrets = sensitive or [c.name for c in paired.quasi[1:][-1:]]
    released, seen = _released(paired), doubts(paired, opened.original, opened.release)
    seen = replace(seen, unseen=(*seen.unseen, *same_people(attacked)))
    before = _classes(paired.original, paired, paired.original_counts)
    after = _classes(released, paired, paired.released_counts)
    linked = linkage(paired, attacked.people, same_order=same_order, seed=seed)
    controlled = len(attacked.control) > 0
    both = None
    if opened.earlier is not None:
        both = differencing(paired, sides(opened.original, opened.earlier))
    return Comparison(
        rows=paired.before,
        rows_released=paired.after,
        suppressed=max(0, paired.before - paired.after),
        utility=class_utility(paired),
        partition=published_measures(paired, pairs=_PAIRS),
        distances=tuple(column_distance(c, paired.after) for c in paired.columns.values()),
        joint=joint_distances(paired),
        pairs=pairs_of(paired),
        moments=moments(paired),
        class_means=tuple(
            (c.name, class_mean_error(paired, c.name))
            for c in paired.sensitive
            if c.numbers is not None
        ),
        counting=counting_queries(paired, seed=seed, scaled=paired.after > paired.before),
        queries=sql_queries(paired, asked, seed=seed, memory_limit=memory_limit) if asked else (),
        needs=tuple(need_met(need, paired) for need in wishes),
        predictions=_predictions(attacked, targets, wanted=wanted, seed=seed),
        regressions=_regressions(paired, targets, wanted=learn is not False, seed=seed),
        likeness=likeness(paired, seed=seed) if wanted else None,
        before=reidentification(before.rows, before.people),
        after=_risk_after(after, paired, attacked.people),
        finding=_finding(paired, attacked.people),
        disclosures=tuple(
            (
                disclosure(before, name, original_blocks(paired.original, name, meaning)),
                disclosure(after, name, released_blocks(paired, released, name, meaning)),
            )
            for name in sensitive
            for meaning in [meaning_of(paired.original, name, meanings.get(name))]
        ),
        discrimination=_rates(
            paired,
            meanings,
            None if opened.weaker is None else sides(opened.original, opened.weaker),
            same_order=same_order,
        ),
        criteria=seen.judge(
            (
                singling_out(attacked, limit=limit),
                singling_out(attacked, known=False, limit=limit),
                *singling_out_together(both, controlled=controlled, limit=limit),
                linkability(attacked, limit=limit),
                *linkability_by_names(linked, attacked, limit=limit),
                *(inference(attacked, name, limit=limit) for name in secrets),
            )
        ),
        membership=membership(attacked),
        minimality=minimality(paired),
        linkage=linked,
        differencing=both,
        limit=limit,
        notes=(
            *opened.notes,
            *seen.all,
            *paired.notes,
            *_coverage(paired),
            *_seen(opened.control, wanted=wanted),
        ),
    )


def _predictions(
    attacked: Targets, names: Sequence[str] | None, *, wanted: bool, seed: int
) -> tuple[Prediction, ...]:
    paired = attacked.sides
    if names:
        learning.require()
    elif not wanted or len(paired.columns) < 2:
        return ()
    chosen = list(names) if names else [c.name for c in paired.sensitive[:1]]
    inside = attacked.size if len(attacked.control) else None
    return tuple(one for name in chosen for one in predict(paired, name, inside=inside, seed=seed))


def _regressions(
    paired: Sides, names: Sequence[str] | None, *, wanted: bool, seed: int
) -> tuple[Regression, ...]:
    numeric = [column.name for column in paired.sensitive if column.numbers is not None]
    return regress(paired, names or (numeric[:_FITTED] if wanted else ()), seed=seed)


def _released(paired: Sides) -> Table:
    """The released rows with the roles of the original."""
    schema = paired.original.schema
    columns = {
        name: Column(column.role)
        for name, column in schema.columns.items()
        if name in paired.columns
    }
    return Table(paired.rows.select(list(paired.columns)), Schema(columns))


def _classes(table: Table, paired: Sides, counts: Counts) -> Any:
    quasi = [c.name for c in paired.quasi]
    return classes_of(table, quasi, columns=[c.name for c in paired.sensitive], counts=counts)


def _risk_after(after: Any, paired: Sides, people: People | None) -> Reidentification:
    """The risk of the release's classes, by people where the original says whose rows are whose."""
    if people is None:
        return reidentification(after.rows, after.people)
    return reidentification(*released_people(paired, people))


def _finding(paired: Sides, people: People | None) -> Finding:
    chance, rows = chance_of_people(paired, people), paired.original_counts
    return Finding(mean(chance, rows), float(chance.max()), mean(chance == 0, rows))


def _spoken_of(targets: Sequence[str] | None, needs: Sequence[Need]) -> list[str]:
    """Columns that are compared whatever their role."""
    return [*(targets or ()), *(name for one in needs for name in (one.target, *one.keys))]


def _rates(
    paired: Sides,
    meanings: Mapping[str, object],
    weaker: Sides | None,
    *,
    same_order: bool,
) -> ReleaseRates:
    own = release_rates(paired, meanings, same_order=same_order)
    if weaker is None:
        return own
    return own.than(release_rates(weaker, meanings))


def _seen(control: Counted | None, *, wanted: bool) -> tuple[str, ...]:
    if control is not None or not wanted:
        return ()
    return (
        "Models were tested on people who are in the tables they were trained on: their scores "
        "lean upward on both sides. Rows of other people (control) would mend it.",
    )


def _coverage(paired: Sides) -> tuple[str, ...]:
    if paired.before == paired.after:
        return ()
    return (
        f"The release holds {paired.after:,} rows and the original {paired.before:,}: figures of "
        "single values are not comparable, those of columns are."
        + (" Random counts were scaled." if paired.after > paired.before else ""),
    )
