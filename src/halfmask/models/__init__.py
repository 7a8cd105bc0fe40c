"""Privacy promises, one class each, checked on class statistics."""

from halfmask.models.guarding_nodes import GuardingNodes
from halfmask.models.k_anonymity import AlphaKAnonymity, HouseholdKAnonymity, KAnonymity
from halfmask.models.l_diversity import LDiversity, MInvariance
from halfmask.models.likeness import BetaLikeness, DeltaDisclosure
from halfmask.models.m_confidentiality import MConfidentiality
from halfmask.models.personal import PersonalKAnonymity, PersonalLDiversity, PersonalTCloseness
from halfmask.models.population import (
    AverageRisk,
    DeltaPresence,
    KMap,
    PopulationRisk,
    SampleUniques,
)
from halfmask.models.t_closeness import TCloseness
from halfmask.models.verdict import Model, Verdict

__all__ = [
    "AlphaKAnonymity",
    "AverageRisk",
    "BetaLikeness",
    "DeltaDisclosure",
    "DeltaPresence",
    "GuardingNodes",
    "HouseholdKAnonymity",
    "KAnonymity",
    "KMap",
    "LDiversity",
    "MConfidentiality",
    "MInvariance",
    "Model",
    "PersonalKAnonymity",
    "PersonalLDiversity",
    "PersonalTCloseness",
    "PopulationRisk",
    "SampleUniques",
    "TCloseness",
    "Verdict",
]
