"""The compiled inner loops."""
