"""Privacy promises, one file each, checked on class statistics."""

from halfmask.models.alpha_k_anonymity import AlphaKAnonymity
from halfmask.models.average_risk import AverageRisk
from halfmask.models.beta_likeness import BetaLikeness
from halfmask.models.delta_disclosure import DeltaDisclosure
from halfmask.models.delta_presence import DeltaPresence
from halfmask.models.k_anonymity import KAnonymity
from halfmask.models.k_map import KMap
from halfmask.models.l_diversity import LDiversity
from halfmask.models.personal_k_anonymity import PersonalKAnonymity
from halfmask.models.personal_l_diversity import PersonalLDiversity
from halfmask.models.personal_t_closeness import PersonalTCloseness
from halfmask.models.sample_uniques import SampleUniques
from halfmask.models.t_closeness import TCloseness
from halfmask.models.verdict import Model, Verdict

__all__ = [
    "AlphaKAnonymity",
    "AverageRisk",
    "BetaLikeness",
    "DeltaDisclosure",
    "DeltaPresence",
    "KAnonymity",
    "KMap",
    "LDiversity",
    "Model",
    "PersonalKAnonymity",
    "PersonalLDiversity",
    "PersonalTCloseness",
    "SampleUniques",
    "TCloseness",
    "Verdict",
]
