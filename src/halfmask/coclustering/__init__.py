"""MODL co-clustering: group the values of several variables so that their joint law shows."""
