"""``describe``: what the columns of a table seem to be, by shapes, roles and words of names."""
