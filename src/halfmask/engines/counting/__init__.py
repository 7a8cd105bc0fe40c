"""Distinct tuples, columns and codes of rows that stay elsewhere, as engines count them."""
