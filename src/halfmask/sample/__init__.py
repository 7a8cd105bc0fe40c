"""An invented table of people at any size, with its schema and hierarchies; no real persons."""

from halfmask.sample.population import SEED, people, write

__all__ = ["SEED", "people", "write"]
