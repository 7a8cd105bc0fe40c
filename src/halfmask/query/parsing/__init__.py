"""From text to a statement: SQL, and the guarantees behind it."""
