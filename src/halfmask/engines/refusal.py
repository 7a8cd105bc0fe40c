"""What an engine complains of, without what it quotes."""

from __future__ import annotations

import re

from halfmask.errors import EngineError, QueryError


def refusal(engine: str, error: Exception) -> EngineError | QueryError:
    """An engine's complaint as ours, with all that could be a cell value taken out."""
    first = str(error).strip().split("\n")[0]
    kind = first.split(":")[0] if ":" in first else type(error).__name__
    kind = re.sub(r"[^A-Za-z ]", "", kind)[:60]
    words = f"{type(error).__name__} {kind}".lower()
    if any(
        w in words
        for w in (
            "binder",
            "conversion",
            "parser",
            "catalog",
            "invalid",
            "range",
            "undefined",
            "datatype",
            "syntax",
            "analysis",
            "mismatch",
            "overflow",
            "division",
            "cast",
            "numeric",
            "grouping",
        )
    ):
        return QueryError(
            f"{engine} cannot evaluate an expression of the query ({kind}). Check the types of the "
            "columns; a CAST may help."
        )
    return EngineError(f"{engine} failed ({kind}).")
