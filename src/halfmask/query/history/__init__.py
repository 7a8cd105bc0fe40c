"""What was answered before, and what a new answer would tell together with it."""
