"""What may move when a group falls below its guarantee, one file a meaning."""
