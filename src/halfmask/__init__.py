"""Publish tables about people so that everybody in them keeps the privacy they asked for."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from halfmask.table.finder import register_finder

# Every name with the module that it comes from, or that it is. A module loads when a name of it is
# first used, so that importing the package and asking for help cost nothing.
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

if TYPE_CHECKING:
    from halfmask import errors as errors
    from halfmask.anonymize.policies import compare_policies as compare_policies
    from halfmask.anonymize.run import anonymize as anonymize
    from halfmask.assessment.assess import assess as assess
    from halfmask.assessment.compare import compare as compare
    from halfmask.assessment.frontier import frontier as frontier
    from halfmask.assessment.row_risks import row_risks as row_risks
    from halfmask.coclustering.run import cocluster as cocluster
    from halfmask.dp.accountant import Accountant as Accountant
    from halfmask.dp.ledger import BudgetLedger as BudgetLedger
    from halfmask.engines.read import read as read
    from halfmask.errors import HalfmaskError as HalfmaskError
    from halfmask.masking import masks as masks
    from halfmask.masking.methods.response import estimate_shares as estimate_shares
    from halfmask.masking.run import mask as mask
    from halfmask.masking.run import randomize as randomize
    from halfmask.metrics.discrimination.column_sets import rank_column_sets as rank_column_sets
    from halfmask.metrics.discrimination.need import Need as Need
    from halfmask.metrics.discrimination.partition import Cuts as Cuts
    from halfmask.metrics.discrimination.partition import Partition as Partition
    from halfmask.metrics.discrimination.rate import discrimination_rate as discrimination_rate
    from halfmask.metrics.partition_measures import partition_measures as partition_measures
    from halfmask.models import AlphaKAnonymity as AlphaKAnonymity
    from halfmask.models import AverageRisk as AverageRisk
    from halfmask.models import BetaLikeness as BetaLikeness
    from halfmask.models import DeltaDisclosure as DeltaDisclosure
    from halfmask.models import DeltaPresence as DeltaPresence
    from halfmask.models import GuardingNodes as GuardingNodes
    from halfmask.models import HouseholdKAnonymity as HouseholdKAnonymity
    from halfmask.models import KAnonymity as KAnonymity
    from halfmask.models import KMap as KMap
    from halfmask.models import LDiversity as LDiversity
    from halfmask.models import MConfidentiality as MConfidentiality
    from halfmask.models import MInvariance as MInvariance
    from halfmask.models import PersonalKAnonymity as PersonalKAnonymity
    from halfmask.models import PersonalLDiversity as PersonalLDiversity
    from halfmask.models import PersonalTCloseness as PersonalTCloseness
    from halfmask.models import PopulationRisk as PopulationRisk
    from halfmask.models import SampleUniques as SampleUniques
    from halfmask.models import TCloseness as TCloseness
    from halfmask.models import Verdict as Verdict
    from halfmask.models.check import check as check
    from halfmask.query.explain import explain as explain
    from halfmask.query.history.ledger import Ledger as Ledger
    from halfmask.query.run import query as query
    from halfmask.query.suggest import suggest as suggest
    from halfmask.release import Recoding as Recoding
    from halfmask.release import Release as Release
    from halfmask.release.doors.masked import MaskedRelease as MaskedRelease
    from halfmask.release.doors.series import SeriesLedger as SeriesLedger
    from halfmask.release.release import Answer as Answer
    from halfmask.release.release import PrivateRelease as PrivateRelease
    from halfmask.release.release import SyntheticRelease as SyntheticRelease
    from halfmask.release.tabulation.door import TableRelease as TableRelease
    from halfmask.sample import policies as policies
    from halfmask.series.audit import audit_releases as audit_releases
    from halfmask.synthesize.run import synthesize as synthesize
    from halfmask.table import hierarchies as hierarchies
    from halfmask.table.columns import Column as Column
    from halfmask.table.policies import Policies as Policies
    from halfmask.table.proposals.describe import describe as describe
    from halfmask.table.schema import Schema as Schema
    from halfmask.table.table import Table as Table
    from halfmask.tabulate.audit import audit_table as audit_table
    from halfmask.tabulate.run import tabulate as tabulate
else:
    # A folder that loads takes the name that it has here. These load now, and are next to empty, so
    # that their names stay those of the functions.
    from halfmask import anonymize, query, synthesize, tabulate

    del anonymize, query, synthesize, tabulate


def _find_hierarchies(table: Any, seconds: float | None) -> Any:
    from halfmask.coclustering.trees import build_automatic

    return build_automatic(table, seconds)


register_finder(_find_hierarchies)
del register_finder


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
