"""The local model: every person adds the noise, and nobody is trusted with the rows."""
