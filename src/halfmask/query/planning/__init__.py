"""From a statement to a plan: what its names mean, what is refused, what must hold."""
