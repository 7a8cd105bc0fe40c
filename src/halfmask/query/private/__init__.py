"""Answers under differential privacy: spend first, add up bounded contributions, add noise."""
