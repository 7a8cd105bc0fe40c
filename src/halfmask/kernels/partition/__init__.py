"""Inner loops of divisions of rows into classes: made, improved, found exactly."""
