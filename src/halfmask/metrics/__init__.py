"""What is measured on statistics: the loss of a recoding, risk and utility."""
