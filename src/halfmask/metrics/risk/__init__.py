"""What can be told about people: one file a measure."""
