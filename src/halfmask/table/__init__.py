"""Rows about people: reading, schema, hierarchies, dictionary codes and classes."""
