"""Publish tables about people so that everybody in them keeps the privacy they asked for."""

from importlib import import_module
from typing import Any

from halfmask import anonymize, query, synthesize, tabulate
from halfmask.table.hierarchy_finder import register_finder

# Every name with the module that it comes from, or that it is. A module loads when a name of it is
# first used, so that importing the package and asking for help cost nothing. What type checkers
# read of these names stands in __init__.pyi.
_HOMES = {
    "Accountant": "halfmask.dp.accountant",
    "AlphaKAnonymity": "halfmask.models",
    "Answer": "halfmask.release.release",
    "AverageRisk": "halfmask.models",
    "BetaLikeness": "halfmask.models",
    "BudgetLedger": "halfmask.dp.ledger",
    "Column": "halfmask.table.columns",
    "Cuts": "halfmask.metrics.discrimination.partition",
    "DeltaDisclosure": "halfmask.models",
    "DeltaPresence": "halfmask.models",
    "GuardingNodes": "halfmask.models",
    "HalfmaskError": "halfmask.errors",
    "KAnonymity": "halfmask.models",
    "KMap": "halfmask.models",
    "HouseholdKAnonymity": "halfmask.models",
    "PopulationRisk": "halfmask.models",
    "LDiversity": "halfmask.models",
    "MConfidentiality": "halfmask.models",
    "MInvariance": "halfmask.models",
    "Ledger": "halfmask.query.history.ledger",
    "MaskedRelease": "halfmask.release.doors.masked",
    "Need": "halfmask.metrics.discrimination.need",
    "Partition": "halfmask.metrics.discrimination.partition",
    "PersonalKAnonymity": "halfmask.models",
    "PersonalLDiversity": "halfmask.models",
    "PersonalTCloseness": "halfmask.models",
    "Policies": "halfmask.table.policies",
    "PrivateRelease": "halfmask.release.release",
    "Recoding": "halfmask.release",
    "Release": "halfmask.release",
    "SampleUniques": "halfmask.models",
    "SeriesLedger": "halfmask.release.doors.series",
    "Schema": "halfmask.table.schema",
    "SyntheticRelease": "halfmask.release.release",
    "TCloseness": "halfmask.models",
    "Table": "halfmask.table.table",
    "TableRelease": "halfmask.release.tabulation.door",
    "Verdict": "halfmask.models",
    "anonymize": "halfmask.anonymize.run",
    "assess": "halfmask.assessment.assess",
    "audit_releases": "halfmask.series.audit",
    "audit_table": "halfmask.tabulate.audit",
    "check": "halfmask.models.check",
    "cocluster": "halfmask.coclustering.run",
    "compare": "halfmask.assessment.compare",
    "compare_policies": "halfmask.anonymize.policies",
    "describe": "halfmask.table.proposals.describe",
    "discrimination_rate": "halfmask.metrics.discrimination.rate",
    "errors": "halfmask.errors",
    "estimate_shares": "halfmask.masking.methods.response",
    "explain": "halfmask.query.explain",
    "frontier": "halfmask.assessment.frontier",
    "hierarchies": "halfmask.table.hierarchies",
    "mask": "halfmask.masking.run",
    "masks": "halfmask.masking.masks",
    "partition_measures": "halfmask.metrics.partition_measures",
    "policies": "halfmask.sample.policies",
    "query": "halfmask.query.run",
    "randomize": "halfmask.masking.run",
    "rank_column_sets": "halfmask.metrics.discrimination.column_sets",
    "read": "halfmask.engines.read",
    "row_risks": "halfmask.assessment.row_risks",
    "suggest": "halfmask.query.suggest",
    "synthesize": "halfmask.synthesize.run",
    "tabulate": "halfmask.tabulate.run",
}
__all__ = sorted(_HOMES)

# A folder that loads takes its name here. These four loaded above, and are next to empty, so that
# their names stay those of the functions.
del anonymize, query, synthesize, tabulate


def _find_hierarchies(table: Any, seconds: float | None) -> Any:
    from halfmask.coclustering.trees import build_automatic

    return build_automatic(table, seconds)


# A table asks for the hierarchies of all its columns at once, which only a package above it finds.
register_finder(_find_hierarchies)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        if name[:1].isupper():  # a model that is no promised name, or of another package
            for model in import_module("halfmask.models.verdict").known_models():
                if model.__name__ == name:
                    return model
        raise AttributeError(f"halfmask has no {name!r}; it has {', '.join(__all__)}.")
    home = import_module(_HOMES[name])
    value = globals()[name] = getattr(home, name, home)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
