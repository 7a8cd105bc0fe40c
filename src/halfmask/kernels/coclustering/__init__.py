"""Inner loops of co-clustering: one variable at a time, and merges over all of them."""
