"""What a release is still good for: one file a measure."""
