"""The one door out: candidates are checked on the rows that leave, and become releases."""

from halfmask.release.candidate import Candidate
from halfmask.release.partition import Partition
from halfmask.release.recoding import Recoding, Step
from halfmask.release.release import Release
from halfmask.release.seal import seal

__all__ = ["Candidate", "Partition", "Recoding", "Release", "Step", "seal"]
