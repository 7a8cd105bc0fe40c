"""Differencing of two releases beside their original, with an audit of who came and left."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from halfmask.metrics.risk.differencing import differencing, with_audit
from halfmask.series.audit import audit_tuples

if TYPE_CHECKING:
    from halfmask.metrics.risk.differencing import Differencing
    from halfmask.metrics.sides import Sides


def differencing_audited(release: Sides, earlier: Sides) -> Differencing:
    """What a release and an earlier one tell together; nothing is trusted that is not known."""
    found = differencing(release, earlier)
    original = release.original_tuples
    schema = original.table.schema
    secret = [n for n in schema.sensitive if n in release.columns and n in earlier.columns]
    if found.alone.value is None or not secret:
        return found
    kept = {n: c for n, c in schema.columns.items() if c.role != "sensitive" or n in secret}
    both = (earlier.released_tuples, release.released_tuples)
    audit = audit_tuples(both, replace(schema, columns=kept), original)
    certain = {name: number or 0 for name, number in audit.certain.items()}
    for one in audit.witnesses:
        if one.kind != "intersection":
            certain[one.column] = certain.get(one.column, 0) + one.certain
    words = tuple(one.sentence for one in audit.witnesses) or (audit.sentence, *audit.reasons)
    return with_audit(found, audit.outcome, words, certain)
