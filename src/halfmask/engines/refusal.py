"""What an engine complains of, without what it quotes and without what it stumbled over."""

from __future__ import annotations

from halfmask.errors import EngineError


def refusal(engine: str) -> EngineError:
    """An engine's complaint as ours: one text for all, since its reason may lie in a row."""
    return EngineError(
        f"{engine} could not answer this query. Check that it can be reached and knows the tables "
        "and the types of their columns; its own log has the reason."
    )
