"""Publish tables about people so that everybody in them keeps the privacy they asked for.

Every name loads when it is first used, so that importing the package and asking for help cost
nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from halfmask import errors
    from halfmask.anonymize.policies import compare_policies
    from halfmask.anonymize.run import anonymize
    from halfmask.assessment.assess import assess
    from halfmask.assessment.compare import compare
    from halfmask.assessment.frontier import frontier
    from halfmask.assessment.row_risks import row_risks
    from halfmask.dp.accountant import Accountant
    from halfmask.dp.ledger import BudgetLedger
    from halfmask.errors import HalfmaskError
    from halfmask.metrics.discrimination.column_sets import rank_column_sets
    from halfmask.metrics.discrimination.need import Need
    from halfmask.metrics.discrimination.partition import Cuts, Partition
    from halfmask.metrics.discrimination.rate import discrimination_rate
    from halfmask.metrics.partition_measures import partition_measures
    from halfmask.models import (
        AlphaKAnonymity,
        AverageRisk,
        BetaLikeness,
        DeltaDisclosure,
        DeltaPresence,
        KAnonymity,
        KMap,
        LDiversity,
        PersonalKAnonymity,
        PersonalLDiversity,
        PersonalTCloseness,
        SampleUniques,
        TCloseness,
        Verdict,
    )
    from halfmask.models.check import check
    from halfmask.query.explain import explain
    from halfmask.query.history.ledger import Ledger
    from halfmask.query.run import query
    from halfmask.query.suggest import suggest
    from halfmask.release import Recoding, Release
    from halfmask.release.answer import Answer
    from halfmask.release.private import PrivateRelease
    from halfmask.release.synthetic import SyntheticRelease
    from halfmask.sample import policies
    from halfmask.synthesize.run import synthesize
    from halfmask.table import hierarchies
    from halfmask.table.demands import Policies
    from halfmask.table.describe import describe
    from halfmask.table.read import read
    from halfmask.table.schema import Column, Schema
    from halfmask.table.table import Table

__all__ = [
    "Accountant",
    "AlphaKAnonymity",
    "Answer",
    "AverageRisk",
    "BetaLikeness",
    "BudgetLedger",
    "Column",
    "Cuts",
    "DeltaDisclosure",
    "DeltaPresence",
    "HalfmaskError",
    "KAnonymity",
    "KMap",
    "LDiversity",
    "Ledger",
    "Need",
    "Partition",
    "PersonalKAnonymity",
    "PersonalLDiversity",
    "PersonalTCloseness",
    "Policies",
    "PrivateRelease",
    "Recoding",
    "Release",
    "SampleUniques",
    "Schema",
    "SyntheticRelease",
    "TCloseness",
    "Table",
    "Verdict",
    "anonymize",
    "assess",
    "check",
    "compare",
    "compare_policies",
    "describe",
    "discrimination_rate",
    "errors",
    "explain",
    "frontier",
    "hierarchies",
    "partition_measures",
    "policies",
    "query",
    "rank_column_sets",
    "read",
    "row_risks",
    "suggest",
    "synthesize",
]

# Where a name lives; the models are the rest.
_HOMES = {
    "Accountant": "halfmask.dp.accountant",
    "Answer": "halfmask.release.answer",
    "BudgetLedger": "halfmask.dp.ledger",
    "Column": "halfmask.table.schema",
    "Cuts": "halfmask.metrics.discrimination.partition",
    "HalfmaskError": "halfmask.errors",
    "Ledger": "halfmask.query.history.ledger",
    "Need": "halfmask.metrics.discrimination.need",
    "Partition": "halfmask.metrics.discrimination.partition",
    "Policies": "halfmask.table.demands",
    "PrivateRelease": "halfmask.release.private",
    "Recoding": "halfmask.release",
    "Release": "halfmask.release",
    "Schema": "halfmask.table.schema",
    "SyntheticRelease": "halfmask.release.synthetic",
    "Table": "halfmask.table.table",
    "anonymize": "halfmask.anonymize.run",
    "assess": "halfmask.assessment.assess",
    "check": "halfmask.models.check",
    "compare": "halfmask.assessment.compare",
    "compare_policies": "halfmask.anonymize.policies",
    "describe": "halfmask.table.describe",
    "frontier": "halfmask.assessment.frontier",
    "discrimination_rate": "halfmask.metrics.discrimination.rate",
    "explain": "halfmask.query.explain",
    "partition_measures": "halfmask.metrics.partition_measures",
    "query": "halfmask.query.run",
    "rank_column_sets": "halfmask.metrics.discrimination.column_sets",
    "read": "halfmask.table.read",
    "row_risks": "halfmask.assessment.row_risks",
    "suggest": "halfmask.query.suggest",
    "synthesize": "halfmask.synthesize.run",
}

_MODULES = {
    "errors": "halfmask.errors",
    "hierarchies": "halfmask.table.hierarchies",
    "policies": "halfmask.sample.policies",
}

# Importing a folder later would put it in the place of the function that has its name.
for _folder in ("anonymize", "query", "synthesize"):
    import_module(f"halfmask.{_folder}")
    globals().pop(_folder)


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"halfmask has no {name!r}; it has {', '.join(__all__)}.")
    if name in _MODULES:
        return import_module(_MODULES[name])
    value = getattr(import_module(_HOMES.get(name, "halfmask.models")), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
