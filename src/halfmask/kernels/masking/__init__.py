"""Inner loops of masks."""
