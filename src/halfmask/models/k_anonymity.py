"""k-anonymity: every person hides among at least k - 1 others.

Definition: min |E| >= k over all classes E, where |E| counts people.
Source: Sweeney, "k-anonymity: a model for protecting privacy", 2002.
"""
