"""Documents: results as plain values, as JSON knows them, derived from their fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, ClassVar

import numpy as np

_NAME, _PARTS, _HIDDEN = "document_name", "document_parts", "document_hidden"


class Result:
    """Figures that were found: a frozen dataclass whose document follows from its fields.

    Each field is written under its own name unless ``written`` says otherwise (none whose name
    begins with an underscore), then the properties that ``derived`` names.
    """

    __slots__ = ()

    derived: ClassVar[tuple[str, ...]] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        document = _of_fields(self)
        return document | {name: plain(getattr(self, name)) for name in self.derived}


def written(
    name: str | None = None, *, parts: tuple[str, ...] = (), hidden: bool = False
) -> dict[str, Any]:
    """The ``metadata`` of a field that is not written as it is.

    Args:
        name: the name that it has in the document.
        parts: what the parts of each of its tuples are called: a tuple becomes an object.
        hidden: whether it stays out of the document.
    """
    return {_NAME: name, _PARTS: parts, _HIDDEN: hidden}


def plain(value: Any) -> Any:
    """``value`` as JSON knows it; what JSON does not know becomes the name of its type."""
    if isinstance(value, Result):
        return value.to_dict()
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float) and not np.isfinite(value):
        return None
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if is_dataclass(value) and not isinstance(value, type):
        return _of_fields(value)
    return type(value).__name__


def _of_fields(value: Any) -> dict[str, Any]:
    document = {}
    for one in fields(value):
        if not one.name.startswith("_") and not one.metadata.get(_HIDDEN):
            inner, parts = getattr(value, one.name), one.metadata.get(_PARTS)
            if parts:
                inner = [dict(zip(parts, each, strict=True)) for each in inner]
            document[one.metadata.get(_NAME) or one.name] = plain(inner)
    return document
