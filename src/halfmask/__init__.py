"""Publish tables about people so that everybody in them keeps the privacy they asked for."""

from halfmask.anonymize.run import anonymize
from halfmask.errors import HalfmaskError
from halfmask.metrics.risk import assess
from halfmask.metrics.utility import compare
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
    SampleUniques,
    TCloseness,
    Verdict,
)
from halfmask.models.check import check
from halfmask.query.policies import Policies
from halfmask.query.run import query
from halfmask.release import Recoding, Release
from halfmask.table import hierarchies
from halfmask.table.describe import describe
from halfmask.table.read import read
from halfmask.table.schema import Column, Schema
from halfmask.table.table import Table

__all__ = [
    "AlphaKAnonymity",
    "AverageRisk",
    "BetaLikeness",
    "Column",
    "DeltaDisclosure",
    "DeltaPresence",
    "HalfmaskError",
    "KAnonymity",
    "KMap",
    "LDiversity",
    "PersonalKAnonymity",
    "Policies",
    "Recoding",
    "Release",
    "SampleUniques",
    "Schema",
    "TCloseness",
    "Table",
    "Verdict",
    "anonymize",
    "assess",
    "check",
    "compare",
    "describe",
    "hierarchies",
    "query",
    "read",
]
