"""A release's document as a page that people can read, print and sign."""

from halfmask.report.page import render

__all__ = ["render"]
