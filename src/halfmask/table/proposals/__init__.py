"""What the columns of a table seem to be: shapes of values, roles, and the words of names."""
