"""Rules that make the hierarchy of a column from its values."""

from halfmask.table.hierarchies.arx_csv import Csv
from halfmask.table.hierarchies.builders import Auto, from_dict
from halfmask.table.hierarchies.dates import Dates
from halfmask.table.hierarchies.intervals import Intervals
from halfmask.table.hierarchies.ladder import Flat, Mask, Ordered
from halfmask.table.hierarchies.tree import Tree, check_hierarchies

__all__ = [
    "Auto",
    "Csv",
    "Dates",
    "Flat",
    "Intervals",
    "Mask",
    "Ordered",
    "Tree",
    "check_hierarchies",
    "from_dict",
]
