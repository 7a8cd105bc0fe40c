"""Cell, relay and asker as state machines: they do no input or output of their own."""
