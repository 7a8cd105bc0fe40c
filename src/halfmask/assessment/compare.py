"""``hm.compare``: what a release is still good for, and what it still tells about people.

It works for generalized, suppressed, perturbed and synthetic rows alike; see
``halfmask.metrics.sides`` for the common ground.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypedDict, TypeGuard, Unpack, overload

from halfmask.assessment.comparison import (
    COMPARED,
    ComparedTables,
    Comparison,
    ComparisonCase,
)
from halfmask.assessment.measure import require_limit
from halfmask.assessment.side_by_side import FigureBound, SideBySide
from halfmask.engines.counting.tuples import count_tuples
from halfmask.engines.read import as_table, read
from halfmask.errors import InputError, ParameterError
from halfmask.metrics.discrimination.need import Need, stated_needs
from halfmask.metrics.discrimination.partition import stated_partitions
from halfmask.metrics.risk.attack import LIMIT
from halfmask.metrics.sides import MISSING, ReleasedRows, require_word, star_suppressed
from halfmask.metrics.utility.queries import columns_named, statements
from halfmask.metrics.utility.summary import require_weights
from halfmask.models.verdict import require_whole
from halfmask.release.record import recorded_blanks
from halfmask.table.demands import without_policies
from halfmask.table.files.rows import normalize
from halfmask.table.schema import Schema
from halfmask.table.table import Table
from halfmask.table.tuples import Tuples
from halfmask.table.values import labels_with_points

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from os import PathLike

    Given = Table | ReleasedRows | str | PathLike[str]


class ComparisonSettings(TypedDict, total=False):
    """How two tables are compared; ``compare`` explains each."""

    suppressed: str | None
    same_order: bool
    targets: Sequence[str] | str | None
    needs: Sequence[Need] | str | PathLike[str]
    partition: object
    values: bool
    queries: str | PathLike[str] | None
    weights: str | None
    learn: bool | None
    attacks: int
    seed: int
    limit: float


@dataclass(frozen=True, slots=True)
class ComparisonOptions:
    """How it is compared, read and checked; ``compare`` explains each."""

    suppressed: str | None = None
    same_order: bool = False
    targets: tuple[str, ...] | None = None
    needs: tuple[Need, ...] = ()
    partition: Mapping[str, object] = field(default_factory=dict)
    values: bool = False
    queries: tuple[str, ...] = ()
    weights: str | None = None
    learn: bool | None = None
    attacks: int = 500
    seed: int = 0
    limit: float = LIMIT

    @classmethod
    def of(cls, settings: Mapping[str, object]) -> ComparisonOptions:
        """Read settings.

        Raises:
            ParameterError: there is no such setting, or it cannot be so.
        """
        given: dict[str, Any] = dict(settings)
        for name in given:
            if name not in cls.__slots__:
                raise ParameterError(name, given[name], f"one of {', '.join(cls.__slots__)}")
        targets = given.get("targets")
        if targets is not None:
            given["targets"] = (targets,) if isinstance(targets, str) else tuple(targets)
        queries = given.get("queries")
        given["queries"] = () if queries is None else tuple(statements(queries))
        given["needs"] = tuple(stated_needs(given.get("needs", ())))
        given["partition"] = stated_partitions(given.get("partition"))
        found = cls(**given)
        found.require()
        return found

    def require(self) -> None:
        """Refuse what cannot be."""
        require_whole("attacks", self.attacks, 1)
        require_whole("seed", self.seed, 0)
        require_limit(self.limit)
        require_word(self.suppressed)
        if not all(isinstance(wish, Need) for wish in self.needs):
            raise InputError(
                "A need is written as Need(target, keys): what is to be learned from what."
            )

    @property
    def named(self) -> list[str]:
        """The columns that are named, so that they count whatever their role."""
        wanted = [name for one in self.needs for name in (one.target, *one.keys)]
        weights = [] if self.weights is None else [self.weights]
        return [*columns_named(self.queries), *(self.targets or ()), *wanted, *weights]


def read_tables(
    given: tuple[Given, Given, Given | None, Given | None, Given | None],
    more: Sequence[str],
    suppressed: str | None,
) -> ComparedTables:
    """Take or count the original, the release, the control, the earlier and the weaker release.

    Args:
        given: these five.
        more: columns that are compared though they have no role.
        suppressed: what stands for a suppressed cell in releases, if it is not ``*``.

    Raises:
        SchemaError: the original names no quasi-identifier.
    """
    original = count_tuples(as_table(given[0]), _columns_counted, more)
    held = original.table.schema
    names = [name for name in [*_columns_counted(held), *more] if name not in original.private]
    releases = {"release": given[1], "earlier": given[3], "weaker": given[4]}
    found_of = {
        name: _read_release(one, names, held, suppressed)
        for name, one in releases.items()
        if one is not None
    }
    release, earlier, weaker = (found_of.get(name) for name in releases)
    assert release is not None  # noqa: S101 - it is always given
    control = None if given[2] is None else _read_control(given[2], names, held)
    blanks = {name: _blanks(releases[name], one) for name, one in found_of.items()}
    found = ComparedTables(original, release, control, earlier, weaker, blanks=blanks)
    notes = (
        *_engine_notes(found),
        *_uncounted_notes(original, release),
        *_suppression_notes(held, suppressed),
        *_weight_notes(held.weight, release),
    )
    return replace(found, notes=notes)


def _read_release(
    given: Given, names: list[str], held: Schema, suppressed: str | None
) -> ReleasedRows | Tuples:
    """A release, of which those columns count that the original has too.

    It has ``*`` where its quasi-identifiers are suppressed, and its numbers have points.
    """
    release = given if _is_release(given) else _count_others(read(given), names)
    if suppressed is None and held.decimal != ",":
        return release
    if not isinstance(release, Tuples):
        release = Tuples.of(Table(normalize(release.to_arrow(), ()), Schema()))
    rows = release.table.arrow
    if held.decimal == ",":
        rows = labels_with_points(rows)
    if suppressed is not None:
        rows = star_suppressed(rows, held.quasi, suppressed)
    return replace(release, table=Table(rows, release.table.schema))


def _blanks(given: Given | None, release: ReleasedRows | Tuples) -> tuple[str, ...]:
    """The columns in which a missing cell may be suppressed, as the release says of itself."""
    if _is_release(given):
        return tuple(getattr(given, "blanked", ()))
    return recorded_blanks(release.table.schema) if isinstance(release, Tuples) else ()


def _read_control(given: Given, names: list[str], held: Schema) -> Tuples:
    """The rows of other people, read as those of the original are."""
    if _is_release(given):
        raise InputError("A release is no control: give a table of people who are not in it.")
    return _count_others(read(given, _control_schema(held, names)), names)


def _is_release(given: object) -> TypeGuard[ReleasedRows]:
    # Frames have the methods of a release too, and give their rows as a stream besides.
    return isinstance(given, ReleasedRows) and not hasattr(given, "__arrow_c_stream__")


def _count_others(table: Table, names: list[str]) -> Tuples:
    # Roles are those of the original: what another table says of its columns does not count.
    return count_tuples(table.name_people(), lambda schema: schema.ties, names)


def _weight_notes(weight: str | None, release: ReleasedRows | Tuples) -> list[str]:
    """What is to be said where the original has weights that the release lacks."""
    if isinstance(release, Tuples):
        there = {*release.columns, *release.left_out}
    else:
        there = set(release.to_arrow().column_names)
    if weight is None or weight in there:
        return []
    return [
        "Means, deviations, quantiles and correlations count every row once: the sampling weights "
        f"in {weight} did not leave with the release."
    ]


def _suppression_notes(held: Schema, suppressed: str | None) -> list[str]:
    if suppressed is None:
        return []
    cells = "Missing cells" if suppressed == MISSING else "Cells with the stated text"
    return [f"{cells} of the release are read as suppressed in {', '.join(held.quasi)}."]


def _columns_counted(schema: Schema) -> list[str]:
    """The columns that everything is counted from; people count one by one."""
    schema.require_quasi()
    names = [*schema.quasi, *schema.sensitive]
    return names if schema.person is None else [*names, schema.person]


def _control_schema(schema: Schema, names: Sequence[str]) -> Schema:
    """What the schema says of some columns, for other people's rows."""
    columns = {name: column for name, column in schema.columns.items() if name in names}
    return without_policies(replace(schema, columns=columns, person=None))


def _engine_notes(found: ComparedTables) -> list[str]:
    sides = (found.original, found.release, found.control, found.earlier, found.weaker)
    names = ("original", "release", "control", "earlier release", "weaker release")
    return [
        f"The rows of the {name} were counted by {one.engine}: {len(one.table):,} distinct tuples "
        f"stand for {one.rows:,} rows. Figures without an interval are counted on all rows."
        for name, one in zip(names, sides, strict=True)
        if isinstance(one, Tuples) and one.engine
    ]


def _uncounted_notes(original: Tuples, release: ReleasedRows | Tuples) -> list[str]:
    """Columns that both tables may share and that were not counted."""
    uncounted, there = set(original.left_out), None
    if isinstance(release, Tuples):
        uncounted |= set(release.left_out)
        there = set(release.columns)
    names = [
        name
        for name in original.columns
        if name in uncounted and name not in original.private and (there is None or name in there)
    ]
    if not names:
        return []
    return [
        f"Not compared, as they are neither quasi-identifiers nor sensitive: {', '.join(names)}. "
        "Give them a role in the schema to have them counted too."
    ]


@overload
def compare(
    original: Table | str | PathLike[str],
    release: ReleasedRows | Table | Any,
    *,
    control: Table | Any | None = None,
    earlier: ReleasedRows | Table | Any | None = None,
    weaker: ReleasedRows | Table | str | PathLike[str] | None = None,
    **settings: Unpack[ComparisonSettings],
) -> Comparison: ...


@overload
def compare(
    original: Table | str | PathLike[str],
    release: ReleasedRows | Table | Any,
    second: ReleasedRows | Table | Any,
    /,
    *more: ReleasedRows | Table | Any,
    control: Table | Any | None = None,
    earlier: ReleasedRows | Table | Any | None = None,
    weaker: ReleasedRows | Table | str | PathLike[str] | None = None,
    **settings: Unpack[ComparisonSettings],
) -> SideBySide: ...


def compare(
    original: Table | str | PathLike[str],
    release: ReleasedRows | Table | Any,
    *more: ReleasedRows | Table | Any,
    control: Table | Any | None = None,
    earlier: ReleasedRows | Table | Any | None = None,
    weaker: ReleasedRows | Table | str | PathLike[str] | None = None,
    **settings: Unpack[ComparisonSettings],
) -> Comparison | SideBySide:
    """Measure what ``release`` lost against ``original`` and what it still gives away.

    Args:
        original: the rows it was made from; its schema and hierarchies count. The rows of each
            table may be anywhere (see ``read``), and each may be the name of a file.
        release: a release, or a table or frame of its rows.
        more: further releases of the same original. With any of them the result is a
            ``SideBySide``: its ``comparisons`` hold one ``Comparison`` for each release.
        control: rows of people who are not in the original, with the same columns; a frame too.
        earlier: another release of the same people, which an attacker may have too.
        weaker: a release under a weaker promise; where this one tells more is listed.
        settings: how they are compared, all of them optional:

            - ``suppressed``: what stands for a suppressed quasi-identifier in the releases, if it
              is not ``*``: a text such as ``"NA"``, or ``"missing"`` for missing cells.
            - ``same_order``: whether both tables hold the same people in the same order (perturbed
              rows).
            - ``targets``: columns to predict; None: the first sensitive column. Linear models are
              fitted for the numeric ones of them; None: for the first three numeric sensitive ones.
            - ``needs``: what analysts want to learn, as discrimination rates, or a TOML file.
            - ``partition``: per sensitive column, which of its values mean the same: blocks by
              column, or a TOML file; else the first level of its hierarchy, else tenths of the
              range of numbers.
            - ``values``: whether to score single published labels too, which shows them.
            - ``queries``: a file of SQL on a table called people, run on both.
            - ``weights``: a column of both tables by which means, deviations, quantiles and
              correlations are weighted.
            - ``learn``: whether to train models; None: if scikit-learn is installed. Linear models
              are fitted without it too.
            - ``attacks``: how many people each attack is tried on; 500.
            - ``seed``: repeats the random choices of attacks and queries.
            - ``limit``: the highest acceptable risk; 0.09.

    Example:
        >>> import halfmask as hm
        >>> people = hm.read({"age": [30, 30, 41, 41]}, schema={"age": "quasi"})
        >>> hm.compare(people, hm.anonymize(people, hm.KAnonymity(2)), learn=False).suppressed
        0
    """
    others: TablesBeside = {"control": control, "earlier": earlier, "weaker": weaker}
    options = ComparisonOptions.of(settings)
    if not more:
        return compare_one(original, release, others, options)
    releases = {f"release {i}": one for i, one in enumerate((release, *more), start=1)}
    return compare_releases(original, releases, others, options)


class TablesBeside(TypedDict, total=False):
    """Tables beside the original and its release."""

    control: Any
    earlier: Any
    weaker: Any


def compare_one(
    original: Given,
    release: Given,
    others: TablesBeside,
    options: ComparisonOptions,
    only: Collection[str] | None = None,
) -> Comparison:
    """Compare a release with its original, by ``only`` these measures if any are named."""
    beside = (others.get("control"), others.get("earlier"), others.get("weaker"))
    given = (original, release, *beside)
    case = ComparisonCase(read_tables(given, options.named, options.suppressed), options)
    if options.weights is not None:
        require_weights(case.sides, options.weights)
    return Comparison.of("compare", COMPARED, case, case.notes, only)


def compare_releases(
    original: Given,
    releases: Mapping[str, Given],
    others: TablesBeside,
    options: ComparisonOptions,
    conditions: Sequence[FigureBound] = (),
) -> SideBySide:
    """Compare several releases, by name, with one original, which is read once."""
    table = as_table(original)
    found = [compare_one(table, one, others, options) for one in releases.values()]
    return SideBySide.of([*releases], found, conditions)
