"""Differential privacy: budgets, who may spend them, and the only mechanisms that touch counts."""
