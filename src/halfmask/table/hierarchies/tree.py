"""Hierarchies written as a nested mapping: group, subgroup, ..., list of values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from halfmask.errors import HierarchyError
from halfmask.table.hierarchies.assemble import Levels, assemble, check_top, present
from halfmask.table.hierarchy import canonical

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

    from halfmask.table.hierarchy import Hierarchy

_TOP_KEY = "top"


@dataclass(frozen=True, slots=True)
class Tree:
    """A tree of groups whose leaves are the values.

    A value that stands less deep than others repeats its own text at the levels it lacks, so the
    groups of the outermost mapping all stand at the same level.

    Attributes:
        groups: name of a group to its subgroups (a mapping) or its values (a list).
        top: the label of the root that is added where there are several outermost groups; False:
            leave it open.

    Example:
        >>> Tree({"Europe": {"West": ["FR", "DE"], "East": ["PL"]}, "Asia": ["JP"]}).height
        2
    """

    groups: Mapping[str, Any]
    top: str | bool = True

    def __post_init__(self) -> None:
        check_top("tree", self.top)
        if not isinstance(self.groups, Mapping) or not self.groups:
            raise HierarchyError("hierarchy tree: give a mapping from groups to their values.")
        paths = list(_paths(self.groups, ()))
        twice = len(paths) - len({path[0] for path in paths})
        if twice:
            raise HierarchyError(f"hierarchy tree: {twice} value(s) stand in two places.")
        if not paths:
            raise HierarchyError("hierarchy tree: no group holds a value.")

    @property
    def height(self) -> int:
        """How many levels of groups there are."""
        return max(len(path) for path in _paths(self.groups, ())) - 1

    @classmethod
    def parse(cls, value: object, folder: Path) -> Tree:  # noqa: ARG003 - one signature for all
        """Read what stands behind ``tree =`` in the schema file."""
        if not isinstance(value, Mapping):
            raise HierarchyError("hierarchy tree: give a table from groups to their values.")
        return cls(value)

    def to_dict(self) -> dict[str, object]:
        """What stands behind ``hierarchy =`` in the schema file."""
        out: dict[str, object] = {"tree": _plain(self.groups)}
        return out if self.top is True else {**out, _TOP_KEY: self.top}

    def build(self, column: str, values: pa.Array) -> Hierarchy:
        """Bind the tree to the values of ``column``."""
        height = self.height
        leaves = {path[0]: _stretched(path, height) for path in _paths(self.groups, ())}
        found = [leaves.pop(canonical(value), None) for value in present(values)]
        absent = sum(path is None for path in found)
        if absent:
            raise HierarchyError(
                f"Column '{column}': {absent} distinct value(s) are not in the tree. Add them."
            )
        held = [path for path in found if path is not None]
        inside = [[path[level] for path in held] for level in range(height)]
        outside = [[path[level] for path in leaves.values()] for level in range(height)]
        levels = Levels(inside, outside, len(leaves), rooted=True)
        return assemble(column, values, levels, top=self.top)


def _paths(node: object, above: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Each value with its groups, innermost first."""
    if isinstance(node, Mapping):
        for name, inside in node.items():
            yield from _paths(inside, (str(name), *above))
    elif isinstance(node, Sequence) and not isinstance(node, str):
        for value in node:
            if isinstance(value, Mapping | list | tuple):
                yield from _paths(value, above)
            else:
                yield (canonical(value), *above)
    else:
        yield (canonical(node), *above)


def _stretched(path: tuple[str, ...], height: int) -> tuple[str, ...]:
    leaf, *groups = path
    return (*[leaf] * (height - len(groups)), *groups)


def _plain(node: Any) -> Any:
    if isinstance(node, Mapping):
        return {str(name): _plain(inside) for name, inside in node.items()}
    if isinstance(node, list | tuple):
        return [_plain(inside) for inside in node]
    return node
