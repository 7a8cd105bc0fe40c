"""Synthetic tables: learn a model from noisy views of the rows, then draw new rows from it."""
