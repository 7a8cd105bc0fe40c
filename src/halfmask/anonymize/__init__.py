"""From a table and models to a candidate that loses as little as possible."""
