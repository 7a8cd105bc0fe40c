"""Rules that make the hierarchy of a column from its values, one file each."""

from halfmask.table.hierarchies.arx_csv import Csv
from halfmask.table.hierarchies.auto import Auto
from halfmask.table.hierarchies.check import check_hierarchies
from halfmask.table.hierarchies.dates import Dates
from halfmask.table.hierarchies.flat import Flat
from halfmask.table.hierarchies.intervals import Intervals
from halfmask.table.hierarchies.mask import Mask
from halfmask.table.hierarchies.ordered import Ordered
from halfmask.table.hierarchies.parse import from_dict
from halfmask.table.hierarchies.tree import Tree

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
