"""Aggregate SQL under guarantees: parse, plan, collect, filter, aggregate, seal."""
