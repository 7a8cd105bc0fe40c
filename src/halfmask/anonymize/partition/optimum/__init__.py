"""Proven optima for small tables, by column generation; one file an idea."""
