"""Guarded values: each person's own generalization of the sensitive value.

Definition: a person names a node g of the sensitive column's hierarchy. The value of everybody who
    names g is shown at the lowest level whose labels leave the chance at most p that a value is
    below g: of the declared values under each label, held or not, and of the rows under it of
    people who name no node, at most the share p is below g. Who names no node is shown as is. So
    level and refusal follow from g, the hierarchy and what everybody sees, never from what people
    hold who guard something. Without a hierarchy the values are those shown as is, and the nodes.
Source: Xiao and Tao, "Personalized privacy preservation", 2006 (generalization of the sensitive
    attribute; there after that of quasi-identifiers, and as far as a class needs it).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pyarrow as pa

from halfmask.errors import UnsatisfiableError
from halfmask.masking.step import (
    MaskStep,
    MaskWords,
    Outcome,
    one_column,
    register_mask,
    value_type,
)
from halfmask.models.exact_comparison import at_most, fraction
from halfmask.models.guarding_nodes import GuardingNodes, declared_tree, values_below
from halfmask.models.verdict import number
from halfmask.release.doors.claims import GuardClaim
from halfmask.table.hierarchy import TOP, canonical, flat
from halfmask.table.values import is_text

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.masking.step import Rows
    from halfmask.table.hierarchy import Hierarchy
    from halfmask.table.table import Table


@register_mask
@dataclass(frozen=True, slots=True)
class Guard(MaskStep):
    """Show the sensitive value of each person as coarsely as this person's guarding node asks for.

    ``guard`` is the column with the nodes, an identifier, so that it never leaves. Columns of
    numbers become text.

    Example:
        >>> import halfmask as hm
        >>> people = hm.read({"age": [20, 30, 40], "ill": ["flu", "cold", "hiv"],
        ...                   "guard": ["hiv", None, "hiv"]},
        ...                  schema={"age": "quasi", "ill": "sensitive", "guard": "identifier"})
        >>> release = hm.mask(people, hm.masks.Guard("ill", guard="guard", p=0.5))
        >>> sorted(release.to_arrow()["ill"].to_pylist())
        ['*', '*', 'cold']
    """

    name: ClassVar[str] = "guard"
    words: ClassVar[MaskWords] = MaskWords(
        "Sensitive values are shown as coarsely as each person's guarding node asks for.",
        "Being surer than p that a person's value is one of those that this person guards, for "
        "readers to whom guarding a value does not tell of holding it.",
        "That a person guards something: where mostly those guard a value who hold it, the coarse "
        "label tells it. Values that nobody guards, and what people who are alike have in common.",
    )

    column: str = field(metadata=one_column())
    guard: str = field(metadata=one_column(changed=False))
    p: float = field(default=0.5, metadata=number(0, 1))

    def faults(self, table: Table) -> list[str]:
        """Refuse quasi-identifiers, guards that would leave, and nodes that there are not."""
        found = GuardingNodes(self.p, self.column, self.guard).faults(table)
        if self.column in table.schema.quasi:
            found.append(f"column '{self.column}' is a quasi-identifier: name a sensitive one.")
        return found

    def apply(self, rows: Rows) -> Outcome:
        """Show each value at the level of its person's node."""
        table = rows.table
        held, guards = table.encode(self.column), table.encode(self.guard)
        values = held.values.to_pylist()
        declared = table.schema.columns.get(self.column)
        known = declared is not None and declared.hierarchy
        tree = table.hierarchy(self.column) if known else flat(values)
        present = np.array([value is not None for value in values])
        nodes = guards.values.drop_null().to_pylist()
        plain = np.bincount(held.codes[guards.codes >= len(nodes)], minlength=len(values))
        seen = {
            canonical(value): int(count)
            for value, count in zip(values, plain.tolist(), strict=True)
            if value is not None and count
        }
        whole = declared_tree(table, self.column)
        if whole is None:
            named = [text for text in map(canonical, nodes) if text != TOP]
            whole = flat(list(dict.fromkeys([*seen, *named])))
        leaves = whole.labels[0]
        counts = np.array([seen.get(canonical(leaf), 0) for leaf in leaves], np.int64)
        below, _ = values_below(nodes, whole, leaves)
        levels = np.zeros(len(guards.values), np.int64)  # who names nothing stands at the end
        for place, under in enumerate(below):
            levels[place] = self._level(whole, under, counts)
        level = levels[guards.codes]
        texts: list[str | None] = []
        at, begin = np.empty(len(level), np.int64), 0
        for one in range(tree.height + 1):
            labels = [None if label is None else canonical(label) for label in tree.labels[one]]
            mine = level == one
            at[mine] = begin + tree.maps[one][held.codes[mine]]
            texts += labels
            begin += len(labels)
        missing = ~present[held.codes]
        shown = pa.array(texts, pa.string()).take(pa.array(at, mask=missing))
        kind = value_type(table.arrow[self.column].type)
        if is_text(kind):
            shown = shown.cast(kind)
        facts = {
            "guarded": int((guards.codes < len(nodes)).sum()),
            "coarser": int((level > 0).sum()),
        }
        return Outcome(
            {self.column: shown},
            claims=(GuardClaim(self.column, self.guard, self.p),),
            facts=facts,
        )

    def _level(self, tree: Hierarchy, under: NDArray[np.bool_], counts: NDArray[np.int64]) -> int:
        """The lowest level at which labels tell little enough of what is guarded."""
        p, different = fraction(self.p), np.ones(len(counts), np.int64)
        for level in range(tree.height + 1):
            size = len(tree.labels[level])
            enough = True
            for weight in (counts, different):
                whole = np.bincount(tree.maps[level], weight, size).astype(np.int64)
                part = np.bincount(tree.maps[level][under], weight[under], size).astype(np.int64)
                enough &= bool(at_most(part, whole, p).all())
            if enough:
                return level
        raise UnsatisfiableError(
            f"guard: somebody guards more than {self.p:.0%} of all values in column "
            f"'{self.column}': ask for a larger p, or for nodes that stand lower."
        )
