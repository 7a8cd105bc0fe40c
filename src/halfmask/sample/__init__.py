"""An invented table of people at any size, with its schema and hierarchies; no real persons."""

from halfmask.sample.world import SEED, people
from halfmask.sample.write import write

__all__ = ["SEED", "people", "write"]
