"""Publish tables about people so that everybody in them keeps the privacy they asked for."""

from halfmask.errors import HalfmaskError
from halfmask.metrics.risk import assess
from halfmask.metrics.utility import compare
from halfmask.table import hierarchies
from halfmask.table.read import read
from halfmask.table.schema import Column, Schema
from halfmask.table.table import Table

__all__ = [
    "Column",
    "HalfmaskError",
    "Schema",
    "Table",
    "assess",
    "compare",
    "hierarchies",
    "read",
]
