"""Tables of counts and sums about people: rules, suppression, rounding, noise and the audit."""
