"""Documents as pages that people can read, print and sign."""

from halfmask.report.page import render, render_policies

__all__ = ["render", "render_policies"]
