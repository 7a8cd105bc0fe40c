"""Records as fixed bytes: how they are laid out, merged, and what they hold of many values."""
