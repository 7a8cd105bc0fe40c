"""Differential privacy: budgets, who may spend them, and the only mechanisms that touch counts."""

from halfmask.dp.accountant import Accountant, Receipt
from halfmask.dp.budget import Approximate, Concentrated, Pure, budget
from halfmask.dp.figures import attacker
from halfmask.dp.ledger import BudgetLedger

__all__ = [
    "Accountant",
    "Approximate",
    "BudgetLedger",
    "Concentrated",
    "Pure",
    "Receipt",
    "attacker",
    "budget",
]
