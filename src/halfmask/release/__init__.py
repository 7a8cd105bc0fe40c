"""The one door out: candidates are checked on the rows that leave, and become releases."""

from halfmask.release.candidate import Candidate
from halfmask.release.partition import RowPartition
from halfmask.release.recoding import Recoding, RecodingStep
from halfmask.release.release import Release
from halfmask.release.seal import seal

__all__ = ["Candidate", "Recoding", "RecodingStep", "Release", "RowPartition", "seal"]
