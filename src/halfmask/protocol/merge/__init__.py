"""Ways to merge partial aggregates: whole, through a spill, or frame by frame over the network."""
