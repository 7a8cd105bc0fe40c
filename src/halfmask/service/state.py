"""What the page needs to draw itself: the table, what was made of it, and what can be chosen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from halfmask.anonymize.run import METHODS
from halfmask.metrics.cost.registry import METRICS
from halfmask.release.document import versions
from halfmask.synthesize.private import PRIVATE
from halfmask.synthesize.run import MEASURED
from halfmask.table.demands import DEMANDS
from halfmask.table.schema import KINDS, ROLES

if TYPE_CHECKING:
    from halfmask.service.jobs import Jobs
    from halfmask.service.workspace import Workspace


def state(space: Workspace, jobs: Jobs) -> dict[str, Any]:
    """The state of the service, without a row."""
    current = jobs.current
    return {
        "ok": True,
        "version": versions()["halfmask"],
        "table": _table(space) if space.is_open else None,
        "population": None if space.population is None else space.population.to_dict(),
        "results": sorted(space.results),
        "job": None if current is None else current.to_dict(),
        "choices": {
            "roles": list(ROLES),
            "kinds": list(KINDS),
            "demands": list(DEMANDS),
            "methods": list(METHODS),
            "metrics": list(METRICS),
            "synthesizers": ["auto", *PRIVATE, *MEASURED],
        },
    }


def _table(space: Workspace) -> dict[str, Any]:
    now = space.standing
    columns = [column["name"] for column in now.description["columns"]]
    return {"name": now.name, "rows": now.description["rows"], "columns": columns}
