"""Synthetic tables: learn a model of the rows, then draw new rows from it."""
