"""Expressions over rows that cannot fail, whatever the rows hold.

An engine that fails on one row tells, by failing, that the row exists. So nothing is converted that
might not convert, whole numbers stay within 64 bits, others far within a double, and dates within
the years 1 to 9999; what cannot be kept so is refused before anything is read.
"""
