"""Masks of statistical disclosure control: one class each, applied in order, recorded, measured."""
