"""The door for tables of figures: their cells, what the door counts again, what must not leave."""
