"""Guarding nodes: each person names what of the sensitive column nobody may link to them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pyarrow as pa

from halfmask.errors import InternalError
from halfmask.models.exact_comparison import at_most, fraction, largest
from halfmask.models.statistics import histogram, occupied_classes, pass_empty, reduce
from halfmask.models.verdict import (
    SOUGHT,
    Model,
    Option,
    Parameter,
    Verdict,
    Words,
    judge,
    number,
    register_model,
    sensitive_column,
)
from halfmask.table.hierarchies.arx_csv import Csv
from halfmask.table.hierarchies.ladder import Flat
from halfmask.table.hierarchies.tree import Tree
from halfmask.table.hierarchy import canonical, flat

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.table.classes import Classes, Histogram
    from halfmask.table.hierarchy import Hierarchy
    from halfmask.table.table import Table

    Ints = NDArray[np.int64]


@register_model
@dataclass(frozen=True, slots=True)
class GuardingNodes(Model):
    """Require that nobody's sensitive value is linked to what this person guards, beyond ``p``.

    Definition: for every class E and every person i in E with a guarding node g_i of the sensitive
    column's hierarchy, |{j in E : s(j) below g_i}| <= p |{j in E : s(j) known}|; a class of which
    no value is known counts as all below. Who names no node guards nothing.
    Source: Xiao and Tao, "Personalized privacy preservation", 2006.

    Attributes:
        p: the highest chance of such a link.
        column: the sensitive column; its hierarchy has the nodes.
        guard: the column with each person's node, which must never leave: an identifier.

    Example:
        >>> GuardingNodes(0.5, "disease", "guarded").columns
        ('disease', 'guarded')
    """

    family: ClassVar[str] = "guarding nodes"
    personal: ClassVar[bool] = True  # the chance reached may be that of one node's only guard
    monotone: ClassVar[bool] = False  # people who guard nothing may bring what others guard
    option: ClassVar[Option] = Option(
        "guard",
        "Each person's guarding node of a sensitive column, which a column called guard names.",
        "chance of a link to what each person guards",
        "the nodes stand in a column called guard",
    )
    words: ClassVar[Words] = Words(
        "Of nobody more than the chance p is told that the sensitive value is one of those that "
        "this person guards.",
        SOUGHT,
        "Values that a person does not guard, and people who guard nothing.",
        "at most",
    )

    p: float = field(metadata=number(0, 1, stronger=-1))
    column: str = field(metadata=sensitive_column())
    guard: str = "guard"

    def __post_init__(self) -> None:
        Model.__post_init__(self)
        Parameter("column").require("guard", self.guard)

    @property
    def columns(self) -> tuple[str, ...]:
        """The sensitive column, and that of the nodes."""
        return (self.column, self.guard)

    def faults(self, table: Table) -> list[str]:
        """Refuse guards that would leave, and nodes that the hierarchy does not have."""
        found = []
        if self.guard not in table.schema.private:
            found.append(
                f"column '{self.guard}' says what people guard and must not leave: declare its "
                "role as identifier."
            )
        if not lists_values(table, self.column):
            found.append(
                f"column '{self.column}': its hierarchy lists no values, so that rows would decide "
                "which nodes there are: declare a tree or a file, or none."
            )
            return found
        whole = declared_tree(table, self.column)
        if whole is None:  # every value is a node
            return found
        encoded = table.encode(self.guard)
        nodes = encoded.values.drop_null().to_pylist()
        _, known = values_below(nodes, whole, whole.labels[0])
        unknown = [code for code, there in enumerate(known) if not there]
        rows = int(np.isin(encoded.codes, unknown).sum())
        if rows:
            found.append(
                f"column '{self.guard}': {rows:,} rows name a node that the hierarchy of column "
                f"'{self.column}' does not have: add it there, correct them, or leave them empty."
            )
        return found

    def passes(self, classes: Classes) -> NDArray[np.bool_]:
        """Tell for each class whether nobody in it is linked to what they guard."""
        passing = np.ones(len(classes.rows), dtype=np.bool_)
        for at, linked, known in self._links(classes):
            passing[at] &= at_most(linked, known, fraction(self.p))
        return pass_empty(classes, passing)

    def check(self, classes: Classes) -> Verdict:
        """Return the verdict on ``classes``; achieved is the highest chance of a link."""
        live = occupied_classes(classes)
        found = [largest(n[live[at]], of[live[at]]) for at, n, of in self._links(classes)]
        return judge(
            self,
            classes,
            self.passes(classes),
            required=self.p,
            achieved=max(found, default=fraction(0)),
        )

    def _links(self, classes: Classes) -> list[tuple[Ints, Ints, Ints]]:
        """Per node that anybody guards: the classes of these people, rows below it, all known."""
        values = histogram(classes, self.column).drop_missing()
        guards = histogram(classes, self.guard).drop_missing()
        if values.labels is None or guards.labels is None:
            raise InternalError("The class statistics lack the values.")
        nodes = guards.labels.drop_null().to_pylist()
        below, _ = values_below(nodes, values.hierarchy, values.labels.to_pylist())
        known = reduce(np.add, values.counts, values.starts)
        out = []
        for code in np.unique(guards.values).tolist():
            at = guards.owners[guards.values == code]
            linked = _rows_below(values, below[code])[at]
            silent = known[at] == 0
            out.append((at, np.where(silent, 1, linked), np.where(silent, 1, known[at])))
        return out


def _rows_below(values: Histogram, below: NDArray[np.bool_]) -> Ints:
    """Per class, how many rows hold one of these values."""
    return reduce(np.add, np.where(below[values.values], values.counts, 0), values.starts)


def lists_values(table: Table, column: str) -> bool:
    """Whether which nodes there are is declared, and does not follow from what rows hold."""
    declared = table.schema.columns.get(column)
    builder = None if declared is None else declared.hierarchy
    plain = builder is None or isinstance(builder, Flat)
    return plain or (isinstance(builder, Tree | Csv) and column not in table.found)


def declared_tree(table: Table, column: str) -> Hierarchy | None:
    """The hierarchy of all values that are declared, held or not; None: no value is declared."""
    declared = table.schema.columns.get(column)
    builder = None if declared is None else declared.hierarchy
    if not isinstance(builder, Tree | Csv):
        return None
    return builder.build(column, pa.array(builder.leaves(), pa.string()))


def values_below(
    nodes: list[object], tree: Hierarchy | None, values: list[object]
) -> tuple[NDArray[np.bool_], list[bool]]:
    """Per node and value whether the value is the node or below it; and whether it is a node.

    A label that stands at several levels is guarded as far as the widest of them reaches.
    """
    hierarchy = flat(values) if tree is None else tree
    found = np.zeros((len(nodes), len(values)), dtype=np.bool_)
    known = []
    for row, node in enumerate(nodes):
        text, there = canonical(node), False
        for level, labels in enumerate(hierarchy.labels):
            for place, label in enumerate(labels):
                if label is not None and canonical(label) == text:
                    found[row] |= hierarchy.maps[level] == place
                    there = True
        known.append(there)
    return found, known
