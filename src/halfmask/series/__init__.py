"""Publishing a changing table again and again: what releases tell together, and how they do not."""
