"""One door for each kind of rows that leave: what it looks at again before it lets them."""
