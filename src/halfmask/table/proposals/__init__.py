"""The rules behind ``describe``: what a column seems to be, and why."""
