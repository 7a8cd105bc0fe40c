"""What outlasts a process: the relay's ciphertexts, a cell's own rows."""
