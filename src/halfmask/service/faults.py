"""What is wrong with a request, in words: the fields and what they take, never what stood there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# What a field takes, by the name that pydantic gives to the fault.
_WANTED = {
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "string_type": "a text",
    "list_type": "a list",
    "dict_type": "an object",
    "model_attributes_type": "an object",
    "missing": "something: it is needed",
    "extra_forbidden": "nothing: it is not known here",
}
NO_OBJECT = "The request is not understood: its body must be a JSON object."
_SHOWN = 60


def misunderstood(faults: Sequence[Mapping[str, Any]]) -> str:
    """A sentence that names every faulty field once and says what it takes."""
    told: dict[str, list[str]] = {}
    if any(fault["type"] == "json_invalid" for fault in faults):
        return NO_OBJECT
    for fault in faults:
        name = "".join(str(part)[:_SHOWN] for part in fault["loc"][1:2])
        wanted = told.setdefault(name, [])
        if _wanted(fault) not in wanted:  # a field of several types has a fault for each
            wanted.append(_wanted(fault))
    if not told or "" in told:
        return NO_OBJECT
    parts = "; ".join(f"{name} takes {' or '.join(wanted)}" for name, wanted in told.items())
    return f"The request is not understood: {parts}."


def _wanted(fault: Mapping[str, Any]) -> str:
    kind, context = fault["type"], fault.get("ctx") or {}
    if kind == "literal_error":
        return str(context["expected"])
    if kind == "greater_than":
        return f"a number above {context['gt']:g}"
    return _WANTED.get(kind, "another value")
