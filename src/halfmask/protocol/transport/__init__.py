"""How messages travel: in memory, or over HTTP."""
