"""Personal epsilon: every person's own budget, honored at once, by public levels of demand."""
