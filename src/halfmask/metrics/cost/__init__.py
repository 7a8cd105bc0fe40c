"""What a recoding costs: the metrics that a search minimizes, one a file."""
