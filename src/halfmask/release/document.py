"""The document of a release: plain values, the same in JSON and behind the HTML report."""

from __future__ import annotations

import json
import platform
from importlib import metadata
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pyarrow as pa

    from halfmask.release.demands import DemandsStatement
    from halfmask.release.release import Release

FORMAT = "halfmask.release/1"


def document(release: Release) -> dict[str, Any]:
    """All that is known of ``release`` but its rows."""
    total = release.rows + release.suppressed
    stated = {"statement": plain(dict(release.statement))} if release.statement else {}
    return {
        **demands_first(release.demands),
        "format": FORMAT,
        "outcome": outcome(release),
        "rows": {
            "original": total,
            "published": release.rows,
            "suppressed": release.suppressed,
            "suppressed_share": release.suppressed / total,
        },
        "models": [plain(model.to_dict()) for model in release.models],
        "verdicts": _verdicts(release),
        "loss": release.loss,
        "levels": release.levels,
        "columns": [plain(column.to_dict()) for column in release.columns],
        "classes": plain(release.classes.to_dict()),
        "method": release.method,
        "metric": release.metric,
        "gap": release.gap,
        "steps": len(release.recoding.steps) if release.recoding is not None else 0,
        "parameters": plain(dict(release.parameters)),
        "versions": dict(release.versions),
        "notes": list(release.notes),
        **stated,
        **demands_last(release.demands),
    }


def _verdicts(release: Release) -> list[dict[str, Any]]:
    """What was found, without the figures that are one person's: the highest demand of anybody."""
    personal = {model.name for model in release.models if model.policy}
    shown: list[dict[str, Any]] = [plain(verdict.to_dict()) for verdict in release.verdicts]
    for verdict in shown:
        if verdict["model"] in personal:
            verdict |= {"required": None, "achieved": None}
    return shown


def outcome(release: Release) -> str:
    """What happened, in one sentence for a reader who knows no statistics."""
    total = release.rows + release.suppressed
    kept = (
        f"{release.rows:,} of {total:,} rows may leave"
        if release.suppressed
        else (f"All {total:,} rows may leave")
    )
    count = len(release.verdicts)
    promises = "the one promise asked for was" if count == 1 else f"all {count} promises were"
    return (
        f"{warned(release.demands)}"
        f"{kept}: {promises} checked on these very rows and kept, at the price of "
        f"{release.loss:.1%} of the detail in the columns that others may know.{_truth(release)}"
    )


def demands_first(demands: DemandsStatement | None) -> dict[str, Any]:
    """The entry that says before all others that people's own demands were set aside."""
    return {} if demands is None or demands.kept else {"demands": demands.to_dict()}


def demands_last(demands: DemandsStatement | None) -> dict[str, Any]:
    """The entry that says that people's own demands were kept."""
    return {} if demands is None or not demands.kept else {"demands": demands.to_dict()}


def warned(demands: DemandsStatement | None) -> str:
    """What an outcome begins with where demands were set aside."""
    return "" if demands is None or demands.kept else f"{demands.words} "


def _truth(release: Release) -> str:
    """How many cells are true, where labels may be false."""
    if release.statement.get("kind") != "hybrid":
        return ""
    return f" {release.statement['measured']['true_cells']:.1%} of the published cells are true."


def plain(value: Any) -> Any:
    """``value`` as JSON knows it; what JSON does not know becomes text."""
    if isinstance(value, dict):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float) and not np.isfinite(value):
        return None
    if value is None or isinstance(value, str | int | float | bool):
        return value
    return type(value).__name__


def plain_rows(rows: pa.Table) -> list[dict[str, Any]]:
    """Released rows as JSON knows them: moments as text, and null for infinite numbers."""
    text = json.dumps([_finite(row) for row in rows.to_pylist()], default=str)
    found: list[dict[str, Any]] = json.loads(text)
    return found


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_finite(inner) for inner in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value


def versions() -> dict[str, str]:
    """The programs that a release depends on, without importing them."""
    found = {"python": platform.python_version()}
    for package in ("halfmask", "numpy", "pyarrow", "numba"):
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = "unknown"
    return found
