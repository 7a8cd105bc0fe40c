"""Total expressions: what a query computes from a row has a value for every row, whatever it holds.

An engine that fails on one row, or takes longer for it, tells by that something about the row. So
each expression is rewritten into one that has a value (perhaps null) for all rows, the same on
every engine: whole numbers stay within 64 bits, others far within a double, dates within the years
1 to 9999, texts that grow are cut, and what does not convert is null. What cannot be had so is
refused by the query and the types of its columns alone, before any row is read.
"""
