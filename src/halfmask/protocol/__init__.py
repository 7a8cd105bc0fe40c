"""The same query without a trusted center: cells, a relay, and nobody who sees the rows."""
